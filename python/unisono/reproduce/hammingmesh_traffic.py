"""Computes what "HammingMesh" and its artifact say of bandwidth."""

from collections.abc import Callable
from typing import Any

from unisono._core import Machine
from unisono.machines.descriptions import machine
from unisono.reproduce import Finding
from unisono.simulation.network_traffic import traffic

__all__ = ["CHECKS"]

Listed = dict[str, Any]


def _alltoall(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("alltoall", _buffered(preset, listed), bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * done.share_of_injection)
    return Finding(listed["reported"], shares)


def _buffered(preset: str, listed: Listed) -> Machine:
    """The preset, with buffers of the size that a row states."""
    made = machine(preset)
    buffers = listed.get("buffer_bytes")
    return made if buffers is None else made.changed("buffer_bytes", str(buffers))


def _allreduce(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("allreduce", preset, bytes=listed["bytes"], algorithm=listed["algorithm"], level="flow")
        shares.append(100 * done.share_of_peak)
    return Finding(listed["reported"], shares)


def _permutation(listed: Listed) -> Finding:
    """Of the mean accelerator, in percent of what it can send."""
    shares = []
    for preset in listed["presets"]:
        done = traffic("permutation", preset, bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * float(done.rates.mean()) / done.injection)
    return Finding(listed["reported"], shares)


CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "allreduce-share": _allreduce,
    "alltoall-share": _alltoall,
    "permutation-share": _permutation,
}
