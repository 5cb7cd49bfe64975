"""Other spellings of names and sizes have the same meaning, and errors propose the nearest name."""

import os
import subprocess

import numpy as np
import pytest
import unisono as un
from click.shell_completion import BashComplete
from hypothesis import given
from hypothesis import strategies as st
from unisono.base import names
from unisono.base.inputs import parse_bytes
from unisono.cli import program

from .conftest import PROGRAM


@pytest.mark.parametrize("name", un.collectives())
def test_collectives_are_found_by_other_spellings(name: str) -> None:
    spellings = {name, name.upper(), name.replace("-", "_"), name.replace("-", ""), f"MPI_{name.capitalize()}"}
    assert {names.collective(spelling) for spelling in spellings} == {name}


@pytest.mark.parametrize(
    ("asked", "found"),
    [("all-reduce", "allreduce"), ("All_Gather", "allgather"), ("all-to-all", "alltoall"), ("Bcast", "broadcast"),
     ("ReduceScatter", "reduce-scatter"), ("reduce_scatter", "reduce-scatter")],
)  # fmt: skip
def test_collectives_as_users_write_them(asked: str, found: str) -> None:
    assert un.plan(asked, "archer", shape=4, elements=4).report()["collective"] == found


@pytest.mark.parametrize("name", un.dtypes())
def test_datatypes_have_the_widths_of_numpy(name: str) -> None:
    same = {"f32": "float32", "f64": "float64", "f16": "float16", "i16": "int16", "i32": "int32", "i64": "int64"}
    if name in same:
        assert names.datatype(same[name]) == names.datatype(np.dtype(same[name])) == name
        assert names.datatype(getattr(np, same[name])) == name
        assert np.dtype(same[name]).itemsize == un.dtypes()[name]
    else:
        assert names.datatype("bfloat16") == name == "bf16"


@pytest.mark.parametrize("word", [float, int, "float", "int", "long", np.dtype(">f8"), "f8", bool])
def test_datatypes_of_which_c_and_numpy_disagree_are_refused(word: object) -> None:
    with pytest.raises(un.InputError, match="datatype"):
        names.datatype(word)


@pytest.mark.parametrize("entry", un.algorithms(), ids=lambda entry: entry["name"])
def test_algorithms_are_found_by_other_spellings(entry: dict[str, str]) -> None:
    assert names.algorithm(entry["name"].replace("-", "_").title()) == entry["name"]


@pytest.mark.parametrize(
    ("ask", "near"),
    [(lambda: un.plan("alreduce", "archer", elements=1), "allreduce"),
     (lambda: un.plan("allreduce", "archr", elements=1), "archer"),
     (lambda: un.plan("allreduce", "archer", elements=1, algorithm="rign"), "ring"),
     (lambda: un.plan("allreduce", "archer", elements=1, op="summ"), "sum"),
     (lambda: un.plan("allreduce", "archer", elements=1, dtype="f23"), None),
     (lambda: un.machine("hx2mesh"), "hx2mesh-small"),
     (lambda: un.machine("H200"), "dgx-h200"),
     (lambda: un.machine("gb200"), "gb200-nvl72"),
     (lambda: un.machine("dgx-b300"), "dgx-b200"),
     (lambda: un.plan("ring", "archer", elements=1), None),
     (lambda: un.sweep("allreduce", "archer", shapes=[4], elements=[1], algorithms=["swimg"]), "swing"),
     (lambda: un.bounds("scater", "archer", shape=4, elements=1), "scatter")],
)  # fmt: skip
def test_slips_are_answered_with_the_nearest_name(ask: object, near: str | None) -> None:
    with pytest.raises(un.InputError) as refused:
        ask()  # type: ignore[operator]
    said = str(refused.value)
    assert (f"(did you mean {near}?)" in said) if near else ("did you mean" not in said)


