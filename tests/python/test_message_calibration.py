"""Machines that are fitted to logs of MPI: the prices of random machines are found, and other logs are refused."""

import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.logs import message_calibration
from unisono.logs.message_calibration import OF_MPI
from unisono.logs.rows import WINDOW
from unisono.planning.libraries import library_choice

from .conftest import call, refusal, written
from .posted_logs import imb_log, osu_log

SIZES = [4 << power for power in range(0, 21, 2)]
#: The names of OSU's benchmarks.
NAMES = {
    "allgather": "Allgather",
    "allreduce": "Allreduce",
    "alltoall": "All-to-All Personalized Exchange",
    "barrier": "Barrier",
    "broadcast": "Broadcast",
}
NCCL = "op,gpus,bytes,time_us\nallreduce,4,8,9.10\n"


def microseconds(on: un.Machine, kind: str, size: int, library: str) -> float:
    """Returns the time of a library's own choice; ``size`` is counted as in MPI."""
    found = library_choice(kind, on, 0 if kind == "barrier" else size // 4, library=library)["seconds"]
    assert found is not None
    return found * 1e6


def one_way(description: dict[str, Any], size: int) -> float:
    """Returns the microseconds of a message, by the definition of the model."""
    at = [one for one in description.get("protocols", []) if one["from_bytes"] <= size]
    prices = description | (at[-1] if at else {})
    latency = prices["alpha_p_ns"] + prices["alpha_r_ns"] if "alpha_r_ns" in prices else prices["alpha_ns"]
    return float(latency + size * prices["beta_ns_per_byte"]) * 1e-3


def bandwidth(description: dict[str, Any], size: int) -> float:
    """Returns the MB/s of a stream of messages with an answer of 4 bytes, by the definition of the pipelining model."""
    every = (description["alpha_r_ns"] + size * description["beta_ns_per_byte"]) * 1e-3
    return WINDOW * size / float(WINDOW * every + description["alpha_p_ns"] * 1e-3 + one_way(description, 4))


def drawn(some: random.Random, model: str, *, has_protocol: bool = False) -> dict[str, Any]:
    """Returns a random machine; long messages have a longer latency and more bandwidth."""
    alpha, beta, gamma = some.uniform(3e3, 3e4), 10 ** some.uniform(-1, 0.3), 10 ** some.uniform(-1, 0)
    made: dict[str, Any] = {"name": "drawn", "kind": "endpoint", "model": model}
    key = "alpha_ns" if model == "hockney" else "alpha_p_ns"
    made |= {key: alpha, "beta_ns_per_byte": beta, "gamma_ns_per_byte": gamma}
    made |= {"alpha_r_ns": some.uniform(0.2, 0.8) * alpha} if model != "hockney" else {}
    limit = some.choice([1 << 10, 1 << 14, 1 << 16])
    longer = {"from_bytes": limit, key: alpha * some.uniform(2, 4) + beta * limit, "beta_ns_per_byte": beta / 3}
    return made | ({"protocols": [longer]} if has_protocol else {})


def latency_log(description: dict[str, Any]) -> str:
    """Returns the output of osu_latency on a machine."""
    return osu_log("", [(size, one_way(description, size)) for size in SIZES]).replace("  ", " ")


def bandwidth_log(description: dict[str, Any]) -> str:
    """Returns the output of osu_bw on a machine."""
    rows = "".join(f"{size} {bandwidth(description, size):.2f}\n" for size in SIZES)
    return f"# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n{rows}"


def collective_log(on: un.Machine, kind: str, library: str) -> str:
    """Returns the output of OSU's benchmark of a collective."""
    if kind == "barrier":
        return f"# OSU MPI Barrier Latency Test v7.1\n# Avg Latency(us)\n{microseconds(on, kind, 0, library):.2f}\n"
    sizes = SIZES[:8] if kind in ("allgather", "alltoall") else SIZES
    return osu_log(NAMES[kind], [(size, microseconds(on, kind, size, library)) for size in sizes])


def fitted(folder: Path, logs: dict[str, str], *words: str) -> dict[str, Any]:
    """Returns what `unisono calibrate` prints for logs."""
    given = [word for name, text in logs.items() for word in ("--from", str(written(folder / name, text)))]
    ran = call("calibrate", *given, *words, "-o", str(folder / "m.toml"), "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def prices(description: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in description.items() if "_ns" in key or key == "from_bytes"}


def are_found(made: dict[str, Any], found: dict[str, Any]) -> None:
    for one, other in zip([made, *made.get("protocols", [])], [found, *found.get("protocols", [])], strict=True):
        assert {key: other[key] for key in prices(one)} == pytest.approx(prices(one), rel=0.02)


@pytest.mark.parametrize("library", OF_MPI)
@pytest.mark.parametrize("model", ["hockney", "pipelining-postal"])
@pytest.mark.parametrize("has_protocol", [False, True])
def test_the_prices_of_a_random_machine_are_found(model: str, library: str, has_protocol: bool, tmp_path: Path) -> None:
    some = random.Random(f"{model} {library} {has_protocol}")
    made, ranks = drawn(some, model, has_protocol=has_protocol), some.choice([4, 6, 8, 16])
    on = un.machine(made, shape=ranks)
    # Open MPI's barrier of other numbers of ranks has no equal algorithm here.
    kinds = [kind for kind in NAMES if kind != "barrier" or ranks != 6]
    logs = {"latency": latency_log(made), **{kind: collective_log(on, kind, library) for kind in kinds}}
    found = fitted(tmp_path, logs, "--as", library, "--ranks", str(ranks))
    assert found["model"] == model
    are_found(made, found)
    assert max(abs(one["error"]) for one in found["residuals"]) < 0.02
    assert {one["collective"] for one in found["residuals"]} == {"message", *kinds}
    # The file predicts what the logs have.
    again, size = un.machine(str(tmp_path / "m.toml"), shape=ranks), some.choice(SIZES)
    expected = microseconds(on, "allreduce", size, library)
    assert microseconds(again, "allreduce", size, library) == pytest.approx(expected, rel=0.02)


def test_tests_between_two_ranks_give_the_prices_of_messages_alone(tmp_path: Path) -> None:
    """A ping-pong gives only the sum of alpha_p and alpha_r, and neither of the two tests has a reduction."""
    some = random.Random(3)
    for _ in range(2):
        made = drawn(some, "pipelining-postal")
        ping = fitted(tmp_path, {"latency": latency_log(made)})
        total = made["alpha_p_ns"] + made["alpha_r_ns"]
        assert ping["model"] == "hockney"
        assert ping["alpha_ns"] == pytest.approx(total, rel=0.02)
        assert ping["gamma_ns_per_byte"] == 0
        assert "gamma_ns_per_byte is 0, as nothing else is known" in " ".join(ping["notes"])
        imb = {"imb": "# Benchmarking PingPong\n# #processes = 2\n#bytes #repetitions t[usec] Mbytes/sec\n"}
        imb["imb"] += "".join(f"{size} 1000 {one_way(made, size):.2f} 1.00\n" for size in SIZES)
        assert prices(fitted(tmp_path, imb)) == prices(ping)
        both = fitted(tmp_path, {"latency": latency_log(made), "bw": bandwidth_log(made)})
        are_found(made | {"gamma_ns_per_byte": 0}, both)
        # A machine gives the prices that the logs do not.
        base = made | {"alpha_p_ns": 1.0, "gamma_ns_per_byte": 7.0}
        (tmp_path / "base.toml").write_text(un.machine(base).to_toml())
        kept = fitted(tmp_path, {"latency": latency_log(made)}, "--machine", str(tmp_path / "base.toml"))
        are_found(made | {"gamma_ns_per_byte": 7.0}, kept)


def test_messages_within_nodes_have_prices_of_their_own(tmp_path: Path) -> None:
    some = random.Random(4)
    made, inner = drawn(some, "hockney"), drawn(some, "hockney")
    inner = {"alpha_ns": inner["alpha_ns"] / 9, "beta_ns_per_byte": inner["beta_ns_per_byte"] / 9}
    on = un.machine(made | {"levels": [{"name": "node", "size": 4, **inner}]}, shape=16)
    kinds = ("allreduce", "broadcast", "alltoall")
    logs = {"within": latency_log(inner), "between": latency_log(made)}
    logs |= {kind: collective_log(on, kind, "mpich") for kind in kinds}
    found = fitted(tmp_path, logs, "--as", "mpich", "--ranks", "16", "--per-node", "4,1,4,4,4")
    are_found(made, found)
    assert found["levels"][0]["size"] == 4
    assert prices(found["levels"][0]) == pytest.approx(inner, rel=0.02)
    # One collective does not tell the levels apart, and the file has none.
    alone = fitted(tmp_path, {"allreduce": logs["allreduce"]}, "--as", "mpich", "--ranks", "16", "--per-node", "4")
    assert "levels" not in alone
    assert "add osu_latency of two ranks of one node" in " ".join(alone["notes"])


def test_the_slowest_rank_of_a_rooted_collective_counts(tmp_path: Path) -> None:
    """Means over ranks of a reduce are predicted, and not fitted."""
    made = drawn(random.Random(5), "hockney")
    on = un.machine(made, shape=8)
    rows = [(size, microseconds(on, "reduce", size, "mpich")) for size in SIZES]
    full = "# OSU MPI Reduce Latency Test v7.4\n# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us)  Iterations\n"
    full += "".join(f"{size} {time / 3:.2f} {time / 9:.2f} {time:.2f} 100\n" for size, time in rows)
    imb = imb_log(8, {"Reduce": rows}).replace("t_avg", "t_mean").replace("t_max", "t_avg").replace("t_mean", "t_max")
    for text in (full, imb):
        words = ("--as", "mpich", *(("--ranks", "8") if text == full else ()))
        are_found(made, fitted(tmp_path, {"latency": latency_log(made), "reduce": text}, *words))
    short = osu_log("Reduce", [(size, time / 3) for size, time in rows])
    mean = fitted(tmp_path, {"latency": latency_log(made), "reduce": short}, "--as", "mpich", "--ranks", "8")
    are_found(made | {"gamma_ns_per_byte": 0}, mean)
    assert {one["fitted"] for one in mean["residuals"] if one["collective"] == "reduce"} == {False}


ALLREDUCE = osu_log("Allreduce", [(4, 20.0), (1 << 20, 3000.0)])
LATENCY = osu_log("", [(4, 2.0), (1 << 20, 300.0)]).replace("  ", " ")
AS = ("--as", "openmpi")


@pytest.mark.parametrize(
    ("logs", "words", "needed"),
    [
        ((ALLREDUCE,), ("--ranks", "8"), "name it with --as openmpi or --as mpich"),
        ((ALLREDUCE,), AS, "does not state the number of ranks, as logs of the OSU benchmarks do not; give --ranks"),
        ((ALLREDUCE,), (*AS, "--ranks", "8,4"), "--ranks has 2 numbers for 1 logs; give one for all, or one for each"),
        ((ALLREDUCE,), (*AS, "--ranks", "0"), "--ranks has 0; accepted are 1 to"),
        ((ALLREDUCE,), (*AS, "--ranks", "1"), "all are of one rank"),
        ((LATENCY,), ("--ranks", "8"), "each of these files states its ranks or has two by its test; drop it"),
        ((ALLREDUCE,), ("--as", "nccl"), "--as is 'nccl', and logs are fitted by the rules of mpich or openmpi"),
        ((ALLREDUCE, NCCL), (*AS, "--ranks", "8"), "is a log of GPUs, and others are of MPI"),
        ((NCCL,), AS, "is a log of GPUs"),
        ((NCCL,), ("--ranks", "8"), "--ranks and --per-node are for logs of MPI"),
        ((ALLREDUCE, ALLREDUCE.replace("MPI A", "MPI-CUDA A")), (*AS, "--ranks", "8"), "in the memory of GPUs (CUDA)"),
        ((ALLREDUCE, ALLREDUCE), (*AS, "--ranks", "8", "--per-node", "4,2"), "has 4 ranks on a node, and"),
        ((osu_log("Allreduce", [(8, 9.0)]),), (*AS, "--ranks", "8"), "all times are of 8 bytes"),
        ((osu_log("Allreduce", [(8, 9.0), (1 << 20, 9.0)]),), (*AS, "--ranks", "8"), "beta_ns_per_byte would be 0"),
        ((osu_log("Allgatherv", [(8, 9.0)]),), (*AS, "--ranks", "8"), "'Allgatherv' is left out"),
        (
            (LATENCY,),
            ("--machine", "fattree-small"),
            "fattree-small is of kind network, and logs of MPI",
        ),
        (
            (ALLREDUCE.replace("Latency(us)", "Latency(us)  Validation").replace("20.00", "20.00 Fail"),),
            (*AS, "--ranks", "8"),
            "the result is wrong",
        ),
    ],
)
def test_other_logs_are_refused_by_name(
    logs: tuple[str, ...], words: tuple[str, ...], needed: str, tmp_path: Path
) -> None:
    given = [word for at, text in enumerate(logs) for word in ("--from", str(written(tmp_path / f"{at}.log", text)))]
    assert needed in refusal("calibrate", *given, *words, "-o", str(tmp_path / "m.toml"))
    assert not (tmp_path / "m.toml").exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--as", "mpich"), ("--ranks", "8"), ("--per-node", "2"), ("--points", "2")]
)
def test_options_of_logs_are_refused_without_logs(option: str, value: str) -> None:
    assert f"{option} goes with --from LOG" in refusal("calibrate", option, value, "-o", "m.toml")


def test_a_poor_fit_is_named_in_the_file_and_by_plans(tmp_path: Path) -> None:
    """Times that no machine has: sizes have one of three latencies in turn."""
    for factors, is_poor in (([1, 30, 900], True), ([1, 1, 1], False)):
        rows = [(size, factors[at % 3] * (1 + size / 4096)) for at, size in enumerate(SIZES)]
        found = fitted(tmp_path, {"latency": osu_log("", rows).replace("  ", " ")})
        assert found["fit"]["poor"] == (["messages"] if is_poor else [])
        assert ("poor fit: half of the times" in " ".join(found["notes"])) is is_poor
        planned = call("plan", "broadcast", "--machine", str(tmp_path / "m.toml"), "--ranks", "4", "--bytes", "64")
        assert ("poor fit (messages)" in planned.out + planned.err) is is_poor


@pytest.mark.parametrize("most", [0.0, 60.0])
def test_a_long_fit_is_announced(most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_calibration, "_LONG", most)
    log = written(tmp_path / "latency.txt", latency_log(drawn(random.Random(5), "hockney")))
    ran = call("calibrate", "--from", str(log), "-o", str(tmp_path / "m.toml"))
    assert ran.code == 0, ran.err
    assert ("one prediction of these" in ran.err) == (most == 0), ran.err
