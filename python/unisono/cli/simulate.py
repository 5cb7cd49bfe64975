"""`unisono simulate`: runs a schedule on a simulated machine, from a file or as planned."""

from dataclasses import asdict
from typing import Any

import click

import unisono
from unisono import InputError, Measurement, Run, Schedule, UnsupportedError
from unisono._files import check_writable
from unisono._inputs import DTYPE_BYTES
from unisono._simulation import SAMPLED, checked_pes
from unisono.cli import _simulate_ranks, _simulate_switches
from unisono.cli._failures import NO, say
from unisono.cli._options import json_option, limit_options, maybe_file_or_plan_options, schedule_of
from unisono.cli._output import cycles_and_time, number, print_fields, print_json, print_lines, print_table, working
from unisono.cli._types import TracedPes, TracePes

#: The most PEs whose times JSON lists.
_LISTED = 4096
_MODELS = ("paper", "links")
_ONLY_WAFER = "--calibrated measures on a wafer; ranks have a clock each, and --late says when they begin"


@click.command()
@maybe_file_or_plan_options
@click.option(
    "--sim",
    type=click.Choice(["endpoint", "fabric", "network"]),
    help="The simulator: fabric runs a wafer wavelet by wavelet, endpoint messages among ranks, network their packets "
    "[the machine's].",
)
@click.option(
    "--queue-depth", type=int, metavar="N", help="Wavelets that wait at a router, per color and input [the machine's]."
)
@click.option(
    "--noop-probability",
    type=float,
    default=0.0,
    show_default=True,
    metavar="P",
    help="Share of its cycles in which a PE idles, as it does against overheating.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Draws the idle cycles.")
@click.option(
    "--calibrated",
    is_flag=True,
    help="Also measure as on hardware, without a common clock: PEs calibrate their starts by a trigger.",
)
@_simulate_ranks.options
@click.option(
    "--trace", metavar="FILE.json", help="Write the operations of PEs or ranks for Perfetto or chrome://tracing."
)
@click.option(
    "--trace-pes",
    type=TracePes(),
    metavar="all|N|LIST",
    help=f"Which PEs or ranks: all, an even sample of N [default: {SAMPLED}], or a list as in 0,5,64..127.",
)
@json_option
@limit_options
def simulate(
    file_or_collective: str | None,
    machine: str | None,
    sim: str | None,
    queue_depth: int | None,
    noop_probability: float,
    seed: int,
    calibrated: bool,
    trace: str | None,
    trace_pes: TracedPes | None,
    ranks_options: _simulate_ranks.Options,
    as_json: bool,
    **options: Any,
) -> int:
    """Runs the schedule in FILE, or the one planned for COLLECTIVE, on the simulated machine.

    On a wafer data flows through it; among ranks messages run at the machine's prices, and --goal runs the program of
    another tool.
    """
    if trace is not None:
        check_writable(trace, ranks_options.goal or file_or_collective)
    elif trace_pes is not None:
        raise click.UsageError("--trace-pes chooses what --trace writes, and --trace is not given")
    chosen = TracedPes(SAMPLED) if trace_pes is None else trace_pes
    record = (trace, chosen) if trace is not None else None
    if ranks_options.goal is not None:
        if file_or_collective is not None:
            raise click.UsageError("--goal brings its own program; drop the rest")
        if calibrated:
            raise click.UsageError(_ONLY_WAFER)
        return _simulate_ranks.goal(ranks_options, machine, seed, record, as_json)
    if file_or_collective is None:
        raise click.UsageError("say what to simulate: a schedule file, a collective with its options, or --goal FILE")
    schedule = schedule_of(file_or_collective, machine, options, "simulate")
    kind = None if schedule.machine is None else schedule.machine.kind
    if kind == "in-network":
        if sim is not None or calibrated or trace is not None or queue_depth is not None or noop_probability != 0:
            raise click.UsageError(
                "on switches that reduce there is one simulator, without a trace; --sim, --trace, --calibrated, "
                "--queue-depth and --noop-probability are for other machines"
            )
        _simulate_ranks.refuse(ranks_options)
        return _simulate_switches.run(schedule, as_json)
    fits = {"fabric": "wafer", "endpoint": "endpoint", "network": "network"}
    if sim is not None and kind is not None and fits[sim] != kind:
        raise InputError(f"--sim {sim} runs machines of kind {fits[sim]}, and this one is of kind {kind}")
    if kind in ("endpoint", "network"):
        if queue_depth is not None or noop_probability != 0:
            raise click.UsageError("--queue-depth and --noop-probability are a wafer's; see --noise and --late")
        if calibrated:
            raise click.UsageError(_ONLY_WAFER)
        model, where = options.get("model"), None
        if kind == "network":
            # A network has one model, which plans take; a schedule does not keep which part of it was asked for.
            model, where = None, None if machine is None else unisono.machine(machine, options["shape"])
        return _simulate_ranks.schedule(schedule, where, ranks_options, model, seed, record, as_json)
    _simulate_ranks.refuse(ranks_options)
    sim = "fabric"
    chosen = TracedPes(SAMPLED) if trace_pes is None else trace_pes
    pes = checked_pes(chosen.of(schedule.nodes), schedule.nodes) if trace is not None else None
    with working("simulating"):
        run = unisono.simulate(
            schedule, queue_depth=queue_depth, noop_probability=noop_probability, seed=seed, trace_pes=pes
        )
        measured = None
        if calibrated:
            measured = unisono.measure(schedule, queue_depth=queue_depth, noop_probability=noop_probability, seed=seed)
    if trace is not None:
        run.trace(trace)
    report = _report(run, schedule, sim, queue_depth)
    if as_json:
        print_json({**report, "calibrated": None if measured is None else asdict(measured), "trace": trace})
    else:
        _print(report, run)
        if measured is not None:
            _print_measured(measured)
        if trace is not None:
            print_lines("", f"wrote {trace}: {len(pes or [])} of {schedule.nodes} PEs, 1 µs stands for 1 cycle")
    if run.result_correct:
        return 0
    return say(f"the result is wrong: {run.mismatch}", NO)