def test_algorithms_of_a_library_are_asked_of_the_library() -> None:
    for name in ("nccl-ring", "NCCL_tree", "rccl-ring"):
        with pytest.raises(un.InputError, match=f"--as {name[:4].lower()} names the algorithms"):
            un.plan("allreduce", "dgx-h100", elements=1, algorithm=name)


@given(st.text(max_size=80))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    for what, known in (
        (names.collective, un.collectives()),
        (names.datatype, un.dtypes()),
        (names.operator, un.operators()),
    ):
        try:
            name = what(text)
        except un.InputError:
            continue
        assert name in known


@pytest.mark.parametrize(
    ("text", "size"),
    [("64K", 65536), ("64KiB", 65536), ("64k", 65536), ("64kB", 64000), ("1.5MiB", 3 << 19), ("1.5M", 3 << 19),
     ("2G", 2 << 30), ("1T", 1 << 40), ("0.5 kB", 500), ("4096", 4096), ("8.0", 8), ("0", 0)],
)  # fmt: skip
def test_sizes_as_users_write_them(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["1.3K", "0.1", "1.", ".5K", "1,5M", "-1", "64X", "1e3", "K", "", "9" * 20, "1." + "1" * 20 + "G"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(un.InputError, match=r"not a (size|whole number)"):
        parse_bytes(text)


def complete(*words: str) -> set[str]:
    """Returns the shell's completions of the last word."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_UNISONO_COMPLETE": "bash_complete"}
    done = subprocess.run([PROGRAM], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    return {line.partition(",")[2] for line in done.stdout.splitlines() if line}


def test_shells_complete_commands_options_and_names() -> None:
    assert complete("unisono", "pl") == {"plan"}
    assert complete("unisono", "plan", "alls") == set()
    assert {"allreduce", "allgather", "alltoall"} <= complete("unisono", "plan", "all")
    assert "archer-median" in complete("unisono", "plan", "allreduce", "--machine", "arch")
    assert "ring" in complete("unisono", "plan", "allreduce", "--algorithm", "ri")
    assert "--certificate" in complete("unisono", "plan", "--cert")


@pytest.mark.parametrize(
    ("line", "begun", "expected"),
    [
        ("plan allreduce --model", "pip", {"pipelining-postal"}),
        ("plan reduce --for", "csl-m", {"csl-measured", "csl-module"}),
        ("plan reduce --algorithm two-phase --param", "gr", {"group="}),
        ("plan reduce --algorithm chain --param", "gr", set()),
        ("emit x.sched --format", "msccl-", {"msccl-xml"}),
        ("export t.plan --format", "uc", {"ucc"}),
        ("sweep reduce --algorithms", "star,cha", {"star,chain"}),
        ("sweep reduce --baseline", "cha", {"chain"}),
        ("tune", "allreduce,bro", {"allreduce,broadcast"}),
        ("compare", "gpt-3,dl", {"gpt-3,dlrm", "gpt-3,dlrm-artifact", "gpt-3,dlrm-artifact-rings"}),
        ("compare gpt-3 --machines", "torus2d-small,hx4mesh-l", {"torus2d-small,hx4mesh-large"}),
        ("workload", "cosmof", {"cosmoflow", "cosmoflow-artifact"}),
        ("topology", "hx4mesh-l", {"hx4mesh-large"}),
        ("machines", "hx4mesh-l", {"hx4mesh-large"}),
        ("reproduce", "ham", {"hammingmesh"}),
        ("traffic", "perm", {"permutation"}),
        ("discover x.json --nodes 4 --rules", "pa", {"paper"}),
        ("algorithms", "rabens", {"rabenseifner"}),
    ],
)
def test_shells_complete_values(line: str, begun: str, expected: set[str]) -> None:
    shell = BashComplete(program, {}, "unisono", "_UNISONO_COMPLETE")
    found = {item.value for item in shell.get_completions(line.split(), begun) if item.type == "plain"}
    assert found == expected
