"""The stored outputs of the documentation's notebooks are those of their cells."""

import os
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "docs"))
nbformat = pytest.importorskip("nbformat")
import notebook_pages  # noqa: E402

NOTEBOOKS = sorted(notebook_pages.FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_their_cells_return(path: Path) -> None:
    made = notebook_pages.executed(path)
    if os.environ.get("UNISONO_RECORD"):
        nbformat.write(made, path)
    kept = notebook_pages.shown(nbformat.read(path, as_version=4))
    assert len(kept) > 2
    assert notebook_pages.shown(made) == kept


def test_pages_have_the_outputs_of_their_notebooks() -> None:
    assert len(NOTEBOOKS) == 2
    pages = notebook_pages.pages()
    assert "<table><tbody><tr><td>collective</td><td>allreduce</td>" in pages["gpus"]
    assert pages["networks"].count("![](data:image/png;base64,") == 1
