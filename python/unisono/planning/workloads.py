"""Times one iteration of training workloads, with compute and communication, on a network."""

import os
from math import prod
from typing import SupportsIndex, cast

from unisono._core import InputError, WorkloadGraph, workload_presets
from unisono.base.file_types import reading
from unisono.base.files import MOST_DESCRIPTION_BYTES, exists, file_name, is_file, read_text, title
from unisono.base.inputs import MachineLike, whole
from unisono.base.messages import shown
from unisono.base.names import did_you_mean, named
from unisono.base.reports import WorkloadReport
from unisono.machines.descriptions import by_rates
from unisono.planning import training
from unisono.planning.programs import step

__all__ = ["workload"]


def workload(
    name: str | os.PathLike[str],
    machine: MachineLike,
    *,
    level: str = "model",
    overlap: bool = True,
    fill: bool = False,
    minibatch: SupportsIndex | None = None,
    algorithm: str | None = None,
    model: str | None = None,
) -> WorkloadReport:
    """Computes one iteration of a workload, by name or TOML file, on a network; or vgg16 on switches that reduce.

    The report has ``seconds``, ``compute_seconds``, ``communication_seconds``, ``exposed_seconds`` (communication that
    no compute hides) and ``phases``, each with its ``communication``. By ``level`` "model" a communication takes the
    time that the model of plans on networks predicts, with all groups sharing the links; by "packet" every packet of
    the iteration is simulated; by "flow" groups that communicate at the same time share links. Without ``overlap`` each
    step waits for all communication before it. With ``fill`` copies of the model fill the network, as in
    :func:`step`.

    ``vgg16`` has a ``minibatch`` of images a node, 128 by default, and reduces its gradients by ``algorithm``,
    in-network by default; other workloads have neither. ``model="data-sheet"`` uses the rates of the data sheet alone.

    Raises:
        InputError: no such workload, a damaged file, a machine of another kind or too small.
        UnsupportedError: a named algorithm does not carry out the collective.
        SimulationError: the packets stop.

    """
    text, on = file_name(name), by_rates(machine, model)
    if text in [preset["name"] for preset in training.PRESETS]:
        if level != "model":
            raise InputError(f"{text} runs by the model; level {shown(level)} is for workloads on networks")
        if fill:
            raise InputError(f"{text} runs on all nodes; fill is for workloads on networks")
        images = training.MINIBATCH if minibatch is None else whole("the minibatch", minibatch)
        by = "in-network" if algorithm is None else named("the algorithm", algorithm)
        return training.report(on, images, by, overlap=overlap)
    if minibatch is not None or algorithm is not None:
        raise InputError("minibatch and algorithm are for vgg16; other workloads name their algorithms in their files")
    presets = [preset["name"] for preset in (*workload_presets(), *training.PRESETS)]
    read = None
    if text not in presets and (text.endswith(".toml") or os.sep in text or is_file(text)):
        if not exists(text):
            raise InputError(
                f"the workload file '{title(text)}' does not exist; the workloads are {', '.join(presets)}"
            )
        read = read_text(text, MOST_DESCRIPTION_BYTES)
    elif text not in presets:
        near = did_you_mean(text, presets)
        kinds = "neither a workload nor a workload file"
        raise InputError(f"'{title(text)}' is {kinds}{near}; workloads are {', '.join(presets)}")
    with reading(text, "workload", (), "'unisono workload' lists those that there are"):
        graph = WorkloadGraph.of_workload(title(text), read)
    if on.kind != "network":
        raise InputError(f"{on.name} is of kind {on.kind}; workloads run on machines of kind network")
    if on.shape is not None and prod(on.shape) != (on.topology or {}).get("accelerators"):
        part = "x".join(map(str, on.shape))
        whole_of = f"a workload chooses its accelerators from the whole of {on.name}"
        raise InputError(f"{whole_of}, and shape {part} is asked for; ask for no part")
    report = dict(step(graph, on, level=level, overlap=overlap, fill=fill))
    return cast("WorkloadReport", {key: report[key] for key in WorkloadReport.__annotations__})
