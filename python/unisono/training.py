"""Data-parallel training of VGG-16: how much of an iteration is Allreduce, with and without overlap.

Layers as in Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015,
configuration D, for images of 224 x 224. An iteration computes forwards and backwards on a node's minibatch, then
reduces the gradients of all layers among all cores. With overlap the gradients of a layer are reduced as soon as
backpropagation has left it, one layer after the other, while it goes on ("Accelerating Allreduce with in-network
reduction on Intel PIUMA", deep learning).
"""

from dataclasses import dataclass
from typing import Any

from unisono import _core
from unisono._core import InputError, Machine

__all__ = [
    "BYTES",
    "MINIBATCH",
    "PRESETS",
    "Iteration",
    "Layer",
    "Reduction",
    "iteration",
    "reduction",
    "report",
    "vgg16",
]

#: Bytes of a weight.
BYTES = 4
_CHANNELS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
_CONNECTED = (4096, 4096, 1000)
_IMAGE = 224


@dataclass(frozen=True)
class Layer:
    """One layer with weights."""

    name: str
    weights: int
    #: Of one image, forwards; backwards takes twice as many.
    flops: float


def vgg16() -> list[Layer]:
    """The 16 layers with weights, from the image on."""
    layers, side, before, block, at = [], _IMAGE, 3, 1, 1
    for channels in _CHANNELS:
        if channels == 0:
            side, block, at = side // 2, block + 1, 1
            continue
        kernel = 9 * before * channels
        layers.append(Layer(f"conv{block}_{at}", kernel + channels, 2.0 * kernel * side * side))
        before, at = channels, at + 1
    before *= side * side
    for at, outputs in enumerate(_CONNECTED):
        layers.append(Layer(f"fc{6 + at}", before * outputs + outputs, 2.0 * before * outputs))
        before = outputs
    return layers


@dataclass(frozen=True)
class Iteration:
    """One iteration, in seconds."""

    compute: float
    #: All Allreduces, whether they are hidden or not.
    allreduce: float
    #: The part of it that no compute hides.
    exposed: float

    @property
    def seconds(self) -> float:
        """The iteration."""
        return self.compute + self.exposed

    @property
    def share(self) -> float:
        """The share of the iteration that waits for Allreduce."""
        return self.exposed / self.seconds


@dataclass(frozen=True)
class Reduction:
    """T(m) = alpha + beta m of an allreduce of m elements, in seconds."""

    alpha: float
    beta: float

    def of(self, elements: int) -> float:
        """The time of that number of elements."""
        return self.alpha + self.beta * elements


def reduction(machine: Machine, algorithm: str) -> Reduction:
    """How long an Allreduce by that algorithm takes on all cores of the machine."""
    few, many = 1, 1 << 20
    times = [_core.plan("allreduce", machine, n, "f32", "sum", 0, algorithm).predicted["seconds"] for n in (few, many)]
    beta = (times[1] - times[0]) / (many - few)
    return Reduction(times[0] - beta * few, beta)


def iteration(machine: Machine, minibatch: int, by: Reduction, *, overlap: bool) -> Iteration:
    """One iteration with ``minibatch`` images a node.

    Raises:
        InputError: the machine says nothing of its compute, or there is no image.

    """
    device = machine.describe().get("device")
    if device is None:
        raise InputError(f"{machine.name} says nothing of a node's compute; a table [device] has tflops and efficiency")
    if minibatch < 1:
        raise InputError(f"the minibatch is {minibatch}; accepted are whole numbers from 1 on")
    rate = device["tflops"] * 1e12 * device["efficiency"]
    layers = vgg16()
    forwards = [minibatch * layer.flops / rate for layer in layers]
    compute = 3 * sum(forwards)
    if not overlap:
        whole = by.of(sum(layer.weights for layer in layers))
        return Iteration(compute, whole, whole)
    now, free, busy = sum(forwards), 0.0, 0.0
    for layer, forward in zip(reversed(layers), reversed(forwards), strict=True):
        now += 2 * forward
        takes = by.of(layer.weights)
        free = max(free, now) + takes
        busy += takes
    return Iteration(compute, busy, free - compute)


#: The rows of `unisono workload` for these.
PRESETS = [{"name": "vgg16", "accelerators": 0, "summary": "VGG-16, data-parallel on nodes whose switches reduce"}]
#: Images a node where nobody says how many.
MINIBATCH = 128


def report(machine: Machine, minibatch: int, algorithm: str, *, overlap: bool) -> dict[str, Any]:
    """An iteration as `unisono workload` reports it, with keys as of workloads on networks."""
    by = reduction(machine, algorithm)
    made = iteration(machine, minibatch, by, overlap=overlap)
    cores = (machine.shape or (1,))[0]
    layers = [
        {
            "name": layer.name,
            "bytes": layer.weights * BYTES,
            "forward_flops": layer.flops * minibatch,
            "communication_seconds": by.of(layer.weights),
        }
        for layer in vgg16()
    ]
    return {
        "workload": "vgg16",
        "machine": machine.name,
        "accelerators": cores,
        "minibatch": minibatch,
        "algorithm": algorithm,
        "overlap": overlap,
        "seconds": made.seconds,
        "compute_seconds": made.compute,
        "communication_seconds": made.allreduce,
        "exposed_seconds": made.exposed,
        "phases": layers,
    }
