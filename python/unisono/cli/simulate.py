"""`unisono simulate`: runs a schedule, from a file or planned, on a simulated machine."""

import math
from dataclasses import asdict
from typing import Any, cast

import click

import unisono
from unisono import InputError, Machine, Measurement, Run, Schedule, SimulationError, UnsupportedError
from unisono.base.files import check_files, is_file
from unisono.base.reports import Bound, MetricReport, SimulationReport
from unisono.cli import _ranks_options
from unisono.cli._beside import print_beside, reports, run_beside
from unisono.cli._failures import NO, say
from unisono.cli._jobs import cores_option
from unisono.cli._options import explain_option, json_option, limit_options, maybe_file_or_plan_options, schedule_of
from unisono.cli._output import (
    bandwidths_text,
    cycles_and_time,
    memory_text,
    note_fields,
    number,
    print_fields,
    print_json,
    print_lines,
    print_table,
    subject,
    working,
)
from unisono.cli._sources import BY_RECORDS, GOAL, GOAL_ON_MACHINE, MODEL_OF_RUN, NOT_DRAWN, refuse_unused
from unisono.cli._types import INT, TracedPes, TracePes
from unisono.simulation.runs import SAMPLED, Metric, check_outputs
from unisono.simulation.traces import SIMULATORS, checked_pes

__all__ = ["simulate"]

#: The largest number of finish times, or values of a metric, that JSON lists.
_LISTED = 4096
#: The largest number of values of a metric that are printed one by one.
_SHOWN = 8
_MODELS = ("paper", "links")
#: The keys of the JSON report that are attributes of a `Run`.
_OF_RUN = (
    "cycles",
    "seconds",
    "nanoseconds",
    "events",
    "stalls",
    "result_correct",
    "elements_checked",
    "mismatch",
    "wall_seconds",
)


