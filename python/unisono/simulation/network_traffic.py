"""Traffic on networks: alltoall, permutation and allreduce, by packets or by flows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from unisono import _core
from unisono._core import InputError, Simulation
from unisono.base.inputs import MachineLike, checked_seed, parse_bytes, whole
from unisono.base.messages import shown
from unisono.base.names import named
from unisono.base.reports import TrafficReport
from unisono.machines.descriptions import with_shape
from unisono.planning.plans import plan
from unisono.simulation.schedules import simulate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["LEVELS", "MOST_BY_PACKETS", "PATTERNS", "Traffic", "traffic"]

PATTERNS = ("allreduce", "alltoall", "permutation")
LEVELS = ("flow", "packet")
#: The largest number of accelerators for which the default level is packets.
MOST_BY_PACKETS = 4096
#: The limit of ``jobs``, the threads that simulate one plane.
MOST_JOBS = 16
#: The number of messages of each accelerator in a permutation of an even size ("HammingMesh", artifact: 2 x 32 MiB).
MESSAGES = 2


@dataclass(frozen=True)
class Traffic:
    """The result of traffic on a network. The fractions ``share_of_...`` are those of the slowest accelerator."""

    pattern: str
    machine: str
    accelerators: int
    bytes: int
    """The bytes of a pair's block (alltoall), an accelerator's data (permutation) or a vector (allreduce)."""
    level: str
    algorithm: str | None
    params: dict[str, str]
    seconds: float
    injection: float
    """The rate at which one accelerator can send on all planes, bytes a second."""
    listed_rates: tuple[float, ...]
    """The values of ``rates``, without NumPy."""
    packets: int | None
    events: int | None
    hops: int | None
    planes: int
    wall_seconds: float

    def __repr__(self) -> str:
        what = f"{self.pattern} of {self.bytes} bytes on {self.accelerators} accelerators of {self.machine}"
        return f"<unisono.Traffic {what} by {self.level}s: {self.seconds:.6g} s>"

    @property
    def rates(self) -> "npt.NDArray[np.float64]":
        """Returns the bytes a second of each accelerator until its end; for many flows, only of an even sample."""
        # Imported late, because NumPy takes long to import.
        import numpy as np

        return np.array(self.listed_rates)

    @property
    def carried(self) -> int:
        """Returns the bytes that each accelerator receives, or in an allreduce reduces."""
        return self.bytes * (self.accelerators - 1) if self.pattern == "alltoall" else self.bytes

    @property
    def share_of_injection(self) -> float:
        """Returns the slowest accelerator's bandwidth, divided by its injection rate."""
        return self.carried / self.seconds / self.injection if self.seconds > 0 else 0.0

    @property
    def share_of_peak(self) -> float:
        """Returns the slowest accelerator's bandwidth, divided by its injection rate (allreduce: by half of it)."""
        return self.share_of_injection * (2 if self.pattern == "allreduce" else 1)

    def report(self) -> TrafficReport:
        """Returns the result as a dictionary for JSON, with a summary of ``rates``."""
        known = self.listed_rates or (0.0,)
        return {
            "pattern": self.pattern,
            "machine": self.machine,
            "accelerators": self.accelerators,
            "planes": self.planes,
            "bytes": self.bytes,
            "level": self.level,
            "algorithm": self.algorithm,
            "params": self.params,
            "seconds": self.seconds,
            "share_of_injection": self.share_of_injection,
            "share_of_peak": self.share_of_peak,
            "injection_bytes_per_second": self.injection,
            "bytes_per_second_min": min(known),
            "bytes_per_second_mean": math.fsum(known) / len(known),
            "bytes_per_second_max": max(known),
            "packets": self.packets,
            "hops": self.hops,
            "events": self.events,
            "wall_seconds": self.wall_seconds,
        }


