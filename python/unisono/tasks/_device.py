"""Arrays on a device, for kernels of CuPy: each side keeps what it has, and only what the other lacks is copied.

The device's copy of an array spans what kernels there have touched. Of CuPy this uses `zeros`, `asarray`, `asnumpy`,
indexing and `cuda.Device`, on its current device and stream.
"""

import importlib
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unisono._core import InputError
from unisono.tasks._operators import NEUTRAL
from unisono.tasks._regions import Box, Boxes, Data, around, common, place, within, without

if TYPE_CHECKING:
    from unisono.tasks._kernels import Part

#: With 1, kernels on a device that write to what they only read are found, at the price of copies.
_CHECK = "UNISONO_CHECK_READS"


def cupy() -> Any:
    """The module, imported at first use."""
    try:
        module = importlib.import_module("cupy")
    except ImportError as missing:
        raise InputError(
            f"tasks with on='cupy' need CuPy, which is not there ({missing}); install what fits your device"
        ) from missing
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as failure:
        raise InputError(f"tasks with on='cupy' need a device; CuPy says: {failure}") from failure
    if count < 1:
        raise InputError("tasks with on='cupy' need a device; CuPy finds none")
    return module


class Mirror:
    """An array's copy on the device.

    Invariant: the device holds in ``_data`` what ``_span`` says; there it has the latest contents of ``_fresh``, and of
    ``_newer``, a part of that, the host has not.
    """

    def __init__(self, host: Data) -> None:
        """Of an array of which the host has all."""
        self._host, self._cupy = host, cupy()
        self._span: Box | None = None
        self._data: Any = None
        self._fresh: Boxes = ()
        self._newer: Boxes = ()
        # Messages may be packed by another thread, while a kernel's arrays are brought.
        self._lock, self._device = threading.Lock(), self._cupy.cuda.Device()

    def cover(self, box: Box) -> None:
        """Makes room for a box."""
        with self._lock:
            span = around(self._span, box) if self._span else box
            if span != self._span:
                data = self._cupy.zeros(tuple(b - a for a, b in zip(*span, strict=True)), self._host.dtype)
                if self._span:
                    data[within(self._span, span)] = self._data
                self._span, self._data = span, data

    def bring(self, region: Boxes) -> None:
        """Brings what the device lacks of a region that was made room for."""
        with self._lock:
            missing = without(region, self._fresh)
            for piece in missing:
                self._at(piece)[...] = self._cupy.asarray(self._host[place(piece)])
            self._fresh += missing

    def wrote(self, region: Boxes) -> None:
        """A kernel on the device writes a region."""
        with self._lock:
            self._fresh += without(region, self._fresh)
            self._newer += without(region, self._newer)

    def view(self, box: Box) -> Any:
        """The device's array of a box that was made room for."""
        with self._lock:
            return self._at(box)

    def to_host(self, boxes: Boxes) -> None:
        """Brings to the host what it lacks."""
        with self._lock:
            if missing := common(boxes, self._newer):
                self._newer = without(self._newer, missing)
                with self._device:
                    for piece in missing:
                        self._host[place(piece)] = self._cupy.asnumpy(self._at(piece))

    def host_wrote(self, boxes: Boxes) -> None:
        """The host has new contents."""
        with self._lock:
            self._fresh, self._newer = without(self._fresh, boxes), without(self._newer, boxes)

    def _at(self, box: Box) -> Any:
        assert self._span is not None
        return self._data[within(box, self._span)]


def views(parts: Sequence["Part"], operator: str) -> list[Any]:
    """CuPy arrays of what a task touches; none of them is read-only, since CuPy has no such arrays."""
    mirrors = []
    for part in parts:
        held = part.held
        held.mirror = held.mirror or Mirror(held.data)
        held.mirror.cover(part.box)
        mirrors.append(held.mirror)
    # All contents come before the first is written over.
    for mirror, part in zip(mirrors, parts, strict=True):
        if part.reads:
            mirror.bring(part.region)
    for mirror, part in zip(mirrors, parts, strict=True):
        if part.writes:
            mirror.wrote(part.region)
        if part.mode == "reduce":
            for piece in part.region:
                mirror.view(piece)[...] = NEUTRAL[operator](part.held.data.dtype)
    return [mirror.view(part.box) for mirror, part in zip(mirrors, parts, strict=True)]


def contents_read(parts: Sequence["Part"]) -> list[list[bytes]]:
    """The regions that a kernel only reads, where the environment asks to compare them; none elsewhere."""
    return [_contents(part, parts) for part in parts] if os.environ.get(_CHECK, "") == "1" else []


def check_reads(task: str, parts: Sequence["Part"], before: Sequence[list[bytes]]) -> None:
    """Compares what a kernel only reads with what it was.

    Raises:
        InputError: the kernel wrote to it.

    """
    for part, contents in zip(parts, before, strict=True):
        if contents != _contents(part, parts):
            raise InputError(
                f"task '{task}': its kernel writes to '{part.name}', which the task only reads; accepted are writes "
                "to arrays in writes, updates or reduces"
            )


def _contents(part: "Part", parts: Sequence["Part"]) -> list[bytes]:
    """The region of an array that a part of a task reads, and does not write through another access."""
    mirror = part.held.mirror
    if part.writes or mirror is None:
        return []
    written = tuple(box for other in parts if other.writes and other.held is part.held for box in other.region)
    return [cupy().asnumpy(mirror.view(box)).tobytes() for box in without(part.region, written)]
