"""Checksums of properties that must be equal on all ranks and that a discovery does not read."""

import zlib

import numpy as np
import numpy.typing as npt

from unisono._core import InputError


class ProgramChecksum:
    """The dtypes, operators and initial contents of a program, as one checksum that ranks compare."""

    def __init__(self) -> None:
        #: The checksum of everything that was added, which depends on the order.
        self.number = 0
        #: The names of arrays with initial contents, each with a checksum of the contents.
        self._contents: list[tuple[str, int]] = []

    def add(self, text: str) -> None:
        """Adds a text to the checksum."""
        self.number = zlib.crc32(text.encode(), self.number)

    def add_contents(self, name: str, data: npt.NDArray[np.generic]) -> None:
        """Adds the initial contents of an array."""
        found = zlib.crc32(np.ascontiguousarray(data).view(np.uint8).reshape(-1).data)
        self._contents.append((name, found))
        self.add(f"{found}")

    def contents(self) -> list[tuple[str, int]]:
        """Returns the names of arrays with checksums of their initial contents."""
        return self._contents


def refuse_different_contents(by_rank: list[list[tuple[str, int]]]) -> None:
    """Refuses arrays whose initial contents differ between ranks; the error names the first such array.

    Raises:
        InputError: there is such an array.

    """
    for rows in zip(*by_rank, strict=False):
        if len(set(rows)) > 1:
            other = next(rank for rank, row in enumerate(rows) if row != rows[0])
            raise InputError(
                f"the contents that array '{rows[0][0]}' begins with differ between ranks 0 and {other}; give the same "
                "on all ranks, as with numpy.random.default_rng(0)"
            )
