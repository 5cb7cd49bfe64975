"""Measures the costs of messages and reductions on this machine, under ``mpiexec``.

There are three benchmarks between rank 0 and other ranks: a ping-pong by size; a multicast to one, two, ... up to eight
peers with non-blocking and with blocking sends, whose regression gives alpha_p and alpha_r as in "Recursive
multiplying", section 5.1; and local reductions by size. The machine's parameters fit medians; its table ``fit`` has
those of minima, and residuals.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from unisono.tuning.levels import Level, levels, places, ranks_in_order

__all__ = ["POOR", "Calibration", "Fit", "Levels", "calibrate", "calibrate_levels", "line", "outliers"]

#: The largest residual of a regression that describes the machine.
POOR = 0.15
#: The largest number of peers of the multicast, as in the paper.
MOST_PEERS = 8
_SMALL = 8
_SIZES = (0, 8, 64, 512, 4096, 32768, 262144, 1 << 20, 4 << 20)
#: The sizes whose bytes cost next to nothing beside the latency of a message.
_LEAST = (0, 8, 64)
#: The size in bytes from which times enter the lines of beta and gamma, because the cost of bytes dominates them.
_LONG = 32768


@dataclass
class Fit:
    """A straight line through measured times: ``base + slope * x``, nanoseconds."""

    base: float
    slope: float
    #: The largest relative distance of a measured time from the line; 0 if the line fits at most two times.
    residual: float

    @property
    def poor(self) -> bool:
        """Returns whether the line does not describe the measurements."""
        return not self.residual <= POOR or self.slope < 0 or self.base < 0


#: The multiple of the minimum above which a median shows that other work took the core in many rounds.
_DISTURBED = 2.0
#: The relative distance from the line of the other times that makes a disturbed time an outlier.
_FAR = 0.5


def outliers(xs: Sequence[float], times: Sequence[float], floors: Sequence[float]) -> list[int]:
    """Returns the indices of disturbed times far from the line of most times: at most a quarter of all.

    The line is that with the smallest sum of relative distances, which few outliers do not move; it runs through two of
    the times. ``floors`` are the minima of the times. If more than a quarter of the times are disturbed and far from
    the line, none is returned, and the residual is large.
    """
    x, t = np.asarray(xs, dtype=float), np.asarray(times, dtype=float)
    pairs = [(i, j) for i in range(len(x)) for j in range(i) if x[i] != x[j]]
    slopes = [(t[i] - t[j]) / (x[i] - x[j]) for i, j in pairs]
    distances = [np.abs(t[i] + slope * (x - x[i]) - t) / t for (i, _), slope in zip(pairs, slopes, strict=True)]
    if not distances:
        return []
    off = min(distances, key=lambda found: float(found.sum()))
    found = [at for at in range(len(t)) if off[at] > _FAR and t[at] > _DISTURBED * floors[at]]
    return found if len(found) <= len(t) // 4 else []


def line(xs: Sequence[float], times: Sequence[float]) -> Fit:
    """Fits the line with the least squares of relative errors, because times span orders of magnitude."""
    x, t = np.asarray(xs, dtype=float), np.asarray(times, dtype=float)
    design = np.stack([np.ones_like(x), x], axis=1) / t[:, None]
    base, slope = np.linalg.lstsq(design, np.ones_like(t), rcond=None)[0]
    residual = float(np.max(np.abs(base + slope * x - t) / t)) if len(x) > 2 else 0.0
    return Fit(float(base), float(slope), residual)


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
    notes: list[str] = field(default_factory=list)

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

    def machine(self, name: str) -> dict[str, Any]:
        """Returns the description of the machine for a machine file, with its ``fit``."""
        medians, minima = self.fits(1), self.fits(2)
        multicast, (alpha, _) = medians["multicast-non-blocking"], latency(self.ping_pong)
        # A message to one peer costs at least its measured latency, although the intercept of a noisy line may be
        # negative.
        issue = min(max(multicast.slope, 0.0), alpha)
        fit = {
            "library": self.library,
            "ranks": self.ranks,
            "rounds": self.rounds,
            "alpha_p_min_ns": _round(max(minima["multicast-non-blocking"].base, 0.0)),
            "alpha_r_min_ns": _round(max(minima["multicast-non-blocking"].slope, 0.0)),
            "alpha_r_blocking_ns": _round(max(medians["multicast-blocking"].slope, 0.0)),
            "beta_min_ns_per_byte": _round(max(minima["beta"].slope, 0.0)),
            "multicast_peers": "one rank, several times" if self.one_peer else "different ranks",
            "residuals": {key: _round(found.residual) for key, found in medians.items()},
            "set_aside": self.set_aside(),
            "poor": sorted(key for key, found in medians.items() if found.poor),
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
            "alpha_ns": _round(alpha),
            "alpha_p_ns": _round(max(multicast.base, alpha - issue, 0.0)),
            "alpha_r_ns": _round(issue),
            "beta_ns_per_byte": _round(max(medians["beta"].slope, 0.0)),
            "gamma_ns_per_byte": _round(max(medians["gamma"].slope, 0.0)),
            "fit": fit,
        }


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
        made = [calibration.machine(name) for calibration in self.measured]
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
    """Rounds to six significant digits, the precision of measured times; infinity and NaN become 0."""
    return float(f"{value:.6g}") if math.isfinite(value) else 0.0


def calibrate(
    rounds: int = 200, progress: Callable[[int, int], None] | None = None, comm: Any | None = None
) -> Calibration | None:
    """Measures on all ranks of ``comm``, MPI's world by default; the result is on rank 0, None elsewhere.

    Raises:
        InputError: there are fewer than two ranks, or mpi4py is missing.

    """
    from unisono._core import InputError
    from unisono.mpi.library import import_mpi

    mpi = import_mpi()
    world = mpi.COMM_WORLD if comm is None else comm
    if world.size < 2:
        raise InputError("a calibration needs at least two ranks: mpiexec -n 4 unisono calibrate -o machine.toml")
    steps = _steps(mpi, world, rounds)
    rows: dict[str, list[tuple[int, float, float]]] = {}
    for at, (name, x, measure) in enumerate(steps):
        times = measure()
        if world.rank == 0:
            rows.setdefault(name, []).append((x, median(times), min(times)))
            if progress is not None:
                progress(at + 1, len(steps))
    if world.rank != 0:
        return None
    # The answer of the last peer is not part of the multicast.
    back, least = latency(rows["ping-pong"])
    multicast = {
        name: [(k, max(mid - back, 1.0), max(low - least, 1.0)) for k, mid, low in rows[name]]
        for name in ("non-blocking", "blocking")
    }
    library = mpi.Get_library_version().splitlines()[0].split(",")[0].strip("\0 ")
    return Calibration(library, world.size, rounds, rows["ping-pong"], multicast, rows["reduction"], world.size == 2)


_Step = tuple[str, int, Callable[[], list[float]]]


def _steps(mpi: Any, world: Any, rounds: int) -> list[_Step]:
    """Returns measurements: a name, a size or a number of peers, and a function that all ranks call."""
    # Long messages are sent in fewer rounds, so that their total number of bytes is limited.
    share = {size: max(10, min(rounds, (64 << 20) // max(size, 1))) for size in _SIZES}
    peers = range(1, MOST_PEERS + 1) if world.size == 2 else range(1, min(MOST_PEERS, world.size - 1) + 1)
    steps: list[_Step] = [("ping-pong", n, partial(_ping_pong, mpi, world, n, share[n])) for n in _SIZES]
    steps += [("non-blocking", k, partial(_multicast, mpi, world, k, rounds, True)) for k in peers]
    steps += [("blocking", k, partial(_multicast, mpi, world, k, rounds, False)) for k in peers]
    steps += [("reduction", n, partial(_reduction, mpi, n, share[n])) for n in _SIZES if n >= _SMALL]
    return steps


def _ping_pong(mpi: Any, world: Any, size: int, rounds: int) -> list[float]:
    """Returns one-way times between ranks 0 and 1, in nanoseconds."""
    buffer = np.zeros(size, dtype=np.uint8)
    world.Barrier()
    times = []
    for _ in range(rounds + rounds // 10 + 1):
        start = mpi.Wtime()
        if world.rank == 0:
            world.Send(buffer, 1)
            world.Recv(buffer, 1)
        elif world.rank == 1:
            world.Recv(buffer, 0)
            world.Send(buffer, 0)
        times.append((mpi.Wtime() - start) * 1e9 / 2)
    return times[rounds // 10 + 1 :]


def _multicast(mpi: Any, world: Any, peers: int, rounds: int, non_blocking: bool) -> list[float]:
    """Returns the times on rank 0 from its first send to the last peer's answer, in nanoseconds."""
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
            if non_blocking:
                requests = [world.Isend(buffer, target, tag=1) for target in targets]
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
