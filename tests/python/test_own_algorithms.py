"""Algorithms written in Python rank with those of the registry, and are refused if they are wrong."""

import subprocess
import threading
import time
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path

import pytest
import unisono as un
from unisono import _core

from .conftest import PROGRAM, call, json_of, refusal, written

Function = Callable[..., un.Schedule]
SOURCE = '''"""An allreduce through rank 0."""
import unisono as un
import beside


@un.algorithm("through-zero", collectives=["allreduce"], on=["ranks", "wafer"], summary=beside.SUMMARY)
def through_zero(case):
    b, others = case.builder(), range(1, case.ranks)
    there = [b.stream(rank, [0]) for rank in others]
    back = [b.stream(0, [rank]) for rank in others]
    b.combine(0, [b.input(0)[:], *there], [b.output(0)[:], *back])
    for rank, up, down in zip(others, there, back):
        b.combine(rank, [b.input(rank)[:]], [up])
        b.combine(rank, [down], [b.output(rank)[:]])
    return b.build()
'''
_numbers = count()


@pytest.fixture
def name() -> str:
    """Returns a name that no other test has."""
    return f"own-{next(_numbers)}"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(SOURCE)
    (tmp_path / "beside.py").write_text('SUMMARY = "all to rank 0, and back"\n')
    return tmp_path / "own.py"


def ring(case: un.AlgorithmCase, first: str = "0") -> un.Schedule:
    """Returns an allgather around a ring, in which each rank sends blocks to the next rank."""
    b, p = case.builder(), case.ranks
    if p < 2:
        raise un.UnsupportedError("a ring has at least two ranks")
    start, n = int(first), case.elements
    streams = [b.stream(rank, [(rank + 1) % p]) for rank in range(p)]
    for rank in range(p):
        out = b.output(rank)
        b.combine(rank, [b.input(rank)[:]], [streams[rank], out[rank * n : (rank + 1) * n]])
        for step in range(1, p):
            block = (rank - step) % p
            passed_on = [streams[rank]] if step < p - 1 else []
            b.combine(rank, [streams[rank - 1]], [out[block * n : (block + 1) * n], *passed_on])
    assert start in (0, 1)
    return b.build()


@pytest.mark.parametrize(
    ("machine", "shape"), [("archer", (6,)), ("hx2mesh-small", (2, 4)), ("dgx-h100", None), ("paper-sim", (5,))]
)
def test_an_own_algorithm_ranks_where_the_same_of_the_registry_does(
    machine: str, shape: tuple[int, ...] | None, name: str
) -> None:
    un.algorithm(name, collectives=["allgather"])(ring)
    where = un.machine(machine, shape)
    own = un.plan("allgather", where, elements=96, algorithm=name)
    assert own.schedule.verify().holds
    assert un.simulate(own.schedule).seconds == pytest.approx(own.predicted["seconds"], rel=0.25)
    ranked = un.plan("allgather", where, elements=96).candidates
    assert [c["algorithm"] for c in ranked].count(name) == 1
    seconds = [c["seconds"] for c in ranked]
    assert seconds == sorted(seconds)


def test_settings_of_parameters_are_ranked(name: str) -> None:
    un.algorithm(name, collectives="allgather", params={"first": [0, 1]})(ring)
    found = [
        c["params"] for c in un.plan("allgather", "archer", shape=4, elements=8).candidates if c["algorithm"] == name
    ]
    assert sorted(p["first"] for p in found) == ["0", "1"]
    assert un.plan("allgather", "archer", shape=4, elements=8, algorithm=name, params={"first": "1"}).params == {
        "first": "1"
    }
    with pytest.raises(un.InputError, match="has no parameter 'last'"):
        un.plan("allgather", "archer", shape=4, elements=8, algorithm=name, params={"last": "1"})
    assert next(a for a in un.algorithms() if a["name"] == name)["params"] == [{"name": "first", "values": "0, 1"}]


