"""A HammingMesh: boards, and a bar for each row and column of accelerators, joined to the edges of its boards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unisono._core import Machine
from unisono.pictures.networks._canvas import HALF, Canvas

__all__ = ["draw"]

#: The largest numbers of drawn boards, and of accelerators, on a side.
_BOARDS, _SIDE = 4, 12
#: The distances between neighboring cables, and between bars.
_TRACK, _BAR = 0.16, 0.32
_PORTS = 64


@dataclass(frozen=True)
class _Plan:
    """The positions of boards and bars. y decreases from row to row."""

    a: int
    b: int
    rows: int
    columns: int

    @property
    def beside(self) -> float:
        """Returns the width of the space on each side of a board for cables of rows."""
        return 0.25 + self.a * _TRACK

    @property
    def above(self) -> float:
        return 0.25 + self.b * _TRACK

    def x(self, board: int, column: int) -> float:
        return board * (self.b + 2 * self.beside + self.b * _BAR + 0.4) + column

    def y(self, board: int, row: int) -> float:
        return -(board * (self.a + 2 * self.above + self.a * _BAR + 0.4) + row)

    def bar_y(self, board: int, row: int) -> float:
        """Returns y of a row's bar: above its boards, the first row's bar lowest, so that cables do not cross."""
        return self.y(board, 0) + 0.5 + self.above + 0.2 + row * _BAR

    def bar_x(self, board: int, column: int) -> float:
        return self.x(board, 0) - 0.5 - self.beside - 0.2 - column * _BAR


def draw(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws boards, the copper cables of rows above boards, and the optical cables of columns beside boards."""
    (a, b), (x, y) = table["board"], table["boards"]
    most = [max(1, min(_BOARDS, _SIDE // side)) for side in (a, b)]
    plan = _Plan(a, b, min(x, most[0]), min(y, most[1]))
    for row in range(plan.rows):
        for column in range(plan.columns):
            _board(canvas, plan, row, column, names=b if (plan.rows, plan.columns) == (x, y) else 0)
    _bars(canvas, plan, cut=(plan.rows < x, plan.columns < y))
    along, across = _line(y, a), _line(x, b)
    lines = f"rows and columns are each {along}" if along == across else f"a row is {along}, a column {across}"
    if (plan.rows, plan.columns) == (x, y):
        return f"{x} x {y} boards of {a} x {b}; {lines}"
    return f"{plan.rows} x {plan.columns} of {x} x {y} boards of {a} x {b}; {lines}"


def _line(boards: int, lines: int) -> str:
    ports = 2 * boards
    if ports <= _PORTS:
        shared = min(lines, _PORTS // ports)
        return "a switch" if shared == 1 else f"a part of a switch, which {shared} share"
    leaves = -(-ports // (_PORTS // 2))
    return f"a tree of {leaves} leaves and {-(-leaves // 2)} switches above"


def _board(canvas: Canvas, plan: _Plan, row: int, column: int, names: int) -> None:
    left, top = plan.x(column, 0) - 0.5, plan.y(row, 0) + 0.5
    canvas.board((left, top - plan.a), plan.b, plan.a)
    for i in range(plan.a):
        for j in range(plan.b):
            at = (plan.x(column, j), plan.y(row, i))
            number = (row * plan.a + i) * names * plan.columns + column * plan.b + j
            canvas.accelerator(at, str(number) if names else "")
            if j + 1 < plan.b:
                canvas.cable([(at[0] + HALF, at[1]), (at[0] + 1 - HALF, at[1])], "board")
            if i + 1 < plan.a:
                canvas.cable([(at[0], at[1] - HALF), (at[0], at[1] - 1 + HALF)], "board")
    for i in range(plan.a):
        y, bar = plan.y(row, i), plan.bar_y(row, i)
        out = 0.2 + i * _TRACK
        for edge, track in (
            (plan.x(column, 0) - HALF, left - out),
            (plan.x(column, plan.b - 1) + HALF, left + plan.b + out),
        ):
            canvas.cable([(edge, y), (track, y), (track, bar)], "dac")
            canvas.dot((track, bar), "dac")
    for j in range(plan.b):
        x, bar = plan.x(column, j), plan.bar_x(column, j)
        out = 0.2 + j * _TRACK
        for edge, track in (
            (plan.y(row, 0) + HALF, top + out),
            (plan.y(row, plan.a - 1) - HALF, top - plan.a - out),
        ):
            canvas.cable([(x, edge), (x, track), (bar, track)], "aoc")
            canvas.dot((bar, track), "aoc")


def _bars(canvas: Canvas, plan: _Plan, cut: tuple[bool, bool]) -> None:
    right = plan.x(plan.columns - 1, plan.b - 1) + 0.5 + plan.beside
    left = plan.x(0, 0) - 0.5 - plan.beside
    bottom = plan.y(plan.rows - 1, plan.a - 1) - 0.5 - plan.above
    top = plan.y(0, 0) + 0.5 + plan.above
    for row in range(plan.rows):
        for i in range(plan.a):
            y = plan.bar_y(row, i)
            canvas.switch(((left + right) / 2, y), right - left + 0.2, 0.1)
            if cut[1]:
                canvas.text((right + 0.5, y), "...")
    for column in range(plan.columns):
        for j in range(plan.b):
            x = plan.bar_x(column, j)
            canvas.switch((x, (top + bottom) / 2), 0.1, top - bottom + 0.2)
            if cut[0]:
                canvas.text((x, bottom - 0.4), ":")
