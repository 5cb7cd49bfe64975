"""MPI programs on the hosts of a lab, started by the real launcher of Open MPI or MPICH."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from unisono._core import InputError
from unisono.lab.session import Lab
from unisono.mpi import installations, launchers
from unisono.mpi.launchers import Launcher, check_program, environment, find_launcher, is_launcher, linked_library

__all__ = ["FAMILIES", "command", "launcher", "launcher_process", "variables"]

#: The libraries that a lab may be for, and their names.
FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH"}
#: The device of each host.
_DEVICE = "eth0"
#: A process namespace of the job, which the kernel ends with its first process, the launcher. A launcher that waits for
#: a host that is cut off would not end for a polite signal.
_JOB = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")


def launcher(lab: Lab, ranks: int, program: str) -> Launcher:
    """Returns the launcher of a program, with the options that start its ranks on the first hosts.

    Raises:
        InputError: there is no such program or launcher, or there are more ranks than places for them.

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
    # Launchers start a process of their own on each host that they are given, so they get those with ranks only.
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
    times: Path | None = None,
) -> list[str]:
    """Returns the command that starts ranks of a program from the first host, as ``unisono run`` does with a plan.

    Each rank appends its seconds between ``MPI_Init`` and ``MPI_Finalize`` to the file ``times``.
    """
    of_ranks = {} if plan is None else launchers.variables(plan, report, ())
    if times is not None:
        # Without a plan, the library for MPI programs passes all calls on.
        of_ranks = of_ranks or launchers.variables(None, None, ("UNISONO_OFF",))
        of_ranks["UNISONO_PROGRAM_TIME"] = str(times)
    return [*lab.enter(lab.network.hosts[0]), *_JOB, *starter.command(ranks, True, of_ranks, list(program))]


def launcher_process(command: int) -> int:
    """Returns the process of the launcher, from that of its command; that of the command where it has none yet."""
    found = command
    # Entering the lab's process namespace, and making that of the job, leave a process each.
    for _ in range(2):
        try:
            children = Path(f"/proc/{found}/task/{found}/children").read_text().split()
        except OSError:
            children = []
        if not children:
            return command
        found = int(children[0])
    return found


def variables(lab: Lab, starter: Launcher) -> dict[str, str]:
    """Returns the environment of the launcher, on the first host."""
    agent = str(lab.folder / "agent")
    settings = {
        # Open MPI from release 5 on, and before.
        "PRTE_MCA_plm_ssh_agent": agent,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "OMPI_MCA_plm_rsh_agent": agent,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "^openib,ofi,uct,usnic",
        "OMPI_MCA_btl_tcp_if_include": _DEVICE,
        # Hosts share the cores of this computer, which those of a cluster do not. A rank that waits sleeps between two
        # polls: one that only yields has its next turn when every busy program of the computer has had one.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
        "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        # MPICH over UCX finds memory that hosts of one computer share, and over libfabric any device.
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
    """A launcher of the lab's library; a program that is linked to one has to be of the same."""
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
