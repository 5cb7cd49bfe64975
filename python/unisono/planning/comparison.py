"""Compares workloads on several machines: time, price of the network, and the product of both."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from unisono._core import Error, InputError, Machine, UnsupportedError, WorkloadGraph, part_names, workload_presets
from unisono.base.files import exists, file_name, title
from unisono.base.html import TableOfRows, time_text
from unisono.base.inputs import MachineLike, items
from unisono.base.messages import shown
from unisono.base.names import did_you_mean
from unisono.base.reports import ComparisonRow, WorkloadReport
from unisono.base.studies import KeptPoints, results
from unisono.machines.descriptions import machine as machine_of
from unisono.planning import training
from unisono.planning.programs import price, read_workload, step, takes_rates
from unisono.planning.workloads import workload

__all__ = ["compare", "failed_names", "product_of", "without_failures"]


def compare(
    workloads: Iterable[str | os.PathLike[str] | WorkloadGraph],
    machines: Iterable[MachineLike],
    *,
    level: str = "model",
    overlap: bool = True,
    fill: bool = False,
    tflops: float | None = None,
    memory_gb_per_second: float | None = None,
    executor: Executor | None = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[ComparisonRow]:
    """Returns one row for each workload on each machine; the machine changes fastest.

    A workload is a name of ``unisono.workload_presets()``, a file of one, or a program of another tool
    (``unisono.step``, whose compute takes rates of accelerators from the machines, or from ``tflops`` and
    ``memory_gb_per_second``). With ``fill`` copies of the model fill each machine. A row has ``accelerators`` (used by
    the workload), ``machine_accelerators`` (of the whole network), ``utilization`` (their quotient), ``copies`` (of the
    model), ``failed``, ``seconds``, ``compute_seconds``, ``exposed_seconds``, ``cost_usd`` (of the network; None if the
    machine states no prices), ``time_x_cost`` (seconds times dollars), ``used_cost_usd`` (the share of the accelerators
    in use), ``best`` (``seconds`` and ``time_x_used_cost``, as far as no other machine has less for this workload; with
    ``fill``, of one copy) and ``notes`` (on the places of ranks and the assumptions of the reader). If a workload does
    not fit a machine, the times are None and ``reason`` explains it. An ``executor`` times rows at the same time, and
    ``kept`` keeps them, as in :func:`sweep`; a ``WorkloadGraph`` itself stays in its process, so executors of other
    processes take files.

    Raises:
        InputError: no workload or no machine, or one that does not exist or is damaged.

    """
    listed = items(workloads, f"workloads is {shown(workloads)}, and must be a list of workloads")
    where = [
        one if isinstance(one, Machine) else machine_of(one)
        for one in items(machines, f"machines is {shown(machines)}, and must be a list of machines")
    ]
    if not listed or not where:
        raise InputError("a comparison needs at least one workload and one machine")
    opened = [_opened(one) for one in listed]
    rates = {"tflops": tflops, "memory_gb_per_second": memory_gb_per_second}
    given = next((name for name, rate in rates.items() if rate is not None), None)
    if given is not None and not any(isinstance(one, WorkloadGraph) and takes_rates(one) for one in opened):
        raise InputError(f"{given} changes nothing: no workload counts operations, and all state the times of compute")
    # Calls then contain paths instead of programs: other processes read the files themselves, and the keys of saved
    # rows include the contents of files.
    travels = kept is not None or (executor is not None and not isinstance(executor, ThreadPoolExecutor))
    programs = [_path(given, one) for given, one in zip(listed, opened, strict=True)] if travels else opened
    how = (level, overlap, fill, (tflops, memory_gb_per_second))
    calls = [(one, machine, *how) for one in programs for machine in where]
    rows: list[ComparisonRow] = []
    failed: Error | None = None
    # Rows with an error are not saved, because a reason such as a limit may apply only to this run.
    for row, error in results(_timed, calls, executor, kept, lambda one: one[1] is None):
        if error is not None:
            failed = failed or (InputError if error == "InputError" else UnsupportedError)(row["reason"])
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(calls))
    if failed is not None and all(row["seconds"] is None for row in rows):
        raise failed
    for first in range(0, len(rows), len(where)):
        _name_alike(rows[first : first + len(where)])
        _mark_best(rows[first : first + len(where)], fill=fill)
    heads = ("workload", "machine", "failed", "accelerators", "copies", "step", "exposed", "price in use, M$")
    return TableOfRows(rows, heads, _cells)


def _name_alike(rows: list[ComparisonRow]) -> None:
    """Sets the same name of the workload in all of its rows: rows without times have only the name of its file."""
    names = [row["workload"] for row in rows if row["reason"] is None]
    for row in rows:
        row["workload"] = names[0] if names else row["workload"]


def _mark_best(rows: list[ComparisonRow], *, fill: bool) -> None:
    """Marks the machines with the least time, and with the least time x price of the accelerators in use.

    All machines with the least value are marked. No machine is marked if only one machine has a value.
    """
    for name, of in (("seconds", _seconds_of), ("time_x_used_cost", product_of)):
        values = [of(row, fill=fill) for row in rows]
        known = [value for value in values if value is not None]
        for row, value in zip(rows, values, strict=True):
            if len(known) > 1 and value == min(known):
                row["best"] = [*row["best"], name]


def _cells(row: ComparisonRow) -> tuple[object, ...]:
    step, exposed, price_of_used = row["seconds"], row["exposed_seconds"], row["used_cost_usd"]
    return (
        row["workload"],
        row["machine"],
        ", ".join(row["failed"]),
        "" if row["accelerators"] is None else f"{row['accelerators']:,} of {row['machine_accelerators'] or 0:,}",
        "" if row["copies"] is None else f"{row['copies']:,}",
        row["reason"] or "" if step is None else time_text(step) + (" (least)" if "seconds" in row["best"] else ""),
        "" if exposed is None else time_text(exposed),
        "" if price_of_used is None else f"{price_of_used * 1e-6:.3f}",
    )


def _opened(workload: object) -> str | WorkloadGraph:
    """Returns the name of a preset or of the TOML file of a workload, or the program given or read.

    Raises:
        InputError: ``workload`` is neither.

    """
    if isinstance(workload, WorkloadGraph):
        return workload
    if not isinstance(workload, str | os.PathLike):
        raise InputError(f"{shown(workload)} is not a workload; accepted are a name, a path and a WorkloadGraph")
    name = file_name(workload)
    presets = [preset["name"] for preset in (*workload_presets(), *training.PRESETS)]
    if name in presets:
        return name
    if not exists(name):
        near = did_you_mean(name, presets)
        raise InputError(f"'{title(name)}' is neither a workload nor a file{near}; workloads are {', '.join(presets)}")
    return name if name.endswith(".toml") else read_workload(name)


def _path(given: str | os.PathLike[str] | WorkloadGraph, opened: str | WorkloadGraph) -> str | Path:
    """Returns the name of a preset workload, or the path of the file of a workload or program.

    Raises:
        InputError: the program is in memory and has no file.

    """
    if isinstance(given, WorkloadGraph):
        raise InputError(
            f"{given.name} is a program in memory, which does not leave its process; name its file, or use threads and "
            "keep no rows"
        )
    return opened if isinstance(opened, str) and not exists(opened) else Path(file_name(given))


def _timed(call: tuple[Any, ...]) -> tuple[ComparisonRow, str | None]:
    """Returns a row, and the name of the error if it has no times. Executors call this, also in other processes."""
    program, machine, level, overlap, fill, rates = call
    if isinstance(program, Path):
        program = _opened(program)
    try:
        return _row(program, machine, level, rates, overlap=overlap, fill=fill), None
    except (InputError, UnsupportedError) as reason:
        return _absent(program, machine, str(reason)), type(reason).__name__


def _row(
    program: str | WorkloadGraph,
    machine: Machine,
    level: str,
    rates: tuple[float | None, float | None],
    *,
    overlap: bool,
    fill: bool,
) -> ComparisonRow:
    if isinstance(program, WorkloadGraph):
        # Programs that state the times of compute accept no rates.
        tflops, memory = rates if takes_rates(program) else (None, None)
        report: WorkloadReport = step(
            program, machine, level=level, overlap=overlap, fill=fill, tflops=tflops, memory_gb_per_second=memory
        )
    else:
        report = workload(program, machine, level=level, overlap=overlap, fill=fill)
    cost = price(machine)
    return {
        "workload": report["workload"],
        "machine": machine.name,
        "failed": _failed(machine),
        "accelerators": report["accelerators"],
        "machine_accelerators": _accelerators(machine),
        "utilization": report["utilization"],
        "copies": report["copies"],
        "seconds": report["seconds"],
        "compute_seconds": report["compute_seconds"],
        "exposed_seconds": report["exposed_seconds"],
        "cost_usd": cost,
        "time_x_cost": None if cost is None else report["seconds"] * cost,
        "used_cost_usd": report["used_cost_usd"],
        "best": [],
        "reason": None,
        "notes": [note for note in report["notes"] if note not in machine.notes()],
    }


def _seconds_of(row: ComparisonRow, *, fill: bool) -> float | None:
    """Returns the time of a step, if known, divided by the number of copies of the model if ``fill`` is set."""
    return None if row["seconds"] is None else row["seconds"] / (row["copies"] or 1 if fill else 1)


def product_of(row: ComparisonRow, *, fill: bool) -> float | None:
    """Returns seconds x dollars of the accelerators in use, if known, divided by the copies if ``fill`` is set."""
    if row["seconds"] is None or row["used_cost_usd"] is None:
        return None
    return row["seconds"] * row["used_cost_usd"] / (row["copies"] or 1 if fill else 1)


def _failed(machine: Machine) -> list[str]:
    """Returns the failed links and nodes of the machine."""
    return list(machine.describe().get("failed") or ())


def failed_names(machine: Machine) -> list[str]:
    """Returns the failed links and nodes of a network by names, in the form of ``failed``: ``leaf 0 to top 3:1``."""
    failed = _failed(machine)
    if not failed:
        return []
    whole = without_failures(machine)
    names = part_names(whole)

    def named(failure: str) -> str:
        ends, colon, count = failure.partition(":")
        if not all(end.isdecimal() for end in ends.split("-")):
            return failure
        return " to ".join(names[int(end)] for end in ends.split("-")) + colon + count

    boards = _failed_boards(whole, failed)
    alone = [named(failure) for failure in failed if not any(failure in nodes for nodes in boards.values())]
    return [*boards, *alone]


def without_failures(machine: Machine) -> Machine:
    """Returns the machine with all of its links and nodes."""
    return machine_of({key: value for key, value in machine.describe().items() if key != "failed"})


def _failed_boards(whole: Machine, failed: list[str]) -> dict[str, set[str]]:
    """Returns the boards all of whose accelerators failed, by their names, with the numbers of these accelerators."""
    table, facts = whole.describe()["topology"], whole.topology
    board = table.get("board")
    if board is None or facts is None or len(board) != 2 or len(facts["extents"]) != 2 or board == [1, 1]:
        return {}
    columns, found = facts["extents"][1], set(failed)
    boards: dict[str, set[str]] = {}
    for at in range(facts["accelerators"]):
        name = f"board {at // columns // board[0]},{at % columns // board[1]}"
        boards.setdefault(name, set()).add(str(at))
    return {name: nodes for name, nodes in boards.items() if nodes <= found}


def _accelerators(machine: Machine) -> int | None:
    """Returns the number of accelerators of a whole network; None for other machines."""
    return None if machine.topology is None else int(machine.topology["accelerators"])


def _absent(program: str | WorkloadGraph, machine: Machine, reason: str) -> ComparisonRow:
    return {
        "workload": program.name if isinstance(program, WorkloadGraph) else program,
        "machine": machine.name,
        "failed": _failed(machine),
        "accelerators": None,
        "machine_accelerators": _accelerators(machine),
        "utilization": None,
        "copies": None,
        "seconds": None,
        "compute_seconds": None,
        "exposed_seconds": None,
        "cost_usd": price(machine),
        "time_x_cost": None,
        "used_cost_usd": None,
        "best": [],
        "reason": reason,
        "notes": [],
    }
