"""The lab of a user: at most one at a time, in a folder that only this user can read.

A lab is one process namespace, whose first process is the fabric, the program that carries packets. When the fabric
ends, the kernel ends every process of the lab, and with them its network and mount namespaces, which have no names
outside. The fabric holds a lock on the folder. A folder without a lock belongs to a lab that has died.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unisono._core import InputError, Machine
from unisono.lab import scripts
from unisono.lab.scaling import Network, scaled

__all__ = ["FABRIC", "MOST_PLACES", "Lab", "current", "start", "time_scale"]

#: The path of the fabric, the program that carries packets.
FABRIC = Path(__file__).parents[1] / "_lib" / "unisono-fabric"
#: The beginning of the folder's name; the user's number follows.
_NAME = "unisono-lab-"
#: The folder of temporary files in the lab's folder; each host mounts its own there.
_TEMPORARY = "tmp"
#: The largest number of ranks on a host.
MOST_PLACES = 64
#: The time limit in seconds for a lab to start, answer or end. On a busy computer hosts need a minute to start.
_PATIENCE = 300.0
#: The limit of bytes of the folder's path: paths of sockets in the folder have at most 107 bytes.
_LONGEST = 60
#: The beginning of a command whose process ends when its parent process ends.
_ENDS = ("setpriv", "--pdeathsig", "TERM")
_USER = ("--user", "--map-root-user")
_NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Lab:
    """A running lab."""

    folder: Path
    network: Network
    #: The largest number of ranks on a host.
    per_host: int
    #: ``openmpi``, ``mpich``, or None for the MPI library that a program is linked to.
    mpi: str | None
    #: True if the lab is in a user namespace: either a user other than root started it, or root may not create
    #: namespaces without a user namespace.
    user: bool

    def report(self) -> dict[str, Any]:
        """Returns the facts of the lab for JSON, with the state of `ports`, the two directions of each cable."""
        speeds = {ends: c for c in self.network.cables for ends in ((c.a, c.b), (c.b, c.a))}
        ports = []
        for line in self.ask("stats").splitlines():
            a, b, state, *counts = line.split()
            sent, packets, drops, peak, busy = map(int, counts)
            cable = speeds[a, b]
            ports.append(
                {
                    "from": a, "to": b, "up": state == "up", "mbit": cable.mbit, "latency_us": cable.latency_us,
                    "bytes": sent, "packets": packets, "drops": drops, "peak_bytes": peak, "busy_seconds": busy / 1e9,
                }
            )  # fmt: skip
        return {
            "machine": self.network.machine,
            "hosts": len(self.network.hosts),
            "per_host": self.per_host,
            "mpi": self.mpi,
            "scale": self.network.scale,
            "ports": ports,
        }

    def set_cable(self, name: str, up: bool) -> str:
        """Restores a cable if ``up``, else fails it; returns the cable's name.

        Raises:
            InputError: there is no such cable.

        """
        cable = self.network.cable(name)
        self.ask(f"{'restore' if up else 'fail'} {cable.a} {cable.b}")
        return cable.name

    def cut_off(self, ranks: int) -> str:
        """Returns a sentence if cables that are down separate hosts of the first ``ranks`` ranks; else empty text."""
        ports = self.report()["ports"]
        used = self.network.hosts[: -(-ranks // self.per_host)]
        reached, new = set[str](), {used[0]}
        while new:
            reached |= new
            new = {port["to"] for port in ports if port["up"] and port["from"] in reached} - reached
        apart = [host for host in used if host not in reached]
        if not apart:
            return ""
        ends = {(port["from"], port["to"]) for port in ports if not port["up"]}
        down = [cable.name for cable in self.network.cables if (cable.a, cable.b) in ends]
        return (
            f"no way leads from {used[0]} to {', '.join(apart)}, since {', '.join(down)} "
            f"{'is' if len(down) == 1 else 'are'} down: ranks there and here wait until 'unisono lab restore {down[0]}'"
        )

    def enter(self, host: str) -> list[str]:
        """Returns the beginning of a command that runs on a host and ends when the process that started it ends."""
        user = ("--user", "--preserve-credentials") if self.user else ()
        # Entering a process namespace adds a process between the parent and the command. Inside the namespace, the
        # number of the parent is 0, so numbers of parents are not compared.
        inside = ["sh", str(self.folder / "enter"), host, str(Path.cwd()), *_ENDS]
        entered = ["nsenter", "--target", str(self._first_process()), *user, "--mount", "--pid"]
        return [*_ending_with(os.getpid()), *entered, *inside]

    def end(self) -> None:
        """Ends every process of the lab, and removes its folder."""
        first = self._first_process()
        with contextlib.suppress(InputError):
            self.ask("down")
        end = time.monotonic() + _PATIENCE
        # Another command may remove the folder of a lab that has ended.
        with contextlib.suppress(FileNotFoundError):
            while (lock := _lock(self.folder)) is None:
                if time.monotonic() > end:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(first, signal.SIGKILL)
                time.sleep(0.01)
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(lock)

    def ask(self, request: str) -> str:
        """Sends a request to the fabric, and returns the answer.

        Raises:
            InputError: the fabric refuses the request, or does not answer.

        """
        with self._connected() as connection:
            connection.sendall(f"{request}\n".encode())
            with connection.makefile() as answer:
                text = answer.read()
        if text.startswith("error"):
            raise InputError(f"the lab answers: {text.strip()}")
        return text

    def _first_process(self) -> int:
        """Returns the process number of the fabric, which the kernel reports as the peer of the socket."""
        with self._connected() as connection:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", found)[0])

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_PATIENCE)
                connection.connect(str(self.folder / "control"))
                yield connection
        except OSError as error:
            raise InputError(f"the lab does not answer ({error}); 'unisono lab down' ends it") from None


def current() -> Lab:
    """Returns the running lab of this user.

    Raises:
        InputError: no lab is running.

    """
    folder = _folder()
    none = InputError("no lab is up; 'unisono lab up MACHINE.toml' starts one")
    try:
        lock = _lock(folder)
    except FileNotFoundError:
        raise none from None
    if lock is not None:
        # The folder is not locked, so its lab has died and only the folder remains.
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        raise none
    if not (folder / "control").exists():
        raise InputError("a lab is starting, or ending; try again in a moment")
    kept = json.loads((folder / "lab.json").read_text())
    return Lab(folder, Network.of_report(kept["network"]), kept["per_host"], kept["mpi"], kept["user"])


def time_scale(mounts: Path = Path("/proc/self/mountinfo")) -> float:
    """Returns the factor by which the lab that this process runs in lengthens times; 1 outside a lab.

    Only a host of a lab has a mounted file system at the lab's folder of temporary files.

    Raises:
        InputError: the lab belongs to another user.

    """
    points = (line.split()[4] for line in mounts.read_text().splitlines())
    # The kernel writes spaces in paths as octal numbers.
    for point in (Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)) for point in points):
        if point.name != _TEMPORARY or not point.parent.name.startswith(_NAME):
            continue
        try:
            kept = point.parent / "lab.json"
            owner, text = kept.stat().st_uid, kept.read_text()
        except PermissionError:
            owner, text = None, ""
        if owner != os.geteuid():
            raise InputError(
                f"the lab in '{point.parent}', whose host this is, is another user's; start one of your own"
            )
        return Network.of_report(json.loads(text)["network"]).scale
    return 1.0


def start(
    machine: Machine,
    per_host: int,
    mpi: str | None,
    slow: Mapping[str, float] = MappingProxyType({}),
    scale: float | None = None,
) -> Lab:
    """Starts a lab of a machine, and returns when all hosts are up.

    ``slow`` maps the name of a cable to a fraction of its rate. ``scale`` divides rates and multiplies latencies, by
    default the least factor that this computer carries. ``per_host`` and ``mpi`` are those of :class:`Lab`.

    Raises:
        InputError: the machine is no network, a lab is up, a cable does not exist, the factor is out of range,
            or this computer lacks something; the message names it.

    """
    network = scaled(machine, scale).slowed(slow)
    user = _needs_user_namespace()
    folder = _folder()
    lock = _made(folder)
    if lock is None:
        raise InputError("a lab is up already; 'unisono lab down' ends it")
    try:
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        scripts.write(folder, network)
        lab = Lab(folder, network, per_host, mpi, user)
        # The state is written first, so that a lab whose starting command is killed can be ended.
        kept = {"network": network.report(), "per_host": per_host, "mpi": mpi, "user": user}
        (folder / "lab.json").write_text(json.dumps(kept))
        _start_fabric(lab, lock)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    return lab


def _ending_with(parent: int) -> list[str]:
    """Returns the beginning of a command that ends when the process ``parent``, which starts it, ends.

    The command compares its parent's number, because the kernel sends no signal if the parent ended before the request.
    """
    return [*_ENDS, "sh", "-c", f'[ "$PPID" = {parent} ] && exec "$@"', "sh"]


def _start_fabric(lab: Lab, lock: int) -> None:
    words = [str(FABRIC), *(str(lab.folder / name) for name in ("topology", "control", "setup"))]
    command = ["unshare", *(_USER if lab.user else ()), *_NAMESPACES, *words]
    log = lab.folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            # The fabric inherits the descriptor, so the lock is held until the fabric ends.
            pass_fds=(lock,),
            cwd="/",
        )
    try:
        end = time.monotonic() + _PATIENCE
        while not (lab.folder / "control").exists():
            if process.poll() is not None or time.monotonic() > end:
                said = log.read_text(errors="replace").strip().splitlines() or ["it printed nothing"]
                raise InputError(f"the lab did not start: {'; '.join(said[-3:])}")
            time.sleep(0.01)
        lab.ask("stats")
    except BaseException:
        process.kill()
        process.wait()
        raise
    # The fabric outlives this process. Setting the return code avoids a warning of `Popen` about a running child.
    process.returncode = 0


def _folder() -> Path:
    """Returns the folder of this user's lab.

    Raises:
        InputError: the path is too long for sockets, or another user owns the folder.

    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if not base.is_absolute() or not base.is_dir():
        base = Path(tempfile.gettempdir())
    folder = base / f"{_NAME}{os.geteuid()}"
    if len(os.fsencode(folder)) > _LONGEST:
        raise InputError(
            f"the folder '{base}' has too long a name for sockets; set XDG_RUNTIME_DIR to a shorter one, as /tmp"
        )
    if folder.is_symlink() or (folder.exists() and folder.stat().st_uid != os.geteuid()):
        raise InputError(f"'{folder}' is not a folder of this user; set XDG_RUNTIME_DIR to another one")
    return folder


