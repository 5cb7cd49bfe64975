"""The measured times that lie between the ceiling and the band of the expected time, as `unisono expect` has both.

The times are those of docs/measured/a100x4-nvlink.csv and, with --posted, of a table with the columns machine, boxes,
ranks, collective, bytes, busbw in GB/s, source. A machine is `preset NAME`, or the file of an NCCL topology beside the
table or in --topologies.
Usage: expected.py [--posted TABLE.tsv] [--topologies DIR] [--record]
"""

import argparse
from pathlib import Path

import unisono as un
from common.figures import Figures, Of, parsed
from unisono.logs.benchmarks import read_logs
from unisono.logs.collectives import Measured
from unisono.logs.expectations import Expected, expected_times, key_of, library_of

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--posted", type=Path)
    words.add_argument("--topologies", type=Path)
    given = parsed(words)
    points = [point for log in read_logs([ROOT / "docs" / "measured" / "a100x4-nvlink.csv"]) for point in log.points]
    machine = un.machine("a100x4")
    found, _ = expected_times(machine, points, library_of(machine, None))
    with Figures("gpus", "Measured times between the ceiling and the expected band", given) as made:
        share(made, "a100x4-nvlink.csv", [judged(point, found.get(key_of(point))) for point in points])
        if given.posted is not None:
            rows = [line.split("\t") for line in given.posted.read_text().splitlines() if line and line[0] != "#"]
            share(made, "posted bandwidths", [posted(row, given.topologies or given.posted.parent) for row in rows])


def share(made: Figures, name: str, verdicts: list[str]) -> None:
    within = [verdict.startswith("within") for verdict in verdicts].count(True)
    near = [verdict.endswith("near") for verdict in verdicts].count(True)
    others = [f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts) - {"within", "within, near"})]
    note = "; ".join([f"{near} are within a quarter of the expected time", *others])
    made.add(f"{name}, {len(verdicts)} times", Of("within", within, "times", "of", len(verdicts)), note=note)


def judged(point: Measured, expected: Expected | None) -> str:
    if expected is None:
        return "no expected time"
    if expected.ceiling is not None and point.seconds < expected.ceiling:
        return "below the ceiling's time"
    if point.seconds > expected.seconds * (1 + expected.error):
        return "above the band"
    return "within, near" if 0.8 < point.seconds / expected.seconds < 1.25 else "within"


def posted(row: list[str], folder: Path) -> str:
    name, boxes, ranks, collective, size, busbw = row[:6]
    per_byte = un.bandwidths(collective, int(ranks), 1, 1.0)
    blocks = int(ranks) if collective in ("allgather", "reduce-scatter") else 1
    assert per_byte["busbw"] is not None
    # Bus bandwidth is proportional to bytes / seconds, so that of one byte in one second is the factor.
    seconds = per_byte["busbw"] * int(size) / blocks / float(busbw)
    point = Measured(collective, int(ranks), int(boxes), int(size), seconds)
    is_preset = name.startswith("preset ")
    machine = un.machine(name.split()[1]) if is_preset else un.import_machine(folder / name, boxes=int(boxes))
    try:
        found, notes = expected_times(machine, [point], library_of(machine, None))
    except un.Error as refused:
        print(f"  {name}, {boxes} boxes: {refused}")
        return "no expected time"
    verdict = judged(point, found.get(key_of(point)))
    of = found[key_of(point)]
    ratio = point.seconds / of.seconds
    print(f"  {name}, {boxes} boxes, {collective}: {verdict}, {ratio:.2f} x expected, band {1 + of.error:.2f} {notes}")
    return verdict


if __name__ == "__main__":
    main()
