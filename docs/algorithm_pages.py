"""The site's pages of algorithms: their table, and one page for each.

The page of an algorithm has its facts, a picture of a small schedule, and sizes at which it is best.
"""

import json
from collections import defaultdict
from html import escape
from typing import Any

import unisono as un
from unisono.cli.algorithms import LEGEND
from unisono.viewing.steps import steps_of, transfers

#: Machines on which the collectives are planned, with the shape of the used part and the name in the table.
MACHINES = (
    ("wse2", (16,), "16 PEs in a row, `wse2`"),
    ("wse2", (8, 8), "8 x 8 PEs, `wse2`"),
    ("wse2", (16, 16), "16 x 16 PEs, `wse2`"),
    ("archer", (16,), "16 ranks, `archer`"),
    ("paper-sim", (12,), "12 ranks, `paper-sim`"),
    ("hx2mesh-small", (4, 4), "4 x 4 accelerators, `hx2mesh-small`"),
    ("dgx-h100", None, "8 GPUs, `dgx-h100`"),
)
SIZES = (64, 1024, 16384, 262144, 4194304)
#: Machines and shapes for pictures; the first one that the algorithm supports is drawn.
_SMALL = (
    ("archer", (8,)),
    ("archer", (7,)),
    ("wse2", (8,)),
    ("wse2", (4, 4)),
    ("hx2mesh-small", (2, 4)),
    ("dgx-h100", None),
)
_STEP, _ROW, _LEFT, _TOP = 74, 22, 62, 26
_Best = dict[str, dict[str, dict[str, list[int]]]]
#: The largest number of transfers in a picture.
_MOST_TRANSFERS = 400
_HEAD = """# Algorithms

Each algorithm has its collectives, the kinds of machines that it plans for, and a page. `unisono algorithms NAME`
prints one, with the values of its parameters and the formulas of its time. `make site` makes this table of the
registry.

| algorithm | collectives | machines | parameters | summary | source |
|---|---|---|---|---|---|
"""


