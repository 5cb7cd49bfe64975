"""Notebooks of docs/notebooks: their execution, and their pages on the site.

A notebook is kept with its outputs. `tests/python/test_notebooks.py` executes each one by the kernel of the
development environment and compares the outputs; with UNISONO_RECORD=1 in the environment it writes them.
"""

import tempfile
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).with_name("notebooks")
#: The seconds that a cell may take.
_LIMIT = 600
#: `nbformat.read`, which has no type annotations.
_read: Any = nbformat.read


def executed(path: Path) -> Any:
    """Returns a notebook with the outputs of a new kernel, without times and numbers that differ between runs."""
    # Only the test that executes notebooks needs nbclient.
    from nbclient import NotebookClient
    from traitlets.config import Config

    made = _read(path, as_version=4)
    options: dict[str, Any] = dict.fromkeys(("timeout", "startup_timeout", "iopub_timeout"), _LIMIT)
    options |= {"raise_on_iopub_timeout": True, "resources": {"metadata": {"path": str(FOLDER)}}}
    # Another process may take a port before the kernel does. The paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="notebook", dir="/tmp") as own:
        sockets = Config(KernelManager={"transport": "ipc", "connection_file": f"{own}/kernel.json"})
        NotebookClient(made, kernel_name="python3", config=sockets, **options).execute()
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for at, cell in enumerate(made.cells):
        cell.id, cell.metadata = f"cell-{at}", {}
    return made


def shown(notebook: Any) -> list[list[str]]:
    """Returns the texts of the outputs of each code cell, as HTML or else plain; pictures are left out."""
    return [
        [_text(output) for output in cell.outputs if "image/png" not in output.get("data", {})]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def pages() -> dict[str, str]:
    """Returns the Markdown of the page of each notebook, by the notebook's name."""
    return {path.stem: _page(path) for path in sorted(FOLDER.glob("*.ipynb"))}


def _page(path: Path) -> str:
    parts = []
    for cell in _read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [_markdown(output) for output in cell.outputs]
    return "\n\n".join([*parts, f"[The notebook]({path.name}), to run and to change.", ""])


def _markdown(output: Any) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![](data:image/png;base64,{data['image/png'].strip()})"
    return _text(output) if "text/html" in data else f"```text\n{_text(output).rstrip()}\n```"


def _text(output: Any) -> str:
    data = output.get("data", {})
    return str(data.get("text/html") or data.get("text/plain") or output.get("text", ""))
