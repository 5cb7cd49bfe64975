"""Grids of accelerators: torus, mesh and hypercube, of any number of dimensions."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unisono._core import Machine
from unisono.pictures.networks._canvas import HALF, Canvas, Kind, Point, arc

__all__ = ["draw_hypercube", "draw_mesh", "draw_torus", "part_of", "place", "steps"]

#: The largest number of drawn accelerators.
_MOST = 100
_DEPTH = (0.42, 0.34)


def draw_torus(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws a torus; a wrap-around link is a dotted line at both borders."""
    return _draw(canvas, table["dims"], table.get("board") or [1] * len(table["dims"]), around=True)


def draw_mesh(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws a mesh: a torus without wrap-around links."""
    return _draw(canvas, table["dims"], table.get("board") or [1] * len(table["dims"]), around=False)


def draw_hypercube(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws a hypercube; the lowest bit of an accelerator's number is the last dimension."""
    bits, on_board = table["dimensions"], table.get("board_dimensions", 0)
    shown = min(bits, 6)
    board = [2 if bit < on_board else 1 for bit in reversed(range(shown))]
    _draw(canvas, [2] * shown, board, around=False)
    return f"a hypercube of {bits} dimensions" if shown == bits else f"{shown} of {bits} dimensions of a hypercube"


def steps(extents: Sequence[int]) -> list[Point]:
    """Returns for each dimension the step (right, up) from a coordinate to the next.

    The last dimension goes to the right, the second-last down, the third-last into depth. Further dimensions put copies
    of these beside, below and behind each other.
    """
    width, height = 1.0, 1.0
    found: list[Point] = []
    for at, extent in enumerate(reversed(extents)):
        match at % 3:
            case 0:
                found.append((width, 0.0))
                width *= extent
            case 1:
                found.append((0.0, -height))
                height *= extent
            case _:
                found.append((_DEPTH[0] * (1 if at == 2 else width), _DEPTH[1] * (1 if at == 2 else height)))
                width += _DEPTH[0] * extent + 1
                height += _DEPTH[1] * extent + 1
    return found[::-1]


def place(coordinates: Sequence[int], by: Sequence[Point]) -> Point:
    """Returns the position in the picture of an accelerator or a switch."""
    return sum(c * s[0] for c, s in zip(coordinates, by, strict=True)), sum(
        c * s[1] for c, s in zip(coordinates, by, strict=True)
    )


def part_of(dims: Sequence[int], board: Sequence[int], most: int) -> list[int]:
    """Returns the extents of the drawn part: whole boards, with the longest dimensions reduced first."""
    shown = list(dims)
    while True:
        count = 1
        for extent in shown:
            count *= extent
        cuttable = [d for d in range(len(shown)) if shown[d] > max(board[d], 2)]
        if count <= most or not cuttable:
            return shown
        longest = max(cuttable, key=lambda d: shown[d])
        shown[longest] = max(board[longest], shown[longest] // 2 // board[longest] * board[longest])


def _draw(canvas: Canvas, dims: Sequence[int], board: Sequence[int], *, around: bool) -> str:
    shown = part_of(dims, board, _MOST)
    by = steps(shown)
    whole = shown == list(dims)
    names = whole and len(dims) <= 3
    if len(dims) == 2 and max(board) > 1:
        for row, column in product(range(0, shown[0], board[0]), range(0, shown[1], board[1])):
            x, y = place((row, column), by)
            canvas.board((x - 0.45, y - board[0] + 0.55), board[1] - 0.1, board[0] - 0.1)
    for number, coordinates in enumerate(product(*map(range, shown))):
        at = place(coordinates, by)
        canvas.accelerator(at, str(number) if names else "", HALF if len(dims) <= 2 else 0.17)
        for dim, (dx, dy) in enumerate(by):
            c = coordinates[dim]
            kind: Kind = "board" if (c + 1) % board[dim] else "aoc"
            if c + 1 < shown[dim]:
                near = abs(dx) + abs(dy) <= 1.01
                to = (at[0] + dx, at[1] + dy)
                canvas.cable([at, to] if near else arc(at, to, 0.12), kind, 1.1 if near else 0.7)
            elif shown[dim] < dims[dim]:
                _end(canvas, at, (dx, dy), kind, "solid")
            elif around:
                _end(canvas, at, (dx, dy), "aoc", "dotted")
            if c == 0 and around:
                _end(canvas, at, (-dx, -dy), "aoc", "dotted")
    size = " x ".join(map(str, dims))
    boards = f", boards of {' x '.join(map(str, board))}" if max(board) > 1 else ""
    ends = "; dotted ends go around" if around else ""
    return f"{size}{boards}{ends}" if whole else f"{' x '.join(map(str, shown))} of {size}{boards}{ends}"


def _end(canvas: Canvas, at: Point, step: Point, kind: Kind, style: str) -> None:
    length = (step[0] ** 2 + step[1] ** 2) ** 0.5
    reach = 0.75 if length > 0.9 else 0.45
    canvas.cable([at, (at[0] + reach * step[0] / length, at[1] + reach * step[1] / length)], kind, 1.1, style)
