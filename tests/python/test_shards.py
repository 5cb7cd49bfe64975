"""Sweeps in shards and on executors give the same points as one job; machines can be sent to other processes."""

import json
import pickle
import signal
import subprocess
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.planning.shards import signed

from .conftest import PROGRAM, call, json_of, refusal, written
from .test_limits import heed, past_the_start

SWEEP = ["sweep", "allreduce", "--machine", "archer", "--shapes", "4,8,12", "--elements", "1,64,4096,65536"]


def points(**options: Any) -> list[Any]:
    return [*un.sweep("allreduce", "archer", shapes=[4, 8, 12], elements=[1, 64, 4096, 65536], **options)]


@pytest.mark.parametrize("count", [1, 2, 5, 12, 13])
def test_shards_are_merged_to_what_one_job_makes(count: int, tmp_path: Path) -> None:
    whole = json_of(*SWEEP, "-o", str(tmp_path / "whole.csv"))
    parts = [str(tmp_path / f"{at}.json") for at in range(1, count + 1)]
    for at, part in enumerate(parts, 1):
        ran = call(*SWEEP, "--shard", f"{at}/{count}", "-o", part)
        assert ran.code == 0, ran.err
    merged = json_of("merge", *reversed(parts), "-o", str(tmp_path / "merged.csv"))
    assert merged["points"] == whole["points"]
    assert (tmp_path / "merged.csv").read_text() == (tmp_path / "whole.csv").read_text()
    assert un.merge_shards([points(shard=(at, count)) for at in range(1, count + 1)]) == points()


def test_what_is_printed_is_the_same(tmp_path: Path) -> None:
    parts = [str(tmp_path / f"{at}.json") for at in (1, 2)]
    for at, part in enumerate(parts, 1):
        call(*SWEEP, "--shard", f"{at}/2", "-o", part)
    assert call("merge", *parts).out == call(*SWEEP).out == call(*SWEEP, "--jobs", "1").out


def test_executors_make_the_same_points() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert points(executor=threads) == points()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert points(executor=processes) == points()


MACHINES = [
    *((preset["name"], {}) for preset in un.machine_presets()),
    ("dgx-h100-x8", {"nodes": 3}), ("piuma", {"nodes": 8, "subset": [0, 2, 5]}), ("archer", {"shape": 9}),
    ("hx2mesh-small", {"failed": ["0-1"]}), ("hx2mesh-small", {"shape": "8x8"}), ("wse2", {"shape": "4x5"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), MACHINES, ids=str)
def test_machines_are_pickled_whole(name: str, options: dict[str, Any]) -> None:
    machine = un.machine(name, **options)
    again = pickle.loads(pickle.dumps(machine))
    assert again.describe() == machine.describe()
    assert (again.name, again.shape, repr(again)) == (machine.name, machine.shape, repr(machine))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda parts: parts[:1], "of 2 shards these are missing: 2"),
        (lambda parts: [parts[0], parts[0]], "is shard 1 of 2, which another file is too"),
        (lambda parts: [parts[0], {**parts[1], "machine": "wse2"}], "a part of another sweep"),
        (lambda parts: [parts[0], {**parts[1], "shard": [2, 3]}], "a part of another sweep"),
        (lambda parts: [parts[0], {**parts[1], "points": parts[1]["points"][1:]}], "shard 2 of 2 has 5 points"),
        (lambda parts: [parts[0], {**parts[1], "points": [{}]}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "shard": [3, 2]}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "lengths": 0}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "lengths": "x"}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "total": 0}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "lengths": 5}], "is a damaged part"),
        (lambda parts: [parts[0], {**parts[1], "collective": []}], "is a damaged part"),
        *(
            (
                lambda parts, key=key, value=value: [{**parts[0], "points": [{**parts[0]["points"][0], key: value}]}],
                "damaged",
            )
            for key, value in (
                ("shape", 7),
                ("seconds", "a"),
                ("params", 3),
                ("best", None),
                ("seconds_by_algorithm", {"a": "b"}),
            )
        ),
        (lambda parts: [{"points": []}], "is no part of a sweep"),
    ],
)
def test_wrong_parts_are_refused(damage: Any, reason: str, tmp_path: Path) -> None:
    made = []
    for at in (1, 2):
        part = tmp_path / f"{at}.json"
        call(*SWEEP, "--shard", f"{at}/2", "-o", str(part))
        made.append(json.loads(part.read_text()))
    paths = []
    for at, contents in enumerate(damage(made)):
        path = written(tmp_path / f"damaged-{at}.json", json.dumps(signed(contents)))
        paths.append(str(path))
    ran = call("merge", *paths)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert reason in ran.err


def test_changed_parts_are_refused(tmp_path: Path) -> None:
    """Any change of a value is refused, also one to another value of its type."""
    part = tmp_path / "part.json"
    call(*SWEEP, "--shard", "1/1", "-o", str(part))
    text = part.read_text()
    assert call("merge", str(part)).code == 0
    changes = [("seconds", -1.0), ("seconds", 1e308), ("cycles", -1), ("elements", -1), ("shape", []), ("best", "x")]
    for key, value in [*changes, ("seconds", float("nan")), ("baseline_ratio", 0.0)]:
        changed = json.loads(text)
        changed["points"][0][key] = value
        part.write_text(json.dumps(changed))
        assert "is a damaged part of a sweep" in refusal("merge", str(part))


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_wrong_shards_are_refused(shard: str, tmp_path: Path) -> None:
    refused = refusal(*SWEEP, "--shard", shard, "-o", str(tmp_path / "p.json"))
    assert "is not a shard" in refused or "not a whole number" in refused
    assert call(*SWEEP, "--shard", "1/2").code == 2
    with pytest.raises(un.InputError, match="the shard is"):
        points(shard=(2, 1))


def test_an_interrupt_ends_work_on_several_cores() -> None:
    long = [
        "sweep",
        "allreduce",
        "--machine",
        "archer",
        "--shapes",
        "2000..64000",
        "--elements",
        "1..1048576",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen([PROGRAM, *long], stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=heed)
    try:
        past_the_start(process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, said
    assert said.decode().strip().splitlines()[-1] == "error: interrupted"


@pytest.mark.parametrize(
    "other",
    [["--dtype", "f64"], ["--op", "max"], ["--algorithms", "ring,swing"], ["--shapes", "4,8,16"],
     ["--model", "hockney"], ["--elements", "1,2,3,4"], ["--baseline", "ring"]],
    ids=" ".join,
)  # fmt: skip
def test_parts_of_other_sweeps_are_told_apart(other: list[str], tmp_path: Path) -> None:
    one, two = str(tmp_path / "1.json"), str(tmp_path / "2.json")
    machine = tmp_path / "m.toml"
    machine.write_text('name = "m"\nkind = "endpoint"\nmodel = "hockney"\nalpha_ns = 1000\nbeta_ns_per_byte = 1\n')
    sweep = [str(machine) if word == "archer" else word for word in SWEEP]
    assert call(*sweep, "--shard", "1/2", "-o", one).code == 0
    changed = [*sweep]
    if other[0] in changed:
        changed[changed.index(other[0]) + 1] = other[1]
    else:
        changed += other
    ran = call(*changed, "--shard", "2/2", "-o", two)
    assert ran.code == 0, ran.err
    assert "is a part of another sweep" in refusal("merge", one, two)


def test_a_table_is_no_part_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "p1.csv").write_text("a,b\n1,2\n")
    assert "p1.csv' is no part of a sweep" in refusal("merge", str(tmp_path / "p1.csv"))
