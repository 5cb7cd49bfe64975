"""What all ranks of a program must have in common, and a discovery does not look at."""

import zlib

import numpy as np
import numpy.typing as npt

from unisono._core import InputError


class Agreed:
    """Dtypes, operators and contents, as one number that ranks compare, and the contents of each array."""

    def __init__(self) -> None:
        #: Of all that was added, in its order.
        self.number = 0
        #: The names of arrays with contents, with a number of the contents each.
        self._contents: list[tuple[str, int]] = []

    def add(self, text: str) -> None:
        """Adds a word."""
        self.number = zlib.crc32(text.encode(), self.number)

    def add_contents(self, name: str, data: npt.NDArray[np.generic]) -> None:
        """Adds the contents that an array begins with."""
        found = zlib.crc32(np.ascontiguousarray(data).view(np.uint8).reshape(-1).data)
        self._contents.append((name, found))
        self.add(f"{found}")

    def contents(self) -> list[tuple[str, int]]:
        """The names of arrays, with numbers that differ where contents do."""
        return self._contents


def refuse_different_contents(by_rank: list[list[tuple[str, int]]]) -> None:
    """Names the first array whose contents differ.

    Raises:
        InputError: there is one.

    """
    for rows in zip(*by_rank, strict=False):
        if len(set(rows)) > 1:
            other = next(rank for rank, row in enumerate(rows) if row != rows[0])
            raise InputError(
                f"the contents that array '{rows[0][0]}' begins with differ between ranks 0 and {other}; give the same "
                "on all ranks, as with numpy.random.default_rng(0)"
            )
