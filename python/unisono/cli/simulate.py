"""`unisono simulate`: runs a schedule on a simulated machine, from a file or as planned."""

from typing import Any

import click

import unisono
from unisono import Run, Schedule, UnsupportedError
from unisono._files import check_writable
from unisono._inputs import DTYPE_BYTES
from unisono._simulation import SAMPLED, checked_pes
from unisono.cli._failures import NO, say
from unisono.cli._options import file_or_plan_options, json_option, schedule_of
from unisono.cli._output import cycles_and_time, number, print_fields, print_json, print_lines, print_table, working
from unisono.cli._types import TracedPes, TracePes

#: The most PEs whose times JSON lists.
_LISTED = 4096
_MODELS = ("paper", "links")


@click.command()
@file_or_plan_options
@click.option(
    "--sim",
    type=click.Choice(["fabric"]),
    default="fabric",
    show_default=True,
    help="The simulator: fabric runs a wafer wavelet by wavelet.",
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
@click.option("--trace", metavar="FILE.json", help="Write the operations of PEs for Perfetto or chrome://tracing.")
@click.option(
    "--trace-pes",
    type=TracePes(),
    metavar="all|N|LIST",
    help=f"Which PEs: all, an even sample of N [default: {SAMPLED}], or a list as in 0,5,64..127.",
)
@json_option
def simulate(
    file_or_collective: str,
    machine: str | None,
    sim: str,
    queue_depth: int | None,
    noop_probability: float,
    seed: int,
    trace: str | None,
    trace_pes: TracedPes | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Runs the schedule in FILE, or the one planned for COLLECTIVE, on the simulated machine, with data through it."""
    if trace is not None:
        check_writable(trace)
    elif trace_pes is not None:
        raise click.UsageError("--trace-pes chooses what --trace writes, and --trace is not given")
    schedule = schedule_of(file_or_collective, machine, options, "simulate")
    chosen = TracedPes(SAMPLED) if trace_pes is None else trace_pes
    pes = checked_pes(chosen.of(schedule.nodes), schedule.nodes) if trace is not None else None
    with working("simulating"):
        run = unisono.simulate(
            schedule, queue_depth=queue_depth, noop_probability=noop_probability, seed=seed, trace_pes=pes
        )
    if trace is not None:
        run.trace(trace)
    report = _report(run, schedule, sim, queue_depth)
    if as_json:
        print_json({**report, "trace": trace})
    else:
        _print(report, run)
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


def _over(cycles: int, other: float | None) -> str:
    return f"{cycles / other:.3f}" if other else "-"
