"""`unisono plan`: the best schedule by the machine's model, with every candidate."""

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from unisono import InputError, Plan, PlanTable, UnsupportedError, plan_table, save_plans
from unisono.base.files import check_files, save, write
from unisono.base.inputs import parse_bytes
from unisono.base.pictures import form_of
from unisono.base.reports import Bound, Candidate, Phase, PlanReport
from unisono.base.tables import source_word
from unisono.cli._bits import SAME_BITS, check_contributors, contributors_option
from unisono.cli._jobs import cores_option
from unisono.cli._library import OWN_ROWS, print_bits, print_choice, print_enabled
from unisono.cli._options import Request, explain_option, library_of, limit_options, plan_options
from unisono.cli._output import (
    assumed,
    bandwidths_text,
    cycles_and_time,
    json_text,
    memory_text,
    microseconds,
    note_fields,
    number,
    params_text,
    print_fields,
    print_json,
    print_lines,
    print_notes,
    print_table,
    subject,
    warn_of_memory,
    working,
)
from unisono.cli._pictures import check_picture
from unisono.cli._types import COLLECTIVE
from unisono.planning.bits import BITS, ratio
from unisono.planning.emission import FORMATS, TARGETS, TUNINGS
from unisono.planning.libraries import OF_NCCL, library_rows

__all__ = ["plan", "print_candidates", "print_report"]

_TERMS = ("energy", "distance", "depth", "contention", "links")
_SHOWN = 10
#: The largest relative cost that is printed as none.
_NO_COST = 5e-4
#: The algorithm of the vendor's library on a wafer.
_VENDORS = "chain"

_SCHEDULES = (
    "the own plan and the candidates are one schedule each (a ring passes all ranks once, and NCCL lays a ring on each "
    "interface); the file has NCCL's algorithms, whose best time is 'as nccl'"
)


