"""Plans ranges of sizes and several collectives, as the rows of one file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unisono import InputError, Plan, PlanTable, UnsupportedError, dtypes, plan_table
from unisono.base.files import write
from unisono.base.inputs import parse_bytes
from unisono.base.reports import PlannedRow
from unisono.cli._bits import SAME_BITS
from unisono.cli._library import OWN_ROWS
from unisono.cli._options import Request, library_of
from unisono.cli._output import (
    counted,
    microseconds,
    params_text,
    print_lines,
    print_notes,
    print_table,
    progress,
    working,
)
from unisono.planning.bits import ratio
from unisono.planning.libraries import OF_NCCL, library_rows
from unisono.planning.ranges import crossing, planned_sizes, spans

#: The largest relative cost that is printed as no cost.
NO_COST = 5e-4
#: The first and last size in bytes that a file serves; None is no limit.
_Served = tuple[int, int | None]
#: A plan with the sizes that it serves.
_Row = tuple[Plan, int, int | None]


def serve_range(serve: str) -> _Served:
    """Returns the first and last size of ``--serve``.

    Raises:
        InputError: the text is not a range, or descends.

    """
    if serve == "all":
        return 0, None
    first, dash, last = serve.partition("-")
    if not dash:
        raise InputError(f"--serve is '{serve}'; accepted are FIRST-LAST, as in 1KiB-64KiB or 64KiB-any, and all")
    least, most = parse_bytes(first), None if last in ("", "any") else parse_bytes(last)
    if most is not None and most < least:
        raise InputError(f"--serve is '{serve}': the first size exceeds the last; accepted are FIRST-LAST, ascending")
    return least, most


def plan_rows(
    request: Request,
    served: _Served | None,
    made: Plan | None = None,
    instead: Callable[[Plan, Request], Plan] = lambda plan, _: plan,
    *,
    stored: bool = False,
) -> list[_Row]:
    """Returns the best plans of one collective, each with the sizes that it serves.

    Without ``served``, there is one row, for the size of the request; ``made`` is its plan, if it is given. With
    ``served``, plans are also made for both ends of the range and for the powers of four between them. ``instead``
    returns the plan that a row uses instead of the best plan of a request. If the schedules are ``stored``, plans with
    segments are not merged into one row: segments have a length in bytes, and the blocks of a stored schedule do not.
    """
    if served is None or request.collective == "barrier":
        plan = instead(made or request.plan(), request)
        size = plan.report()["bytes"]
        # A barrier has no size, so its row serves every call.
        return [(plan, 0, None) if request.collective == "barrier" else (plan, size, size)]
    counts = planned_sizes(*served, dtypes()[request.dtype])
    best = {}
    if made is not None and served[0] <= (size := made.report()["bytes"]) <= (served[1] or size):
        best[request.count()] = made
    plans, ascending = list[Plan](), sorted({*counts, *best})
    with progress(f"planning {request.collective}") as on_size:
        for count in ascending:
            on_size(len(plans), len(ascending))
            sized = replace(request, elements=count, bytes=None)
            plans.append(instead(best.get(count) or sized.plan(), sized))

    def same(at: int, after: int) -> bool:
        one, other = plans[at], plans[after]
        is_same = (one.algorithm, one.params, _protocol(one)) == (other.algorithm, other.params, _protocol(other))
        return is_same and not (stored and "segment" in one.params)

    sizes = [plan.report()["bytes"] for plan in plans]

    def border(at: int, after: int) -> int | None:
        times = [[_seconds(plans[of], plan) for of in (at, after)] for plan in (plans[at], plans[after])]
        (a, b), (c, d) = times
        return None if not (a and b and c and d) else crossing((sizes[at], sizes[after]), (a, b), (c, d))

    return [(plans[at], first, last) for at, first, last in spans(sizes, served, same, border)]


def _seconds(among: Plan, of: Plan) -> float | None:
    """Returns the time of the algorithm and parameters of ``of`` among the candidates of the plan ``among``.

    Returns None if they are not among the candidates.
    """
    key = (of.algorithm, of.params)
    return next((one["seconds"] for one in among.candidates if (one["algorithm"], one["params"]) == key), None)


def stored_rows(request: Request, served: _Served | None, made: Plan | None, *, unlike_bits: bool) -> list[_Row]:
    """Returns the rows of a ``.plan`` for one collective.

    Without ``unlike_bits``, an allreduce gets a plan after which all ranks have the same bits, if such a plan exists.
    Notes name the plans that it replaces.
    """
    notes: list[str] = []

    def instead(plan: Plan, of: Request) -> Plan:
        return plan if unlike_bits else _with_equal_bits(plan, of, notes)

    rows = plan_rows(request, served, made, instead, stored=True)
    print_notes(list(dict.fromkeys(notes)), err=True)
    return rows


def _with_equal_bits(made: Plan, request: Request, notes: list[str]) -> Plan:
    """Returns the best plan that gives all ranks the same bits, which MPI programs expect of an allreduce.

    The result is ``made`` for other collectives, if there is no such plan, or if the user names the algorithm. Adds a
    note if ``made`` is not such a plan of an allreduce.
    """
    report = made.report()
    if report["collective"] != "allreduce" or not made.rounds or made.schedule.verify().repeatable:
        return made
    name = f"{made.algorithm} {params_text(made.params)}".rstrip()
    why = f"after {name} ranks may have different bits of a rounded sum"
    if request.algorithm is None:
        for candidate in report["candidates"][1:]:
            try:
                other = replace(
                    request, algorithm=candidate["algorithm"], param=tuple(candidate["params"].items())
                ).plan()
                if not other.schedule.verify().repeatable:
                    continue
            except UnsupportedError:
                continue
            stored = f"{other.algorithm} {params_text(other.params)}".rstrip()
            took = microseconds(other.predicted["seconds"])
            notes.append(f"{why}, so the plan file holds {stored} ({took} µs); --unlike-bits keeps the first")
            return other
    notes.append(f"{why}, so MPI programs use the plan for integers only; --unlike-bits permits more")
    return made


def library_table(
    request: Request, served: _Served | None, made: Plan | None
) -> tuple[list[dict[str, Any]], list[PlannedRow], list[str]]:
    """Returns the rows of a tuning file for one collective, these rows as a report, and notes.

    For NCCL on a machine that states its GPUs, the rows are the best of NCCL's own algorithms, unless the user names an
    algorithm; such rows have no time.
    """
    # Imported late, because only tuning files need it.
    from unisono.mpi.exports import row_of

    notes = []
    if request.target in OF_NCCL and request.behaves_as == "nccl" and served is None:
        served = 0, None
    if request.target in OF_NCCL and request.algorithm is None:
        sized = request
        if served is not None and request.elements is None and request.bytes is None:
            sized = replace(request, elements=planned_sizes(*served, dtypes()[request.dtype])[0])
        [(plan, first, last)] = plan_rows(sized, None, made)
        try:
            row = row_of(plan, *(served or (first, last)))
            if own := library_rows(row, request.sized_machine(), plan.report()):
                return own, [_report(line) for line in own], [OWN_ROWS]
        except (InputError, UnsupportedError) as unknown:
            notes = [f"the line is the plan's, and not the best of NCCL's own algorithms: {unknown}"]
        made = plan
    rows = plan_rows(request, served, made)
    if any(_protocol(row[0]) is not None for row in rows):
        lines = [row_of(*row) | _of_library(row[0]) for row in rows]
        return lines, [_report(line) for line in lines], notes
    return [row_of(*row) for row in rows], report_rows(rows), notes


def _protocol(plan: Plan) -> str | None:
    """Returns the fastest protocol of the plan's algorithm in a library, if the plan compares the library's choices."""
    report = plan.report()
    choices = report["library"]["choices"] if "library" in report else []
    of_it = [one for one in choices if one["algorithm"] == plan.algorithm]
    return min(of_it, key=lambda one: one["seconds"])["protocol"] if of_it else None


def _of_library(plan: Plan) -> dict[str, Any]:
    """Returns the algorithm of the plan by the library's name, with its fastest protocol; empty if it has none."""
    protocol = _protocol(plan)
    return {} if protocol is None else {"algorithm": f"nccl-{plan.algorithm}", "params": {"protocol": protocol}}


