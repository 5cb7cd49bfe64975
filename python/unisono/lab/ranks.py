"""MPI programs on the hosts of a lab, started by the real launcher of Open MPI or MPICH."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unisono._core import InputError
from unisono.lab.session import Lab
from unisono.mpi import installations, launchers
from unisono.mpi.launchers import Launcher, check_program, environment, find_launcher, is_launcher, linked_library

__all__ = ["FAMILIES", "StuckLauncher", "beginning", "command", "launcher", "launcher_process", "variables"]

#: The MPI libraries that a lab can run, and their names for users.
FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH"}
#: The name of the network device of each host.
_DEVICE = "eth0"
#: The beginning of a command that runs in its own process namespace. The kernel ends all processes of the namespace
#: when its first process, the launcher, is killed. SIGTERM does not suffice, because a launcher that waits for an
#: unreachable host ignores it.
_JOB = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")
#: The beginning of a command that starts only while another process holds the lock of a file. A process can request a
#: signal for the end of its parent, but gets no signal if the parent ended before the request. The launcher starts
#: after all such requests, so it starts only if the first process of the chain still runs and holds the lock.
_WHILE_LOCKED = ("sh", "-c", 'flock -n -E 75 "$0" true; [ $? = 75 ] && exec "$@"')
#: The seconds for which a launcher may run after its last rank has ended. It ends in less than a second.
_SECONDS_WITHOUT_RANKS = 10.0
#: The beginning of a command whose processes, when they sleep, sleep at least the nanoseconds of the next argument.
_NAPS = ("sh", "-c", 'echo "$0" > /proc/self/timerslack_ns; exec "$@"')


def launcher(lab: Lab, ranks: int, program: str) -> Launcher:
    """Returns the launcher of a program, with the options that start its ranks on the first hosts.

    Raises:
        InputError: there is no such program or launcher, or the hosts do not have enough places for the ranks.

    """
    hosts = len(lab.network.hosts)
    if not 1 <= ranks <= hosts * lab.per_host:
        raise InputError(
            f"-n is {ranks}, and the lab has places for 1 to {hosts * lab.per_host} ranks ({hosts} hosts, "
            f"{lab.per_host} a host); 'unisono lab up ... --per-host K' makes more"
        )
    if is_launcher(program):
        raise InputError(f"'{program}' starts ranks itself; name the program after --")
    check_program(program)
    found = _of_lab(lab.mpi, program) if lab.mpi is not None else find_launcher(program)
    # Launchers start one of their own processes on each listed host, so only hosts with ranks are listed.
    used = lab.network.hosts[: -(-ranks // lab.per_host)]
    places = ",".join(f"{host}:{lab.per_host}" for host in used)
    if found.family == "openmpi":
        placed = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none")
        options: tuple[str, ...] = ("--host", places, *placed, "-x", "PATH")
    elif found.family == "mpich":
        options = ("-launcher", "ssh", "-launcher-exec", str(lab.folder / "agent"), "-iface", _DEVICE, "-hosts", places)
    else:
        raise InputError(f"a lab starts ranks by Open MPI or MPICH, and '{found.path}' is of neither")
    return Launcher(found.path, found.family, options)


def command(
    lab: Lab,
    starter: Launcher,
    ranks: int,
    program: Sequence[str],
    plan: str | None,
    report: str | None,
    begun: Path,
    times: Path | None = None,
) -> list[str]:
    """Returns the command that starts a program's ranks from the first host.

    The ranks run as long as :func:`beginning` holds the lock of ``begun``.

    The paths ``plan`` and ``report`` are those of ``unisono run``. Each rank appends its seconds between ``MPI_Init``
    and ``MPI_Finalize`` to the file ``times``, if given.
    """
    of_ranks = {} if plan is None else launchers.variables(plan, report, ())
    if times is not None:
        # Without a plan, the preload library is switched off and only writes times.
        of_ranks = of_ranks or launchers.variables(None, None, ("UNISONO_OFF",))
        of_ranks["UNISONO_PROGRAM_TIME"] = str(times)
    started = starter.command(ranks, True, of_ranks, list(program))
    return [
        *lab.enter(lab.network.hosts[0]),
        *_JOB,
        *_WHILE_LOCKED,
        str(begun),
        *_NAPS,
        str(lab.network.nap_ns),
        *started,
    ]


@contextmanager
def beginning(lab: Lab) -> Iterator[Path]:
    """Yields a file in the lab's folder whose lock this process holds, for :func:`command`."""
    path = lab.folder / f"run-{os.getpid()}"
    # Commands do not inherit the descriptor, so the lock ends with this process.
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def launcher_process(command: int) -> int:
    """Returns the number of the launcher's process, which process ``command`` starts.

    Before the launcher starts, the number is ``command``.
    """
    found = command
    # Entering the lab's process namespace and creating the job's namespace add one process each.
    for _ in range(2):
        try:
            children = Path(f"/proc/{found}/task/{found}/children").read_text().split()
        except OSError:
            children = []
        if not children:
            return command
        found = int(children[0])
    return found