@click.command()
@click.argument("collective", type=COLLECTIVE)
@plan_options
@click.option("--all", "show_all", is_flag=True, help=f"List every candidate, not the best {_SHOWN}.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the report (.json), the schedule (.sched) or a plan for MPI (.plan); with --for a format of 'unisono "
    "export', under any other ending, that file.",
)
@click.option(
    "--serve",
    metavar="FIRST-LAST|all",
    help="Of a .plan or a tuning file: the sizes that it serves, as in 1KiB-64KiB or 64KiB-any, or all [the size "
    "planned for].",
)
@click.option(
    "--unlike-bits",
    is_flag=True,
    help="Of a .plan: permit an allreduce after which ranks may have different bits of rounded results.",
)
@click.option(
    "--bits",
    type=click.Choice(BITS),
    help="Plan only what gives the same bits on all ranks (ranks), at each place of a vector too (place), at each size "
    "too (size), or on each number of ranks too (ranks-count); with --serve and -o FILE.plan, one table for these "
    "sizes. With --as, add the settings of the library that do.",
)
@contributors_option
@click.option(
    "--certificate", metavar="OUT", help="Write prices of links that prove the bound of a network to this file."
)
@click.option(
    "--plot",
    metavar="FILE.png|svg|pdf",
    help="Draw the trees of a forest on its network and the time of forests by their depth, or else the candidates.",
)
@click.option(
    "--as",
    "behaves_as",
    metavar="LIBRARY",
    help="Add what this library chooses on the machine by its own rules, and its time: nccl, rccl, openmpi, mpich. "
    "With --for nccl and -o, the file has the best of the library's own algorithms for all sizes, or those of --serve.",
)
@cores_option
@explain_option
@limit_options
def plan(
    as_json: bool,
    show_all: bool,
    output: str | None,
    serve: str | None,
    unlike_bits: bool,
    bits: str | None,
    contributors: int | None,
    certificate: str | None,
    plot: str | None,
    **options: Any,
) -> None:
    """Finds the best schedule for COLLECTIVE, its predicted time, and how far that is from the best possible."""
    target = options["target"]
    tunes = output is not None and target in TUNINGS and not output.endswith((".json", ".sched", ".plan"))
    if output is not None and not (tunes or output.endswith((".json", ".sched", ".plan"))):
        if target is not None and target in FORMATS:
            raise InputError(
                f"'{output}' ends in none of .json (the report), .sched (the schedule) and .plan (a plan for MPI); "
                f"write a .sched, and 'unisono emit FILE.sched --format {target}' makes the files for {target}"
            )
        # `plan` refuses an unknown target.
        if target is None or target in TARGETS:
            raise click.BadParameter(
                f"'{output}' ends in none of .json (the report), .sched (the schedule) and .plan (a plan for MPI)"
            )
    if serve is not None and not tunes and (output is None or not output.endswith(".plan")):
        raise InputError(
            "--serve chooses the sizes that a .plan or a tuning file serves; name a .plan with -o FILE.plan, or a "
            f"tuning file with --for ({', '.join(TUNINGS)}) and -o, whose name ends in none of .json, .sched and .plan"
        )
    if unlike_bits and (output is None or not output.endswith(".plan")):
        raise InputError("--unlike-bits permits what a .plan serves; name one with -o FILE.plan")
    if unlike_bits and bits is not None:
        raise InputError("--unlike-bits permits unlike bits, and --bits excludes them; drop one of them")
    if bits is not None and target in TUNINGS:
        raise InputError(f"--bits is for schedules of this program, and {target} has algorithms of a library; drop it")
    check_contributors("--bits", bits, contributors)
    check_picture(plot)
    check_files({"-o": output, "--certificate": certificate, "--plot": plot}, options["machine"])
    request = Request(**options, bits=bits, contributors=contributors)
    made, table = request.plan(), None
    report = made.report()
    warn_of_memory(report["memory"])
    certified, tuning = None, None
    if serve is not None and bits is None:
        _note_planned(serve, report["bytes"])
    if certificate is not None:
        with working("writing the certificate"):
            text = made.certificate()
            write(certificate, text)
        stated = json.loads(text)
        certified = {"file": certificate, "bound": stated["bound"], "seconds": stated["seconds"]}
    if output is not None and output.endswith(".json"):
        write(output, json_text(report))
    elif output is not None and tunes:
        tuning = _write_tuning(made, options, serve, output)
    elif output is not None and output.endswith(".plan"):
        served = made if unlike_bits or bits is not None else _with_equal_bits(made, options)
        try:
            if bits is not None and serve is not None:
                table = _table(request, bits, _sizes(serve, report["bytes"]))
                table.save(output)
            else:
                rows = [(served, *_sizes(serve, report["bytes"]))]
                save_plans(rows, output, unlike_bits=unlike_bits)
        except UnsupportedError as refused:
            if target not in TUNINGS:
                raise
            way = f"a file for {target} holds no schedule: -o FILE.csv (or another ending) writes it from this plan"
            raise UnsupportedError(f"{refused}; {way}") from None
    elif output is not None:
        save(made.schedule, output)
    if plot is not None:
        _draw(made, plot)
    if as_json:
        of_files = {"certificate": certified, "tuning": tuning, "table": None if table is None else table.report()}
        print_json({**report, **{key: value for key, value in of_files.items() if value is not None}})
        return
    print_report(report, None if show_all else _SHOWN)
    if table is not None:
        _print_table_of_bits(table)
    bound = report["lower_bound"]
    if certified is not None and bound is not None and bound["name"] != certified["bound"]:
        proved = f"{certified['bound']} of {microseconds(certified['seconds'])} µs"
        is_as_high = math.isclose(certified["seconds"], bound["seconds"], rel_tol=1e-9)
        other = f"as high as the bound {bound['name']}" if is_as_high else f"not the bound {bound['name']}"
        print_lines("", f"the certificate proves the bound {proved}, {other}")
    wrote = [file for file in (output, certificate, plot) if file is not None]
    if wrote:
        print_lines("", f"wrote {' and '.join(wrote)}")
    if output is not None and output.endswith(".json") and target in TUNINGS:
        print_lines(f"note: {output} is the report of the plan; any other ending writes the file for {target}")
    elif output is not None and output.endswith(".json") and target in FORMATS:
        print_lines(
            f"note: {output} is the report of the plan; write a .sched, and 'unisono emit FILE.sched "
            f"--format {target}' makes the files for {target}"
        )
    if tuning is not None:
        print_lines(f"load it with: {' '.join(tuning['load'])}")
        print_notes(tuning["notes"])


