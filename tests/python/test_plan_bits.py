"""`unisono plan -o FILE.plan` stores an allreduce after which all ranks have the same bits."""

from pathlib import Path

import pytest
import unisono as un

from .conftest import call, written

#: On seven ranks dissemination by single exchanges takes the fewest messages in sequence.
MACHINE = """
name = "pairs"
kind = "endpoint"
model = "pipelining-postal"
placement = "block"
alpha_ns = 6290
alpha_p_ns = 837
alpha_r_ns = 6290
beta_ns_per_byte = 0.12
gamma_ns_per_byte = 0.07
"""


@pytest.fixture
def machine(tmp_path: Path) -> str:
    """Writes a machine whose fastest candidate gives ranks different bits."""
    path = written(tmp_path / "pairs.toml", MACHINE)
    best = un.plan("allreduce", str(path), shape=7, bytes="4KiB")
    assert (best.algorithm, best.schedule.verify().repeatable) == ("dissemination", False)
    return str(path)


def options(machine: str) -> list[str]:
    return ["plan", "allreduce", "--machine", machine, "--ranks", "7", "--bytes", "4KiB"]


def stored(path: Path) -> tuple[str | None, bool | None]:
    [row] = un.load_plans(path)
    return row["algorithm"], row["repeatable"]


def test_the_file_holds_a_schedule_with_the_same_bits_on_all_ranks(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    done = call(*options(machine), "--explain", "-o", str(path))
    algorithm, repeatable = stored(path)
    assert done.code == 0
    assert algorithm != "dissemination"
    assert repeatable
    assert f"so the plan file holds {algorithm}" in done.err


def test_unlike_bits_keeps_the_first_candidate(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    done = call(*options(machine), "--unlike-bits", "-o", str(path))
    assert stored(path) == ("dissemination", False)
    assert "unlike" not in done.err


def test_a_named_algorithm_is_kept_with_a_note(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    done = call(*options(machine), "--algorithm", "dissemination", "--param", "ways=1", "--explain", "-o", str(path))
    assert stored(path) == ("dissemination", False)
    assert "--unlike-bits permits more" in done.err


def test_sums_that_are_not_rounded_take_the_first_candidate(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    done = call(*options(machine), "--dtype", "i32", "-o", str(path))
    assert stored(path) == ("dissemination", False)
    assert "bits" not in done.err
