"""Computes the repairs of dissemination that "Generalisation of recursive doubling for AllReduce" (2017) cites."""

from functools import cache
from typing import Any

from unisono.reproduce import Finding

__all__ = ["repairable", "unrepaired"]


def unrepaired(listed: dict[str, Any]) -> Finding:
    """Counts the process counts for which duplicates in the last sum cannot be repaired, by messages a round."""
    counts = range(2, listed["largest"] + 1)
    return Finding(listed["reported"], [sum(not repairable(n, ways) for n in counts) for ways in listed["ways"]])


def repairable(ranks: int, ways: int) -> bool:
    """Returns whether the sums before the last round can be added so that every operand counts once.

    The sums are those of process 0 and its peers of the last round. By symmetry the result holds for all processes.
    """
    window, pieces = 1, [(0, 1)]
    while window * (ways + 1) < ranks:
        pieces += [(way * window, window) for way in range(1, ways + 1)]
        window *= ways + 1
    sums = [
        sum(1 << (holder + start + k) % ranks for k in range(length))
        for holder in range(0, ranks, window)
        for start, length in pieces
    ]
    containing = [[one for one in sums if one >> operand & 1] for operand in range(ranks)]

    @cache
    def covers(taken: int) -> bool:
        left = [operand for operand in range(ranks) if not taken >> operand & 1]
        if not left:
            return True
        choices = [[one for one in containing[operand] if not one & taken] for operand in left]
        return any(covers(taken | one) for one in min(choices, key=len))

    return covers(0)
