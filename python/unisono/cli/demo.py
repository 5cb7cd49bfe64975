"""`unisono demo`: collectives on a wafer, planned, proved and predicted."""

from pathlib import Path

import click

import unisono as un
from unisono.base.files import check_folder, write
from unisono.base.tables import sweep_csv
from unisono.cli._failures import NO
from unisono.cli._output import cycles_and_time, json_text, number, params_text, print_fields, print_lines
from unisono.cli.plan import print_report
from unisono.pictures import plots

__all__ = ["demo"]

_FIXED = ["star", "tree", "two-phase", "chain", "ring"]


@click.command()
@click.option("-o", "--output", metavar="DIR", default="out", show_default=True, help="The folder of the files.")
def demo(output: str) -> int:
    """Plans, proves and predicts collectives on a wafer, and writes a table, a picture, a schedule and a report.

    It takes some seconds and needs no network, MPI or compiler: the test of a new installation.
    """
    check_folder(output)
    folder = Path(output)
    folder.mkdir(exist_ok=True)
    _row()
    files = _sweep(folder)
    proved, more = _wafer(folder)
    print_lines("", "files written:", *(f"  {path}" for path in (*files, *more)))
    return 0 if proved else NO


def _row() -> None:
    """Plans a Reduce on a row of PEs, and prints every candidate with the lower bound."""
    print_lines("1. The best Reduce of 1 KiB to one end of a row of 512 PEs", "")
    print_report(un.plan("reduce", "wse2", shape=512, elements=256).report(), candidates=6)


def _sweep(folder: Path) -> list[Path]:
    """Finds the best fixed AllReduce for rows of 4 to 512 PEs and 1 to 32768 elements."""
    print_lines("", "2. Which fixed AllReduce is best, for 8 sizes of a row and 16 lengths")
    points = un.sweep(
        "allreduce",
        "wse2",
        shapes=[2**k for k in range(2, 10)],
        elements=[2**k for k in range(16)],
        algorithms=_FIXED,
        baseline="chain",
    )
    table, picture = folder / "fig8.csv", folder / "fig8.png"
    write(table, sweep_csv(points))
    write(picture, plots.speedup_map(points, "Best fixed AllReduce on a row of PEs"))
    best = max(points, key=lambda point: point["baseline_ratio"] or 0)
    print_lines(
        f"   {len(points)} points; at most {best['baseline_ratio']:.2f} times faster than the chain: "
        f"{best['best']} for length {best['elements']} on {best['shape'][0]} PEs"
    )
    return [table, picture]


def _wafer(folder: Path) -> tuple[bool, list[Path]]:
    """Plans, builds and proves an AllReduce on 512 x 512 PEs; returns whether it is proved, and the written files."""
    print_lines("", "3. An AllReduce of 1 KiB on 512 x 512 PEs, planned, built and proved", "")
    plan = un.plan("allreduce", "wse2", shape=(512, 512), elements=256)
    schedule = plan.schedule
    proof = schedule.verify()
    text, report = folder / "allreduce-512x512.sched", folder / "allreduce-512x512.json"
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
    return bool(proof), [text, report]