def test_functions_run_on_the_thread_of_their_caller(name: str) -> None:
    threads = set()

    def slow_ring(case: un.AlgorithmCase, first: str) -> un.Schedule:
        threads.add(threading.get_ident())
        time.sleep(0.003)
        return ring(case, str(int(first) % 2))

    un.algorithm(name, collectives="allgather", params={"first": list(range(6))})(slow_ring)
    found = un.plan("allgather", "archer", shape=4, elements=8).candidates
    assert sum(c["algorithm"] == name for c in found) == 6
    assert threads == {threading.get_ident()}


def test_the_second_of_one_name_replaces_the_first(name: str) -> None:
    un.algorithm(name, collectives=["allgather"], summary="one")(ring)
    un.algorithm(name, collectives=["allgather"], summary="two")(ring)
    assert [a["summary"] for a in un.algorithms() if a["name"] == name] == ["two"]


def test_a_case_without_a_schedule_is_left_out_and_named_says_why(name: str) -> None:
    un.algorithm(name, collectives=["allgather"])(ring)
    assert name not in {c["algorithm"] for c in un.plan("allgather", "archer", shape=1, elements=8).candidates}
    with pytest.raises(un.UnsupportedError, match="a ring has at least two ranks"):
        un.plan("allgather", "archer", shape=1, elements=8, algorithm=name)


def wrong(case: un.AlgorithmCase) -> un.Schedule:
    b = case.builder()
    for rank in range(case.ranks):
        b.combine(rank, [b.input(rank)[:]], [b.output(rank)[:]])
    return b.build()


def smaller(case: un.AlgorithmCase) -> un.Schedule:
    b = un.ScheduleBuilder(1, 1, collective="scan")
    b.combine(0, [b.input(0)[:]], [b.output(0)[:]])
    return b.build()


def failing(case: un.AlgorithmCase) -> un.Schedule:
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_interrupt_in_a_function_ends_the_request(raised: BaseException, named: bool, name: str) -> None:
    @un.algorithm(name, collectives=["scan"])
    def interrupted(case: un.AlgorithmCase) -> un.Schedule:
        raise raised

    with pytest.raises(type(raised)):
        un.plan("scan", "archer", shape=4, elements=8, algorithm=name if named else None)
    with pytest.raises(type(raised)):
        [*un.sweep("scan", "archer", shapes=[4], elements=[8])]
    un.remove_algorithm(name)


