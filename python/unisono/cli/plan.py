"""`unisono plan`: the best schedule by the machine's model, with every candidate."""

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from unisono import InputError, Plan, UnsupportedError, save_plans
from unisono.base.files import check_files, save, write
from unisono.base.pictures import form_of
from unisono.base.reports import Bound, Candidate, Phase, PlannedRow, PlanReport
from unisono.base.tables import source_word
from unisono.cli._bits import SAME_BITS, check_contributors, contributors_option
from unisono.cli._jobs import cores_option
from unisono.cli._library import print_bits, print_choice, print_enabled
from unisono.cli._options import Request, explain_option, limit_options, plan_options
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
from unisono.cli._plan_table import (
    NO_COST,
    bits_table,
    library_table,
    print_bits_table,
    print_rows,
    report_rows,
    serve_range,
    stored_rows,
    write_tuning,
)
from unisono.cli._types import COLLECTIVES
from unisono.planning.bits import BITS
from unisono.planning.emission import FORMATS, TARGETS, TUNINGS
from unisono.planning.libraries import OF_NCCL

__all__ = ["plan", "print_candidates", "print_report"]

_TERMS = ("energy", "distance", "depth", "contention", "links")
_SHOWN = 10
#: The algorithm of the vendor's library on a wafer.
_VENDORS = "chain"

_SCHEDULES = (
    "the file has NCCL's algorithms, and the target runs 'as nccl'; the own candidates are one schedule each (a ring "
    "passes all ranks once, and NCCL lays a ring on each interface), and nothing that NCCL runs"
)


