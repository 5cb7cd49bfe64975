"""Predicts the times of other tools' programs on a machine, and the communication that compute does not hide."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from unisono._core import Error, InputError, Machine, WorkloadGraph, collectives, workload_presets
from unisono.base.file_types import reading
from unisono.base.files import MOST_DESCRIPTION_BYTES, exists, file_name, load, read_bytes, read_text, title
from unisono.base.inputs import MachineLike, finite, whole
from unisono.base.messages import shown
from unisono.base.names import did_you_mean, named
from unisono.base.reports import StepReport, WhatIf
from unisono.base.studies import KeptPoints, results
from unisono.machines.cables import same_cables, stated_rates, with_rate
from unisono.machines.descriptions import by_rates
from unisono.machines.descriptions import machine as machine_of
from unisono.planning.emission import emit_files

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["path_of", "price", "read_workload", "step", "takes_rates"]

#: The endings of files with a schedule.
_SCHEDULES = (".sched", ".xml")

#: Keys that set accelerator rates. ``_OF_CABLES`` is the beginning of keys for cables with their own rate. Other keys
#: of changes are ``machine``, ``fail``, collectives, and keys of a machine file.
_RATES = ("tflops", "memory_gb_per_second")
_OF_CABLES = "gbps."
#: The formats of programs that may state numbers of operations instead of times.
_COUNTING = ("hlo", "tasks")
#: The keys of a machine file that a message about changes does not propose, and the number of keys that it names.
_NOT_CHANGED = ("name", "kind", "summary", "reference", "notes", "prices", "accelerator", "failed")
_NAMED = 4
_OF_LINKS = ("link_gbps", "link_latency_ns")


def read_workload(
    path: str | os.PathLike[str], *, strict: bool = False, ranks: SupportsIndex | None = None
) -> WorkloadGraph:
    """Reads the program of a file, or of the files of a folder.

    Formats are HLO text of XLA, GOAL, a Chakra execution trace of each rank, also with a JSON file of process groups
    beside them, and a trace of PyTorch's profiler of each rank, or of one that stands for all.

    The name of a workload, or its TOML file, is a program too, with its ranks placed as in ``unisono.workload``. A
    program of tasks in JSON, as ``unisono.discover`` reads it, is run by ``ranks`` ranks; its communication is
    discovered. A schedule (``.sched``) and an algorithm of MSCCL (``.xml``) are read as the traces of their messages.

    The report counts operations of unknown time in ``unknown``; with ``strict`` they are an error.

    Raises:
        InputError: no such file, an unknown format, a damaged file; with ``strict``, an unknown operation; a program of
            tasks without ``ranks``, or another one with them.

    """
    text = file_name(path)
    count = None if ranks is None else whole("ranks", ranks)
    if count is not None and not 1 <= count < 2**32:
        raise InputError(f"ranks is {count}; accepted are numbers from 1 on")
    states_ranks = text in [preset["name"] for preset in workload_presets()] or text.endswith((".toml", *_SCHEDULES))
    if count is not None and states_ranks:
        raise InputError(
            f"ranks is given, and '{title(text)}' states its own; accepted with ranks is a program of tasks"
        )
    if text in [preset["name"] for preset in workload_presets()]:
        return WorkloadGraph.of_workload(text)
    if not exists(text):
        raise InputError(f"the program '{title(text)}' does not exist; accepted are a file and a folder of files")
    if text.endswith(".py"):
        raise InputError(
            f"'{title(text)}' is a program in Python; `unisono workload --from` executes it, and in Python its program "
            "returns what its ranks do by workload(ranks)"
        )
    if text.endswith(".toml"):
        with reading(text, "workload", (), "'unisono workload' lists those that there are"):
            return WorkloadGraph.of_workload(title(text), read_text(text, MOST_DESCRIPTION_BYTES))
    if text.endswith(_SCHEDULES):
        emitted = emit_files(load(text), "chakra").items()
        return WorkloadGraph.read([(name, data) for name, data in emitted if isinstance(data, bytes)], strict)
    if not Path(text).is_dir():
        return WorkloadGraph.read([(title(text), read_bytes(text))], strict, count)
    inside = sorted(entry for entry in Path(text).iterdir() if entry.is_file() and not entry.name.startswith("."))
    traces = [entry for entry in inside if ".et" in entry.suffixes]
    # In a folder of traces, a JSON file may list process groups, so JSON files are read too.
    inside = [*traces, *(entry for entry in inside if entry.suffix == ".json")] if traces else inside
    if not inside:
        raise InputError(f"the folder '{title(text)}' has no files; accepted is one with the files of a program")
    return WorkloadGraph.read([(title(str(entry)), read_bytes(entry)) for entry in inside], strict, count)


def step(
    program: WorkloadGraph | str | os.PathLike[str],
    machine: MachineLike,
    *,
    overlap: bool = True,
    fill: bool = False,
    strict: bool = False,
    ranks: SupportsIndex | None = None,
    tflops: float | None = None,
    memory_gb_per_second: float | None = None,
    level: str = "model",
    algorithms: Mapping[str, str] | None = None,
    what_if: Iterable[Mapping[str, object]] = (),
    model: str | None = None,
    executor: "Executor | None" = None,
    kept: KeptPoints | None = None,
) -> StepReport:
    """Computes one step of a program of another tool on a machine.

    ``collectives`` lists each distinct collective with its groups, its algorithm, its time and its lower bound;
    ``exposed_seconds`` is communication that no compute hides. If a program counts operations, compute takes the larger
    of operations by ``tflops`` and bytes by ``memory_gb_per_second``, by default those of the machine file.

    By ``level`` "model" a collective takes the time that the model of plans predicts; by "flow" groups of ranks that
    communicate at the same time share the links; by "packet" the planned schedules of all collectives share the
    network, and every packet is simulated. ``algorithms`` names the algorithm of every collective of a kind
    (``{"allreduce": "ring"}``); the default is the fastest.

    ``what_if`` lists changes, each with its own times in the report: other values of keys of the machine file
    (``{"link_gbps": 800}``), another rate of all cables that state one (``{"gbps.400": 800}`` of those of 400 Gb/s),
    other ``tflops`` and ``memory_gb_per_second``, another ``machine``, links and nodes that ``fail``, and another
    algorithm of a kind of collective (``{"allreduce": "ring"}``).

    With ``fill`` copies of the model of a workload fill the whole network: its dimension with ``data_parallel`` takes
    the largest size that fits. ``utilization`` is the share of the accelerators in use, and ``used_cost_usd`` their
    share of the price.

    ``ranks`` is the number of ranks of a program of tasks. ``model="data-sheet"`` uses the rates of the data sheet
    alone. An ``executor`` times the step and its changes at the same time, and ``kept`` keeps them, as in
    ``unisono.sweep``; both take the file of a program, not a ``WorkloadGraph``.

    Raises:
        InputError: a file that is not a program, a machine that is too small, no rates of the accelerator; with
            ``fill``, a program without a dimension of copies; a ``WorkloadGraph`` for other processes.
        UnsupportedError: no algorithm, or not the named one, carries out the collective on the machine.
        SimulationError: the packets stop.

    """
    if isinstance(program, WorkloadGraph) and (strict or ranks is not None):
        given = "strict" if strict else "ranks"
        raise InputError(f"{given} is for a program that is read, and {program.name} is read already; drop it")
    graph = program if isinstance(program, WorkloadGraph) else read_workload(program, strict=strict, ranks=ranks)
    if fill and graph.format != "workload":
        raise InputError(
            f"fill (--fill) is for workloads, by name or TOML file, and {graph.name} states its ranks; drop it"
        )
    found = by_rates(machine, model)
    rates = dict(zip(_RATES, (tflops, memory_gb_per_second), strict=True))
    _require_effect(graph, rates)
    by = dict(algorithms or {})
    level = named("level", level)
    # A wrong change is reported only after the times of all earlier changes were computed.
    asked, refused = list(what_if), None
    cases: list[_Case] = [(found, _accelerator(found, rates), by)]
    for changes in asked:
        try:
            other, own_rates, own_by = _changed(graph, found, rates, by, changes)
            cases.append((other, _accelerator(other, own_rates), own_by))
        except Error as error:
            refused = error
            break
    if executor is None and kept is None:
        report, *after = _timed(graph, cases, level, overlap=overlap, fill=fill)
    else:
        read, how = (path_of(program), strict, ranks), (level, overlap, fill)
        report, *after = results(_case, [(*read, *case, *how) for case in cases], executor, kept)
    if refused is not None:
        raise refused
    report["what_if"] = [_difference(report, *change) for change in zip(asked, after, strict=True)]
    return report


def path_of(program: WorkloadGraph | str | os.PathLike[str]) -> str | Path:
    """Returns the name of a workload or the path of a program's file, which other processes can read.

    Raises:
        InputError: the program is in memory and has no file.

    """
    if isinstance(program, WorkloadGraph):
        raise InputError(
            f"{program.name} is a program in memory, which does not leave its process and is not kept; name its file"
        )
    name = file_name(program)
    return Path(name) if exists(name) else name


def _case(call: tuple[Any, ...]) -> StepReport:
    """Returns the report of one step on one machine. Executors call this, also in other processes."""
    source, strict, ranks, machine, rates, algorithms, level, overlap, fill = call
    graph = read_workload(source, strict=strict, ranks=ranks)
    return _timed(graph, [(machine, rates, algorithms)], level, overlap=overlap, fill=fill)[0]


def _difference(before: StepReport, changes: Mapping[str, object], after: StepReport) -> WhatIf:
    """Returns the times of a step after changes, and the speed-up: the time before divided by the time after."""
    return {
        "changes": {key: value.name if isinstance(value, Machine) else str(value) for key, value in changes.items()},
        "machine": after["machine"],
        "seconds": after["seconds"],
        "compute_seconds": after["compute_seconds"],
        "communication_seconds": after["communication_seconds"],
        "exposed_seconds": after["exposed_seconds"],
        "waiting_seconds": after["waiting_seconds"],
        "cost_usd": after["cost_usd"],
        "time_x_cost": after["time_x_cost"],
        "speed_up": before["seconds"] / after["seconds"] if after["seconds"] > 0 else 1.0,
    }


#: A machine, the rates of its accelerator (operations and bytes per second), and the algorithm of each collective.
_Case = tuple[Machine, tuple[float, float] | None, dict[str, str]]


def _timed(graph: WorkloadGraph, cases: list[_Case], level: str, *, overlap: bool, fill: bool) -> list[StepReport]:
    """Returns the report of one step for each case, with the price of the network and of the part in use."""
    graphs = [graph.filling(machine) if fill else graph for machine, _, _ in cases]
    if fill:
        reports = [filled.times([case], overlap, level)[0] for filled, case in zip(graphs, cases, strict=True)]
    else:
        reports = graph.times(cases, overlap, level)
    for report, filled, (machine, _, _) in zip(reports, graphs, cases, strict=True):
        cost = price(machine)
        report["cost_usd"] = cost
        report["rates"] = machine.rates()
        report["time_x_cost"] = None if cost is None else report["seconds"] * cost
        all_accelerators = (machine.topology or {}).get("accelerators")
        used = report["accelerators"] / all_accelerators if all_accelerators else None
        report["utilization"] = used
        report["copies"] = filled.copies
        report["used_cost_usd"] = None if cost is None or used is None else used * cost
        report["what_if"] = []
    return reports


def takes_rates(graph: WorkloadGraph) -> bool:
    """Returns whether the times of compute may depend on rates of an accelerator instead of being stated."""
    return graph.counts_operations or graph.format in _COUNTING


def _require_effect(graph: WorkloadGraph, rates: Mapping[str, float | None]) -> None:
    """Refuses rates of the accelerator for a program whose file states the times of compute.

    Raises:
        InputError: a rate is given and has no effect.

    """
    given = next((key for key, value in rates.items() if value is not None), None)
    if given is not None and not takes_rates(graph):
        raise InputError(f"{given} changes nothing: {graph.name} states the times of its compute, and counts none")


def price(machine: Machine) -> float | None:
    """Returns the network's price in dollars; None if the machine states no prices, such as a preset of servers."""
    return (machine.topology or {}).get("cost_usd") or None


