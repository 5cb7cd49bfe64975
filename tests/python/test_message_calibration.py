"""Machines that are fitted to logs of MPI: the prices of random machines are found, and other logs are refused."""

import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.logs.message_calibration import OF_MPI
from unisono.logs.rows import WINDOW
from unisono.planning.libraries import library_choice

from .conftest import call, written
from .posted_logs import osu_log

SIZES = [4 << power for power in range(0, 21, 2)]
#: The names of OSU's benchmarks.
NAMES = {
    "allgather": "Allgather",
    "allreduce": "Allreduce",
    "alltoall": "All-to-All Personalized Exchange",
    "barrier": "Barrier",
    "broadcast": "Broadcast",
}


def microseconds(machine: un.Machine, kind: str, ranks: int, size: int, library: str) -> float:
    """Returns the time of a library's own choice; ``size`` is counted as in MPI."""
    on = un.machine(machine, shape=ranks)
    found = library_choice(kind, on, 0 if kind == "barrier" else size // 4, library=library)["seconds"]
    assert found is not None
    return found * 1e6


def one_way(description: dict[str, Any], size: int) -> float:
    """Returns the microseconds of a message, by the definition of the model."""
    at = [one for one in description.get("protocols", []) if one["from_bytes"] <= size]
    prices = description | (at[-1] if at else {})
    latency = prices["alpha_p_ns"] + prices["alpha_r_ns"] if "alpha_r_ns" in prices else prices["alpha_ns"]
    return (latency + size * prices["beta_ns_per_byte"]) * 1e-3


def stream(description: dict[str, Any], size: int) -> float:
    """Returns the bandwidth in MB/s of a window of messages with an answer of 4 bytes."""
    every = (description["alpha_r_ns"] + size * description["beta_ns_per_byte"]) * 1e-3
    return WINDOW * size / (WINDOW * every + description["alpha_p_ns"] * 1e-3 + one_way(description, 4))


def drawn(some: random.Random, model: str, *, has_protocol: bool) -> dict[str, Any]:
    """Returns a random machine; long messages have a longer latency and more bandwidth."""
    alpha, beta, gamma = some.uniform(3e3, 3e4), 10 ** some.uniform(-1, 0.3), 10 ** some.uniform(-1, 0)
    made: dict[str, Any] = {"name": "drawn", "kind": "endpoint", "model": model}
    key = "alpha_ns" if model == "hockney" else "alpha_p_ns"
    made |= {key: alpha, "beta_ns_per_byte": beta, "gamma_ns_per_byte": gamma}
    made |= {"alpha_r_ns": some.uniform(0.2, 0.8) * alpha} if model != "hockney" else {}
    limit = some.choice([1 << 10, 1 << 14, 1 << 16])
    longer = {"from_bytes": limit, key: alpha * some.uniform(2, 4) + beta * limit, "beta_ns_per_byte": beta / 3}
    return made | ({"protocols": [longer]} if has_protocol else {})


@pytest.mark.parametrize("library", OF_MPI)
@pytest.mark.parametrize("model", ["hockney", "pipelining-postal"])
def test_the_prices_of_a_random_machine_are_found(model: str, library: str, tmp_path: Path) -> None:
    some = random.Random(f"{model} {library}")
    for has_protocol in (False, True):
        made, ranks = drawn(some, model, has_protocol=has_protocol), some.choice([4, 6, 8, 16])
        on = un.machine(made)
        logs = {"latency": osu_log("", [(size, one_way(made, size)) for size in SIZES]).replace("  ", " ")}
        for kind, name in NAMES.items():
            if library == "openmpi" and kind == "barrier" and ranks & (ranks - 1):
                continue
            sizes = [0] if kind == "barrier" else SIZES[: 8 if kind in ("allgather", "alltoall") else None]
            rows = [(size, microseconds(on, kind, ranks, size, library)) for size in sizes]
            logs[kind] = osu_log(name, rows)
            if kind == "barrier":
                logs[kind] = f"# OSU MPI Barrier Latency Test v7.1\n# Avg Latency(us)\n{rows[0][1]:.2f}\n"
        words = [word for name, text in logs.items() for word in ("--from", str(written(tmp_path / name, text)))]
        ran = call(
            "calibrate", *words, "--as", library, "--ranks", str(ranks), "-o", str(tmp_path / "m.toml"), "--json"
        )
        assert ran.code == 0, ran.err
        found = ran.json
        assert found["model"] == model
        assert max(abs(one["error"]) for one in found["residuals"]) < 0.02
        assert len(found.get("protocols", [])) == len(made.get("protocols", []))
        for one, other in zip([made, *made.get("protocols", [])], [found, *found.get("protocols", [])], strict=True):
            assert {key: other[key] for key in one if "_ns" in key or key == "from_bytes"} == pytest.approx(
                {key: one[key] for key in one if "_ns" in key or key == "from_bytes"}, rel=0.02
            )
        # The file predicts the logs.
        again = un.machine(str(tmp_path / "m.toml"))
        size = some.choice(SIZES)
        assert microseconds(again, "allreduce", ranks, size, library) == pytest.approx(
            microseconds(on, "allreduce", ranks, size, library), rel=0.02
        )
