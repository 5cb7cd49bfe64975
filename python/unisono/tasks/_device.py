"""Keeps copies of arrays in the memories of devices, for kernels of CuPy; only missing data is copied.

A device's copy of an array spans the elements that kernels there have accessed. Data that only another device has is
copied through the memory of the host. This module uses `zeros`, `asarray`, `asnumpy`, indexing and `cuda.Device` of
CuPy, on its current stream. A program without a number of devices uses CuPy's current device.
"""

import importlib
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from unisono._core import InputError
from unisono.base.switches import is_on
from unisono.tasks._operators import COMBINE, NEUTRAL
from unisono.tasks._regions import Box, Boxes, Data, around, common, place, within, without

if TYPE_CHECKING:
    from unisono.tasks._kernels import Part

#: With the value 1, read-only arguments are copied and compared, to find kernels on a device that write to them.
_CHECK = "UNISONO_CHECK_READS"


def cupy(devices: int = 1) -> Any:
    """Imports the module and returns it.

    Raises:
        InputError: CuPy is not installed, or finds fewer devices.

    """
    try:
        module = importlib.import_module("cupy")
    except ImportError as missing:
        raise InputError(
            f"tasks with on='cupy' need CuPy, which is not there ({missing}); install what fits your device"
        ) from missing
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as failure:
        raise InputError(f"tasks with on='cupy' need a device; CuPy reports: {failure}") from failure
    if count < 1:
        raise InputError("tasks with on='cupy' need a device; CuPy finds none")
    if count < devices:
        raise InputError(f"the program has {devices} devices; CuPy finds {count}")
    return module


class Mirror:
    """A copy of an array on one device.

    Invariant: ``_data`` has the elements of ``_span``. The device has the latest contents of the boxes ``_fresh``, and
    the host lacks the latest contents of ``_newer``, a part of ``_fresh``.
    """

    def __init__(self, host: Data, device: int | None) -> None:
        """Creates a copy without elements; ``device`` None stands for CuPy's current device."""
        self._host, self._cupy = host, cupy()
        self._span: Box | None = None
        self._data: Any = None
        self._fresh: Boxes = ()
        self._newer: Boxes = ()
        # A lock is needed, because another thread may pack messages while a kernel's arrays are copied.
        of = self._cupy.cuda.Device
        self._lock, self._device = threading.Lock(), of() if device is None else of(device)

    def cover(self, box: Box) -> None:
        """Extends the span to include a box."""
        with self._lock:
            span = around(self._span, box) if self._span else box
            if span != self._span:
                with self._device:
                    data = self._cupy.zeros(tuple(b - a for a, b in zip(*span, strict=True)), self._host.dtype)
                    if self._span:
                        data[within(self._span, span)] = self._data
                self._span, self._data = span, data

    def bring(self, region: Boxes) -> None:
        """Copies the elements of a region, which must be in the span, from the host, if the device lacks them."""
        with self._lock:
            missing = without(region, self._fresh)
            with self._device:
                for piece in missing:
                    self._at(piece)[...] = self._cupy.asarray(self._host[place(piece)])
            self._fresh += missing

    def wrote(self, region: Boxes) -> None:
        """Marks a region that a kernel on this device writes."""
        with self._lock:
            self._fresh += without(region, self._fresh)
            self._newer += without(region, self._newer)

    def view(self, box: Box) -> Any:
        """Returns the device's array of a box in the span."""
        with self._lock:
            return self._at(box)

    def to_host(self, boxes: Boxes) -> None:
        """Copies to the host the elements in ``boxes`` whose latest contents the host lacks."""
        with self._lock:
            if missing := common(boxes, self._newer):
                self._newer = without(self._newer, missing)
                with self._device:
                    for piece in missing:
                        self._host[place(piece)] = self._cupy.asnumpy(self._at(piece))

    def fill(self, box: Box, value: Any) -> None:
        """Sets the elements of a box in the span."""
        with self._lock, self._device:
            self._at(box)[...] = value

    def contents(self, box: Box) -> Data:
        """Returns a copy of a box in the span."""
        with self._lock, self._device:
            copied: Data = self._cupy.asnumpy(self._at(box))
            return copied

    def host_wrote(self, boxes: Boxes) -> None:
        """Marks boxes that are newer in another memory."""
        with self._lock:
            self._fresh, self._newer = without(self._fresh, boxes), without(self._newer, boxes)

    def running(self) -> Any:
        """Returns the context manager in which kernels run on the device."""
        return self._device

    def _at(self, box: Box) -> Any:
        assert self._span is not None
        return self._data[within(box, self._span)]