def test_an_interrupted_function_leaves_no_file(tmp_path: Path) -> None:
    own = written(
        tmp_path / "own.py",
        "import unisono as un\n@un.algorithm('own-interrupted', collectives=['allreduce'])\n"
        "def interrupted(case):\n    raise KeyboardInterrupt\n",
    )
    where = ("--machine", "archer", "--ranks", "4", "--bytes", "64", "--serve", "all")
    ran = call("--load", str(own), "plan", "allreduce", *where, "-o", str(tmp_path / "a.plan"))
    assert (ran.code, ran.err) == (130, "error: interrupted\n")
    assert not (tmp_path / "a.plan").exists()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (wrong, "makes a schedule that is wrong: incomplete"),
        (smaller, "was asked for scan .* of 8 f32 on 4 ranks, root 0, and made scan .* of 1 f32 on 1 ranks"),
        (failing, r"failed at test_own_algorithms.py:\d+: ZeroDivisionError: by nothing"),
        (lambda case: "no schedule", "failed: InputError: it returned 'no schedule', and must return a schedule"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(function: Function, words: str, name: str) -> None:
    un.algorithm(name, collectives=["scan"])(function)
    words = rf"(?s)'{name}' {words}.* \(for scan of 8 elements on 4 ranks\)"
    with pytest.raises(un.InputError, match=words):
        un.plan("scan", "archer", shape=4, elements=8, algorithm=name)
    # With other candidates, only the row of the wrong algorithm is missing.
    with pytest.warns(UserWarning, match=words):
        ranked = un.plan("scan", "archer", shape=4, elements=8).candidates
    assert ranked
    assert name not in {c["algorithm"] for c in ranked}
    ran = call("plan", "scan", "--machine", "archer", "--ranks", "4", "--elements", "8")
    assert (ran.code, ran.err.count("note: left out: the function of algorithm")) == (0, 1)
    un.remove_algorithm(name)


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("elements", [0, 1, 2, 3, 64])
def test_parts_of_fewer_elements_are_empty_and_no_fault(elements: int, ranks: int, name: str) -> None:
    """The example of docs/python.md is right also with fewer elements than parts, where slices are empty."""

    @un.algorithm(name, collectives=["broadcast"], params={"parts": [1, 4]})
    def hand_over(case: un.AlgorithmCase, parts: str) -> un.Schedule:
        b, pieces = case.builder(), [case.elements * k // int(parts) for k in range(int(parts) + 1)]
        to_next = [b.stream(rank, [rank + 1]) for rank in range(case.ranks - 1)]
        before = None
        for first, last in pairwise(pieces):
            before = b.combine(0, [b.input(0)[first:last]], [to_next[0]], after=[before])
            for rank in range(1, case.ranks):
                b.combine(rank, [to_next[rank - 1]], [b.output(rank)[first:last], *to_next[rank : rank + 1]])
        return b.build()

    points = un.sweep("broadcast", "archer", shapes=[(ranks,)], elements=[elements])
    found = un.plan("broadcast", "archer", shape=ranks, elements=elements).candidates
    un.remove_algorithm(name)
    assert name in points[0]["seconds_by_algorithm"]
    assert [c["algorithm"] for c in found].count(name) == 2


def test_a_fault_at_some_points_of_a_sweep_leaves_the_others(name: str) -> None:
    @un.algorithm(name, collectives=["broadcast"], params={"parts": [1, 3]})
    def odd(case: un.AlgorithmCase, parts: str) -> un.Schedule:
        if case.elements % 2 and parts == "3":
            raise ZeroDivisionError("odd")
        b = case.builder()
        b.combine(0, [b.input(0)[:]], [b.stream(0, list(range(1, case.ranks)))])
        raise un.UnsupportedError("not now") if case.elements == 4 else ZeroDivisionError(f"parts {parts}")

    for algorithms in (None, ["binomial", name]):
        with pytest.warns(UserWarning, match=r"on 3 ranks with parts=[13]\)"):
            points = un.sweep("broadcast", "archer", shapes=[(3,)], elements=[1, 2, 4], algorithms=algorithms)
        assert len(points) == 3
        assert all(name not in point["seconds_by_algorithm"] for point in points)
    with pytest.raises(un.InputError, match=r"for broadcast of 1 elements on 3 ranks with parts="):
        un.sweep("broadcast", "archer", shapes=[(3,)], elements=[1], algorithms=[name])
    un.remove_algorithm(name)


def test_named_without_its_parameters_the_listed_settings_are_ranked(name: str) -> None:
    def central(case: un.AlgorithmCase, segments: str) -> un.Schedule:
        b, others = case.builder(), range(1, case.ranks)
        count = int(segments)
        for k in range(count):
            part = slice(case.elements * k // count, case.elements * (k + 1) // count)
            up = [b.stream(rank, [0]) for rank in others]
            down = [b.stream(0, [rank]) for rank in others]
            b.combine(0, [b.input(0)[part], *up], [b.output(0)[part], *down])
            for rank, there, back in zip(others, up, down, strict=True):
                b.combine(rank, [b.input(rank)[part]], [there])
                b.combine(rank, [back], [b.output(rank)[part]])
        return b.build()

    un.algorithm(name, collectives=["allreduce"], params={"segments": [1, 2, 4]})(central)
    where = {"machine": "paper-sim", "shape": 4, "elements": 65536}
    named = un.plan("allreduce", algorithm=name, **where)  # type: ignore[arg-type]
    assert {c["params"]["segments"] for c in named.candidates} == {"1", "2", "4"}
    assert {c["algorithm"] for c in named.candidates} == {name}
    best = next(c for c in un.plan("allreduce", **where).candidates if c["algorithm"] == name)  # type: ignore[arg-type]
    assert (named.params, named.predicted["seconds"]) == (best["params"], best["seconds"])
    # If a user gives all parameters, the algorithm's list of values does not matter.
    alone = un.plan("allreduce", algorithm=name, params={"segments": "3"}, **where)  # type: ignore[arg-type]
    assert [c["params"] for c in alone.candidates] == [{"segments": "3"}]


def test_a_collective_that_was_not_registered_is_not_asked_for(name: str) -> None:
    un.algorithm(name, collectives=["allreduce", "scan"])(failing)
    with pytest.raises(un.UnsupportedError, match="it makes allreduce, scan, not broadcast"):
        un.plan("broadcast", "archer", shape=4, elements=8, algorithm=name)


def test_the_place_of_a_function_is_its_reference(name: str) -> None:
    un.algorithm(name, collectives=["scan"])(failing)
    (about,) = [about for about in un.algorithms() if about["name"] == name]
    assert about["reference"] == f"function failing of test_own_algorithms.py:{failing.__code__.co_firstlineno}"


def test_a_removed_algorithm_is_unknown(name: str) -> None:
    un.algorithm(name, collectives=["allgather"])(ring)
    plan = un.plan("allgather", "archer", shape=4, elements=8, algorithm=name)
    un.remove_algorithm(name)
    with pytest.raises(un.InputError, match="is not an algorithm"):
        un.plan("allgather", "archer", shape=4, elements=8, algorithm=name)
    with pytest.raises(un.InputError, match="was added"):
        un.remove_algorithm("ring")
    assert plan.schedule.verify().holds, "plans keep their algorithm"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "ring"}, "'ring' is an algorithm of the catalog"),
        ({"name": "Own Ring"}, "no name of an algorithm"),
        ({"collectives": ["allgathr"]}, "did you mean allgather"),
        ({"collectives": []}, "for no collective"),
        ({"on": ["switches"]}, "accepted are ranks and wafer"),
        ({"params": {"a": range(100), "b": range(100)}}, "10000 settings"),
        ({"params": {"a": []}}, "0 settings"),
    ],
)
def test_wrong_entries_are_refused(options: dict[str, object], words: str) -> None:
    given = {"name": "own-entry", "collectives": ["allgather"], **options}
    with pytest.raises(un.InputError, match=words):
        un.algorithm(**given)(ring)  # type: ignore[arg-type]
    assert not [a for a in un.algorithms() if a["name"] == "own-entry"]