@click.command()
@click.argument("collectives", type=COLLECTIVES, metavar="COLLECTIVE[,COLLECTIVE...]")
@plan_options
@click.option("--all", "show_all", is_flag=True, help=f"List all candidates instead of the best {_SHOWN}.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the report (.json), the schedule (.sched) or a plan for MPI programs (.plan). With --for a format of "
    "'unisono export', any other ending stands for a file of that format.",
)
@click.option(
    "--serve",
    metavar="FIRST-LAST|all",
    help="For a .plan or a tuning file: the sizes that the file serves, as in 1KiB-64KiB, 64KiB-any or all [the "
    "planned size]. Both ends and the powers of four between them are planned separately.",
)
@click.option(
    "--unlike-bits",
    is_flag=True,
    help="For a .plan: permit an allreduce whose rounded results may have different bits on the ranks.",
)
@click.option(
    "--bits",
    type=click.Choice(BITS),
    help="Plan only schedules whose results have the same bits on all ranks (ranks), also at each place of a vector "
    "(place), also at each size (size), or also on each number of ranks (ranks-count). With --serve and -o "
    "FILE.plan, write one table for these sizes. With --as, add the settings of the library that give these bits.",
)
@contributors_option
@click.option(
    "--certificate",
    metavar="OUT",
    help="Write to this file the prices of links that prove the lower bound of a network.",
)
@click.option(
    "--plot",
    metavar="FILE.png|svg|pdf",
    help="Draw the candidates; if the best one is a forest, draw its trees on the network and the times of forests by "
    "depth.",
)
@click.option(
    "--as",
    "behaves_as",
    metavar="LIBRARY",
    help="Add the choice of this library by its own rules, with the time of the choice: nccl, rccl, openmpi or mpich. "
    "With --for nccl and -o, the file has the best of NCCL's own algorithms for all sizes, or for the sizes of "
    "--serve.",
)
@cores_option
@explain_option
@limit_options
def plan(
    collectives: list[str],
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
    """Finds the best schedule for COLLECTIVE, its predicted time, and the ratio of this time to a lower bound.

    Several collectives, or a range of sizes without --bytes, become the rows of one file, a .plan or a tuning file.
    """
    target = options["target"]
    tunes = output is not None and target in TUNINGS and not output.endswith((".json", ".sched", ".plan"))
    _check_output(output, serve, target, tunes)
    if unlike_bits and (output is None or not output.endswith(".plan")):
        raise InputError("--unlike-bits permits what a .plan serves; name one with -o FILE.plan")
    if unlike_bits and bits is not None:
        raise InputError("--unlike-bits permits unlike bits, and --bits excludes them; drop one of them")
    if bits is not None and target in TUNINGS:
        raise InputError(f"--bits is for schedules of this program, and {target} has algorithms of a library; drop it")
    check_contributors("--bits", bits, contributors)
    check_picture(plot)
    check_files(output, certificate, plot)
    served = None if serve is None else serve_range(serve)
    requests = [Request(name, **options, bits=bits, contributors=contributors) for name in collectives]
    is_unsized = options["elements"] is None and options["bytes"] is None and served is not None
    if len(requests) > 1 or is_unsized:
        as_other = None if target in OF_NCCL else options["behaves_as"]
        of_one = {"--bits": bits, "--certificate": certificate, "--plot": plot, "--as": as_other, "--all": show_all}
        _check_rows(output, tunes, of_one)
        _write_rows(requests, served, str(output), tunes=tunes, unlike_bits=unlike_bits, as_json=as_json)
        return
    (request,) = requests
    made, table = request.plan(), None
    report = made.report()
    warn_of_memory(report["memory"])
    rows: list[PlannedRow] = []
    tuning, certified = None, None
    if served is not None and not served[0] <= report["bytes"] <= (served[1] or report["bytes"]):
        click.echo(f"note: the report is for {report['bytes']:,} bytes, which {output} does not serve", err=True)
    if certificate is not None:
        with working("writing the certificate"):
            text = made.certificate()
            write(certificate, text)
        stated = json.loads(text)
        certified = {"file": certificate, "bound": stated["bound"], "seconds": stated["seconds"]}
    if output is not None and output.endswith(".json"):
        write(output, json_text(report))
    elif output is not None and tunes:
        lines, rows, notes = library_table(request, served, made)
        tuning = write_tuning(lines, notes, target, output)
    elif output is not None and output.endswith(".plan"):
        try:
            if bits is not None and served is not None:
                table = bits_table(request, bits, served)
                table.save(output)
            else:
                stored = stored_rows(request, served, made, unlike_bits=unlike_bits or bits is not None)
                save_plans(stored, output, unlike_bits=unlike_bits)
                rows = report_rows(stored)
        except UnsupportedError as refused:
            raise _for_tuning(refused, target) from None
    elif output is not None:
        save(made.schedule, output)
    if plot is not None:
        _draw(made, plot)
    shown = rows if served is not None else []
    if as_json:
        of_files = {
            "certificate": certified,
            "tuning": tuning,
            "rows": shown or None,
            "table": None if table is None else table.report(),
        }
        print_json({**report, **{key: value for key, value in of_files.items() if value is not None}})
        return
    print_report(report, None if show_all else _SHOWN)
    if table is not None:
        print_bits_table(table)
    if shown:
        print_lines("")
        print_rows(shown)
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


def _check_output(output: str | None, serve: str | None, target: str | None, tunes: bool) -> None:
    """Raises an error if the output file has no known ending, or if --serve has no file with rows.

    Raises:
        InputError, BadParameter: the file or the option is refused; the message says what to do.

    """
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


def _check_rows(output: str | None, tunes: bool, of_one: Mapping[str, str | bool | None]) -> None:
    """Raises an error if several collectives, or a range without a size, have no file for their rows.

    ``of_one`` are the values of options that concern one plan.

    Raises:
        InputError: the file is missing, or such an option is given.

    """
    if not tunes and (output is None or not output.endswith(".plan")):
        raise InputError(
            "several collectives are the rows of one file; name a .plan with -o FILE.plan, or a tuning file with --for "
            f"({', '.join(TUNINGS)}) and -o, or plan one collective at a time"
        )
    given = [option for option, value in of_one.items() if value]
    if given:
        raise InputError(f"{given[0]} is for one collective and one size; give --bytes, and one COLLECTIVE")


def _write_rows(
    requests: list[Request],
    served: tuple[int, int | None] | None,
    output: str,
    *,
    tunes: bool,
    unlike_bits: bool,
    as_json: bool,
) -> None:
    """Writes a file with rows for all requests, and prints the rows."""
    rows: list[PlannedRow] = []
    tuning = None
    if tunes:
        lines, notes, left = [], [], []
        for request in requests:
            try:
                of_library, planned, said = library_table(request, served, None)
            except UnsupportedError as refused:
                left.append(refused)
                continue
            lines += of_library
            rows += planned
            notes += said
        if not lines:
            raise left[0]
        notes += [f"left to the library: {refused}" for refused in left]
        tuning = write_tuning(lines, notes, str(requests[0].target), output)
    else:
        stored = [row for one in requests for row in stored_rows(one, served, None, unlike_bits=unlike_bits)]
        rows = report_rows(stored)
        try:
            save_plans(stored, output, unlike_bits=unlike_bits)
        except UnsupportedError as refused:
            raise _for_tuning(refused, requests[0].target) from None
    if as_json:
        print_json({"file": output, "rows": rows, **({} if tuning is None else {"tuning": tuning})})
        return
    print_rows(rows)
    print_lines("", f"wrote {output}")
    if tuning is not None:
        print_lines(f"load it with: {' '.join(tuning['load'])}")
        print_notes(tuning["notes"])


def _for_tuning(refused: UnsupportedError, target: str | None) -> UnsupportedError:
    """Returns the refusal of a .plan, with the file to write instead if the target has no schedules."""
    if target not in TUNINGS:
        return refused
    way = f"a file for {target} holds no schedule: -o FILE.csv (or another ending) writes it from this plan"
    return UnsupportedError(f"{refused}; {way}")


def _draw(made: Plan, path: str) -> None:
    # Imported late, because matplotlib takes long to import.
    from unisono.pictures.plots import forests

    write(path, forests.draw(made, form_of(path)))
    if made.algorithm != "forest":
        click.echo(f"note: {path} shows the times of candidates, since {made.algorithm} is no forest", err=True)
    elif made.report()["ranks"] > 1 and not forests.fits(made.forest()):
        most = forests.MOST_DRAWN
        click.echo(f"note: {path} shows only times, since a network of more than {most} nodes is not legible", err=True)


def print_report(report: PlanReport, candidates: int | None) -> None:
    """Prints the report of a plan as text, with at most ``candidates`` rows of candidates (None: a row for each).

    A row may represent several equal candidates.
    """
    predicted, bound, optimum = report["predicted"], report["lower_bound"], report["model_optimum"]
    print_lines(subject(report, predicted["cycles"] is not None))
    if "library" in report:
        print_choice(report["library"])
        print_lines("")
    # The library runs its own algorithms, which are not candidates.
    is_of_library = "library" in report and report["target"] in OF_NCCL
    own = [
        ("own plan" if "library" in report else "algorithm", f"{report['algorithm']} {params_text(report['params'])}"),
        ("guideline", report["guideline"] or ""),
        ("predicted", f"{cycles_and_time(predicted)} ({_source(report)})"),
    ]
    print_fields(
        [
            *([] if is_of_library else own),
            ("bound", f"{cycles_and_time(bound)} ({bound['name']})" if bound else ""),
            ("assumes", _assumed(bound, report["notes"])),
            ("ratio", _ratio(report, is_of_library)),
            ("bandwidth", bandwidths_text(report) if predicted["cycles"] is None and not is_of_library else ""),
            (
                "model optimum",
                f"{cycles_and_time(optimum)} ({optimum['name']}: {optimum['assumes']})" if optimum else "",
            ),
            ("memory", memory_text(report["memory"])),
            ("bits", _price_of_bits(report)),
            *note_fields(report["notes"]),
            *note_fields([_SCHEDULES] if is_of_library else []),
        ]
    )
    if is_of_library:
        print_enabled(report["library"])
    print_lines("")
    if is_of_library:
        pass
    elif predicted["phases"] is not None:
        _print_phases(predicted["phases"], "cycles" if predicted["source"] != "simulated" else "cycles by the model")
    elif predicted["terms"] is not None:
        print_table(list(_TERMS), [_numbers(predicted["terms"])], right=_TERMS)
        print_lines("")
    # The algorithm `ring` differs from the ring of a library.
    head = "own candidate" if "library" in report else "candidate"
    if is_of_library:
        print_candidates(sorted(report["candidates"], key=lambda one: one["seconds"]), candidates, head=head)
    else:
        print_candidates(report["candidates"], candidates, report["target"], head)
    if "library" in report:
        if not is_of_library:
            print_enabled(report["library"])
        if "bits" in report["library"]:
            print_bits(report["library"]["name"], report["library"]["bits"])
    if (vendors := _vendors(report)) is not None:
        times = f", {vendors['seconds'] / predicted['seconds']:.2f} times as long" if predicted["seconds"] else ""
        print_lines("", f"{_VENDORS} (the vendor's pattern): {cycles_and_time(vendors)}{times}")


def _ratio(report: PlanReport, is_of_library: bool) -> str:
    """Formats the time of the plan, or of the library that runs instead of it, divided by the bound."""
    bound, time = report["lower_bound"], report["library"]["seconds"] if is_of_library else None
    if is_of_library:
        return f"{time / bound['seconds']:.3f}" if time is not None and bound and bound["seconds"] else ""
    return f"{report['ratio']:.3f}" if report["ratio"] is not None else ""


def _price_of_bits(report: PlanReport) -> str:
    """Formats the properties of the bits and their cost, which is unknown if the user named an algorithm."""
    if "bits" not in report:
        return ""
    said = SAME_BITS[report["bits"][-1]]
    if "bits_cost" not in report:
        return said
    fastest = "the fastest that a .plan can hold" if "size" in report["bits"] else "the fastest"
    cost = report["bits_cost"] - 1
    return f"{said}: as fast as {fastest}" if cost < NO_COST else f"{said}: {cost:+.1%} beside {fastest}"


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


def print_candidates(
    candidates: list[Candidate], limit: int | None, target: str | None = None, head: str = "candidate"
) -> None:
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
    print_table([head, "parameters", *right, *sources, *marks], rows, right=right)
    times = [candidate["seconds"] for candidate in shown if candidate["expressible"] is not False]
    if sources and times != sorted(times):
        others = "an estimate or a model" if any(c["source"] == "estimated" for c in shown) else "a model"
        print_lines(
            f"simulated candidates are listed first; the time of {others} may be lower than that of a simulation"
        )
    reasons: dict[str, list[str]] = {}
    for one in shown if marks else []:
        if one["refused"] is not None:
            reasons.setdefault(one["refused"], []).append(f"{one['algorithm']} {params_text(one['params'])}".rstrip())
    print_lines(*(f"{', '.join(names)}: {reason}" for reason, names in reasons.items()))
    left = len(candidates) - len(shown) - sum(alike.values())
    if left > 0 or alike:
        print_lines(f"and {left} more: --all" if left > 0 else "--all lists candidates that are alike too")


def _first_of_equals(candidates: list[Candidate], limit: int) -> tuple[list[Candidate], dict[int, int]]:
    """Returns the first ``limit`` candidates that differ from their predecessor, and the numbers of equal candidates.

    The numbers are returned by index.
    """
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
