"""Other tools' formats without those tools: MSCCL XML written and read, and tables for libraries."""

import json
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import ROOT, call, json_of, refusal, written

MACHINE = 'name = "m"\nkind = "endpoint"\nmodel = "hockney"\nalpha_ns = 1000\nbeta_ns_per_byte = 1\n'
#: A table with all entries that a table of MPICH must have, in place of the library's file.
MPICH: dict[str, Any] = {
    f"collective={name}": {"comm_type=intra": {"algorithm=MPIR_own": {}}}
    for name in ("allreduce", "bcast", "iallreduce", "neighbor_allgather")
}


def table(folder: Path, *rows: dict[str, Any]) -> str:
    path = written(folder / "table.json", json.dumps({"unisono_table": 1, "rows": rows}))
    return str(path)


def ring(**changed: Any) -> dict[str, Any]:
    row = {"collective": "allreduce", "ranks": 4, "first_bytes": 0, "last_bytes": None, "algorithm": "ring"}
    return row | changed


@pytest.fixture
def machine(tmp_path: Path) -> str:
    path = written(tmp_path / "m.toml", MACHINE)
    return str(path)


def test_msccl_xml_there_and_back(tmp_path: Path, machine: str) -> None:
    size = ["--machine", machine, "--ranks", "4", "--elements", "64"]
    report = json_of(
        "emit", "allreduce", *size, "--algorithm", "ring", "--format", "msccl-xml", "-o", str(tmp_path / "out")
    )
    (file,) = report["files"]
    back = json_of("import", file, "--format", "msccl-xml", "-o", str(tmp_path / "back.sched"))
    assert back["collective"] == "allreduce"
    assert (back["elements"], back["nodes"]) == (64, 4)
    proof = json_of("verify", str(tmp_path / "back.sched"))
    assert proof["complete"]
    assert proof["deadlock_free"]
    plan = un.plan("allreduce", un.machine(machine, 4), elements=64, algorithm="ring")
    again = un.import_schedule(file, "msccl-xml")
    assert again.verify().expression_class == plan.schedule.verify().expression_class


def test_an_import_takes_what_the_file_leaves_open(tmp_path: Path, machine: str) -> None:
    plan = un.plan("broadcast", un.machine(machine, 3), elements=8, algorithm="binomial")
    (name,) = un.emit(plan.schedule, "msccl-xml", tmp_path / "out")
    file, out = str(tmp_path / "out" / name), str(tmp_path / "b.sched")
    asked = json_of("import", file, "--format", "msccl-xml", "--bytes", "1KiB", "--dtype", "f64", "-o", out)
    assert (asked["elements"], asked["dtype"]) == (128, "f64")
    assert json_of("verify", out)["complete"]
    refused = refusal("import", file, "--format", "xml", "-o", out)
    assert "'xml' is not a format to import; accepted are msccl-xml" in refused
    damaged = written(tmp_path / "damaged.xml", Path(file).read_text().replace('type="s"', 'type="q"', 1))
    ran = refusal("import", str(damaged), "--format", "msccl-xml", "-o", out)
    assert f'{damaged}: line 4: type="q" is not a step' in ran


def test_a_plan_file_is_a_table(tmp_path: Path, machine: str) -> None:
    among = un.machine(machine, 4)
    short = un.plan("allreduce", among, elements=64, algorithm="recursive-doubling")
    long = un.plan("allreduce", among, elements=65536, algorithm="ring")
    un.save_plans([(short, 0, 4095), (("allreduce", 4), 4096, 8191), (long, 8192, None)], tmp_path / "t.plan")
    out = tmp_path / "rules"
    command = ["export", str(tmp_path / "t.plan"), "--format", "openmpi-rules", "-o", str(out), "--no-check"]
    assert json_of(*command)["rows"] == 2
    assert "\n4 3\n0 3 0 0\n4096 0 0 0\n8192 4 0 0\n5 1\n" in out.read_text()
    (tmp_path / "t.plan").write_bytes((tmp_path / "t.plan").read_bytes()[:-3])
    assert "t.plan" in refusal(*command)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("openmpi-rules", "\n4 1\n0 4 0 0\n5 1\n0 0 0 0\n"),
        ("openmpi-han", "\n2\n1\n2\n4\n1 1\n0 han\n4 1\n0 tuned\n5 1\n0 han\n6 1\n0 han\n"),
        ("openmpi-json", '"msg_size_max": "inf", "alg": "ring"'),
        ("ucc", "UCC_TL_UCP_TUNE=allreduce:0-inf:host:[4]:@ring\n"),
        ("nccl-tuner-csv", "\nallreduce,0,18446744073709551615,ring,simple,0,-1,4\n"),
        ("ncclx-csv", "\nallreduce,*,ring,simple,-1,1,4\nallreduce,*,ring,simple,-1,2,2\n"),
    ],
)
def test_every_format_is_written(tmp_path: Path, target: str, says: str) -> None:
    out = tmp_path / "out"
    given = table(tmp_path, ring(), ring(ranks=5, algorithm="elimination"))
    report = json_of("export", given, "--format", target, "-o", str(out), "--no-check")
    assert report["file"] == str(out)
    assert report["rows"] == 1
    assert report["left"] == ["allreduce on 5 ranks, 0 to any bytes, elimination: it has no counterpart there"]
    assert any(str(out) in word for word in report["load"])
    assert says in out.read_text()