class StuckLauncher:
    """Finds a launcher that waits although its ranks have ended.

    Open MPI's launcher and its processes on other hosts sometimes wait for each other after a rank was killed.
    """

    def __init__(self, launcher: Callable[[int], int], seconds: float = _SECONDS_WITHOUT_RANKS) -> None:
        """``launcher`` maps the process id of a command to that of its launcher."""
        self._launcher = launcher
        self._seconds = seconds
        #: The time at which a rank was seen last; None before the first one.
        self._seen: float | None = None
        self.is_found = False

    def __call__(self, command: int) -> bool:
        """Returns whether the launcher of process ``command`` had ranks, and none for some seconds."""
        if any(_is_rank(process) for process in _descendants(self._launcher(command))):
            self._seen = time.monotonic()
        self.is_found = self._seen is not None and time.monotonic() - self._seen > self._seconds
        return self.is_found


def _descendants(process: int) -> Iterator[int]:
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, tasks.read_text().split()):
                yield child
                yield from _descendants(child)


def _is_rank(process: int) -> bool:
    """Returns whether a process is a rank, or one that a rank started; false if it has ended."""
    try:
        words = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except PermissionError:
        return True
    except OSError:
        return False
    return any(word.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")) for word in words)


def variables(lab: Lab, starter: Launcher) -> dict[str, str]:
    """Returns the environment variables of the launcher, which runs on the first host."""
    agent = str(lab.folder / "agent")
    settings = {
        # The first two variables are for Open MPI from release 5 on, the next two for older releases.
        "PRTE_MCA_plm_ssh_agent": agent,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "OMPI_MCA_plm_rsh_agent": agent,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "^openib,ofi,uct,usnic",
        "OMPI_MCA_btl_tcp_if_include": _DEVICE,
        # Hosts of a lab share the cores of this computer. So a waiting rank sleeps between two polls. If it only
        # yielded its core, it would run again only after every busy program of the computer.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
        "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
        # Waiting calls of MPICH sleep only if MPI is initialised for calls of any thread.
        "MPIR_CVAR_DEFAULT_THREAD_LEVEL": "MPI_THREAD_MULTIPLE",
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        # MPICH must use TCP. By default, UCX would use the shared memory of this computer, and libfabric might use any
        # device.
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": _DEVICE,
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": _DEVICE,
    }
    own = {**environment(starter), **settings}
    own |= {"TMPDIR": str(lab.folder / "tmp"), "HOSTNAME": lab.network.hosts[0]}
    if lab.user:
        own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return own


def _of_lab(family: str, program: str) -> Launcher:
    """Returns a launcher of the lab's MPI library, and refuses a program that is linked to another library."""
    full = shutil.which(program)
    if full is not None and linked_library(Path(full)) is not None:
        found = find_launcher(program)
        if found.family != family:
            raise InputError(
                f"'{program}' uses {FAMILIES.get(found.family, 'another MPI')}, and the lab is for {FAMILIES[family]}; "
                "'unisono lab up' without --mpi takes the program's own"
            )
        return found
    library = installations.find(FAMILIES[family])
    if library is None:
        raise InputError(f"no mpiexec of {FAMILIES[family]} is installed; 'unisono doctor' lists what is")
    return Launcher(library.launcher, family)
