"""Choices from a part of measurements: the reader of PICO's format, the belief's algebra, and regret."""

import json
import random
from itertools import permutations
from pathlib import Path
from statistics import NormalDist, median

import numpy as np
import pytest
from unisono import InputError
from unisono.cli import main
from unisono.tuning.choosing import NOISE, Posterior, cross_validate
from unisono.tuning.measurements import Point, read_pico

HEAD = "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib,gpu_awareness,notes\n"
#: Latencies in ns and ns a byte of each algorithm; the best algorithm depends on the size.
ALGORITHMS = {"short": (1e4, 2.0), "middle": (2e4, 0.6), "long": (8e4, 0.3), "never_over": (2e5, 3.0)}


def write(folder: Path, nodes: tuple[int, ...] = (4, 8, 16)) -> Path:
    """Writes results of one system in PICO's format, with times of `ALGORITHMS` by formula."""
    rows = [f"2025,{test},{count},1,ALLREDUCE,OMPI,no,null\n" for test, count in enumerate(nodes)]
    (folder / "small_metadata.csv").write_text(HEAD + "".join(rows))
    for test, count in enumerate(nodes):
        at = folder / "small" / "2025" / str(test)
        at.mkdir(parents=True)
        for name, (alpha, beta) in ALGORITHMS.items():
            for elements in (8, 512, 8192, 65536, 1 << 20):
                time = int(alpha * np.log2(count) + beta * 4 * elements)
                # The first fifth of the iterations is warm-up.
                lines = [10 * time] * 2 + [time] * 8
                (at / f"{elements}_{name}_int32.csv").write_text("highest\n" + "\n".join(map(str, lines)) + "\n")
        (at / "16_nccl_tree.csv").write_text("highest\n1\n2\n")
    return folder


def test_reads_points(tmp_path: Path) -> None:
    points, passed = read_pico(write(tmp_path))
    assert (len(points), passed) == (3 * 4 * 5, 3)
    point = next(p for p in points if (p.ranks, p.bytes, p.algorithm) == (8, 2048, "never_over"))
    expected = int(2e5 * 3 + 3 * 2048) * 1e-9
    assert (point.system, point.collective) == ("small", "allreduce")
    assert point.seconds == pytest.approx(expected)


def test_fugaku_has_shapes_and_a_last_sentence(tmp_path: Path) -> None:
    (tmp_path / "f_metadata.csv").write_text(HEAD + "t,0,2x2x4,1,BCAST,FJMPI,no,null\n")
    (tmp_path / "f/t/0").mkdir(parents=True)
    (tmp_path / "f/t/0/8_default-ring_int32.csv").write_text("highest\n100\n300\n100\n500\nAverage runtime: 0.1\n")
    (point,) = read_pico(tmp_path)[0]
    assert (point.ranks, point.bytes) == (16, 32)
    assert [point.seconds, point.again] == pytest.approx([1e-7, 4e-7])