@click.command()
@maybe_file_or_plan_options
@click.option(
    "--sim",
    type=click.Choice(list(SIMULATORS)),
    help=f"The simulator: {'; '.join(f'{name} runs {about.summary}' for name, about in SIMULATORS.items())} "
    "[the machine's].",
)
@click.option(
    "--queue-depth",
    type=INT,
    metavar="N",
    help="Number of wavelets that may wait at a router for each color and input [the machine's].",
)
@click.option(
    "--noop-probability",
    type=float,
    default=0.0,
    show_default=True,
    metavar="P",
    help="Share of cycles in which a PE idles, as the hardware does against overheating.",
)
@click.option(
    "--seed", type=INT, default=0, show_default=True, metavar="N", help="Seed of the idle cycles or of the noise."
)
@click.option(
    "--calibrated",
    is_flag=True,
    help="Also measure as on hardware, without a common clock: a trigger calibrates the starts of the PEs.",
)
@click.option(
    "--beside",
    multiple=True,
    metavar="FILE",
    help="On machines of kind in-network: also run the schedule in FILE, which starts at the same time; repeatable.",
)
@_ranks_options.options
@click.option(
    "--trace", metavar="FILE.json", help="Write the operations of PEs or ranks for Perfetto or chrome://tracing."
)
@click.option(
    "--trace-pes",
    type=TracePes(),
    metavar="all|N|LIST",
    help=f"The PEs or ranks of the trace: all, an even sample of N [default: {SAMPLED}], or a list, as in 0,5,64..127.",
)
@explain_option
@json_option
@cores_option
@limit_options
def simulate(
    file_or_collective: str | None,
    machine: str | None,
    sim: str | None,
    queue_depth: int | None,
    noop_probability: float,
    seed: int,
    calibrated: bool,
    beside: tuple[str, ...],
    trace: str | None,
    trace_pes: TracedPes | None,
    ranks_options: _ranks_options.Options,
    as_json: bool,
    **options: Any,
) -> int:
    """Runs the schedule in FILE, or the one planned for COLLECTIVE, on the simulated machine.

    On a wafer, data flows through the schedule; among ranks, messages take the times of the machine's model. --goal
    runs a program of another tool.
    """
    given = ranks_options
    check_files(trace, given.timeline)
    if trace is None and trace_pes is not None:
        raise click.UsageError("--trace-pes chooses what --trace writes, and --trace is not given")
    what, where = _subject(file_or_collective, machine, options, given)
    by_model = [name for name, about in SIMULATORS.items() if about.takes_model]
    # A GOAL program without a machine runs under LogGOPS.
    simulator = by_model[0] if where is None else where.simulator
    if sim is not None and sim != simulator:
        raise InputError(
            f"--sim {sim} runs a program of --goal on a machine; name it with --machine"
            if where is None
            else f"--sim {sim} does not run {where.name}, a machine of kind {where.kind}; {simulator} does"
        )
    draws = given.noise is not None or noop_probability > 0 or calibrated
    refuse_unused(BY_RECORDS[SIMULATORS[simulator].records], () if draws else NOT_DRAWN)
    if what is not None and where is not None:
        _check_memory(what, where)
    of_file = what is not None and file_or_collective is not None and is_file(file_or_collective)
    if of_file and not SIMULATORS[simulator].takes_model and options["model"] != "data-sheet":
        refuse_unused(MODEL_OF_RUN)
    if what is not None and given.late is not None and len(given.late) != what.ranks:
        raise InputError(f"--late gives the start of {len(given.late)} ranks, and there are {what.ranks}")
    check_outputs(simulator, trace=trace, timeline=given.timeline)
    pes = None
    if trace is not None and what is not None:
        nodes = what.nodes
        pes = checked_pes((trace_pes or TracedPes(SAMPLED)).of(nodes), nodes)
    # Some simulators use the model for the times of messages. On other machines only the plan uses the model.
    model = options["model"] if simulator in by_model or options["model"] == "data-sheet" else None
    of_wafer: dict[str, Any] = {"queue_depth": queue_depth, "noop_probability": noop_probability, "seed": seed}
    of_goal = {"goal": given.goal, "parameters": None if given.goal is None else given.parameters}
    measured, rows = None, None
    if what is None:
        try:
            with working("simulating"):
                run = unisono.simulate_goal(
                    str(given.goal),
                    machine=where,
                    **given.parameters,
                    zero_byte=given.zero_byte or "wrapped",
                    late=given.late,
                    noise=given.noise,
                    seed=seed,
                )
        except SimulationError as stuck:
            if as_json:
                print_json(
                    _input_keys(what, where, simulator, model, queue_depth) | of_goal | {"deadlock": stuck.stuck}
                )
            return say(str(stuck), NO)
    else:
        with working("simulating"):
            if beside:
                runs, alone = run_beside(what, beside)
                rows = reports([str(file_or_collective), *beside], runs, alone)
                run = runs[0]
            else:
                run = unisono.simulate(what, model=model, late=given.late, noise=given.noise, trace_pes=pes, **of_wafer)
            if calibrated:
                measured = unisono.measure(what, **of_wafer)
    files = []
    if trace is not None:
        run.trace(trace, pes or (trace_pes or TracedPes(SAMPLED)).of(run.simulation.nodes))
        files.append(trace)
    if given.timeline is not None:
        run.timeline(given.timeline)
        files.append(given.timeline)
    calibration = None if measured is None else asdict(measured)
    others = {**of_goal, "calibrated": calibration, "beside": rows, "files": files}
    report = cast(
        SimulationReport, _input_keys(what, where, simulator, model, queue_depth) | _run_keys(run, what) | others
    )
    if as_json:
        print_json(report)
    else:
        _print(report, run, what)
        if measured is not None:
            _print_measured(measured)
        if rows is not None:
            print_beside(rows)
        print_lines(*(f"wrote {file}" for file in files))
    if run.result_correct is False:
        return say(f"the result is wrong: {run.mismatch}", NO)
    if wrong := [row["schedule"] for row in rows or [] if row["result_correct"] is False]:
        return say(f"the result of {wrong[0]} is wrong", NO)
    return 0


