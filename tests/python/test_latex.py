"""Tables in LaTeX: a cell prints the point's text, also with special characters."""

import random
import re
import string
from pathlib import Path

import unisono as un
from unisono.base.tables import latex_text

from .conftest import call

#: Commands of LaTeX that print special characters.
_WORDS = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
_PRINTED = re.compile(r"\\(text\w+)\{\}|\\([&%$#_{}])|([&%$#_{}~^\\])")


def cells(line: str) -> list[str]:
    """Returns the cells of a row as LaTeX prints them; the only special character that is not escaped is "&"."""
    assert line.endswith(r" \\")
    found = [""]
    at = 0
    for match in _PRINTED.finditer(line[:-3]):
        found[-1] += line[at : match.start()]
        at = match.end()
        if match[3]:
            assert match[3] == "&"
            found.append("")
        else:
            found[-1] += _WORDS.get(match[1], "|") if match[1] else match[2]
    found[-1] += line[at:-3]
    return [cell.strip() for cell in found]


def test_cells_hold_their_text() -> None:
    draw = random.Random(1)
    letters = string.ascii_letters + string.digits + "&%$#_{}~^\\<>|="
    rows = [["".join(draw.choices(letters, k=draw.randrange(1, 9))) for _ in range(3)] for _ in range(200)]
    lines = latex_text(["a", "b", "c"], rows, "lrl").split("\n")
    assert lines[:2] == [r"\begin{tabular}{lrl}", r"\hline"]
    assert lines[-3:] == [r"\hline", r"\end{tabular}", ""]
    assert [cells(line) for line in lines[4:-3]] == rows


def test_sweep_writes_its_points(tmp_path: Path) -> None:
    file = tmp_path / "sweep.tex"
    options = ("--machine", "archer", "--ranks", "4,6", "--elements", "1,4096", "-o", str(file))
    assert call("sweep", "allreduce", *options).code == 0
    points = un.sweep("allreduce", "archer", shapes=[4, 6], elements=[1, 4096])
    head, *rows = (cells(line) for line in file.read_text().split("\n") if "&" in line)
    assert head == ["shape", "elements", "best", "µs", f"over {points[0]['baseline']}"]
    assert [(row[0], row[1], row[2].split()[0]) for row in rows] == [
        (str(point["shape"][0]), str(point["elements"]), point["best"]) for point in points
    ]
    assert all(
        abs(float(row[3]) / (1e6 * point["seconds"]) - 1) < 1e-3 for row, point in zip(rows, points, strict=True)
    )
