"""Fuzz: no text and no arguments make anything but the named exceptions and exit codes."""

import contextlib
import tempfile
from functools import cache
from pathlib import Path

import pytest
import unisono as un
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import call

FUZZ = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@cache
def schedules() -> tuple[un.Schedule, ...]:
    cases = [
        ("reduce", "5", "two-phase"),
        ("allreduce", "4", "ring"),
        ("broadcast", "3x2", "flood"),
        ("allreduce", "2x3", "chain"),
    ]
    return tuple(un.plan(c, "wse2", shape=shape, elements=6, algorithm=name).schedule for c, shape, name in cases)


@st.composite
def damaged(draw: st.DrawFn, as_json: bool) -> str:
    """The text of a schedule with a few lines, words or characters changed."""
    schedule = draw(st.sampled_from(schedules()))
    text = schedule.to_json() if as_json else schedule.to_text()
    for _ in range(draw(st.integers(1, 4))):
        separator = draw(st.sampled_from(["\n", " ", ",", "", ":"]))
        parts = list(text) if separator == "" else text.split(separator)
        at = draw(st.integers(0, max(len(parts) - 1, 0)))
        match draw(st.sampled_from(["drop", "repeat", "swap", "replace", "cut"])):
            case "drop":
                del parts[at : at + 1]
            case "repeat":
                parts[at:at] = parts[at : at + 1]
            case "swap":
                other = draw(st.integers(0, max(len(parts) - 1, 0)))
                if parts:
                    parts[at], parts[other] = parts[other], parts[at]
            case "replace":
                parts[at : at + 1] = [draw(st.one_of(st.text(max_size=6), st.integers(-2, 2**66).map(str)))]
            case _:
                parts = parts[:at]
        text = separator.join(parts)
    return text


def use(schedule: un.Schedule) -> None:
    """What was read can be proved, printed and read again."""
    with contextlib.suppress(un.Error):
        schedule.verify()
    assert un.Schedule.parse(schedule.to_text()) == schedule
    assert un.Schedule.parse_json(schedule.to_json()) == schedule


@FUZZ
@given(damaged(as_json=False))
def test_damaged_text(text: str) -> None:
    with contextlib.suppress(un.InputError):
        use(un.Schedule.parse(text, "fuzz.sched"))


@FUZZ
@given(damaged(as_json=True))
def test_damaged_json(text: str) -> None:
    with contextlib.suppress(un.InputError):
        use(un.Schedule.parse_json(text, "fuzz.json"))


@FUZZ
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    for parse in (un.Schedule.parse, un.Schedule.parse_json):
        with contextlib.suppress(un.InputError):
            use(parse(text))
    with contextlib.suppress(un.InputError):
        un.Machine.from_toml(text, "fuzz.toml")
    with contextlib.suppress(un.InputError):
        un.parse_shape(text)


COMMANDS = ["plan", "schedule", "verify", "bound", "sweep", "machines", "algorithms"]
WORDS = st.sampled_from(
    [
        "reduce",
        "allreduce",
        "broadcast",
        "message",
        "scan",
        "wse2",
        "chain",
        "two-phase",
        "ring",
        "x-y",
        "star",
        "snake",
    ]
    + ["0", "1", "2", "7", "3x2", "1x1", "4,5", "1..8", "-1", "1KiB", "group=2", "x=star", "root=middle", "", "=", "é"]
    + ["f32", "f64", "i32", "sum", "xor", "ordered", "paper", "links", "exact", "0,0", "1,1", "18446744073709551616"]
)
OPTIONS = st.sampled_from(
    ["--machine", "--shape", "--elements", "--bytes", "--dtype", "--op", "--root", "--algorithm", "--param", "--model"]
    + ["--shapes", "--algorithms", "--baseline", "--collective", "--method"]
)
FLAGS = st.sampled_from(["--json", "--all", "--help", "-o", "--", "-x"])
SOUND = st.sampled_from([["--machine", "wse2"], ["--shape", "5"], ["--shape", "3x2"], ["--elements", "6"]])


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    pair = st.tuples(OPTIONS, WORDS).map(list)
    alone = st.one_of(WORDS, FLAGS).map(lambda word: [word])
    groups = draw(st.lists(st.one_of(SOUND, SOUND, pair, alone), max_size=7))
    return [draw(st.sampled_from(COMMANDS)), *(word for group in groups for word in group)]


@FUZZ
@given(arguments())
def test_any_arguments(given: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        ran = call(*given)
        assert ran.code in (0, 1, 2), ran
        assert "Traceback" not in ran.err
        assert "unexpected failure" not in ran.err, ran
        if ran.code == 2:
            assert ran.out == ""
            assert ran.err.startswith("error: ")
            assert ran.err.count("\n") == 1
            assert list(Path(folder).iterdir()) == []
        elif "--json" in given and "--help" not in given:
            assert isinstance(ran.json, dict)


@pytest.mark.parametrize("size", [10**5])
def test_deep_json_is_refused(size: int) -> None:
    with pytest.raises(un.InputError):
        un.Schedule.parse_json("[" * size)