def test_the_program_loads_files_of_algorithms(script: Path, tmp_path: Path) -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(PROGRAM), "--load", str(script), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    where = ("allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "64")
    assert "through-zero" in program("plan", *where).stdout
    assert "all to rank 0, and back" in program("algorithms", "--collective", "allreduce").stdout
    program("plan", *where, "--algorithm", "Through_Zero", "--serve", "all", "-o", "own.plan")
    (row,) = json_of("show", str(tmp_path / "own.plan"))["rows"]
    assert row["algorithm"] == "through-zero"
    wafer = program("plan", "allreduce", "--machine", "wse2", "--shape", "2x2", "--elements", "4", "--all").stdout
    assert "through-zero" in wafer
    swept = program(
        "sweep",
        "allreduce",
        "--machine",
        "archer",
        "--shapes",
        "4",
        "--elements",
        "1",
        "--algorithms",
        "through-zero,ring",
        "--jobs",
        "2",
    )
    assert "through-zero" in swept.stdout


def test_tuning_proposes_own_algorithms(name: str) -> None:
    un.algorithm(name, collectives=["allgather"])(ring)
    where = un.machine("archer", 4)
    (proposed,) = _core.worthwhile("allgather", where, [64], [4], 100)
    assert name in proposed
    plan = _core.propose("allgather", where, 4, 64, name, None)
    assert plan is not None
    assert plan.algorithm == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "adds no algorithm"),
        ("1 / 0", "failed: ZeroDivisionError"),
        ("raise SystemExit(3)", "ended the program"),
        ("import unisono\nunisono.algorithm('ring', collectives=['scan'])(print)", "of the catalog"),
    ],
)
def test_files_that_add_nothing_are_refused(text: str, words: str, tmp_path: Path) -> None:
    file = written(tmp_path / "own.py", text)
    assert words in refusal("--load", str(file), "algorithms")


def test_a_missing_file_is_named() -> None:
    ran = call("--load", "nowhere.py", "algorithms")
    assert (ran.code, ran.err) == (2, "error: there is no file 'nowhere.py' to load\n")
