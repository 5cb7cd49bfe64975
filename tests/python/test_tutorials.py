"""The tutorials print the shown output: their files are written and their commands run, in order, in a folder each.

With ``UNISONO_RECORD=1`` in the environment the printed output is written into the pages.
"""

import os
import re
from pathlib import Path

import pytest

from .conftest import ROOT, printed

PAGES = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "README.md")
BLOCK = re.compile(
    r'^```((?:python|text) title="(?P<file>[^"]+)"|console)\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)


def console(text: str, folder: Path) -> str:
    """Returns the commands of a block with their output."""
    made = []
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line = step.partition("\n")[0]
        made.append(f"$ {line}\n{printed(line, folder)}")
    return "".join(made)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorials_print_what_they_show(page: Path, tmp_path: Path) -> None:
    text = page.read_text()

    def ran(block: re.Match[str]) -> str:
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
            return block[0]
        return f"```console\n{console(block['text'], tmp_path)}```"

    made = BLOCK.sub(ran, text)
    if os.environ.get("UNISONO_RECORD"):
        page.write_text(made)
    assert made.count("```console") >= 1
    assert made == text