def _table(request: Request, bits: str, sizes: tuple[int, int | None]) -> PlanTable:
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
            first_bytes=sizes[0],
            last_bytes=sizes[1],
            dtype=request.dtype,
            op=request.op,
            root=request.root,
            model=request.model,
        )


def _print_table_of_bits(table: PlanTable) -> None:
    """Prints the rows of a table, and the cost of its property of the bits."""
    rows = [
        [f"{first} to {'any' if last is None else last}", f"{plan.algorithm} {params_text(plan.params)}".rstrip()]
        for plan, first, last in table.rows
    ]
    print_lines("")
    print_table(["bytes", "candidate"], rows, right=[])
    worst = max(table.prices, key=ratio)
    over = f"the fastest that a .plan can hold over {len(table.prices)} sizes"
    if table.cost - 1 < _NO_COST:
        print_lines(f"{SAME_BITS[table.bits]}: as fast as {over}")
    else:
        print_lines(
            f"{SAME_BITS[table.bits]}: {table.mean_cost - 1:+.1%} beside {over}, {table.cost - 1:+.1%} at "
            f"{worst['bytes']} bytes, where it costs most"
        )


def _write_tuning(made: Plan, options: dict[str, Any], serve: str | None, path: str) -> dict[str, Any]:
    """Writes the tuning file of a library, and returns facts for its user.

    The file has one row, the best candidate. For NCCL on a machine that states its GPUs, the rows are the best of
    NCCL's own algorithms, unless the user names an algorithm.
    """
    # Imported late, because only tuning files need it.
    from unisono.mpi.exports import export_rows, loading, row_of

    target, report = options["target"], made.report()
    sizes = _sizes("all" if serve is None and options["behaves_as"] == "nccl" else serve, report["bytes"])
    rows, notes = [row_of(made, *sizes)], []
    if target in OF_NCCL and options["algorithm"] is None:
        try:
            if own := library_rows(rows[0], Request(**options).sized_machine(), report):
                rows, notes = own, [OWN_ROWS]
        except (InputError, UnsupportedError) as unknown:
            notes = [f"the line is the plan's, and not the best of NCCL's own algorithms: {unknown}"]
    file = export_rows(rows, target, library_of(target))
    write(path, file["text"])
    return {"file": path, "load": loading(file["load"], path), "notes": [*notes, *file["notes"]]}


def _draw(made: Plan, path: str) -> None:
    # Imported late, because matplotlib takes long to import.
    from unisono.pictures.plots import forests

    write(path, forests.draw(made, form_of(path)))
    if made.algorithm != "forest":
        click.echo(f"{path} shows the predicted times of candidates, since {made.algorithm} is no forest", err=True)
    elif made.report()["ranks"] > 1 and not forests.fits(made.forest()):
        most = forests.MOST_DRAWN
        click.echo(f"{path} shows only times, since a network of more than {most} nodes is not legible", err=True)


def _with_equal_bits(made: Plan, options: dict[str, Any]) -> Plan:
    """Returns the best plan that gives all ranks the same bits, which MPI programs expect of an allreduce.

    If there is none, the result is ``made``.
    """
    report = made.report()
    if report["collective"] != "allreduce" or not made.rounds or made.schedule.verify().repeatable:
        return made
    name = f"{made.algorithm} {params_text(made.params)}".rstrip()
    why = f"after {name} ranks may have different bits of a rounded sum"
    if options["algorithm"] is None:
        for candidate in report["candidates"][1:]:
            changed = {"algorithm": candidate["algorithm"], "param": tuple(candidate["params"].items())}
            try:
                other = Request(**{**options, **changed}).plan()
                if not other.schedule.verify().repeatable:
                    continue
            except UnsupportedError:
                continue
            stored = f"{other.algorithm} {params_text(other.params)}".rstrip()
            took = microseconds(other.predicted["seconds"])
            print_notes(
                [f"{why}, so the plan file holds {stored} ({took} µs); --unlike-bits keeps the first"], err=True
            )
            return other
    print_notes([f"{why}, so MPI programs use the plan for integers only; --unlike-bits permits more"], err=True)
    return made


