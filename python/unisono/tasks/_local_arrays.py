"""A rank's copy of an array."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono.tasks._device import Mirrors
from unisono.tasks._operators import COMBINE, NAMES
from unisono.tasks._regions import Box, Boxes, Data, place

#: A command of `Discovery.commands`, a tuple that begins with kind, number, task and dependencies.
Command = tuple[Any, ...]


@dataclass
class LocalArray:
    """A rank's copy of an array: of full size, but memory pages that no task touches are not allocated."""

    data: Data
    #: The operator that combines the array's partial results.
    operator: str | None = None
    #: The code of the last operator of each element, if tasks have several operators.
    codes: npt.NDArray[np.uint8] | None = None
    #: The copies on devices, if kernels there access the array. The latest contents of an element may be only in such a
    #: copy.
    mirror: Mirrors | None = None
    #: The number of devices of the process; None for CuPy's current device.
    devices: int | None = None

    def to_host(self, region: Boxes) -> None:
        """Copies the latest contents of a region to ``data``."""
        if self.mirror:
            self.mirror.to_host(region)

    def latest(self) -> Data:
        """Returns ``data`` with the latest contents of all elements."""
        self.to_host((((0,) * self.data.ndim, self.data.shape),))
        return self.data

    def host_wrote(self, region: Boxes) -> None:
        """Marks a region of ``data`` that receives new contents."""
        if self.mirror:
            self.mirror.host_wrote(region)

    def to_host_for(self, command: Command) -> None:
        """Copies the latest contents of the region that an exchange reads to ``data``."""
        self.to_host(_given(command))

    def host_wrote_by(self, command: Command) -> None:
        """Marks the region that an exchange wrote."""
        self.host_wrote(_received(command))

    def combine_by(self, operator: str) -> bool:
        """Sets the operator of a task that reduces the array; returns whether it is the array's second operator."""
        is_other = self.operator not in (None, operator) and self.codes is None
        if is_other:
            self.codes = np.full(self.data.shape, NAMES.index(self.operator or operator), np.uint8)
        self.operator = self.operator or operator
        return is_other

    def combine(self, box: Box, values: bytes, codes: bytes | None) -> None:
        """Combines values with the elements of a box, by the array's operator or by the operators' ``codes``."""
        into = self.data[place(box)]
        given = np.frombuffer(values, self.data.dtype).reshape(into.shape)
        if codes is None:
            COMBINE[self.operator or "sum"](into, given, out=into)
            return
        coded = np.frombuffer(codes, np.uint8).reshape(into.shape)
        for code in np.unique(coded):
            chosen = coded == code
            into[chosen] = COMBINE[NAMES[code]](into[chosen], given[chosen])


def _given(command: Command) -> Boxes:
    """Returns the region of the array that an exchange reads; empty for an ``await``, which only receives."""
    at = {"push": 6, "collective": 7}.get(command[0])
    given: Boxes = () if at is None else command[at]
    return given


def _received(command: Command) -> Boxes:
    """Returns the region of the array that an exchange writes."""
    if command[0] == "await":
        return tuple(box for _, region in command[5] for box in region)
    received: Boxes = command[8]
    return received