def test_a_fifth_of_the_iterations_warms_up(tmp_path: Path) -> None:
    draw = random.Random(3)
    (tmp_path / "s_metadata.csv").write_text(HEAD + "t,0,4,1,BCAST,OMPI,no,null\n")
    (tmp_path / "s/t/0").mkdir(parents=True)
    for count in range(2, 32):
        times = [draw.randrange(1, 10**6) for _ in range(count)]
        (tmp_path / "s/t/0/8_ring_int32.csv").write_text("\n".join(["highest", *map(str, times)]))
        (point,) = read_pico(tmp_path)[0]
        later = [time * 1e-9 for number, time in enumerate(times, start=1) if number > count // 5]
        assert [point.seconds, point.again] == pytest.approx([median(later[::2]), median(later[1::2])])


def test_observations_are_those_of_gaussian_regression() -> None:
    """Observing one value at a time gives the same result as conditioning on all at once."""
    names = ("a", "b", "c")
    points = [Point("s", (), "t", "allreduce", 4, 4 << size, name, 1, 1) for size in range(3) for name in names]
    belief = Posterior(points)
    prior, covariance = belief.mean.copy(), belief.covariance.copy()
    seen, values = [0, 4, 7], np.array([-9.0, -8.0, -11.0])
    for at, value in zip(seen, values, strict=True):
        belief.observe(at, value)
    inner = covariance[np.ix_(seen, seen)] + NOISE**2 * np.eye(3)
    expected = prior + covariance[:, seen] @ np.linalg.solve(inner, values - prior[seen])
    assert belief.mean == pytest.approx(expected, rel=1e-9)
    left = covariance - covariance[:, seen] @ np.linalg.solve(inner, covariance[seen])
    assert belief.covariance == pytest.approx(left, abs=1e-9)


def test_the_next_point_has_the_greatest_expected_improvement_over_the_choice_of_its_cell() -> None:
    """The covariances with choices, which observations update, give the gains of the definition."""
    points = [
        Point("s", (), f"{collective}{ranks}", collective, ranks, 4 << size, name, 1, 1)
        for collective in ("bcast", "reduce")
        for ranks in (4, 8)
        for size in range(0, 12, 4)
        for name in ("ring_one", "ring_two", "tree")[: 2 + size % 8 // 4]
    ]
    belief, draw = Posterior(points), random.Random(7)
    for _ in range(len(points)):
        gains = np.full(len(points), -1.0)
        for cell, choice in zip(belief.cells, belief.choices(), strict=True):
            for at in cell[cell != choice]:
                deviation = np.sqrt(np.array([1, -2, 1]) @ belief.covariance[[at, at, choice], [at, choice, choice]])
                z = (belief.mean[choice] - belief.mean[at]) / deviation
                gains[at] = deviation * (NormalDist().pdf(z) + z * NormalDist().cdf(z))
            gains[choice] = gains[cell].max()
        own = belief.covariance.diagonal()
        gains = np.where(belief.seen, -1, gains * np.sqrt(own / (own + NOISE**2)))
        at = belief.best_next()
        assert gains[at] == pytest.approx(gains.max(), abs=1e-6)
        belief.observe(at, draw.uniform(-11, -8))


def test_a_point_is_faster_with_the_probability_of_the_difference() -> None:
    points = [Point("s", (), "t", "allreduce", 4, 4 << size, name, 1, 1) for size in range(3) for name in ("a", "b")]
    belief, draw = Posterior(points), random.Random(5)
    for seen in (None, 1, 4):
        if seen is not None:
            belief.observe(seen, draw.uniform(-11, -8))
        for one, other in permutations(range(len(points)), 2):
            difference = np.zeros(len(points))
            difference[[one, other]] = -1, 1
            spread = np.sqrt(difference @ belief.covariance @ difference)
            expected = NormalDist().cdf(float(difference @ belief.mean / spread))
            assert belief.faster(one, other) == pytest.approx(expected, abs=1e-6)


def test_more_measurements_choose_as_well_as_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points, _ = read_pico(write(tmp_path))
    (all_,) = cross_validate(points, 1)
    assert all(value == pytest.approx(0, abs=1e-9) for value, _ in all_.cells)
    (quarter,) = cross_validate(points, 0.25)
    assert (quarter.points, quarter.measured, len(quarter.cells)) == (60, 15, 15)
    # The same algorithm everywhere, without measurements, would be worse.
    fixed = min(
        np.mean([p.again / min(q.again for q in points if (q.test, q.bytes) == (p.test, p.bytes)) for p in chosen])
        for name in ALGORITHMS
        for chosen in [[p for p in points if p.algorithm == name]]
    )
    assert np.exp(np.mean([value for value, _ in quarter.cells])) < 1 + (fixed - 1) / 4
    assert main(["tune", "--from", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed_over"] == 3
    assert report["systems"][0]["measured"] == 15


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "small_metadata.csv").unlink(), "has no file '<system>_metadata.csv'"),
        (lambda folder: (folder / "small_metadata.csv").write_text("a,b\n"), "column 'timestamp' is missing"),
        (lambda folder: (folder / "small_metadata.csv").write_text(HEAD + "../x,0,4,1,A,B,no,\n"), "line 2"),
        (lambda folder: (folder / "small").rename(folder / "other"), "have to be unpacked"),
    ],
)
def test_refuses_other_folders(tmp_path: Path, break_it: object, message: str) -> None:
    break_it(write(tmp_path))  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        read_pico(tmp_path)
    with pytest.raises(InputError, match="share"):
        cross_validate([], 0)