def _report(run: Run, schedule: Schedule, sim: str, queue_depth: int | None) -> dict[str, Any]:
    machine = schedule.machine
    assert machine is not None, "what ran has a machine"
    return {
        "collective": schedule.collective,
        "machine": machine.name,
        "shape": machine.shape,
        "elements": schedule.elements,
        "dtype": schedule.dtype,
        "sim": sim,
        "queue_depth": machine.describe().get("queue_depth") if queue_depth is None else queue_depth,
        "cycles": run.cycles,
        "seconds": run.seconds,
        "result_correct": run.result_correct,
        "mismatch": run.mismatch,
        "predicted_cycles": {model: _predicted(schedule, model) for model in _MODELS},
        "lower_bound": _physical_bound(schedule),
        "events": run.events,
        "hops": run.hops,
        "stalls": run.stalls,
        "wall_seconds": run.wall_seconds,
        "finish": run.finish if schedule.nodes <= _LISTED else None,
    }


def _predicted(schedule: Schedule, model: str) -> float | None:
    try:
        return float(schedule.predict(model)["cycles"])
    except UnsupportedError:
        return None


def _physical_bound(schedule: Schedule) -> dict[str, Any] | None:
    """The bound that no model is part of, where one is known for the collective."""
    assert schedule.machine is not None, "what ran has a machine"
    found = unisono.bounds(
        schedule.collective, schedule.machine, elements=schedule.elements, dtype=schedule.dtype, root=schedule.root
    )
    return next((bound for bound in found if bound["name"].startswith("physical")), None)


def _print(report: dict[str, Any], run: Run) -> None:
    shape = "x".join(map(str, report["shape"] or []))
    size = report["elements"] * DTYPE_BYTES[report["dtype"]]
    what = f"{report['collective']} of {report['elements']} {report['dtype']} ({size} bytes)"
    print_lines(f"{what} on {report['machine']} {shape}")
    print_fields(
        [
            ("simulated", f"{cycles_and_time(report)} ({report['sim']}, queue depth {report['queue_depth']})"),
            ("result", "correct" if run.result_correct else "WRONG"),
            ("work", f"{run.events} events, {run.hops} hops, {run.stalls} stalled cycles in {run.wall_seconds:.2f} s"),
        ]
    )
    bound = report["lower_bound"]
    rows = [[f"model {name}", cycles] for name, cycles in report["predicted_cycles"].items()]
    rows += [[f"bound {bound['name']}", bound["cycles"]]] if bound else []
    cells = [[str(name), number(cycles), _over(run.cycles, cycles)] for name, cycles in rows]
    print_lines("")
    print_table(["beside", "cycles", "simulated / this"], cells, right=["cycles", "simulated / this"])


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


def _over(cycles: int, other: float | None) -> str:
    return f"{cycles / other:.3f}" if other else "-"