@pytest.mark.parametrize("target", ["nccl-tuner-csv", "ncclx-csv"])
@pytest.mark.parametrize("per_node", [None, 4, 8, 16])
@pytest.mark.parametrize(
    ("algorithm", "theirs"),
    [
        ("nccl-tree", "tree"),
        ("in-network", "nvls"),
        ("nccl-nvls", "nvls"),
        ("nccl-collnet-chain", "collnet_chain"),
        ("nccl-nvls-tree", "nvls_tree"),
    ],
)
def test_rows_that_need_a_reducing_network_are_for_one_node(
    tmp_path: Path, algorithm: str, theirs: str, per_node: int | None, target: str
) -> None:
    """The file has the lines that a plan for a network without CollNet may have."""
    out = tmp_path / "out"
    given = table(tmp_path, ring(), ring(ranks=16, per_node=per_node, algorithm=algorithm))
    report = json_of("export", given, "--format", target, "-o", str(out), "--no-check")
    skips = per_node in (4, 8) and theirs not in ("tree", "nvls_tree")
    assert (report["rows"], len(report["left"])) == ((1, 1) if skips else (2, 0))
    assert not skips or f" on {16 // (per_node or 16)} nodes unless the network reduces" in report["left"][0]
    lines = [line for line in out.read_text().splitlines() if line.startswith("allreduce,")]
    assert skips != any(f",{theirs}," in line for line in lines)
    if skips:
        alone = table(tmp_path, ring(ranks=16, per_node=per_node, algorithm=algorithm))
        ran = call("export", alone, "--format", target, "-o", str(tmp_path / "none"), "--no-check")
        assert ran.code == 1
        assert "no row can be expressed; allreduce on 16 ranks, 0 to any bytes" in ran.err
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("conditions", ["openmpi 5.0.11 yield shared", "mpich 5.0.2 spin own"])
@pytest.mark.parametrize("target", ["openmpi-rules", "openmpi-han", "openmpi-json", "ucc"])
def test_conditions_of_rows_are_stated(tmp_path: Path, target: str, conditions: str) -> None:
    """Notes state the conditions of rows, because a library's file does not store them."""
    plan = un.plan("allreduce", "paper-sim", shape=4, elements=1024, algorithm="ring")
    un.save_plans([(plan, 0, 4095, None, conditions), (plan, 4096, None)], tmp_path / "t.plan")
    out = ["-o", str(tmp_path / "rules"), "--no-check"]
    notes = json_of("export", str(tmp_path / "t.plan"), "--format", target, *out)["notes"]
    about = [note for note in notes if conditions in note]
    assert len(about) == 1
    is_other = conditions.startswith("mpich") and target.startswith("openmpi")
    assert ("measure under openmpi" in about[0]) == is_other
    assert ("serves them under all conditions" in about[0]) != is_other


def test_mpich_takes_the_table_it_is_given(tmp_path: Path) -> None:
    library = tmp_path / "own.json"
    tree = MPICH | {"collective=allgather": {"algorithm=MPIR_Allreduce_intra_ring": {}}}
    library.write_text(json.dumps(tree))
    out = tmp_path / "out.json"
    command = ["export", table(tmp_path, ring()), "--format", "mpich-json", "-o", str(out), "--no-check", "--library"]
    report = json_of(*command, str(library))
    assert "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE=0" in report["load"]
    assert f"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={out}" in report["load"]
    written = json.loads(out.read_text())
    assert list(written) == list(tree)
    assert list(written["collective=allreduce"]["comm_type=intra"]) == ["comm_size<=3", "comm_size<=4", "comm_size=any"]
    library.write_text(json.dumps(MPICH))
    ran = call(*command, str(library))
    assert ran.code == 1
    assert "this library has no algorithm MPIR_Allreduce_intra_ring" in ran.err