def write_tuning(rows: list[dict[str, Any]], notes: list[str], target: str, path: str) -> dict[str, Any]:
    """Writes rows as the tuning file of a library, and returns facts for its user."""
    # Imported late, because only tuning files need it.
    from unisono.mpi.exports import export_rows, loading

    file = export_rows(rows, target, library_of(target))
    write(path, file["text"])
    return {"file": path, "load": loading(file["load"], path), "notes": [*dict.fromkeys(notes), *file["notes"]]}


def report_rows(rows: Sequence[_Row]) -> list[PlannedRow]:
    """Returns rows as a report. The time of a row is the time at the size for which its plan was made."""
    found: list[PlannedRow] = []
    for plan, first, last in rows:
        about = plan.report()
        row = {**about, "first_bytes": first, "last_bytes": last}
        found.append(
            {
                **_report(row),
                "bytes": about["bytes"],
                "predicted_seconds": plan.predicted["seconds"],
                "ratio": about["ratio"],
            }
        )
    return found


def _report(row: Mapping[str, Any]) -> PlannedRow:
    """Returns a row of a decision table as a report without a time."""
    return {
        "collective": row["collective"],
        "ranks": row["ranks"],
        "first_bytes": row["first_bytes"],
        "last_bytes": row["last_bytes"],
        "algorithm": row["algorithm"],
        "params": row["params"],
        "bytes": None,
        "predicted_seconds": None,
        "ratio": None,
    }