def _made(folder: Path) -> int | None:
    """Creates a folder if needed, and returns a descriptor with its lock; None if a lab holds the lock."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Another command can remove the new folder before it is locked.
        with contextlib.suppress(FileNotFoundError):
            return _lock(folder)


def _lock(folder: Path) -> int | None:
    """Locks a folder, and returns a descriptor with the lock; None if a lab holds the lock.

    Raises:
        FileNotFoundError: the folder does not exist, or was removed meanwhile.

    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have removed the folder between the opening and the lock.
        if not os.path.samestat(os.fstat(descriptor), folder.lstat()):
            raise FileNotFoundError(folder)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except FileNotFoundError:
        os.close(descriptor)
        raise
    return descriptor


def _is_root() -> bool:
    return os.geteuid() == 0


def _needs_user_namespace() -> bool:
    """Checks that this computer has all that a lab needs; returns whether a lab needs a user namespace.

    Raises:
        InputError: something is missing.

    """
    missing = [name for name in scripts.NEEDED if shutil.which(name) is None]
    if missing:
        packages = " and ".join(dict.fromkeys(scripts.NEEDED[name] for name in missing))
        raise InputError(f"a lab needs {', '.join(missing)}, which the packages {packages} have; install them")
    if not os.access(FABRIC, os.X_OK):
        raise InputError(f"the program of labs is missing ('{FABRIC}'); 'make build' or a new installation makes it")
    if not Path("/dev/net/tun").exists():
        raise InputError("a lab needs network devices of programs, and /dev/net/tun is missing; load the module tun")
    for user in (False, True) if _is_root() else (True,):
        probe = ["unshare", *(_USER if user else ()), *_NAMESPACES, "--net", "--uts", "--ipc", "true"]
        tried = subprocess.run(probe, capture_output=True, text=True, errors="replace", check=False)
        if tried.returncode == 0:
            return user
    said = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
    raise InputError(
        f"a lab needs root, or a kernel that permits user namespaces (the sysctl user.max_user_namespaces above 0, and "
        f"no profile against them), and this one answers: {said}"
    )
