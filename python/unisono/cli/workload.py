"""`unisono workload`: times one training iteration or one step of a program on a machine."""

from collections.abc import Callable
from pathlib import Path

import click

import unisono
from unisono import InputError
from unisono.base.files import check_files, write
from unisono.base.pictures import form_of
from unisono.base.reports import WorkloadReport
from unisono.cli._completion import complete, workloads
from unisono.cli._jobs import cores_option, study, study_options
from unisono.cli._options import (
    explain_option,
    fail_option,
    fill_option,
    json_option,
    level_options,
    limit_options,
    rate_options,
    shard_option,
)
from unisono.cli._output import (
    number,
    params_text,
    print_fields,
    print_json,
    print_lines,
    print_notes,
    print_table,
    without,
    working,
)
from unisono.cli._pictures import check_picture
from unisono.cli._programs import parse_algorithms, parse_changes, print_step
from unisono.cli._recording import rounds_option
from unisono.cli._sources import LIST, NAMED_WORKLOAD, NOT_A_SCRIPT, PROGRAM, refuse_unused
from unisono.cli._types import INT, MACHINE
from unisono.machines.descriptions import by_rates
from unisono.planning import training
from unisono.tasks.recording import record

__all__ = ["workload"]

#: The words for how communication is timed at each level.
_BY = {"model": "by the model", "flow": "by flows", "packet": "packet by packet"}


@click.command()
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[NAME | -- ARGS...]",
    shell_complete=complete(workloads, files=True),
)
@click.option("--machine", type=MACHINE, metavar="NAME|FILE", help="A preset (see 'unisono machines') or a TOML file.")
@level_options
@fail_option
@fill_option
@click.option(
    "--nodes",
    type=INT,
    metavar="N",
    help="Number of nodes of a machine of kind in-network, or of boxes of a network.",
)
@click.option(
    "--minibatch",
    type=INT,
    metavar="N",
    help=f"On a machine of kind in-network: the images of each node [{training.MINIBATCH}].",
)
@click.option(
    "--algorithm",
    metavar="NAME|KIND=NAME",
    help="For a program of --from: the algorithm of a collective, as in allreduce=ring. On a machine of kind "
    "in-network: in-network [default], rabenseifner or recursive-doubling.",
)
@click.option("--model", metavar="data-sheet", help="Use the rates of the data sheet instead of measured rates.")
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the iteration.")
@click.option(
    "--from",
    "source",
    metavar="FILE|DIR",
    help="The program: HLO text of XLA, traces of Chakra or PyTorch, GOAL, or a program of tasks in JSON or Python.",
)
@click.option("--ranks", type=INT, metavar="N", help="Number of ranks of a program of tasks.")
@rounds_option
@click.option("--strict", is_flag=True, help="Refuse operations of the program whose time is not known.")
@rate_options
@click.option(
    "--what-if",
    multiple=True,
    metavar="K=V[,K=V...]",
    help="Also time the program with other values of the machine file, machine=NAME, fail=LINK or allreduce=ALGORITHM; "
    "repeatable.",
)
@study_options
@shard_option
@explain_option
@json_option
@cores_option
@limit_options
def workload(
    words: tuple[str, ...],
    machine: str | None,
    level: str,
    no_overlap: bool,
    fail: tuple[str, ...],
    fill: bool,
    nodes: int | None,
    minibatch: int | None,
    algorithm: str | None,
    model: str | None,
    plot: str | None,
    source: str | None,
    ranks: int | None,
    rounds: int,
    strict: bool,
    tflops: float | None,
    memory_gb_per_second: float | None,
    what_if: tuple[str, ...],
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None,
    as_json: bool,
) -> None:
    """Times a training iteration of workload NAME (without NAME: lists all), or a step of the program of --from.

    A program of tasks in Python is executed with ARGS, without its kernels.
    """
    is_script = source is not None and source.endswith(".py")
    if source is not None:
        if words and not is_script:
            raise click.UsageError(f"'{words[0]}' and --from both name a workload; drop one of them")
        refuse_unused(PROGRAM, () if is_script else NOT_A_SCRIPT)
        if machine is None:
            raise click.UsageError("name the machine on which it runs, with --machine")
        changes = [parse_changes(text) for text in what_if]
        algorithms = {} if algorithm is None else parse_algorithms(algorithm)
        check_picture(plot)
        check_files(plot, resume)
        with working(f"timing {source}"), study(1, executor, resume, shard) as (by, kept):
            graph, notes = _recorded(source, words, ranks, rounds, strict=strict) if is_script else (source, [])
            place = by_rates(unisono.machine(machine, nodes=nodes, failed=fail), model)
            # Machines that a change names get the same number of nodes and the same failures.
            for change in changes:
                if "machine" in change:
                    other = unisono.machine(str(change["machine"]), nodes=nodes, failed=fail)
                    change["machine"] = by_rates(other, model)
            program = unisono.step(
                graph,
                place,
                overlap=not no_overlap,
                fill=fill,
                # The recording of a program has already applied ``strict``.
                strict=strict and not is_script,
                ranks=None if is_script else ranks,
                tflops=tflops,
                memory_gb_per_second=memory_gb_per_second,
                level=level,
                algorithms=algorithms,
                what_if=changes,
                executor=by,
                kept=kept,
            )
        print_notes(notes, err=True)
        _draw(program, plot)
        if as_json:
            print_json({**program, "files": [plot] if plot is not None else []})
            return
        on = f"{program['machine']}{without(place)}"
        _print_times(program, f"{program['accelerators']} accelerators of {on}, {_BY[level]}")
        print_step(program)
        if plot is not None:
            print_lines("", f"wrote {plot}")
        return
    if len(words) > 1:
        raise click.UsageError(f"'{words[0]}' and '{words[1]}' both name a workload; drop one of them")
    name = words[0] if words else None
    refuse_unused(LIST if name is None else NAMED_WORKLOAD)
    if name is None:
        presets = [*unisono.workload_presets(), *training.PRESETS]
        if as_json:
            print_json({"workloads": presets})
        else:
            rows = [[p["name"], str(p["accelerators"] or "any"), p["summary"]] for p in presets]
            print_table(["workload", "accelerators", "summary"], rows, right=["accelerators"])
        return
    if machine is None:
        raise click.UsageError("name the machine on which it runs, with --machine")
    if name in [preset["name"] for preset in training.PRESETS]:
        if level != "model" or plot is not None:
            raise click.UsageError(f"{name} runs on switches that reduce: other levels and --plot are for networks")
        where = by_rates(unisono.machine(machine, nodes=nodes, failed=fail), model)
        report = unisono.workload(
            name, where, overlap=not no_overlap, fill=fill, minibatch=minibatch, algorithm=algorithm
        )
        how = "" if report["overlap"] else ", without overlap"
        trained = f"{report['minibatch']} images a node, gradients by {report['algorithm']}{how}"
        on = f"{report['accelerators']} cores of {report['machine']}, {trained}"
        _report(report, on, None, as_json)
        return
    if minibatch is not None or algorithm is not None:
        only = "--minibatch and --algorithm are for vgg16 on switches that reduce"
        form = f"--algorithm allreduce={algorithm or 'ring'}"
        raise click.UsageError(f"{only}; 'unisono workload --from {name}' takes {form} on networks")
    check_picture(plot)
    with working(f"running {name}"):
        network = by_rates(unisono.machine(machine, nodes=nodes, failed=fail), model)
        report = unisono.workload(name, network, level=level, overlap=not no_overlap, fill=fill)
    _draw(report, plot)
    on = f"{report['accelerators']} accelerators of {report['machine']}{without(network)}, by {level}"
    _report(report, on, plot, as_json)


