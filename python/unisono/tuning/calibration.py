"""Measures the costs of messages and reductions on this machine, under ``mpiexec``.

There are three benchmarks between rank 0 and other ranks: a ping-pong by size; a multicast to one, two, ... up to eight
peers with non-blocking and with blocking sends, whose regression gives alpha_r as in "Recursive multiplying", section
5.1; and local reductions by size. There alpha_p is the intercept of the regression; here it is the rest of the
ping-pong's latency. The machine's parameters fit medians; its table ``fit`` has those of minima, and residuals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from unisono._core import InputError
from unisono.tuning.levels import Level, levels, places, ranks_in_order
from unisono.tuning.lines import DISTURBED, POOR, Fit, line, outliers, protocols

__all__ = [
    "LIMITS",
    "Calibration",
    "Levels",
    "calibrate",
    "calibrate_levels",
    "disturbances",
]

#: The limits of each fitted parameter: a message takes from 0.1 ns to 10 s, and a byte as long as at rates from 100
#: TB/s to 1 kB/s. A value outside of these limits, such as 0, is an error of the measurement; with it, plans would
#: assume messages or bytes without cost.
LIMITS = {
    "alpha_ns": (0.1, 1e10),
    "alpha_p_ns": (0.1, 1e10),
    "alpha_r_ns": (0.1, 1e10),
    "beta_ns_per_byte": (1e-5, 1e6),
    "gamma_ns_per_byte": (1e-5, 1e6),
}
#: For each parameter, the line of measurements that determines it.
_LINES = {
    "alpha_r_ns": "multicast-non-blocking",
    "beta_ns_per_byte": "beta",
    "gamma_ns_per_byte": "gamma",
}
#: The names of the two kinds of values over rounds, by their index in a row of measurements.
_OF_ROUNDS = {1: "medians", 2: "minima"}
#: The largest number of peers of the multicast, as in "Recursive multiplying", section 5.1.
MOST_PEERS = 8
_SMALL = 8
_SIZES = (0, 8, 64, *(1 << power for power in range(9, 19)), 1 << 20, 4 << 20)
#: The sizes for which the cost of the bytes is negligible compared with the latency of a message.
_LEAST = (0, 8, 64)
#: The minimum size in bytes of the messages to which the lines of beta and gamma are fitted, because the cost of bytes
#: dominates their times.
_LONG = 32768


#: The multiple of the least latency above which a latency is explained by waiting for cores.
_WAITING = 10.0
#: The fraction of preempted rounds from which on other work determines the median, and usually also the fastest rounds.
_PREEMPTED = 0.5


def latency(ping_pong: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    """Returns the latency of a message in nanoseconds, by medians and by minima of the rounds.

    It is the median of the times of the sizes :data:`_LEAST`, so other work during one of them does not change it.
    """
    short = [row for row in ping_pong if row[0] in _LEAST]
    return median(row[1] for row in short), median(row[2] for row in short)


@dataclass
class Calibration:
    """The measurements of a calibration, from which :meth:`machine` makes a machine."""

    library: str
    ranks: int
    rounds: int
    #: Rows (bytes, median, minimum) of one-way times in nanoseconds.
    ping_pong: list[tuple[int, float, float]]
    #: Rows (number of peers, median, minimum) of times in nanoseconds, without the latency of the last peer's answer,
    #: for non-blocking and for blocking sends.
    multicast: dict[str, list[tuple[int, float, float]]]
    #: Rows (bytes, median, minimum) of the times of local reductions in nanoseconds.
    reductions: list[tuple[int, float, float]]
    #: True if all peers of the multicast are the same rank, because there are only two.
    one_peer: bool
    #: The median and the minimum of the time, in nanoseconds, in which a rank begins a non-blocking send; 0 if not
    #: measured.
    issue: tuple[float, float] = (0.0, 0.0)
    #: The largest share of the short ping-pongs in which rank 0 or rank 1 lost its core to another process.
    preempted: float = 0.0

    def fits(self, of: int = 1) -> dict[str, Fit]:
        """Returns the lines fitted to medians (``of=1``) or to minima (``of=2``)."""
        found = {}
        for name, rows in self._lines().items():
            kept = _kept(rows)
            found[name] = line([row[0] for row in kept], [row[of] for row in kept])
        return found

    def _lines(self) -> dict[str, list[tuple[int, float, float]]]:
        """Returns the rows of measurements through which each line is fitted."""
        multicasts = {f"multicast-{name}": rows for name, rows in self.multicast.items()}
        long = {"beta": self.ping_pong, "gamma": self.reductions}
        longs = {name: [row for row in rows if row[0] >= _LONG] for name, rows in long.items()}
        return {"beta": longs["beta"], **multicasts, "gamma": longs["gamma"]}

    def set_aside(self) -> dict[str, list[int]]:
        """Returns, for each line, the sizes or numbers of peers of its :func:`outliers`."""
        found = {
            name: sorted({row[0] for row in rows} - {row[0] for row in _kept(rows)})
            for name, rows in self._lines().items()
        }
        return {name: sizes for name, sizes in found.items() if sizes}

    def parameters(self, of: int = 1) -> dict[str, float]:
        """Returns the parameters of the machine by medians (``of=1``) or by minima (``of=2``), as fitted."""
        fits, alpha = self.fits(of), latency(self.ping_pong)[of - 1]
        multicast = fits["multicast-non-blocking"]
        # On a network the cost of one more peer may be less than the noise of latencies; it is at least the time in
        # which the rank begins a send.
        issue = min(max(multicast.slope, self.issue[of - 1]), alpha - LIMITS["alpha_p_ns"][0])
        # A multicast to one peer is a single message. The intercept of the line would also contain the time in which
        # Python makes and completes requests, which schedules do not have.
        return {
            "alpha_ns": alpha,
            "alpha_p_ns": alpha - issue,
            "alpha_r_ns": issue,
            "beta_ns_per_byte": fits["beta"].slope,
            "gamma_ns_per_byte": fits["gamma"].slope,
        }

    def gap_and_issue(self, made: Mapping[str, Any]) -> tuple[float, float]:
        """Returns the nanoseconds between short messages to different peers, and those in which a rank begins one.

        Both are by medians or by minima, as the values of the machine ``made``.
        """
        of = next(of for of, name in _OF_ROUNDS.items() if name == made["fit"]["values"])
        return self.fits(of)["multicast-non-blocking"].slope, self.issue[of - 1]

    def protocols(self, of: int = 1) -> list[tuple[int, Fit]]:
        """Returns the :func:`protocols` of messages, without lengths whose rounds other work disturbed."""
        return protocols([(row[0], row[of]) for row in self.ping_pong if row[1] <= DISTURBED * row[2]])

    def machine(self, name: str, by_length: bool = True) -> dict[str, Any]:
        """Returns the description of the machine for a machine file, with its ``fit``.

        With ``by_length``, a library that has several protocols of messages gives the machine ``protocols``. Without
        it, the time of a byte is that of long messages.

        If a parameter by medians is outside of :data:`LIMITS`, all parameters are those by minima, which other work on
        the cores disturbs less; ``fit`` states this as ``values``, and the wrong parameters as ``refused``.

        Raises:
            InputError: a parameter is outside of its limits by medians and by minima.

        """
        medians, minima = self.fits(1), self.fits(2)
        refused = _outside(self.parameters(1))
        of = 2 if refused else 1
        values = self.parameters(of)
        if refused and (also := _outside(values)):
            raise InputError(
                f"no file is written, because by medians {_said(refused)}, and by the fastest rounds {_said(also)}; "
                "other work took the cores: start no more ranks than cores, stop other programs, or give more --rounds"
            )
        found = self.protocols(of) if by_length else []
        residuals = {key: fit.residual for key, fit in medians.items()}
        poor = {key for key, fit in medians.items() if fit.poor}
        longer = []
        if len(found) > 1:
            values["beta_ns_per_byte"] = _byte(found[0][1])
            longer = [_protocol(at, fit, values) for at, fit in found[1:]]
            residuals["beta"] = max(fit.residual for _, fit in found)
            poor = poor - {"beta"} | ({"beta"} if residuals["beta"] > POOR else set())
        fit = {
            "values": _OF_ROUNDS[of],
            "refused": {key: _round(value) for key, value in refused.items()},
            "library": self.library,
            "ranks": self.ranks,
            "rounds": self.rounds,
            "alpha_min_ns": _round(latency(self.ping_pong)[1]),
            "alpha_p_min_ns": _round(self.parameters(2)["alpha_p_ns"]),
            "alpha_r_min_ns": _round(minima["multicast-non-blocking"].slope),
            "alpha_r_blocking_ns": _round(medians["multicast-blocking"].slope),
            "beta_min_ns_per_byte": _round(minima["beta"].slope),
            "preempted": _round(self.preempted),
            "issue_ns": [_round(time) for time in self.issue],
            "multicast_peers": "one rank, several times" if self.one_peer else "different ranks",
            "residuals": {key: _round(value) for key, value in residuals.items()},
            "set_aside": self.set_aside(),
            "poor": sorted(poor | {_LINES[key] for key in refused if key in _LINES}),
            "ping_pong_ns": [[size, _round(mid), _round(low)] for size, mid, low in self.ping_pong],
            "multicast_ns": [[k, _round(mid), _round(low)] for k, mid, low in self.multicast["non-blocking"]],
            "multicast_blocking_ns": [[k, _round(mid), _round(low)] for k, mid, low in self.multicast["blocking"]],
            "reduction_ns": [[size, _round(mid), _round(low)] for size, mid, low in self.reductions],
        }
        return {
            "name": name,
            "kind": "endpoint",
            "summary": f"calibrated on {self.ranks} ranks, {self.library}",
            "model": "pipelining-postal",
            **{key: _round(value) for key, value in values.items()},
            **({"protocols": longer} if longer else {}),
            "fit": fit,
        }


def _byte(fit: Fit) -> float:
    """Returns the nanoseconds of a byte. A machine file does not permit the value 0."""
    return max(fit.slope, LIMITS["beta_ns_per_byte"][0])


def _protocol(at: int, fit: Fit, short: Mapping[str, float]) -> dict[str, float]:
    """Returns the parameters of messages from ``at`` bytes on, on a machine with the parameters ``short``."""
    later = fit.base - short["alpha_ns"]
    latencies = {key: _round(max(short[key] + later, LIMITS[key][0])) for key in ("alpha_ns", "alpha_p_ns")}
    return {"from_bytes": at, **latencies, "beta_ns_per_byte": _round(_byte(fit))}


def disturbances(machine: Mapping[str, Any]) -> list[str]:
    """Returns a sentence if other work determined the medians, or if they were not used because of it."""
    fit = machine["fit"]
    if fit["values"] == _OF_ROUNDS[1]:
        alpha, least, share = machine["alpha_ns"], fit["alpha_min_ns"], fit["preempted"]
        if alpha > _WAITING * least:
            found = f"a message took {alpha:.4g} ns by the median and {least:.4g} ns in the fastest rounds"
        elif share >= _PREEMPTED:
            found = f"a message took {alpha:.4g} ns, and a rank lost its core in {share:.0%} of the rounds"
        else:
            return []
        return [
            f"{found}: ranks waited for cores, and predictions hold only while they do; measure with a core for each "
            "rank"
        ]
    return [
        f"the values are those of the fastest rounds, because by medians {_said(fit['refused'])}: other work took the "
        "cores; measure again on a quiet machine, with a core for each rank"
    ]


def _outside(parameters: Mapping[str, float]) -> dict[str, float]:
    """Returns the parameters that are outside of their limits."""
    return {key: value for key, value in parameters.items() if not LIMITS[key][0] <= value <= LIMITS[key][1]}


def _said(parameters: Mapping[str, float]) -> str:
    said = (
        f"{key} is {value:.4g} (accepted: {LIMITS[key][0]:g} to {LIMITS[key][1]:g})"
        for key, value in parameters.items()
    )
    return ", ".join(said)


def _kept(rows: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Returns the rows without outliers."""
    out = outliers([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
    return [row for at, row in enumerate(rows) if at not in out]


#: The parameters of messages that a level of a machine file has.
_OF_LEVEL = ("alpha_ns", "alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte")


@dataclass
class Levels:
    """A calibration for each level of a machine, innermost first."""

    found: list[Level]
    measured: list[Calibration]
    #: The order of ranks on nodes: ``block`` or ``cyclic``.
    placement: str

    def machine(self, name: str) -> dict[str, Any]:
        """Returns the description of the machine; parameters outside of ``levels`` are those of the outermost level."""
        made = [of.machine(name, by_length=of is self.measured[-1]) for of in self.measured]
        inner = list(zip(self.found, made, strict=True))[:-1]
        described = [{"name": of.name, "size": of.size} | {key: m[key] for key in _OF_LEVEL} for of, m in inner]
        machine = made[-1] | {"placement": self.placement}
        names = " and ".join(level.name for level in self.found)
        machine["summary"] = f"{machine['summary']}; {names} measured apart"
        machine["fit"] |= {"levels": {of.name: m["fit"] | {"members": list(of.members)} for of, m in inner}}
        # In TOML, tables must follow all plain values.
        return {key: machine[key] for key in machine if key != "fit"} | {"levels": described, "fit": machine["fit"]}


def calibrate_levels(rounds: int = 200, progress: Callable[[int, int], None] | None = None) -> Levels | None:
    """Measures each level of the machine with ranks that communicate across this level; only rank 0 has the result.

    Raises:
        InputError: there are fewer than two ranks, nodes have different numbers of ranks, or mpi4py is missing.

    """
    from unisono.mpi.groups import wait_for
    from unisono.mpi.library import import_mpi, together

    mpi = import_mpi()
    world = mpi.COMM_WORLD
    where = places(mpi, world)
    found, placement = together(world, lambda: (levels(where), ranks_in_order(where)))
    measured = []
    for at, level in enumerate(found):
        if world.rank in level.members:
            group = world.Create_group(world.group.Incl(list(level.members)))
            step = None if progress is None else partial(_share, progress, at, len(found))
            made = calibrate(rounds, step, group)
            measured += [made] if made is not None else []
            group.Free()
        wait_for(world)
    return Levels(found, measured, placement) if world.rank == 0 else None


def _share(progress: Callable[[int, int], None], at: int, of: int, done: int, total: int) -> None:
    progress(at * total + done, of * total)


def _round(value: float) -> float:
    """Rounds to six significant digits, the precision of measured times."""
    return float(f"{value:.6g}")


def calibrate(
    rounds: int = 200, progress: Callable[[int, int], None] | None = None, comm: Any | None = None
) -> Calibration | None:
    """Measures on all ranks of ``comm``, MPI's world by default; the result is on rank 0, None elsewhere.

    Raises:
        InputError: there are fewer than two ranks, or mpi4py is missing.

    """
    from unisono.mpi.library import import_mpi

    mpi = import_mpi()
    world = mpi.COMM_WORLD if comm is None else comm
    if world.size < 2:
        raise InputError("a calibration needs at least two ranks: mpiexec -n 4 unisono calibrate -o machine.toml")
    issues: list[float] = []
    lost: list[float] = []
    steps = _steps(mpi, world, rounds, issues, lost)
    rows: dict[str, list[tuple[int, float, float]]] = {}
    for at, (name, x, measure) in enumerate(steps):
        times = measure()
        if world.rank == 0:
            rows.setdefault(name, []).append((x, median(times), min(times)))
            if progress is not None:
                progress(at + 1, len(steps))
    preempted = world.allreduce(median(lost), op=mpi.MAX)
    if world.rank != 0:
        return None
    multicast = {
        name: _without_answers(rows[name], latency(rows["ping-pong"])) for name in ("non-blocking", "blocking")
    }
    library = mpi.Get_library_version().splitlines()[0].split(",")[0].strip("\0 ")
    issue, one_peer = (median(issues), min(issues)), world.size == 2
    return Calibration(
        library, world.size, rounds, rows["ping-pong"], multicast, rows["reduction"], one_peer, issue, preempted
    )


def _without_answers(
    rows: Sequence[tuple[int, float, float]], answer: tuple[float, float]
) -> list[tuple[int, float, float]]:
    """Returns the times of multicasts, reduced by the time of the last peer's answer.

    ``answer`` has the median and the minimum of this time.

    The answer takes at most half of a multicast's time, because a message of the multicast takes as long as the answer.
    """
    mid, low = (min(answer[of], min(row[1 + of] for row in rows) / 2) for of in (0, 1))
    return [(peers, time - mid, least - low) for peers, time, least in rows]


_Step = tuple[str, int, Callable[[], list[float]]]


def _steps(mpi: Any, world: Any, rounds: int, issues: list[float], lost: list[float]) -> list[_Step]:
    """Returns measurements: a name, a size or a number of peers, and a function that all ranks call.

    On rank 0, multicasts append the times of non-blocking sends to ``issues``. Short ping-pongs append the share of
    rounds in which this rank lost its core to ``lost``.
    """
    # Long messages are sent in fewer rounds: the total number of bytes of all messages of one size is limited.
    share = {size: max(5, min(rounds, (rounds << 18) // max(size, 1))) for size in _SIZES}
    peers = range(1, MOST_PEERS + 1) if world.size == 2 else range(1, min(MOST_PEERS, world.size - 1) + 1)
    steps: list[_Step] = [("ping-pong", n, partial(_ping_pong, mpi, world, n, share[n], lost)) for n in _SIZES]
    steps += [("non-blocking", k, partial(_multicast, mpi, world, k, rounds, issues)) for k in peers]
    steps += [("blocking", k, partial(_multicast, mpi, world, k, rounds, None)) for k in peers]
    steps += [("reduction", n, partial(_reduction, mpi, n, share[n])) for n in _SIZES if n >= _SMALL]
    return steps


def _ping_pong(mpi: Any, world: Any, size: int, rounds: int, lost: list[float]) -> list[float]:
    """Returns one-way times between ranks 0 and 1, in nanoseconds."""
    # Imported late, because only Unix has it.
    from resource import RUSAGE_THREAD, getrusage

    buffer = np.zeros(size, dtype=np.uint8)
    world.Barrier()
    times, switches = [], []
    for _ in range(rounds + rounds // 10 + 1):
        start = mpi.Wtime()
        if world.rank == 0:
            world.Send(buffer, 1)
            world.Recv(buffer, 1)
        elif world.rank == 1:
            world.Recv(buffer, 0)
            world.Send(buffer, 0)
        times.append((mpi.Wtime() - start) * 1e9 / 2)
        switches.append(getrusage(RUSAGE_THREAD).ru_nivcsw)
    if size in _LEAST:
        kept = switches[rounds // 10 :]
        lost.append(sum(one < other for one, other in pairwise(kept)) / rounds)
    return times[rounds // 10 + 1 :]


def _multicast(mpi: Any, world: Any, peers: int, rounds: int, issues: list[float] | None) -> list[float]:
    """Returns the times on rank 0 from its first send to the last peer's answer, in nanoseconds.

    With ``issues`` the sends are non-blocking, and the time in which one begins is appended for each round.
    """
    buffer, answer = np.zeros(_SMALL, dtype=np.uint8), np.zeros(_SMALL, dtype=np.uint8)
    ready = np.zeros(0, dtype=np.uint8)
    # The last message and the answer use the same path as the ping-pong, because other paths may take longer or
    # shorter.
    targets = [*(1 + k % (world.size - 1) for k in range(1, peers)), 1]
    mine = targets.count(world.rank)
    world.Barrier()
    times = []
    for _ in range(rounds + rounds // 10 + 1):
        if world.rank == 0:
            # Peers report that they are ready, because a peer that leaves a barrier late would delay its answer.
            for target in sorted(set(targets)):
                world.Recv(ready, target, tag=3)
            start = mpi.Wtime()
            if issues is not None:
                requests = [world.Isend(buffer, target, tag=1) for target in targets]
                issues.append((mpi.Wtime() - start) * 1e9 / peers)
                world.Recv(answer, targets[-1], tag=2)
                mpi.Request.Waitall(requests)
            else:
                for target in targets:
                    world.Send(buffer, target, tag=1)
                world.Recv(answer, targets[-1], tag=2)
            times.append((mpi.Wtime() - start) * 1e9)
        elif mine:
            receives = [world.Irecv(buffer, 0, tag=1) for _ in range(mine)]
            world.Send(ready, 0, tag=3)
            mpi.Request.Waitall(receives)
            if world.rank == targets[-1]:
                world.Send(answer, 0, tag=2)
        # All ranks begin the next round together.
        world.Barrier()
    return times[rounds // 10 + 1 :]


def _reduction(mpi: Any, size: int, rounds: int) -> list[float]:
    """Returns the times of adding one vector of f64 to another on this rank, in nanoseconds."""
    a, b = np.ones(size // 8), np.ones(size // 8)
    times = []
    for _ in range(rounds + 1):
        start = mpi.Wtime()
        mpi.SUM.Reduce_local(a, b)
        times.append((mpi.Wtime() - start) * 1e9)
    return times[1:]
