"""The tutorials print what they show: their files are written and their commands run, in order, in one folder each.

With ``UNISONO_RECORD=1`` in the environment what the commands print is written into the pages.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import PROGRAM, ROOT

PAGES = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "README.md")
BLOCK = re.compile(r'^```(python title="(?P<file>[^"]+)"|console)\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


def console(text: str, folder: Path, env: dict[str, str]) -> str:
    """The commands of a block with what they print."""
    made = []
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line = step.partition("\n")[0]
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        made.append(f"$ {line}\n{done.stdout}")
    return "".join(made)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorials_print_what_they_show(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}

    def ran(block: re.Match[str]) -> str:
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
            return block[0]
        return f"```console\n{console(block['text'], tmp_path, env)}```"

    made = BLOCK.sub(ran, text)
    if os.environ.get("UNISONO_RECORD"):
        page.write_text(made)
    assert made.count("```console") >= 1
    assert made == text