class Mirrors:
    """The copies of an array on all devices of the process.

    Invariant: for each element, at most one device has contents that the host lacks.
    """

    def __init__(self, host: Data, devices: int | None) -> None:
        """Creates copies without elements; ``devices`` None stands for CuPy's current device."""
        self.each = [Mirror(host, device) for device in ([None] if devices is None else range(devices))]

    def to_host(self, boxes: Boxes) -> None:
        """Copies to the host the elements in ``boxes`` whose latest contents the host lacks."""
        for mirror in self.each:
            mirror.to_host(boxes)

    def host_wrote(self, boxes: Boxes) -> None:
        """Marks boxes that are newer on the host."""
        for mirror in self.each:
            mirror.host_wrote(boxes)

    def bring(self, device: int, region: Boxes) -> None:
        """Copies to a device the elements that it lacks, through the host if only another device has them."""
        for other, mirror in enumerate(self.each):
            if other != device:
                mirror.to_host(region)
        self.each[device].bring(region)

    def wrote(self, device: int, region: Boxes) -> None:
        """Marks a region that a kernel on one device writes."""
        for other, mirror in enumerate(self.each):
            if other != device:
                mirror.host_wrote(region)
        self.each[device].wrote(region)


def views(parts: Sequence["Part"], operator: str) -> list[Any]:
    """Returns CuPy arrays of a task's parts on one device."""
    return _prepare([parts], operator)[0]


def _prepare(devices: Sequence[Sequence["Part"]], operator: str) -> list[list[Any]]:
    """Returns CuPy arrays of a task's parts on each device, all writable, because CuPy has no read-only arrays."""
    for parts in devices:
        for part in parts:
            part.local.mirror = part.local.mirror or Mirrors(part.local.data, part.local.devices)
    listed = [(device, part, _mirrors(part)) for device, parts in enumerate(devices) for part in parts]
    for device, part, mirrors in listed:
        mirrors.each[device].cover(part.box)
    # All contents are copied before any of them is overwritten.
    for device, part, mirrors in listed:
        if part.reads:
            mirrors.bring(device, part.region)
    arrays = [[_mirrors(part).each[device].view(part.box) for part in parts] for device, parts in enumerate(devices)]
    for device, (parts, found) in enumerate(zip(devices, arrays, strict=True)):
        for at, part in enumerate(parts):
            if part.kept(parts):
                with _mirrors(part).each[device].running():
                    found[at] = found[at].copy()
    for device, part, mirrors in listed:
        if part.writes:
            mirrors.wrote(device, part.region)
        if part.mode == "reduce":
            for piece in part.region:
                mirrors.each[device].fill(piece, NEUTRAL[operator](part.local.data.dtype))
    return arrays


def _mirrors(part: "Part") -> Mirrors:
    assert part.local.mirror is not None
    return part.local.mirror


def call_each(
    devices: Sequence[Sequence["Part"]],
    whole: Sequence["Part"],
    operator: str,
    run: Callable[[Sequence["Part"], list[Any]], None],
) -> None:
    """Runs a kernel on each device's part of a task, and combines the partial results on the host.

    ``whole`` has the parts that the process accesses.
    """
    for device, (parts, arrays) in enumerate(zip(devices, _prepare(devices, operator), strict=True)):
        with _mirrors(parts[0]).each[device].running() if parts else nullcontext():
            run(parts, arrays)
    _combine(devices, whole, operator)


def _combine(devices: Sequence[Sequence["Part"]], whole: Sequence["Part"], operator: str) -> None:
    """Combines the partial results of several devices, in the order of the devices.

    The process contributes neutral elements for regions that no device reduces.
    """
    reduced = [(k, part) for k, parts in enumerate(devices) for part in parts if part.mode == "reduce"]
    partial = [
        (part, [(piece, _mirrors(part).each[k].contents(piece)) for piece in part.region]) for k, part in reduced
    ]
    for part in (part for part in whole if part.mode == "reduce"):
        for piece in part.region:
            part.local.data[place(piece)] = NEUTRAL[operator](part.local.data.dtype)
        part.local.host_wrote(part.region)
    for part, pieces in partial:
        for piece, contents in pieces:
            own = part.local.data[place(piece)]
            COMBINE[operator](own, contents, out=own)


def contents_read(parts: Sequence["Part"], device: int) -> list[list[bytes]]:
    """Returns the contents that a kernel only reads; empty unless :data:`_CHECK` is on."""
    return [_contents(part, parts, device) for part in parts] if is_on(_CHECK) else []


def check_reads(task: str, parts: Sequence["Part"], before: Sequence[list[bytes]], device: int) -> None:
    """Compares the contents that a kernel only reads with ``before``, their contents before its run.

    Raises:
        InputError: the kernel changed them.

    """
    for part, contents in zip(parts, before, strict=True):
        if contents != _contents(part, parts, device):
            raise InputError(
                f"task '{task}': its kernel writes to '{part.name}', which the task only reads; accepted are writes "
                "to arrays in writes, updates or reduces"
            )


def _contents(part: "Part", parts: Sequence["Part"], device: int) -> list[bytes]:
    """Returns the contents of ``part`` that the task reads and does not write through another of its ``parts``."""
    mirrors = part.local.mirror
    if part.writes or mirrors is None:
        return []
    written = tuple(box for other in parts if other.writes and other.local is part.local for box in other.region)
    return [mirrors.each[device].contents(box).tobytes() for box in without(part.region, written)]
