"""Pictures of plans.

For a forest they show its trees on the network and times by depth, for other plans the candidates.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import cos, exp, hypot, log, pi, sin
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Patch, Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from unisono._core import Plan
from unisono.base.pictures import Form, encoded
from unisono.base.reports import (
    Bound,
    Candidate,
    ChunkTree,
    ForestTrees,
    Front,
    FrontPoint,
    PlanReport,
    in_cycles,
)

__all__ = ["MOST_DRAWN", "draw", "fits"]

Point = tuple[float, float]

#: The limit of nodes of a drawn network; labels of larger networks would not be legible.
MOST_DRAWN = 64
#: The largest numbers of trees in a picture of up to `_MANY` nodes, and of more than `_MANY` nodes.
_MOST_TREES, _MOST_TREES_OF_MANY, _MANY = 4, 2, 16
_MOST_BARS = 12
_FLUID = "fluid: chunks of any size, no latency"
_ACCELERATOR, _ROOT, _SWITCH, _LINK = "#F0E442", "#D55E00", "0.25", "0.8"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: The possible labels of a logarithmic axis, in descending order of priority.
_TICKS = (1, 10, 100, 1000, 2, 5, 20, 50, 200, 500, 1.5, 1.2, 3, 1.1, 7, 1.05, 1.02, 1.01, 1.3, 1.4, 4)
_DPI = 130


def fits(forest: ForestTrees) -> bool:
    """Returns whether the network, or its part that the trees use, has at most :data:`MOST_DRAWN` nodes."""
    return len(_drawn_nodes(forest)) <= MOST_DRAWN


def draw(plan: Plan, form: Form = "png") -> bytes:
    """Returns the picture of a plan; the same plan gives the same bytes.

    For a forest, the picture shows the trees of one root on the network, if the network :func:`fits`, and the times of
    forests by depth. For other algorithms, and for a single rank, the picture shows the times of the best candidates.
    """
    report = plan.report()
    parameters = " ".join(f"{key}={value}" for key, value in report["params"].items())
    nodes = "ranks" if report["predicted"]["cycles"] is None else "PEs"
    size = f"{report['bytes']:,} bytes, {report['ranks']:,} {nodes} of {report['machine']}"
    title = f"{report['collective']} of {size}: {report['algorithm']} {parameters}".rstrip()
    if report["algorithm"] == "forest" and report["ratio"] is not None and report["ranks"] > 1:
        figure = _forest_figure(plan.forest(), plan.front(), report)
    else:
        figure = _candidates_figure(report)
    figure.suptitle("\n".join(wrap(title, int(11 * figure.get_figwidth()))), fontsize=11)
    return encoded(figure, form, _DPI)


def _forest_figure(forest: ForestTrees, front: Front, report: PlanReport) -> Figure:
    if not fits(forest):
        figure = Figure(figsize=(6.2, 5.0), layout="constrained")
        _draw_front(figure, front, report)
        return figure
    nodes = len(_drawn_nodes(forest))
    trees = forest["trees"][: _MOST_TREES if nodes <= _MANY else _MOST_TREES_OF_MANY]
    columns = min(len(trees), 2)
    rows = -(-len(trees) // columns)
    side = 3.3 if nodes <= _MANY else 4.2 if nodes <= 2 * _MANY else 5.6
    width, height = columns * side, rows * side + 1.1
    figure = Figure(figsize=(width + 5.2, max(height, 4.9)), layout="constrained")
    left, right = list(figure.subfigures(1, 2, width_ratios=[width, 5.2], squeeze=False).flat)
    _draw_trees(left, forest, trees, columns, report)
    _draw_front(right, front, report)
    return figure


def _draw_trees(
    figure: SubFigure, forest: ForestTrees, trees: Sequence[ChunkTree], columns: int, report: PlanReport
) -> None:
    places = _layout(forest, report["shape"])
    dots = _dots(forest)
    radius = _radius([at for node, at in places.items() if node not in dots])
    radii = {node: 0.25 * radius if node in dots else radius for node in places}
    rates = sorted({rate for *_, rate in _links(forest)})
    deepest = max(max(_depths(tree)) for tree in trees)
    colors = mpl.colormaps["viridis"]([0.0] if deepest == 1 else [0.86 * d / (deepest - 1) for d in range(deepest)])
    upwards = report["collective"] in ("reduce", "reduce-scatter")
    grid = figure.subplots(-(-len(trees) // columns), columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
        axes.set_aspect("equal")
    for axes, tree in zip(grid.flat, trees, strict=False):
        _draw_network(axes, forest, places, radii, rates)
        _draw_arrows(axes, tree, places, radii, colors, upwards)
        chunks = f"{tree['chunks']} of {forest['chunks']} chunks" if forest["chunks"] > 1 else "the whole block"
        axes.set_title(chunks, fontsize=9)
        axes.autoscale_view()
    end = "to" if upwards else "of"
    lines = [f"trees {end} rank {forest['root']}"]
    if len(trees) < len(forest["trees"]):
        lines[0] += f", {len(trees)} of {len(forest['trees'])}"
    if report["collective"] == "allreduce":
        lines.append("sums run against the arrows first")
    figure.suptitle("\n".join(lines), fontsize=10)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=_ROOT, edgecolor="0.3", label="root"),
        Patch(facecolor=_ACCELERATOR, edgecolor="0.3", label="rank"),
    ]
    if len(places) > len(forest["places"]) + len(dots):
        handles.append(Patch(facecolor=_SWITCH, label="switch or relay"))
    if dots:
        handles.append(
            Line2D([], [], linestyle="", marker="o", markersize=3, color=_SWITCH, label="relay of two links")
        )
    shown = rates if len(rates) <= 5 else [rates[k * (len(rates) - 1) // 4] for k in range(5)]
    handles += [
        Line2D([], [], color=_LINK, linewidth=_width(rate, rates), label=f"{rate:g} Gb/s", solid_capstyle="butt")
        for rate in shown
    ]
    handles += [
        Line2D([], [], color=color, linewidth=1.8, label=f"message at depth {at}") for at, color in enumerate(colors, 1)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4 if columns > 1 else 2, frameon=False, fontsize=8)


def _draw_network(
    axes: Axes, forest: ForestTrees, places: Mapping[int, Point], radii: Mapping[int, float], rates: Sequence[float]
) -> None:
    for a, b, rate in _links(forest):
        if a in places and b in places:
            line = _way(a, b, places, radii)
            axes.plot(*zip(*line, strict=True), color=_LINK, linewidth=_width(rate, rates), zorder=1)
    rank_of = {node: rank for rank, node in enumerate(forest["places"])}
    largest = max(radii.values())
    size = max(4.0, 85 * largest) if largest < 0.1 else 8.5
    for node, (x, y) in places.items():
        rank, radius = rank_of.get(node), radii[node]
        if radius < largest:
            axes.add_patch(Circle((x, y), radius, facecolor=_SWITCH, edgecolor="none", zorder=4))
            continue
        if rank is None:
            axes.add_patch(Circle((x, y), 0.9 * radius, facecolor=_SWITCH, edgecolor="none", zorder=4))
        else:
            face = _ROOT if rank == forest["root"] else _ACCELERATOR
            corner, side = (x - 0.85 * radius, y - 0.85 * radius), 1.7 * radius
            axes.add_patch(Rectangle(corner, side, side, facecolor=face, edgecolor="0.3", linewidth=0.7, zorder=4))
        white = rank is None or rank == forest["root"]
        text, color = str(node if rank is None else rank), "white" if white else "black"
        axes.text(x, y, text, ha="center", va="center", fontsize=size, color=color, zorder=5)


def _draw_arrows(
    axes: Axes,
    tree: ChunkTree,
    places: Mapping[int, Point],
    radii: Mapping[int, float],
    colors: Any,
    upwards: bool,
) -> None:
    """Draws an arrow for each link of a tree and each depth at which the tree uses the link."""
    radius = max(radii.values())
    used: dict[tuple[int, int], list[int]] = {}
    for way, depth in zip(tree["messages"], _depths(tree), strict=True):
        for a, b in pairwise(way):
            depths = used.setdefault((a, b), [])
            if depth not in depths:
                depths.append(depth)
    for (a, b), depths in used.items():
        line = _way(a, b, places, radii)
        for turn, depth in enumerate(sorted(depths)):
            shifted = _shifted(line, (0.28 + 0.42 * turn) * radius)
            begin, end = _clipped(shifted, 1.15 * radii[a], 1.15 * radii[b])
            if upwards:
                begin, end = end, begin
            bulge = _bulge(line)
            arrow = FancyArrowPatch(
                begin,
                end,
                arrowstyle="-|>,head_length=5,head_width=2.4"
                if radius > 0.08
                else "-|>,head_length=3.4,head_width=1.6",
                connectionstyle=f"arc3,rad={-bulge if upwards else bulge}",
                color=colors[depth - 1],
                linewidth=1.5 if radius > 0.08 else 1.0,
                shrinkA=0,
                shrinkB=0,
                zorder=3,
            )
            axes.add_patch(arrow)


def _draw_front(figure: Figure | SubFigure, front: Front, report: PlanReport) -> None:
    bound = report["lower_bound"]
    assert bound is not None, "plans with a ratio have a bound"
    axes = figure.subplots()
    unit, chosen = bound["seconds"], report["predicted"]["seconds"]
    depth, count = int(report["params"]["depth"]), int(report["params"]["chunks"])
    points = front["points"]
    alone = points[0] if len(points) == 1 and points[0]["depth"] == depth else None
    if alone is not None:
        _draw_chunks(axes, alone, unit, (count, chosen))
    else:
        _draw_depths(axes, front, unit, depth)
    star: dict[str, Any] = {"marker": "*", "markersize": 15, "markerfacecolor": "#D55E00", "markeredgecolor": "black"}
    label = f"the plan: {_time(chosen)}, chunks={count}"
    axes.plot(depth if alone is None else count, chosen / unit, linestyle="", label=label, zorder=6, **star)
    label = f"bound {bound['name']}: {_time(unit)}"
    axes.axhline(1, color="#D55E00", linewidth=1.4, linestyle="--", label=label)
    times = [chosen, *(time for point in points for _, time in point["forests"])]
    times += [point["fluid_seconds"] for point in points if point["fluid_seconds"] is not None]
    _scale(axes, min(1.0, *(time / unit for time in times)), max(time / unit for time in times))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _draw_depths(axes: Axes, front: Front, unit: float, chosen: int) -> None:
    """Draws times by depth, with a line for each number of chunks."""
    points = front["points"]
    chunks = sorted({count for point in points for count, _ in point["forests"]})
    shades = mpl.colormaps["viridis"]([0.9 * k / max(len(chunks) - 1, 1) for k in range(len(chunks))])
    for at, count in enumerate(chunks):
        line = [(point["depth"], s / unit) for point in points for n, s in point["forests"] if n == count]
        label = f"{count} chunk" + ("s" if count > 1 else "")
        marker = _MARKERS[at % len(_MARKERS)]
        axes.plot(*zip(*line, strict=True), color=shades[at], marker=marker, markersize=6, linewidth=1.3, label=label)
    fluid = [(p["depth"], p["fluid_seconds"] / unit) for p in points if p["fluid_seconds"] is not None]
    if fluid:
        axes.plot(*zip(*fluid, strict=True), color="black", marker=".", linewidth=1.8, label=_FLUID)
        free = front["fluid_seconds"]
        if free is not None and free / unit < 0.999 * fluid[-1][1]:
            axes.axhline(free / unit, color="black", linewidth=1, linestyle=":", label="fluid, any depth")
    depths = [*(point["depth"] for point in points), chosen]
    axes.set_xlim(min(depths) - 0.5, max(depths) + 0.5)
    axes.set_xticks(sorted(set(depths)))
    axes.set_xlabel("limit on the depth (messages from the root to a rank)")
    axes.set_title("time of forests by their depth", fontsize=10)


def _draw_chunks(axes: Axes, point: FrontPoint, unit: float, chosen: tuple[int, float]) -> None:
    """Draws times by the number of chunks, for a front whose forests all have the same depth."""
    times = dict([chosen, *((count, seconds) for count, seconds in point["forests"])])
    line = [(count, seconds / unit) for count, seconds in sorted(times.items())]
    label = f"forests of depth {point['depth']}"
    axes.plot(*zip(*line, strict=True), color="#0072B2", marker="o", markersize=6, linewidth=1.3, label=label)
    if point["fluid_seconds"] is not None:
        axes.axhline(point["fluid_seconds"] / unit, color="black", linewidth=1.4, label=_FLUID)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([count for count, _ in line]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("chunks of a block")
    axes.set_title(f"time of forests by their chunks, at depth {point['depth']}", fontsize=10)


def _scale(axes: Axes, low: float, high: float) -> None:
    """Makes the vertical axis logarithmic, with as many labels as can be legible."""
    span = max(log(high / low), 0.02)
    axes.set_yscale("log")
    axes.set_ylim(low * exp(-0.05 * span), high * exp(0.06 * span))
    ticks: list[float] = []
    for tick in _TICKS:
        if low <= tick <= high and all(abs(log(tick / other)) > 0.06 * span for other in ticks):
            ticks.append(tick)
    axes.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("predicted time / bound")
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)


def _candidates_figure(report: PlanReport) -> Figure:
    candidates = report["candidates"][:_MOST_BARS]
    names = [" ".join([c["algorithm"], *(f"{key}={value}" for key, value in c["params"].items())]) for c in candidates]
    figure = Figure(figsize=(8.0, 1.9 + 0.36 * len(candidates)), layout="constrained")
    axes = figure.subplots()
    scale, unit = _unit(max(c["seconds"] for c in candidates))
    counts = report["predicted"]["cycles"] is not None
    unit = "cycles" if counts else unit

    def length(of: Candidate | Bound) -> float:
        return in_cycles(of) if counts else of["seconds"] * scale

    def words(of: Candidate | Bound) -> str:
        return f"{in_cycles(of):.4g} cycles" if counts else _time(of["seconds"])

    colors = ["#D55E00", *["#0072B2"] * (len(candidates) - 1)]
    bars = axes.barh(range(len(candidates)), [length(c) for c in candidates], color=colors, height=0.7)
    axes.bar_label(bars, [words(c) for c in candidates], padding=3, fontsize=8)
    axes.set_yticks(range(len(candidates)), ["\n".join(wrap(name, 42)) for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"predicted time ({unit})")
    axes.margins(x=0.16)
    bound = report["lower_bound"]
    if bound is not None:
        label = f"bound {bound['name']}: {words(bound)}"
        axes.axvline(length(bound), color="black", linewidth=1.4, linestyle="--", label=label)
        figure.legend(loc="outside lower center", frameon=False, fontsize=8)
    left_out = len(report["candidates"]) - len(candidates)
    axes.set_title("predicted times" + (f" of the best {len(candidates)} candidates" if left_out else ""), fontsize=10)
    return figure


def _unit(seconds: float) -> tuple[float, str]:
    return next(((s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if seconds * s >= 1), (1e9, "ns"))


def _time(seconds: float) -> str:
    scale, unit = _unit(seconds)
    return f"{seconds * scale:.4g} {unit}"


def _depths(tree: ChunkTree) -> list[int]:
    """Returns for each message of a tree its depth: the number of messages from the root to its end."""
    depth = {tree["messages"][0][0]: 0}
    for way in tree["messages"]:
        depth[way[-1]] = depth[way[0]] + 1
    return [depth[way[-1]] for way in tree["messages"]]


def _links(forest: ForestTrees) -> list[tuple[int, int, float]]:
    """Returns links as pairs of nodes, with the larger rate of both directions."""
    rates: dict[tuple[int, int], float] = {}
    for a, b, rate in forest["links"]:
        key = (min(a, b), max(a, b))
        # A rate is a product of two numbers, so digits after the sixth may be rounding errors.
        rates[key] = max(rates.get(key, 0.0), float(f"{rate:.6g}"))
    nodes = set(_drawn_nodes(forest))
    return [(a, b, rate) for (a, b), rate in sorted(rates.items()) if a in nodes and b in nodes]


def _drawn_nodes(forest: ForestTrees) -> list[int]:
    """Returns all nodes with a link; if these are too many, ranks and nodes that the trees use."""
    nodes = {node for link in forest["links"] for node in link[:2]} | set(forest["places"])
    if len(nodes) > MOST_DRAWN:
        nodes = set(forest["places"]) | {n for tree in forest["trees"] for way in tree["messages"] for n in way}
    return sorted(nodes)


def _width(rate: float, rates: Sequence[float]) -> float:
    """Returns a line width, from 2 points for the slowest link to 8 for the fastest, or 3 if all rates are equal."""
    low, high = rates[0], rates[-1]
    return 3.0 if low == high else 2.0 + 6.0 * log(rate / low) / log(high / low)


def _layout(forest: ForestTrees, shape: Sequence[int]) -> dict[int, Point]:
    """Returns positions: a grid for ranks of a grid without switches, else a circle of ranks around other nodes."""
    ranks, nodes = forest["places"], _drawn_nodes(forest)
    dots = _dots(forest)
    others = [node for node in nodes if node not in set(ranks) | dots]
    if len(shape) == 2 and min(shape) > 1 and not others and not dots:
        columns = shape[1]
        step = 0.45
        return {node: (step * (k % columns), -step * (k // columns)) for k, node in enumerate(ranks)}
    places = {node: (sin(2 * pi * k / len(ranks)), cos(2 * pi * k / len(ranks))) for k, node in enumerate(ranks)}
    beside = _neighbors(forest)
    chains = _chains(dots, beside)
    for begin, *_, end in chains:
        beside[begin].add(end)
        beside[end].add(begin)
    for k, node in enumerate(others):
        # The starting positions differ, so that nodes with the same neighbors do not stay at one position.
        angle = 2 * pi * k / len(others) + 0.3
        places[node] = (0.3 * sin(angle), 0.3 * cos(angle)) if len(others) > 1 else (0.0, 0.0)
    apart = min(0.42, 1.6 / max(len(others), 1) ** 0.5)
    for _ in range(300):
        moved = {}
        for node in others:
            near = [places[other] for other in sorted(beside[node] - dots)] or [(0.0, 0.0)]
            x, y = (sum(side) / len(near) for side in zip(*near, strict=True))
            for other in places:
                if other != node:
                    dx, dy = places[node][0] - places[other][0], places[node][1] - places[other][1]
                    distance = max(hypot(dx, dy), 1e-6)
                    push = max(0.0, apart - distance) / distance
                    x, y = x + push * dx, y + push * dy
            moved[node] = (0.7 * places[node][0] + 0.3 * x, 0.7 * places[node][1] + 0.3 * y)
        places.update(moved)
    for chain in chains:
        (ax, ay), (bx, by) = places[chain[0]], places[chain[-1]]
        for k, node in enumerate(chain[1:-1], 1):
            share = k / (len(chain) - 1)
            places[node] = (ax + share * (bx - ax), ay + share * (by - ay))
    return places


def _neighbors(forest: ForestTrees) -> dict[int, set[int]]:
    beside: dict[int, set[int]] = {node: set() for node in _drawn_nodes(forest)}
    for a, b, _ in _links(forest):
        beside[a].add(b)
        beside[b].add(a)
    return beside


def _dots(forest: ForestTrees) -> set[int]:
    """Returns nodes other than ranks with two neighbors, such as network interfaces, drawn as dots on a line."""
    ranks, beside = set(forest["places"]), _neighbors(forest)
    dots = {node for node, near in beside.items() if len(near) == 2 and node not in ranks}
    return {node for chain in _chains(dots, beside) for node in chain[1:-1]}


def _chains(dots: set[int], beside: Mapping[int, set[int]]) -> list[list[int]]:
    """Returns chains of neighboring dots, each with the two different nodes at its ends."""
    chains, seen = [], set[int]()
    for dot in sorted(dots):
        if dot in seen:
            continue
        chain = [dot]
        for _ in range(2):
            while chain[-1] in dots:
                following = sorted(beside[chain[-1]] - set(chain[-2:]))
                if not following or following[0] in chain:
                    break
                chain.append(following[0])
            chain.reverse()
        seen |= set(chain)
        if chain[0] not in dots and chain[-1] not in dots and chain[0] != chain[-1]:
            chains.append(chain)
    return chains


def _radius(points: Sequence[Point]) -> float:
    nearest = min((hypot(a[0] - b[0], a[1] - b[1]) for k, a in enumerate(points) for b in points[:k]), default=1.0)
    return min(0.13, 0.3 * nearest)


def _way(first: int, last: int, places: Mapping[int, Point], radii: Mapping[int, float]) -> list[Point]:
    """Returns a link's points: a straight line, or a curve if the line would cross another node."""
    a, b = places[first], places[last]
    radius = max(radii.values())
    length = hypot(b[0] - a[0], b[1] - a[1])
    ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
    for node, (x, y) in places.items():
        along = (x - a[0]) * ux + (y - a[1]) * uy
        off = abs((y - a[1]) * ux - (x - a[0]) * uy)
        if node not in (first, last) and 0 < along < length and off < 0.9 * radii[node]:
            break
    else:
        return [a, b]
    # The sign puts the curves of both directions on the same side.
    sign = 1 if a < b else -1
    height = sign * (1.6 * radius + 0.06 * length)
    control = ((a[0] + b[0]) / 2 - 2 * height * uy, (a[1] + b[1]) / 2 + 2 * height * ux)
    steps = [k / 16 for k in range(17)]

    def at(t: float, k: int) -> float:
        return (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * control[k] + t**2 * b[k]

    return [(at(t, 0), at(t, 1)) for t in steps]


def _bulge(line: Sequence[Point]) -> float:
    """Returns the height of a curve's control point divided by the line's length, as ``arc3`` takes it."""
    a, b = line[0], line[-1]
    middle = line[len(line) // 2]
    if len(line) == 2:
        return 0.0
    length = hypot(b[0] - a[0], b[1] - a[1])
    off = (middle[0] - a[0]) * (b[1] - a[1]) - (middle[1] - a[1]) * (b[0] - a[0])
    return 2 * off / length**2


def _shifted(line: Sequence[Point], by: float) -> list[Point]:
    """Returns the ends of a line, moved by ``by`` to its right."""
    a, b = line[0], line[-1]
    length = hypot(b[0] - a[0], b[1] - a[1])
    dx, dy = by * (b[1] - a[1]) / length, -by * (b[0] - a[0]) / length
    return [(x + dx, y + dy) for x, y in (a, b)]


def _clipped(line: Sequence[Point], at_begin: float, at_end: float) -> tuple[Point, Point]:
    """Returns a line's ends, shortened by the given lengths, each at most 0.4 times the line's length."""
    begin, end = line[0], line[-1]
    length = hypot(end[0] - begin[0], end[1] - begin[1])
    first, last = min(at_begin, 0.4 * length), min(at_end, 0.4 * length)
    ux, uy = (end[0] - begin[0]) / length, (end[1] - begin[1]) / length
    return (begin[0] + first * ux, begin[1] + first * uy), (end[0] - last * ux, end[1] - last * uy)