def table() -> str:
    """Returns the text of the page with all algorithms."""
    return _HEAD + "".join(
        f"| [`{a['name']}`](algorithms/{a['name']}.md) | {', '.join(a['collectives'])} | {', '.join(a['machines'])} "
        f"| {', '.join(param['name'] for param in a['params'])} | {_cell(a['summary'])} | {_cell(a['reference'])} |\n"
        for a in un.algorithms()
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[str, str]:
    """Returns the text of each page by the name of its algorithm."""
    best = _best()
    return {about["name"]: _page(about, best[about["name"]]) for about in un.algorithms()}


def _page(about: dict[str, Any], best: dict[str, dict[str, list[int]]]) -> str:
    name = about["name"]
    rows = [
        ("collectives", ", ".join(about["collectives"])),
        ("machines", ", ".join(about["machines"])),
        ("source", about["reference"]),
        *((f"`{param['name']}`", param["values"]) for param in about["params"]),
    ]
    table = "".join(f"| {key} | {value.replace('|', '&#124;')} |\n" for key, value in rows)
    sentence = about["summary"][0].upper() + about["summary"][1:]
    cells = {where: "; ".join(f"{c} of {_ranges(at)}" for c, at in found.items()) for where, found in best.items()}
    lines = "".join(f"| {where} | {cell} |\n" for where, cell in cells.items())
    wins = (
        f"| machine | best for |\n|---|---|\n{lines}"
        if lines
        else f"At none of these sizes on {'; '.join(words for _, _, words in MACHINES)}. It may be the best elsewhere: "
        "`unisono sweep` finds the best algorithm of each shape and length.\n"
    )
    return (
        f"# {name}\n\n{sentence}. [All algorithms](../algorithms.md)\n\n"
        f"| fact | |\n|---|---|\n{table}\n{_formulas(about)}"
        f"## A small schedule\n\n{_picture(about)}\n\n"
        f"## Best sizes\n\nBy the models, among all algorithms, for {', '.join(map(_size, SIZES))}:\n\n{wins}\n"
        f"    unisono plan {about['collectives'][0]} --machine ... --algorithm {name}\n"
    )


def _formulas(about: dict[str, Any]) -> str:
    """Returns the times in closed form, with the meaning of their names."""
    if not about["formulas"]:
        return ""
    models = {"paper": "[Eq. 1](../wafer-model.md), in cycles"}
    lines = [
        f"* `{form['time']}`: {', '.join(form['collectives'])}, by {models.get(form['model'], form['model'])}"
        + (f", if {form['when']}" if form["when"] else "")
        for form in about["formulas"]
    ]
    return "\n".join(["## Time", "", *lines, "", LEGEND, "", ""])


def _best() -> _Best:
    """Returns for each algorithm the sizes in bytes at which the planner chooses it, by machine and collective."""
    found: _Best = defaultdict(lambda: defaultdict(dict))
    for name, shape, words in MACHINES:
        machine = un.machine(name, shape)
        for collective in un.collectives():
            for at in SIZES:
                try:
                    plan = un.plan(collective, machine, bytes=at)
                except (un.InputError, un.UnsupportedError):
                    continue
                found[plan.algorithm][words].setdefault(collective, []).append(at)
    return found


def _ranges(sizes: list[int]) -> str:
    """Formats sizes; neighbors in :data:`SIZES` are one range."""
    runs: list[list[int]] = []
    for at in sizes:
        if runs and SIZES.index(at) == SIZES.index(runs[-1][-1]) + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return ", ".join(_size(run[0]) if len(run) == 1 else f"{_size(run[0])} to {_size(run[-1])}" for run in runs)


def _picture(about: dict[str, Any]) -> str:
    for name, shape in _SMALL:
        machine = un.machine(name, shape)
        for collective in about["collectives"]:
            try:
                plan = un.plan(collective, machine, elements=16, algorithm=about["name"])
            except (un.InputError, un.UnsupportedError):
                continue
            document = json.loads(plan.schedule.to_json())
            if 0 < len(transfers(document)) <= _MOST_TRANSFERS:
                part = "x".join(map(str, machine.shape or ())) or "all"
                words = "a row is a node, a column a step, a line a transfer"
                title = f"{collective} of 16 elements on `{name}` ({part}): {words}."
                return f"{title}\n\n{_svg(document, plan.schedule.ranks)}"
    return "Its schedules have too many transfers for a picture."


def _svg(document: dict[str, Any], ranks: int) -> str:
    steps, moves = steps_of(document), transfers(document)
    nodes = document["nodes"]
    last = max(steps[move.instruction] for move in moves) + 1
    width, height = _LEFT + _STEP * last + 24, _TOP + _ROW * nodes
    y = [_TOP + _ROW * node + 8 for node in range(nodes)]
    parts = [f'<text x="{_LEFT + _STEP * step}" y="14" text-anchor="middle">{step}</text>' for step in range(last + 1)]
    for node in range(nodes):
        name = f"rank {node}" if node < ranks else f"switch {node}"
        parts.append(f'<text x="{_LEFT - 12}" y="{y[node] + 4}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _STEP * last}" y1="{y[node]}" y2="{y[node]}" stroke-opacity="0.15"/>'
        )
    for move in moves:
        x = _LEFT + _STEP * steps[move.instruction]
        parts.append(
            f'<line x1="{x}" y1="{y[move.source]}" x2="{x + _STEP}" y2="{y[move.target]}" stroke-opacity="0.7"/>'
        )
        parts.append(f'<circle cx="{x + _STEP}" cy="{y[move.target]}" r="2.5" stroke="none"/>')
    style = 'font-family="sans-serif" font-size="12" stroke-width="1.2"'
    inner = "".join(part.replace("<text", '<text stroke="none"') for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{min(width, 900)}" {style} '
        f'fill="currentColor" stroke="currentColor" role="img" aria-label="transfers by step">{inner}</svg>'
    )


def _size(count: int) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count // scale} {unit}"
    return f"{count} B"
