"""A picture of workloads on several machines."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unisono.base.pictures import Form, encoded
from unisono.base.reports import ComparisonRow
from unisono.planning.comparison import product_of

__all__ = ["draw"]

_COMPUTE, _EXPOSED, _PRODUCT = "#3b6fb6", "#d1495b", "#6c757d"


def draw(rows: Sequence[ComparisonRow], form: Form = "png", *, fill: bool = False) -> bytes:
    """Draws charts for each workload: the time of a step on each machine, and time multiplied by the used part's price.

    The second chart shows machines with prices, relative to the best machine; with ``fill`` for one copy of the model.
    A star marks the machine with the least value.
    """
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    most = max(sum(row["workload"] == name for row in rows) for name in workloads)
    size = (10, (0.9 + 0.3 * most) * len(workloads) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    charts = figure.subplots(len(workloads), 2, squeeze=False, width_ratios=(3, 2))
    for name, (left, right) in zip(workloads, charts, strict=True):
        own = [row for row in rows if row["workload"] == name]
        labels = [_label(row) for row in own]
        at = range(len(own))
        compute = [1e3 * ((row["seconds"] or 0) - (row["exposed_seconds"] or 0)) for row in own]
        exposed = [1e3 * (row["exposed_seconds"] or 0) for row in own]
        left.barh(at, compute, color=_COMPUTE, label="compute and hidden communication")
        left.barh(at, exposed, left=compute, color=_EXPOSED, label="exposed communication")
        longest = max(c + e for c, e in zip(compute, exposed, strict=True))
        for y, row, before, after in zip(at, own, compute, exposed, strict=True):
            text = "does not fit" if row["seconds"] is None else f"{before + after:.4g}"
            text += " *" if "seconds" in row["best"] else ""
            left.text(before + after + 0.01 * longest, y, text, va="center", fontsize=8)
        left.set_yticks(at, labels, fontsize=8)
        left.set_xlim(0, 1.12 * (longest or 1.0))
        left.set_xlabel("time of a step (ms)", fontsize=9)
        left.set_title(name, fontsize=10, loc="left")
        products = [product_of(row, fill=fill) for row in own]
        best = min((product for product in products if product is not None), default=1.0)
        ratios = [0.0 if product is None else product / best for product in products]
        right.barh(at, ratios, color=_PRODUCT)
        for y, row, ratio in zip(at, own, ratios, strict=True):
            unpriced = " no price" if row["seconds"] is not None else ""
            star = " *" if "time_x_used_cost" in row["best"] else ""
            right.text(ratio, y, f" {ratio:.2f}{star}" if ratio else unpriced, va="center", fontsize=8)
        right.set_yticks(at, [])
        right.set_xlim(0, 1.15 * max(1.0, *ratios))
        right.set_xlabel("time x price, relative to the best", fontsize=9)
        for axes in (left, right):
            axes.invert_yaxis()
            axes.grid(axis="x", color="0.92", linewidth=0.6)
            axes.set_axisbelow(True)
    handles, _ = charts[0][0].get_legend_handles_labels()
    handles.append(Line2D([], [], linestyle="", marker="$*$", color="black", label="the least of the machines"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return encoded(figure, form)


def _label(row: ComparisonRow) -> str:
    """Returns the name of the machine, its number of failed parts, and the share in use if it is not all of it."""
    share = row["utilization"]
    words = [row["machine"]]
    if row["failed"]:
        words.append(f"{len(row['failed'])} failed")
    if share is not None and share != 1:
        words.append(f"{100 * share:.0f} % in use")
    return ", ".join(words)
