"""The search for equal rounds of a loop, which are drawn once, with their number."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

#: The smallest number of equal rounds that are drawn as one.
LEAST = 3


@dataclass(frozen=True)
class Rounds:
    """A loop of ``count`` rounds with ``period`` rows each, from row ``first`` on."""

    first: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Returns the row after the first round."""
        return self.first + self.period

    @property
    def last(self) -> int:
        """Returns the row after the last round."""
        return self.first + self.period * self.count

    def kept(self, row: int) -> bool:
        """Returns whether a row is drawn: all rows except those of the second and later rounds."""
        return not self.end <= row < self.last

    def place(self, row: int) -> int:
        """Returns the drawn row that equals a row."""
        return row if self.kept(row) else self.first + (row - self.first) % self.period


def rounds(rows: Sequence[Hashable]) -> list[Rounds]:
    """Finds loops, from the beginning of a list on.

    Loops that save the most rows are preferred, and then loops with short rounds.
    """
    found, at = [], 0
    while at < len(rows):
        best = max((_from(rows, at, period) for period in _periods(rows, at)), key=_saved, default=None)
        if best is None or best.count < LEAST:
            at += 1
        else:
            found.append(best)
            at = best.last
    return found


def _periods(rows: Sequence[Hashable], at: int) -> list[int]:
    """Returns the possible lengths of a round that starts at row ``at``.

    They are the distances to equal rows for which at least `LEAST` rounds fit.
    """
    most = (len(rows) - at) // LEAST
    return [period for period in range(1, most + 1) if rows[at + period] == rows[at]]


def _from(rows: Sequence[Hashable], at: int, period: int) -> Rounds:
    end = at + period
    while end < len(rows) and rows[end] == rows[end - period]:
        end += 1
    return Rounds(at, period, (end - at) // period)


def _saved(found: Rounds) -> tuple[int, int]:
    return found.last - found.end if found.count >= LEAST else 0, -found.period
