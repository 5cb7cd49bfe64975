"""Chooses what runs at each size and number of ranks, from times at a few of them.

A choice goes by *deciding times*. The library's are those measured. A schedule's are too where it won clearly and in
most rounds; else it counts as no faster than the library. Between two numbers of ranks that were measured, a schedule's
time is its model's, times the factor by which the measured ones missed the model, which is interpolated; the library,
which has no model here, is interpolated itself (both along the logarithms of ranks and time).

Along the sizes the choice is the one of least loss, where a change costs as much as `CLEARLY`; it never takes longer
than `CLEARLY` times the best. So there is no cliff from n to n + 1 ranks: what is chosen at n + 1 takes at most
`CLEARLY` times what the choice at n takes there. Between two sizes that differ there is one boundary, where the two
choices take equally long.
"""

import math
from collections.abc import Mapping, Sequence

__all__ = ["CLEARLY", "LIBRARY", "Times", "between", "boundary", "choose", "deciding"]

#: A schedule takes the library's place where it is faster by this factor of the median ...
CLEARLY = 1.05
#: ... and in this share of the rounds.
MOSTLY = 5 / 6
#: The MPI library's own.
LIBRARY = "library"

#: Deciding times at one number of ranks, by contender: at each size, or None where it does not serve.
Times = Mapping[str, Sequence[float | None]]


def deciding(seconds: float, won: int, rounds: int, library: float) -> float:
    """A schedule's deciding time."""
    if seconds * CLEARLY < library and won >= math.ceil(MOSTLY * rounds):
        return seconds
    return max(seconds, library)


def between(ranks: int, low: tuple[int, Times], high: tuple[int, Times], models: Mapping[int, Times]) -> Times:
    """Deciding times on a number of ranks between two that were measured.

    ``models`` are predicted times at all three numbers; what has none at one of them is not served, but the library.
    """
    (first, lows), (last, highs) = low, high
    share = math.log(ranks / first) / math.log(last / first)

    def at(name: str, size: int) -> float | None:
        ends = lows[name][size], highs[name][size]
        if name == LIBRARY:
            here, there, factor = 1.0, 1.0, 1.0
        else:
            of = [models[n].get(name) for n in (first, last, ranks)]
            predicted = [None if times is None else times[size] for times in of]
            if any(time is None or time <= 0 for time in predicted):
                return None
            here, there, factor = (float(time or 0) for time in predicted)
        if ends[0] is None or ends[1] is None:
            return None
        missed = (1 - share) * math.log(ends[0] / here) + share * math.log(ends[1] / there)
        return factor * math.exp(missed)

    found = {name: [at(name, size) for size in range(len(lows[name]))] for name in lows if name in highs}
    for name, times in found.items():
        for size, (time, library) in enumerate(zip(times, found[LIBRARY], strict=True)):
            if time is None or library is None:
                continue
            # A schedule that was faster on neither side is not faster in between, whatever its model predicts.
            wins = any(ends[name][size] < ends[LIBRARY][size] for ends in (lows, highs))  # type: ignore[operator]
            times[size] = time if wins else max(time, library)
    return found


def choose(times: Times) -> list[str]:
    """The contender of each size: the sequence of least loss, the library where it is a tie."""
    names = sorted(times, key=lambda name: (name != LIBRARY, name))
    sizes = len(times[LIBRARY])
    best: dict[str, tuple[float, list[str]]] = {"": (0.0, [])}
    for size in range(sizes):
        here = {name: time for name in names if (time := times[name][size]) is not None}
        least = min(here.values())
        following: dict[str, tuple[float, list[str]]] = {}
        for name, time in here.items():
            if time > CLEARLY * least:
                continue
            options = (
                (cost + (0.0 if before in ("", name) else math.log(CLEARLY)), path)
                for before, (cost, path) in best.items()
            )
            cost, path = min(options, key=lambda option: option[0])
            following[name] = (cost + math.log(time / least), [*path, name])
        best = following
    return min(best.values(), key=lambda option: option[0])[1]


def boundary(sizes: tuple[int, int], one: tuple[float, float], other: tuple[float, float]) -> int:
    """The last size of the first of two choices, where straight lines through their times (in logarithms) cross.

    Where they do not cross between the sizes, the geometric mean.
    """
    first, last = sizes
    gain_first, gain_last = math.log(other[0] / one[0]), math.log(one[1] / other[1])
    share = gain_first / (gain_first + gain_last) if gain_first > 0 and gain_last > 0 else 0.5
    # The small term makes up for rounding just below a whole number.
    at = int(first * (last / first) ** share + 1e-9)
    return min(max(at, first), last - 1)