def test_nothing_to_say_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = table(tmp_path, ring(algorithm="library"))
    ran = call("export", given, "--format", "ucc", "-o", str(out), "--json")
    assert ran.code == 1
    assert ran.json["file"] is None
    assert "the table leaves every call to the library" in ran.json["refused"]
    assert not out.exists()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (ring(ranks=0), "row 0: ranks is 0; accepted is a whole number from 1"),
        (ring(first_bytes=True), "row 0: first_bytes is True"),
        (ring(collective="alreduce"), "'alreduce' is not a collective"),
        (ring(class_="x"), "row 0 has the key 'class_'"),
        (ring(**{"class": "x"}), "'x' is not a class of operators; accepted are none, commutative, ordered"),
        (ring(last_bytes=5, first_bytes=6), "serves no call"),
        (ring(algorithm=3), "row 0: algorithm is 3; accepted is a name"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    out = tmp_path / "out"
    assert says in refusal("export", table(tmp_path, row), "--format", "ucc", "-o", str(out))
    assert not out.exists()


def test_wrong_tables_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for text, says in [("{", "JSON"), ("[]", 'needs "unisono_table": 1'), ("[" * 9999, "JSON"), ("x", "t.json")]:
        path.write_text(text)
        assert says in refusal("export", str(path), "--format", "ucc", "-o", str(tmp_path / "out"))
    refused = refusal("export", table(tmp_path, ring()), "--format", "hpcx", "-o", str(tmp_path / "out"))
    assert "'hpcx' is not a format of tuning files; accepted are mpich-json, nccl-tuner-csv" in refused


def test_every_format_has_its_section() -> None:
    page = (ROOT / "docs" / "export.md").read_text()
    for unit in un._core.tunings() + un._core.importers():
        assert f"## `{unit['name']}`" in page, unit
        assert unit["summary"]
        assert unit["reference"]


def plan_of(ranks: int, algorithm: str, **params: str) -> un.Plan:
    return un.plan("allreduce", "archer", shape=ranks, elements=48, algorithm=algorithm, params=params or None)


def test_rows_are_written_by_the_name_of_an_equal_schedule(tmp_path: Path) -> None:
    rows = [
        ring(ranks=2, last_bytes=99, algorithm="recursive-multiplying", params={"schedule": "a2"}),
        ring(ranks=2, first_bytes=100, last_bytes=199, algorithm="elimination"),
        ring(ranks=4, last_bytes=99, algorithm="elimination"),
        ring(ranks=4, first_bytes=100, last_bytes=199, algorithm="recursive-multiplying", params={"schedule": "a4"}),
        ring(ranks=4, first_bytes=200),
    ]
    made = un.export(table(tmp_path, *rows), "openmpi-rules", tmp_path / "t.rules")
    assert made["written"] == [0, 1, 4]
    assert made["rows"] == 3
    assert "\n2 2\n0 3 0 0\n200 0 0 0\n" in made["text"].replace("\n100 3 0 0", "")
    assert "on 2 ranks elimination makes the schedule of recursive-doubling" in made["notes"]
    assert [line.split(", ")[-1] for line in made["left"]] == [
        "elimination: it has no counterpart there",
        "recursive-multiplying schedule=a4: it has no counterpart there",
    ]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("entry", un.algorithms("allreduce"), ids=lambda entry: entry["name"])
def test_algorithms_of_one_schedule_prove_alike(entry: dict[str, Any], ranks: int) -> None:
    from unisono.mpi.equal_schedules import other_names

    row = ring(ranks=ranks, last_bytes=4096, algorithm=entry["name"], params={})
    others = other_names(row)
    assert entry["name"] not in others
    for name in others:
        one, other = plan_of(ranks, entry["name"]).schedule.verify(), plan_of(ranks, name).schedule.verify()
        assert one.expression_class == other.expression_class
        # If one algorithm lists another as equal, the other lists the first too.
        assert entry["name"] in other_names({**row, "algorithm": name})
    if ranks == 2 and entry["name"] in ("recursive-doubling", "elimination"):
        assert {"recursive-doubling", "elimination"} - {entry["name"]} <= set(others)


def test_rows_without_an_effect_are_no_evidence(tmp_path: Path) -> None:
    rows = [ring(ranks=2, last_bytes=4095, algorithm="swing"), ring(ranks=2, first_bytes=4096, last_bytes=8191)]
    named = table(tmp_path, *rows)
    report = json_of("export", named, "--format", "openmpi-rules", "-o", str(tmp_path / "t.rules"))
    assert report["checked"].count("allreduce of") == 1
    assert "allreduce of 4096 bytes" in report["checked"] or "allreduce of 4099" in report["checked"]


def test_a_refused_table_names_the_way_to_one_that_is_not(tmp_path: Path) -> None:
    plan = tmp_path / "t.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=8, algorithm="elimination"), 0, None)], plan)
    ran = call("export", str(plan), "--format", "ucc", "-o", str(tmp_path / "ucc"))
    assert ran.code == 1
    assert "'unisono plan COLLECTIVE ... --for ucc'" in ran.err