def _recorded(
    source: str, arguments: tuple[str, ...], ranks: int | None, rounds: int, *, strict: bool
) -> tuple[unisono.WorkloadGraph, list[str]]:
    """Records the program of a Python file, and returns the program with notes."""
    if ranks is None:
        raise InputError(f"{source} is a program of tasks, for any number of ranks; state it with --ranks N")
    script = record(source, arguments, rounds)
    return script.program.workload(ranks, name=Path(source).stem, strict=strict), script.notes


def _draw(report: WorkloadReport, plot: str | None) -> None:
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures.plots import workloads

        write(plot, workloads.draw(report, form_of(plot)))


def _report(report: WorkloadReport, where: str, plot: str | None, as_json: bool) -> None:
    if as_json:
        print_json({**report, "files": [plot] if plot is not None else []})
        return
    time = _times_of(report)
    _print_times(report, where)
    rows = [
        [
            phase["name"],
            time(phase["begin"]),
            f"{c['collective']} among {c['ranks']}",
            f"{c['bytes']:,}",
            f"{c['algorithm']} {params_text(c['params'])}".rstrip(),
            time(c["end"] - c["begin"]),
            "yes" if c["blocking"] else "no",
        ]
        for phase in report["phases"]
        for c in phase["communication"]
    ]
    print_table(["step", "begins", "communication", "bytes", "algorithm", "takes", "blocks"], rows, right=["bytes"])
    print_notes(report["notes"])
    if plot is not None:
        print_lines("", f"wrote {plot}")


def _print_times(report: WorkloadReport, where: str) -> None:
    time = _times_of(report)

    def part(seconds: float) -> str:
        return f"{time(seconds)} ({seconds / report['seconds'] if report['seconds'] else 0:.1%})"

    fields = [
        ("iteration", time(report["seconds"])),
        ("compute", time(report["compute_seconds"])),
        ("communication", time(report["communication_seconds"])),
        ("exposed", part(report["exposed_seconds"])),
    ]
    if report["waiting_seconds"] > 0:
        fields.append(("waiting", part(report["waiting_seconds"])))
    fields.append(("uses", _used(report)))
    print_lines(f"{report['workload']} on {where}")
    print_fields(fields)
    print_lines("")


def _used(report: WorkloadReport) -> str:
    """Formats the fraction of the network in use, with the number of copies of the model and the price."""
    if report["utilization"] is None:
        return ""
    copies, cost = report["copies"], report["used_cost_usd"]
    parts = [f"{report['utilization']:.1%} of the accelerators"]
    parts += [f"{copies:,} {'copy' if copies == 1 else 'copies'} of the model"] if copies is not None else []
    parts += [f"{number(cost * 1e-6, 3)} M$ of the network"] if cost is not None else []
    return ", ".join(parts)


def _times_of(report: WorkloadReport) -> Callable[[float], str]:
    """Returns a function that formats the times of a report, all in the same unit."""
    units = ((1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    unit, name = next((unit for unit in units if report["seconds"] >= unit[0] / 10), units[0])
    return lambda seconds: f"{number(seconds / unit, 3)} {name}"