def _subject(
    what: str | None, machine: str | None, options: dict[str, Any], given: _ranks_options.Options
) -> tuple[Schedule | None, Machine | None]:
    """Returns the schedule (None for a GOAL program) and the machine (None for LogGOPS without a machine)."""
    if given.goal is not None:
        if what is not None:
            raise click.UsageError(f"--goal brings its own program; drop '{what}'")
        if machine is None and options["fail"]:
            raise click.UsageError("--fail names failed parts of a machine; give --machine too")
        refuse_unused(GOAL if machine is None else GOAL_ON_MACHINE)
        return None, None if machine is None else unisono.machine(machine, failed=options["fail"])
    if what is None:
        raise click.UsageError("name the input: a schedule file, a collective with its options, or --goal FILE")
    found = schedule_of(what, machine, options, "simulate", runs=True)
    if found.machine is None:
        raise InputError("the schedule has no machine; name one with --machine")
    return found, found.machine


def _check_memory(what: Schedule, where: Machine) -> None:
    """Refuses a schedule that does not fit a PE of a wafer, unlike the Python function ``unisono.simulate``.

    Raises:
        UnsupportedError: inputs, outputs and scratch memory are larger than the memory of a PE.

    """
    has = where.describe().get("sram_bytes")
    if has is not None and (text := memory_text({"needed_bytes": what.memory_bytes_max, "pe_bytes": has})):
        raise UnsupportedError(
            f"{text}; `unisono.simulate` of Python, or a machine file with other sram_bytes, runs it"
        )


def _input_keys(
    what: Schedule | None, machine: Machine | None, simulator: str, model: str | None, depth: int | None
) -> dict[str, Any]:
    """Returns the JSON report with the keys that describe the input.

    All other keys are null, as for a run that gets stuck.
    """
    described = {} if machine is None else machine.describe()
    size = None if what is None else what.elements * unisono.dtypes()[what.dtype]
    known: dict[str, Any] = {
        "machine": None if machine is None else machine.name,
        "shape": None if machine is None or what is None else machine.extents,
        "nodes": described.get("node_dims"),
        "bytes": size,
        "sim": simulator,
        "model": model or described.get("model"),
        "rates": None if machine is None else machine.rates(model),
        "queue_depth": described.get("queue_depth") if depth is None else depth,
        "deadlock": [],
        "files": [],
        "notes": [] if machine is None else [*machine.notes(size, model), *(() if what is None else what.notes)],
    }
    of_subject = {name: getattr(what, name, None) for name in ("collective", "ranks", "elements", "dtype")}
    return dict.fromkeys(SimulationReport.__annotations__) | of_subject | known


def _run_keys(run: Run, what: Schedule | None) -> dict[str, Any]:
    """Returns the keys of the JSON report that a run fills."""
    size = None if what is None else what.elements * unisono.dtypes()[what.dtype]
    ends = run.simulation.ends if run.simulation.nodes <= _LISTED else None
    in_cycles = run.cycles is not None
    # Only schedules on machines with cycles are compared with models and a bound.
    beside = what if in_cycles else None
    return {name: getattr(run, name) for name in _OF_RUN} | {
        "ranks": run.simulation.nodes if what is None else what.ranks,
        "bytes_per_second": size / run.nanoseconds * 1e9 if size is not None and run.nanoseconds else None,
        **_bandwidths(run, what, size),
        "metrics": {name: _listed(metric) for name, metric in run.metrics.items()},
        "finish": ends if in_cycles or ends is None else [end / 1e9 for end in ends],
        "finish_ns": None if in_cycles else ends,
        "predicted_cycles": None if beside is None else {name: _predicted(beside, name) for name in _MODELS},
        "lower_bound": None if beside is None else _physical_bound(beside),
    }


def _bandwidths(run: Run, what: Schedule | None, size: int | None) -> dict[str, float | None]:
    if what is None or size is None:
        return {"algbw": None, "busbw": None}
    return unisono.bandwidths(what.collective, what.ranks, size, run.seconds)


def _predicted(schedule: Schedule, model: str) -> float | None:
    try:
        return schedule.predict(model)["cycles"]
    except UnsupportedError:
        return None


