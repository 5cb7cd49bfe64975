"""The main job on real input: collectives on a wafer, planned, proved and predicted; files go to out/."""

from pathlib import Path

import unisono as un
from unisono.base.files import write
from unisono.base.tables import sweep_csv
from unisono.cli._output import cycles_and_time, json_text, number, params_text, print_fields, print_lines
from unisono.cli.plan import print_report
from unisono.pictures import plots

OUT = Path("out")
FIXED = ["star", "tree", "two-phase", "chain", "ring"]


def main() -> None:
    OUT.mkdir(exist_ok=True)
    files = [*row(), *sweep(), *wafer()]
    print_lines("", "files written:", *(f"  {path}" for path in files))


def row() -> list[Path]:
    """A Reduce on a row of PEs: every candidate beside the lower bound."""
    print_lines("1. The best Reduce of 1 KiB to one end of a row of 512 PEs", "")
    print_report(un.plan("reduce", "wse2", shape=512, elements=256).report(), candidates=6)
    return []


def sweep() -> list[Path]:
    """The best fixed AllReduce for rows of 4 to 512 PEs and 1 to 32768 elements."""
    print_lines("", "2. Which fixed AllReduce is best, for 8 sizes of a row and 16 lengths")
    points = un.sweep(
        "allreduce",
        "wse2",
        shapes=[2**k for k in range(2, 10)],
        elements=[2**k for k in range(16)],
        algorithms=FIXED,
        baseline="chain",
    )
    table, picture = OUT / "fig8.csv", OUT / "fig8.png"
    write(table, sweep_csv(points))
    write(picture, plots.speedup_map(points, "Best fixed AllReduce on a row of PEs"))
    best = max(points, key=lambda point: point["baseline_ratio"] or 0)
    print_lines(
        f"   {len(points)} points; at most {best['baseline_ratio']:.2f} times faster than the chain: "
        f"{best['best']} for length {best['elements']} on {best['shape'][0]} PEs"
    )
    return [table, picture]


def wafer() -> list[Path]:
    """An AllReduce on 512 x 512 PEs: planned, built, proved."""
    print_lines("", "3. An AllReduce of 1 KiB on 512 x 512 PEs, planned, built and proved", "")
    plan = un.plan("allreduce", "wse2", shape=(512, 512), elements=256)
    schedule = plan.schedule
    proof = schedule.verify()
    text, report = OUT / "allreduce-512x512.sched", OUT / "allreduce-512x512.json"
    un.save(schedule, text)
    write(report, json_text(plan.report()))
    print_fields(
        [
            ("schedule", f"{schedule.instructions} instructions on {schedule.nodes} PEs"),
            ("proof", f"{'holds' if proof else 'refused'} ({proof.method})"),
            ("algorithm", f"{plan.algorithm} {params_text(plan.params)}"),
            ("cycles", number(plan.predicted["cycles"])),
            ("microseconds", f"{plan.predicted['seconds'] * 1e6:.3f}"),
            ("bound", f"{cycles_and_time(plan.bound)} ({plan.bound['name']})"),
            ("ratio", f"{plan.ratio:.3f}" if plan.ratio is not None else "-"),
        ]
    )
    if not proof:
        raise SystemExit("the schedule was refused")
    return [text, report]


main()
