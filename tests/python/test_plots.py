"""Pictures and tables of sweeps: whole, and the same bytes for the same input."""

import csv
import io

import numpy as np
import pytest
import unisono as un
from unisono.base.inputs import parse_bytes
from unisono.base.letters import letters
from unisono.base.reports import SweepPoint
from unisono.base.tables import sweep_csv
from unisono.pictures import plots


def points() -> list[SweepPoint]:
    return un.sweep("allreduce", "wse2", shapes=[4, 8, 16], elements=[1, 2, 4, 8])


def test_speedup_map_is_the_same_png_every_time() -> None:
    image = plots.speedup_map(points(), "AllReduce")
    assert image.startswith(b"\x89PNG")
    assert image == plots.speedup_map(points(), "AllReduce")


def test_speedup_map_of_one_point_without_time() -> None:
    (point,) = un.sweep("allreduce", "wse2", shapes=[1], elements=[0])
    assert plots.speedup_map([point], "nothing to do").startswith(b"\x89PNG")


def test_optimality_maps() -> None:
    ratios = {"chain": np.linspace(1, 6, 15 * 4).reshape(15, 4), "auto-gen": np.full((15, 4), 1.2)}
    assert plots.optimality_maps(ratios, [1, 2, 4, 8], "Reduce").startswith(b"\x89PNG")


def test_model_and_runs() -> None:
    panel = plots.Panel("reduce", "PEs", {"chain": [(4, 10.0, 11), (8, 20.0, None)], "star": [(4, 12.0, None)]})
    image = plots.model_and_runs([panel, panel], "two")
    assert image.startswith(b"\x89PNG")
    assert image == plots.model_and_runs([panel, panel], "two")


def test_table_reads_back() -> None:
    swept = points()
    rows = list(csv.DictReader(io.StringIO(sweep_csv(swept))))
    assert [float(row["cycles"]) for row in rows] == [point["cycles"] for point in swept]
    assert [row["best"] for row in rows] == [point["best"] for point in swept]


def test_letters_are_distinct() -> None:
    names = ["star", "chain", "snake", "swing", "sweep", "s", "two-phase", "two-phase-searched", "tree"]
    given = letters(names)
    assert list(given) == sorted(names)
    assert len(set(given.values())) == len(names)
    assert given["snake"] == "N"


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("4096", 4096), ("64KiB", 65536), ("1MB", 10**6), (" 2 GiB ", 2**31), ("8b", 8)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size
