"""Times data-parallel training of VGG-16, and the part of an iteration that Allreduce takes with and without overlap.

Layers as in Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015,
configuration D, for images of 224 x 224. An iteration computes forwards and backwards on a node's minibatch, then
reduces the gradients of all layers among all cores. With overlap the gradients of a layer are reduced as soon as
backpropagation has finished the layer, one layer after the other, while backpropagation continues ("Accelerating
Allreduce with in-network reduction on Intel PIUMA", deep learning).
"""

from dataclasses import dataclass

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base.reports import Communication, WorkloadPhase, WorkloadReport

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

#: The bytes of a weight.
BYTES = 4
_CHANNELS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
_CONNECTED = (4096, 4096, 1000)
_IMAGE = 224


@dataclass(frozen=True)
class Layer:
    """One layer with weights."""

    name: str
    weights: int
    #: Forward floating-point operations of one image; the backward pass has twice as many.
    flops: float


def vgg16() -> list[Layer]:
    """Returns the 16 layers with weights, in the order of the forward pass."""
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
    """The times of one iteration, in seconds."""

    compute: float
    #: The time of all Allreduces, including the time that compute hides.
    allreduce: float
    #: The part of the time of all Allreduces that no compute hides.
    exposed: float

    @property
    def seconds(self) -> float:
        """Returns the time of the iteration."""
        return self.compute + self.exposed

    @property
    def share(self) -> float:
        """Returns the exposed time divided by the time of the iteration."""
        return self.exposed / self.seconds


@dataclass(frozen=True)
class Reduction:
    """The time of an allreduce of m elements, alpha + beta m, in seconds."""

    alpha: float
    beta: float

    def of(self, elements: int) -> float:
        """Returns the time of ``elements`` elements."""
        return self.alpha + self.beta * elements


def reduction(machine: Machine, algorithm: str) -> Reduction:
    """Returns the line through the predicted times of Allreduces of 1 and of 2^20 elements (f32) by ``algorithm``.

    All cores of the machine take part.
    """
    few, many = 1, 1 << 20
    times = [_core.plan("allreduce", machine, n, "f32", "sum", 0, algorithm).predicted["seconds"] for n in (few, many)]
    beta = (times[1] - times[0]) / (many - few)
    return Reduction(times[0] - beta * few, beta)


def iteration(machine: Machine, minibatch: int, by: Reduction, *, overlap: bool) -> Iteration:
    """Returns the times of one iteration with ``minibatch`` images a node.

    Raises:
        InputError: the machine states no rate of compute, or ``minibatch`` is below 1.

    """
    device = machine.describe().get("device")
    if device is None:
        raise InputError(f"{machine.name} states no rate of compute; a table [device] has tflops and efficiency")
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


#: The rows of these workloads in the list of `unisono workload`.
PRESETS = [{"name": "vgg16", "accelerators": 0, "summary": "VGG-16, data-parallel on nodes whose switches reduce"}]
_REFERENCE = "Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, 2015"
#: The default number of images a node.
MINIBATCH = 128


def report(machine: Machine, minibatch: int, algorithm: str, *, overlap: bool) -> WorkloadReport:
    """Reports one iteration, like workloads on networks: the forward pass, then each layer of the backward pass.

    Without overlap the gradients of all layers are reduced together, after the last layer.

    Raises:
        InputError: the machine's switches do not reduce, or the machine states no rate of compute.

    """
    if machine.kind != "in-network":
        raise InputError(
            f"{machine.name} is of kind {machine.kind}; vgg16 runs on switches that reduce, of kind in-network"
        )
    by = reduction(machine, algorithm)
    made = iteration(machine, minibatch, by, overlap=overlap)
    cores = (machine.shape or (1,))[0]
    layers = vgg16()
    all_flops = sum(layer.flops for layer in layers)
    forward = made.compute / 3
    now, free = forward, 0.0
    phases = [_phase("forward", 0.0, forward, minibatch * all_flops, [])]
    for layer in reversed(layers):
        begin, takes = now, 2 * forward * layer.flops / all_flops
        now += takes
        weights = layer.weights if overlap else sum(one.weights for one in layers) if layer is layers[0] else 0
        reduced: list[Communication] = []
        if weights:
            start = max(free, now)
            free = start + by.of(weights)
            reduced.append(
                {
                    "collective": "allreduce",
                    "bytes": weights * BYTES,
                    "ranks": cores,
                    "blocking": not overlap,
                    "algorithm": algorithm,
                    "params": {},
                    "begin": start,
                    "end": free,
                }
            )
        phases.append(_phase(layer.name, begin, takes, minibatch * layer.flops, reduced))
    return {
        "workload": "vgg16",
        "machine": machine.name,
        "rates": None,
        "accelerators": cores,
        "reference": _REFERENCE,
        "level": "model",
        "overlap": overlap,
        "minibatch": minibatch,
        "algorithm": algorithm,
        "seconds": made.seconds,
        "compute_seconds": made.compute,
        "communication_seconds": made.allreduce,
        "exposed_seconds": made.exposed,
        "hidden_seconds": made.allreduce - made.exposed,
        "waiting_seconds": 0.0,
        "phases": phases,
        "notes": machine.notes(),
        "utilization": None,
        "copies": None,
        "used_cost_usd": None,
        "packets": None,
        "events": None,
    }


def _phase(name: str, begin: float, compute: float, flops: float, communication: list[Communication]) -> WorkloadPhase:
    return {
        "name": name,
        "begin": begin,
        "compute_seconds": compute,
        "communication_seconds": sum(one["end"] - one["begin"] for one in communication),
        "waited_seconds": 0.0,
        "bytes": sum(one["bytes"] for one in communication),
        "forward_flops": flops,
        "communication": communication,
    }