def traffic(
    pattern: str,
    machine: MachineLike,
    *,
    bytes: SupportsIndex | str,
    algorithm: str | None = None,
    params: Mapping[str, str | int] | None = None,
    level: str | None = None,
    seed: SupportsIndex = 0,
    jobs: SupportsIndex = 1,
) -> Traffic:
    """Runs traffic between all accelerators of a network.

    ``alltoall``: every accelerator sends a block of ``bytes`` to each other accelerator, message k of accelerator r to
    (r + k) mod N (balanced shift), all posted at the start. ``permutation``: every accelerator sends ``bytes`` in two
    messages (one if ``bytes`` is odd) to another accelerator, drawn by ``seed``. ``allreduce``: the best algorithm by
    the model of networks, or ``algorithm``.

    ``level`` is ``"packet"`` (the default up to 4096 accelerators) or ``"flow"``: messages share links fairly, and an
    allreduce has the time that the model of networks predicts. Planes are equal: one plane is simulated, with its part
    of every message.

    ``jobs`` threads simulate the packets of an alltoall or a permutation. The result does not depend on ``jobs``.

    Raises:
        InputError: there is no such pattern or level, the machine is not a network, or the size or number of threads is
            wrong.
        UnsupportedError: the algorithm does not support the machine.

    """
    if named("the pattern", pattern) not in PATTERNS:
        raise InputError(f"{shown(pattern)} is no traffic; accepted are {', '.join(PATTERNS)}")
    if pattern != "allreduce" and (algorithm is not None or params):
        raise InputError(f"an algorithm is for allreduce; {pattern} has none")
    network = with_shape(machine, None)
    injection = _core.injection(network)
    size = parse_bytes(bytes) if isinstance(bytes, str) else whole("the size in bytes", bytes)
    if not 0 <= size < 2**60:
        raise InputError(f"the size is {size} bytes; accepted are 0 to 2^60 - 1")
    checked = checked_seed(seed)
    threads = whole("the number of threads", jobs)
    if not 1 <= threads <= MOST_JOBS:
        raise InputError(f"the number of threads is {threads}; accepted are 1 to {MOST_JOBS}")
    shape = network.shape
    assert shape is not None, "a network has accelerators"
    accelerators = math.prod(shape)
    if level is None:
        level = "packet" if accelerators <= MOST_BY_PACKETS else "flow"
    if named("the level", level) not in LEVELS:
        raise InputError(f"{shown(level)} is no level; accepted are {' and '.join(LEVELS)}")

    def done(seconds: float, finish: Iterable[float], wall_seconds: float, **counts: Any) -> Traffic:
        known: dict[str, Any] = {"algorithm": None, "params": {}, "packets": None, "events": None, "hops": None}
        carried = size * (accelerators - 1) if pattern == "alltoall" else size
        return Traffic(
            pattern=pattern,
            machine=network.name,
            accelerators=accelerators,
            bytes=size,
            level=str(level),
            seconds=seconds,
            injection=injection,
            listed_rates=tuple(carried / end if end > 0 else 0.0 for end in finish),
            planes=int(network.describe()["planes"]),
            wall_seconds=wall_seconds,
            **(known | counts),
        )

    chosen: dict[str, Any] = {}
    if pattern == "allreduce":
        planned = plan("allreduce", network, bytes=size, algorithm=algorithm, params=params)
        chosen = {"algorithm": planned.algorithm, "params": planned.params}
        if level == "flow":
            seconds = float(planned.predicted["seconds"])
            return done(seconds, [seconds] * accelerators, 0.0, **chosen)
        ran: Simulation = simulate(planned.schedule, seed=checked).simulation
    elif level == "flow":
        nanoseconds, finish, _, wall_seconds = _core.traffic_flows(network, pattern, size, checked)
        return done(nanoseconds / 1e9, (finish / 1e9).tolist(), wall_seconds)
    else:
        messages = MESSAGES if pattern == "permutation" and size % MESSAGES == 0 else 1
        ran = _core.traffic_packets(network, pattern, size // messages, messages, checked, threads)
    counted = {name: ran.count(name) for name in ("packets", "hops")}
    return done(ran.seconds, (end / 1e9 for end in ran.ends), ran.wall_seconds, events=ran.events, **chosen, **counted)
