"""The README is correct: the commands of its tour print exactly the shown output."""

import os
import re
import subprocess
from pathlib import Path

from .conftest import PROGRAM, ROOT

TEXT = (ROOT / "README.md").read_text()
TOUR = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, str]]:
    """Returns every command of the tour with its output."""
    found = []
    for block in TOUR:
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            found.append((command, output))
    return found


def test_tour_prints_what_the_readme_shows(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
    shown = steps()
    assert shown
    for command, output in shown:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == output, command


def test_tour_is_short() -> None:
    assert sum(block.count("\n") for block in TOUR) <= 25


def test_readme_names_the_two_commands_and_its_files_exist() -> None:
    assert "make demo" in TEXT
    assert "make test" in TEXT
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target