def _sizes(serve: str | None, planned: int) -> tuple[int, int | None]:
    """Returns the first and last size of `--serve` in bytes; None is no limit."""
    if serve is None:
        return planned, planned
    if serve == "all":
        return 0, None
    first, dash, last = serve.partition("-")
    if not dash:
        raise InputError(f"--serve is '{serve}'; accepted are FIRST-LAST, as in 1KiB-64KiB or 64KiB-any, and all")
    least, most = parse_bytes(first), None if last in ("", "any") else parse_bytes(last)
    if most is not None and most < least:
        raise InputError(f"--serve is '{serve}': the first size exceeds the last; accepted are FIRST-LAST, ascending")
    return least, most


def _note_planned(serve: str, planned: int) -> None:
    """Prints a note if the served sizes do not include the size for which the schedule was chosen."""
    first, last = _sizes(serve, planned)
    if not first <= planned <= (planned if last is None else last):
        click.echo(
            f"note: the plan is the best for {planned:,} bytes, and the file serves {serve}, without that size; "
            "another algorithm may be better there: give --bytes in that range",
            err=True,
        )


def print_report(report: PlanReport, candidates: int | None) -> None:
    """Prints the report of a plan as text, with at most ``candidates`` rows of candidates (None: a row for each).

    A row may stand for several candidates that are alike.
    """
    predicted, bound, optimum = report["predicted"], report["lower_bound"], report["model_optimum"]
    print_lines(subject(report, predicted["cycles"] is not None))
    if "library" in report:
        print_choice(report["library"])
        print_lines("")
    print_fields(
        [
            (
                "own plan" if "library" in report else "algorithm",
                f"{report['algorithm']} {params_text(report['params'])}",
            ),
            ("guideline", report["guideline"] or ""),
            ("predicted", f"{cycles_and_time(predicted)} ({_source(report)})"),
            ("bound", f"{cycles_and_time(bound)} ({bound['name']})" if bound else ""),
            ("assumes", _assumed(bound, report["notes"])),
            ("ratio", f"{report['ratio']:.3f}" if report["ratio"] is not None else ""),
            ("bandwidth", bandwidths_text(report) if predicted["cycles"] is None else ""),
            (
                "model optimum",
                f"{cycles_and_time(optimum)} ({optimum['name']}: {optimum['assumes']})" if optimum else "",
            ),
            ("memory", memory_text(report["memory"])),
            ("bits", _price_of_bits(report)),
            *note_fields(report["notes"]),
            *note_fields([_SCHEDULES] if "library" in report and report["target"] in OF_NCCL else []),
        ]
    )
    print_lines("")
    if predicted["phases"] is not None:
        _print_phases(predicted["phases"], "cycles" if predicted["source"] != "simulated" else "cycles by the model")
    elif predicted["terms"] is not None:
        print_table(list(_TERMS), [_numbers(predicted["terms"])], right=_TERMS)
        print_lines("")
    print_candidates(report["candidates"], candidates, report["target"])
    if "library" in report:
        print_enabled(report["library"])
        if "bits" in report["library"]:
            print_bits(report["library"]["name"], report["library"]["bits"])
    if (vendors := _vendors(report)) is not None:
        times = f", {vendors['seconds'] / predicted['seconds']:.2f} times as long" if predicted["seconds"] else ""
        print_lines("", f"{_VENDORS} (the vendor's pattern): {cycles_and_time(vendors)}{times}")


def _price_of_bits(report: PlanReport) -> str:
    """Formats the properties of the bits and their cost, which is unknown if the user named an algorithm."""
    if "bits" not in report:
        return ""
    said = SAME_BITS[report["bits"][-1]]
    if "bits_cost" not in report:
        return said
    fastest = "the fastest that a .plan can hold" if "size" in report["bits"] else "the fastest"
    cost = report["bits_cost"] - 1
    return f"{said}: as fast as {fastest}" if cost < _NO_COST else f"{said}: {cost:+.1%} beside {fastest}"


def _assumed(bound: Bound | None, notes: list[str]) -> str:
    """Returns the assumption of a bound without the machine's ``notes``; empty without a bound or an assumption."""
    condition = "" if bound is None else assumed(bound, notes)
    return "" if condition.startswith("nothing beyond") else condition