def _physical_bound(schedule: Schedule) -> Bound | None:
    """Returns the bound that does not depend on a model, if the collective has one."""
    assert schedule.machine is not None, "what ran has a machine"
    found = unisono.bounds(
        schedule.collective, schedule.machine, elements=schedule.elements, dtype=schedule.dtype, root=schedule.root
    )
    return next((bound for bound in found if bound["name"].startswith("physical")), None)


def _listed(metric: Metric) -> MetricReport:
    long = hasattr(metric.value, "tolist") and len(metric.value) > _LISTED
    return {"value": None if long else metric.value, "unit": metric.unit}


def _metric_text(name: str, metric: Metric) -> str:
    """Formats the value of a metric, with its unit unless the name ends with the unit.

    An array of more than `_SHOWN` values is formatted as its least and its largest value.
    """
    value = metric.value
    unit = "" if name.endswith(metric.unit) else f" {metric.unit}"
    if hasattr(value, "tolist"):
        if len(value) > _SHOWN:
            return f"{value.min()} to {value.max()}{unit}"
        value = ", ".join(map(str, value))
    return f"{number(value, 3) if isinstance(value, float) else value}{unit}"


def _print(report: SimulationReport, run: Run, what: Schedule | None) -> None:
    """Prints the report of a run as text, without fields and tables that are empty."""
    in_cycles = run.cycles is not None
    print_lines(report["goal"] or subject(report, in_cycles))
    queue = f", queue depth {report['queue_depth']}" if report["queue_depth"] is not None else ""
    result = {True: "correct", False: "WRONG", None: "not checked: no data flowed"}[run.result_correct]
    if run.elements_checked is not None and run.elements_checked < (report["elements"] or 0):
        result += f" in {run.elements_checked} of {report['elements']} elements, the first of each embedding; "
        result += "no others flowed"
    rate = f", {run.events / run.wall_seconds / 1e6:.1f} million a second" if run.wall_seconds > 0 else ""
    print_fields(
        [
            ("algorithm", "" if what is None else what.origin),
            ("simulated", f"{cycles_and_time(report)} ({run.simulator}{queue})"),
            ("result", result),
            ("bandwidth", bandwidths_text(report)),
            ("work", f"{run.events} events in {run.wall_seconds:.2f} s{rate}"),
            *((name.replace("_", " "), _metric_text(name, metric)) for name, metric in run.metrics.items()),
            *note_fields(report["notes"]),
        ]
    )
    ends = run.simulation.ends
    unit = "cycles" if in_cycles else "ns"
    columns = [f"first done, {unit}", f"mean, {unit}", f"last, {unit}"]
    cells = [number(float(end), 3) for end in (min(ends), math.fsum(ends) / len(ends), max(ends))] if ends else None
    print_lines("")
    print_table(columns, [cells] if cells else [], right=columns)
    if report["predicted_cycles"] is None or run.cycles is None:
        return
    rows = [(f"model {name}", cycles) for name, cycles in report["predicted_cycles"].items()]
    rows += [(f"bound {bound['name']}", bound["cycles"])] if (bound := report["lower_bound"]) else []
    beside = [[name, number(cycles), f"{run.cycles / cycles:.3f}" if cycles else "-"] for name, cycles in rows]
    print_lines("")
    print_table(["beside", "cycles", "simulated / this"], beside, right=["cycles", "simulated / this"])
    if len(set(report["predicted_cycles"].values())) == 1:
        print_lines("the models agree where an algorithm states the time of its slowest path itself")


def _print_measured(measured: Measurement) -> None:
    print_lines("")
    reached = "" if measured.calibrated else ", not as close as wanted"
    print_fields(
        [
            ("measured", f"{measured.measured_cycles} cycles; {measured.true_cycles} by one clock for all"),
            ("quiet", f"{measured.quiet_cycles} cycles without idle cycles, all starting together"),
            (
                "starts",
                f"within {measured.start_spread} cycles{reached}; {measured.trigger_spread} by the trigger alone",
            ),
            ("alpha", f"{measured.alpha:.4f} after {measured.runs} runs"),
        ]
    )