def print_rows(rows: Sequence[PlannedRow]) -> None:
    """Prints a line for each row of a file: the sizes of the row, and its plan with the time at one of these sizes."""
    times = ["at", "µs", "ratio"] if any(row["predicted_seconds"] is not None for row in rows) else []
    lines = []
    for row in rows:
        seconds, ratio = row["predicted_seconds"], row["ratio"]
        own = ["-" if seconds is None else microseconds(seconds), "-" if ratio is None else f"{ratio:.3f}"]
        lines.append(
            [
                row["collective"],
                str(row["ranks"]),
                _range(row["first_bytes"], row["last_bytes"]),
                f"{row['algorithm']} {params_text(row['params'])}".rstrip(),
                *([f"{row['bytes']}", *own] if times else []),
            ]
        )
    print_table(["collective", "ranks", "bytes", "algorithm", *times], lines, right=["ranks", *times])


def _range(first: int, last: int | None) -> str:
    return f"{first}" if first == last else f"{first} to {'any' if last is None else last}"


def bits_table(request: Request, bits: str, served: _Served) -> PlanTable:
    """Plans a table of plans with a property of the bits for a range of sizes in bytes.

    Raises:
        InputError: an algorithm is named, so that nothing is left to choose.

    """
    if request.algorithm is not None or request.param:
        raise InputError("--bits with --serve chooses among all algorithms; drop --algorithm and --param, or --serve")
    with working(f"planning a table for {request.collective}"):
        return plan_table(
            request.collective,
            request.sized_machine(),
            bits=bits,
            contributors=request.contributors,
            first_bytes=served[0],
            last_bytes=served[1],
            dtype=request.dtype,
            op=request.op,
            root=request.root,
            model=request.model,
        )


def print_bits_table(table: PlanTable) -> None:
    """Prints the rows of a table, and the cost of its property of the bits."""
    rows = [
        [_range(first, last), f"{plan.algorithm} {params_text(plan.params)}".rstrip()]
        for plan, first, last in table.rows
    ]
    print_lines("")
    print_table(["bytes", "candidate"], rows, right=[])
    worst = max(table.prices, key=ratio)
    over = f"the fastest that a .plan can hold over {counted(len(table.prices), 'size')}"
    if table.cost - 1 < NO_COST:
        print_lines(f"{SAME_BITS[table.bits]}: as fast as {over}")
    else:
        print_lines(
            f"{SAME_BITS[table.bits]}: {table.mean_cost - 1:+.1%} beside {over}, {table.cost - 1:+.1%} at "
            f"{worst['bytes']} bytes, where it costs most"
        )