def _changed(
    graph: WorkloadGraph,
    machine: Machine,
    rates: dict[str, float | None],
    algorithms: dict[str, str],
    changes: Mapping[str, object],
) -> tuple[Machine, dict[str, float | None], dict[str, str]]:
    """Returns the machine, the rates of the accelerator and the algorithms after changes."""
    other, own_rates, own_algorithms = machine, dict(rates), dict(algorithms)
    # A change of machine comes first: all other changes apply to the new machine.
    for key, value in sorted(changes.items(), key=lambda change: change[0] != "machine"):
        if key == "machine":
            if not isinstance(value, str | os.PathLike | Machine):
                raise InputError(f"machine is {shown(value)}; accepted are the name of a preset and a file")
            other = value if isinstance(value, Machine) else machine_of(value)
        elif key == "fail":
            other = other.asked(failed=str(value).split("+"))
        elif key in _RATES:
            own_rates[key] = finite(key, value)
            _require_effect(graph, own_rates)
        elif key.replace("_", "-") in collectives():
            own_algorithms[key.replace("_", "-")] = named("the algorithm", value)
        elif key.startswith("accelerator"):
            raise InputError(f"{key} is given; accepted are tflops and memory_gb_per_second, without a table")
        elif key.startswith(_OF_CABLES):
            other = with_rate(other, key.removeprefix(_OF_CABLES), str(value))
        else:
            changed = _with_value(other, key, str(value))
            if key in _OF_LINKS and (stated := stated_rates(other)) and same_cables(other, changed):
                ways = ", ".join(f"gbps.{rate}=N" for rate in stated)
                way = (
                    f"give {ways}"
                    if key == "link_gbps"
                    else "write other ns= into its file, and give that as machine=FILE"
                )
                raise InputError(f"{key} changes nothing: every cable of {other.name} states its own; {way}")
            other = changed
    return other, own_rates, own_algorithms


