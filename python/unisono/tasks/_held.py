"""Arrays as a rank holds them, and what is under way on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono.tasks._operators import NAMES
from unisono.tasks._regions import Data

Poll = Callable[[], bool]


@dataclass
class Held:
    """An array as this rank holds it: in full size, of which memory pages that nothing touches take no room."""

    data: Data
    #: The operator that combines its partial results.
    operator: str | None = None
    #: For each element the last operator's number, where tasks have several.
    codes: npt.NDArray[np.uint8] | None = None

    def combine_by(self, operator: str) -> None:
        """Another task reduces it."""
        if self.operator not in (None, operator) and self.codes is None:
            self.codes = np.full(self.data.shape, NAMES.index(self.operator or operator), np.uint8)
        self.operator = self.operator or operator


def nothing() -> None:
    """Where nothing remains to be done."""


@dataclass
class Pending:
    """What is under way: whether it is over, and what then remains to be done."""

    poll: Poll
    finish: Callable[[], None] = nothing
    #: What serves it, in words.
    served: str = "messages"
    #: Memory that it works on.
    kept: tuple[Any, ...] = ()