def _source(report: PlanReport) -> str:
    """Formats the source of the predicted time: the model, or a simulation of the best candidates."""
    return source_word(report["predicted"]["source"], f"model {report['model']}")


def _vendors(report: PlanReport) -> Candidate | None:
    """Returns the candidate of the vendor's library on a wafer (root at the end of lines); None if absent or best."""
    parts = ("reduce", "x", "y")

    def is_chain(one: Candidate) -> bool:
        named = {one["algorithm"], *(one["params"][part] for part in parts if part in one["params"])}
        return named - {"reduce-broadcast", "x-y"} == {_VENDORS} and one["params"].get("root") != "middle"

    first, *others = report["candidates"]
    same = (one for one in others if one["source"] == first["source"] and one["cycles"] is not None)
    return None if is_chain(first) else next(filter(is_chain, same), None)


def _numbers(terms: Mapping[str, Any]) -> list[str]:
    return [number(terms[term]) for term in _TERMS]


def _print_phases(phases: list[Phase], time: str) -> None:
    rows = [[phase["name"], number(phase["cycles"]), *_numbers(phase["terms"])] for phase in phases]
    print_table(["phase", time, *_TERMS], rows, right=[time, *_TERMS])
    print_lines(*(f"{phase['name']}: {phase['note']}" for phase in phases if phase["note"]), "")


def print_candidates(candidates: list[Candidate], limit: int | None, target: str | None = None) -> None:
    """Prints a table of candidates, best first, with at most ``limit`` rows.

    If there is a target, a column states which candidates it can express.
    """
    marks = [f"for {target}"] if target is not None else []
    answers = {True: "yes", False: "no", None: "-"}
    # Only the best candidates may be simulated.
    sources = ["time"] if len({source_word(c["source"]) for c in candidates}) > 1 else []
    cycles = ["cycles"] if candidates[0]["cycles"] is not None else []
    shown, alike = (candidates, {}) if limit is None else _first_of_equals(candidates, limit)
    rows = [
        [
            candidate["algorithm"],
            params_text(candidate["params"]) + (f" (and {alike[at]} alike)" if alike.get(at) else ""),
            *(number(candidate["cycles"]) for _ in cycles),
            microseconds(candidate["seconds"]),
            f"{candidate['ratio']:.3f}" if candidate["ratio"] is not None else "-",
            *(source_word(candidate["source"]) for _ in sources),
            *(answers[candidate["expressible"]] for _ in marks),
        ]
        for at, candidate in enumerate(shown)
    ]
    right = [*cycles, "µs", "ratio"]
    print_table(["candidate", "parameters", *right, *sources, *marks], rows, right=right)
    times = [candidate["seconds"] for candidate in shown if candidate["expressible"] is not False]
    if sources and times != sorted(times):
        others = "an estimate or a model" if any(c["source"] == "estimated" for c in shown) else "a model"
        print_lines(
            f"simulated candidates are listed first; the time of {others} may be lower than that of a simulation"
        )
    refused = next((c for c in candidates if c["refused"] is not None), None)
    if refused is not None:
        print_lines(f"{refused['algorithm']} {params_text(refused['params'])}".rstrip() + f": {refused['refused']}")
    left = len(candidates) - len(shown) - sum(alike.values())
    if left > 0 or alike:
        print_lines(f"and {left} more: --all" if left > 0 else "--all lists candidates that are alike too")


def _first_of_equals(candidates: list[Candidate], limit: int) -> tuple[list[Candidate], dict[int, int]]:
    """Returns the first ``limit`` candidates that differ from their predecessor, and the number of equals by index."""
    shown: list[Candidate] = []
    alike: dict[int, int] = {}

    def key(one: Candidate) -> tuple[object, ...]:
        return one["algorithm"], one["cycles"], one["seconds"], one["source"], one["expressible"]

    for candidate in candidates:
        if shown and key(candidate) == key(shown[-1]):
            alike[len(shown) - 1] = alike.get(len(shown) - 1, 0) + 1
        elif len(shown) == limit:
            break
        else:
            shown.append(candidate)
    return shown, alike
