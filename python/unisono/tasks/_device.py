"""Arrays on devices, for kernels of CuPy: each memory keeps what it has, and only what it lacks is copied.

A device's copy of an array spans what kernels there have touched. What one device lacks and another one has goes
through the memory of the host. Of CuPy this uses `zeros`, `asarray`, `asnumpy`, indexing and `cuda.Device`, on its
current stream. A program without a number of devices uses CuPy's current one.
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

#: With 1, kernels on a device that write to what they only read are found, at the price of copies.
_CHECK = "UNISONO_CHECK_READS"


def cupy(devices: int = 1) -> Any:
    """The module, imported at first use.

    Raises:
        InputError: it is not there, or finds fewer devices.

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
    """An array's copy on the device.

    Invariant: the device holds in ``_data`` what ``_span`` says; there it has the latest contents of ``_fresh``, and of
    ``_newer``, a part of that, the host has not.
    """

    def __init__(self, host: Data, device: int | None) -> None:
        """Of an array of which the host has all; None for CuPy's current device."""
        self._host, self._cupy = host, cupy()
        self._span: Box | None = None
        self._data: Any = None
        self._fresh: Boxes = ()
        self._newer: Boxes = ()
        # Messages may be packed by another thread, while a kernel's arrays are brought.
        of = self._cupy.cuda.Device
        self._lock, self._device = threading.Lock(), of() if device is None else of(device)

    def cover(self, box: Box) -> None:
        """Makes room for a box."""
        with self._lock:
            span = around(self._span, box) if self._span else box
            if span != self._span:
                with self._device:
                    data = self._cupy.zeros(tuple(b - a for a, b in zip(*span, strict=True)), self._host.dtype)
                    if self._span:
                        data[within(self._span, span)] = self._data
                self._span, self._data = span, data

    def bring(self, region: Boxes) -> None:
        """Brings what the device lacks of a region that was made room for."""
        with self._lock:
            missing = without(region, self._fresh)
            with self._device:
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

    def fill(self, box: Box, value: Any) -> None:
        """Sets the elements of a box that was made room for."""
        with self._lock, self._device:
            self._at(box)[...] = value

    def contents(self, box: Box) -> Data:
        """A copy of what the device has of a box."""
        with self._lock, self._device:
            copied: Data = self._cupy.asnumpy(self._at(box))
            return copied

    def host_wrote(self, boxes: Boxes) -> None:
        """Another memory has new contents."""
        with self._lock:
            self._fresh, self._newer = without(self._fresh, boxes), without(self._newer, boxes)

    def running(self) -> Any:
        """The context in which its kernels run."""
        return self._device

    def _at(self, box: Box) -> Any:
        assert self._span is not None
        return self._data[within(box, self._span)]


class Mirrors:
    """An array's copies on all devices of the process.

    Invariant: at most one device has contents of an element that the host has not.
    """

    def __init__(self, host: Data, devices: int | None) -> None:
        """Of an array of which the host has all; without a number of devices, CuPy's current one."""
        self.each = [Mirror(host, device) for device in ([None] if devices is None else range(devices))]

    def to_host(self, boxes: Boxes) -> None:
        """Brings to the host what it lacks."""
        for mirror in self.each:
            mirror.to_host(boxes)

    def host_wrote(self, boxes: Boxes) -> None:
        """The host has new contents."""
        for mirror in self.each:
            mirror.host_wrote(boxes)

    def bring(self, device: int, region: Boxes) -> None:
        """Brings to a device what it lacks; what only another device has goes to the host first."""
        for other, mirror in enumerate(self.each):
            if other != device:
                mirror.to_host(region)
        self.each[device].bring(region)

    def wrote(self, device: int, region: Boxes) -> None:
        """A kernel on a device writes a region."""
        for other, mirror in enumerate(self.each):
            if other != device:
                mirror.host_wrote(region)
        self.each[device].wrote(region)


def views(parts: Sequence["Part"], operator: str) -> list[Any]:
    """CuPy arrays of what a task touches on one device."""
    return _prepare([parts], operator)[0]


def _prepare(devices: Sequence[Sequence["Part"]], operator: str) -> list[list[Any]]:
    """CuPy arrays of what a task touches on each device; none of them is read-only, since CuPy has no such arrays."""
    for parts in devices:
        for part in parts:
            part.held.mirror = part.held.mirror or Mirrors(part.held.data, part.held.devices)
    listed = [(device, part, _mirrors(part)) for device, parts in enumerate(devices) for part in parts]
    for device, part, mirrors in listed:
        mirrors.each[device].cover(part.box)
    # All contents come before the first is written over.
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
                mirrors.each[device].fill(piece, NEUTRAL[operator](part.held.data.dtype))
    return arrays


def _mirrors(part: "Part") -> Mirrors:
    assert part.held.mirror is not None
    return part.held.mirror


def call_each(
    devices: Sequence[Sequence["Part"]],
    whole: Sequence["Part"],
    operator: str,
    run: Callable[[Sequence["Part"], list[Any]], None],
) -> None:
    """Runs a kernel on each device's part of a task, and combines the partial results on the host.

    ``whole`` is the part of the process.
    """
    for device, (parts, arrays) in enumerate(zip(devices, _prepare(devices, operator), strict=True)):
        with _mirrors(parts[0]).each[device].running() if parts else nullcontext():
            run(parts, arrays)
    _combine(devices, whole, operator)


def _combine(devices: Sequence[Sequence["Part"]], whole: Sequence["Part"], operator: str) -> None:
    """Combines the partial results of several devices, in their order.

    The process contributes neutral elements where no device does.
    """
    reduced = [(k, part) for k, parts in enumerate(devices) for part in parts if part.mode == "reduce"]
    partial = [
        (part, [(piece, _mirrors(part).each[k].contents(piece)) for piece in part.region]) for k, part in reduced
    ]
    for part in (part for part in whole if part.mode == "reduce"):
        for piece in part.region:
            part.held.data[place(piece)] = NEUTRAL[operator](part.held.data.dtype)
        part.held.host_wrote(part.region)
    for part, pieces in partial:
        for piece, contents in pieces:
            own = part.held.data[place(piece)]
            COMBINE[operator](own, contents, out=own)


def contents_read(parts: Sequence["Part"], device: int) -> list[list[bytes]]:
    """The regions that a kernel only reads, where the environment asks to compare them; none elsewhere."""
    return [_contents(part, parts, device) for part in parts] if is_on(_CHECK) else []


def check_reads(task: str, parts: Sequence["Part"], before: Sequence[list[bytes]], device: int) -> None:
    """Compares what a kernel only reads with what it was.

    Raises:
        InputError: the kernel wrote to it.

    """
    for part, contents in zip(parts, before, strict=True):
        if contents != _contents(part, parts, device):
            raise InputError(
                f"task '{task}': its kernel writes to '{part.name}', which the task only reads; accepted are writes "
                "to arrays in writes, updates or reduces"
            )


def _contents(part: "Part", parts: Sequence["Part"], device: int) -> list[bytes]:
    """The region of an array that a part of a task reads, and does not write through another access."""
    mirrors = part.held.mirror
    if part.writes or mirrors is None:
        return []
    written = tuple(box for other in parts if other.writes and other.held is part.held for box in other.region)
    return [mirrors.each[device].contents(box).tobytes() for box in without(part.region, written)]
