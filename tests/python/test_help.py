"""The help of the program: fast, in groups, with examples that run."""

import resource
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from unisono.cli import GROUPS, NAMES, command
from unisono.cli._examples import EXAMPLES, UNDER_MPI

from .conftest import ROOT, Ran, call, text_of

#: Commands that run first because their examples write inputs of other examples.
ORDER = ("plan", "schedule", "emit", "import", "sweep", "merge")


def test_groups_hold_every_command_once() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == list(NAMES)
    assert set(EXAMPLES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_short_option_prints_the_help(name: str) -> None:
    assert text_of(name, "-h") == text_of(name, "--help")


def test_the_version_has_three_spellings() -> None:
    assert text_of("version") == text_of("-V") == text_of("--version")


def test_help_lists_commands_by_group_with_their_whole_summaries() -> None:
    out: Ran = call("--help")
    assert out.code == 0
    text = " ".join(out.out.split())
    for title, names in GROUPS.items():
        assert f"{title}:" in out.out
        for name in names:
            said = command(name).help or ""
            assert " ".join(said.split("\n\n")[0].split("\n")[0].split()) in text, name


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_in_the_help_of_their_command(name: str) -> None:
    out = text_of(name, "--help")
    # Help does not wrap the lines of examples.
    for line in EXAMPLES[name]:
        assert f"unisono {line}\n" in out


def test_help_does_not_import_the_commands() -> None:
    program = "import sys; from unisono.cli import main; main(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "unisono.cli._examples" in loaded
    assert not [name for name in ("unisono.cli.plan", "numpy", "rich") if f"'{name}'" in loaded]


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in sorted(NAMES, key=lambda name: (name not in ORDER, ORDER.index(name) if name in ORDER else 0)):
        for line in EXAMPLES[name]:
            words = shlex.split(line)
            assert words[0] == name
            if name in UNDER_MPI or name in ("lab", "run"):
                # Only options and arguments are checked; tests of MPI run such lines.
                assert isinstance(command(name).make_context(name, words[1:]), click.Context)
                continue
            ran = call(*words)
            # In these two examples, the times break guidelines, which is code 1.
            assert ran.code == (name in ("check-guidelines", "diagnose")), (line, ran.err)


def test_help_takes_little_time() -> None:
    """Help takes less than twice the processor time of Python with click alone, a ratio that slow machines keep."""

    def seconds(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Runs alternate, since other work on the machine changes both times.
    pairs = [(seconds("-m", "unisono", "--help"), seconds("-c", "import click, runpy, re, pathlib")) for _ in range(7)]
    helps, others = zip(*pairs, strict=True)
    assert min(helps) < 2 * min(others)