def _with_value(machine: Machine, key: str, value: str) -> Machine:
    try:
        return machine.changed(key, value)
    except InputError as error:
        text, separator, expected = str(error).partition(", expected one of ")
        if f"unknown field `{key}`" not in text or not separator:
            raise
        # The proposal of a similar name is cut off, because this error proposes one itself.
        text = text.partition(" (did you mean")[0]
        own = [field for field in re.findall(r"`?(\w+)`?", expected) if field not in _NOT_CHANGED]
        others = ("machine", "fail", "gbps.RATE", *_RATES)
        near = did_you_mean(key, (*own, *others, *collectives()))
        some = ", ".join(own[:_NAMED])
        raise InputError(
            f"{text}{near}; accepted are keys of the machine file such as {some} (`unisono machines {machine.name}` "
            f"prints them), also {', '.join(others)}, and a kind of collective"
        ) from None


def _accelerator(machine: Machine, rates: dict[str, float | None]) -> tuple[float, float] | None:
    """Returns the operations and bytes per second of the accelerator; None for the rates of the machine file.

    Raises:
        InputError: a rate is not above 0, or only one rate is known.

    """
    given = {key: finite(key, value) for key, value in rates.items() if value is not None}
    for key, value in given.items():
        if not 0 < value < math.inf:
            raise InputError(f"{key} is {value}; accepted is a number above 0")
    if not given:
        return None
    own = machine.describe().get("accelerator") or {}
    both = {**own, **given}
    missing = [key for key in _RATES if key not in both]
    if missing:
        raise InputError(
            f"{next(iter(given))} is given without {missing[0]}; give both, or write both in the machine file"
        )
    return both["tflops"] * 1e12, both["memory_gb_per_second"] * 1e9
