"""Pictures of the bandwidths of accelerators under traffic."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from matplotlib.figure import Figure

from unisono.base.messages import size_text
from unisono.base.pictures import Form, encoded, thousands
from unisono.simulation.network_traffic import Traffic

__all__ = ["bandwidths"]

_COLOR = "#31688e"


def bandwidths(points: Sequence[Traffic], form: Form = "png") -> bytes:
    """Draws at each size the distribution of the accelerators' bandwidths, its mean, and the slowest accelerator.

    The picture resembles Figs. 11 to 14 of "HammingMesh": the width of a shape shows the number of accelerators with
    that bandwidth. For a single size, bars show the slowest accelerator, the mean and the fastest accelerator.
    """
    first = points[0]
    # Even for a single point, the picture must be wide enough for the title and the legend.
    width = max(2.6 + 0.9 * len(points), 5.6)
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    axes = figure.subplots()
    at = np.arange(len(points))
    for x, point in zip(at, points if len(points) > 1 else (), strict=False):
        rates = point.rates * 8e-9
        # `violinplot` fails if all values are equal.
        if len(rates) > 1 and np.ptp(rates) > 1e-9 * rates.max():
            for body in axes.violinplot(rates, [x], widths=0.8, showextrema=False)["bodies"]:  # type: ignore[attr-defined]
                body.set_facecolor(_COLOR)
                body.set_alpha(0.35)
            low, high = np.quantile(rates, [0.25, 0.75])
            axes.vlines(x, low, high, color=_COLOR, linewidth=4)
    mean = [point.rates.mean() * 8e-9 for point in points]
    slowest = [point.carried / point.seconds * 8e-9 if point.seconds > 0 else 0.0 for point in points]
    most = first.injection * 8e-9 / (2 if first.pattern == "allreduce" else 1)
    if len(points) == 1:
        # For a single size, a line would be a dot, so bars are drawn.
        fastest = float(first.rates.max()) * 8e-9
        at, bars = np.arange(3), (slowest[0], mean[0], fastest)
        axes.bar(at, bars, color=["black", _COLOR, _COLOR], alpha=0.7, width=0.5)
        for x, rate in zip(at, bars, strict=True):
            axes.annotate(
                f"{rate:,.4g} Gb/s\n{100 * rate / most:.1f} %", (x, rate), (0, 3), "data", "offset points", ha="center"
            )
    else:
        axes.plot(at, mean, color=_COLOR, marker="o", label="mean of accelerators")
        axes.plot(at, slowest, color="black", marker="v", linestyle=":", label="slowest")
    label = "half of the injection" if first.pattern == "allreduce" else "injection"
    label += f", {most:,.4g} Gb/s"
    axes.axhline(most, color="grey", linewidth=1, linestyle="--", label=label)
    what = {"alltoall": "block of each pair", "permutation": "sent by each", "allreduce": "vector"}[first.pattern]
    if len(points) == 1:
        axes.set_xticks(at, ["slowest accelerator", "mean", "fastest"])
        axes.set_xlabel(f"{what}: {size_text(first.bytes)}")
    else:
        axes.set_xticks(at, [size_text(point.bytes) for point in points], rotation=45 if len(points) > 8 else 0)
        axes.set_xlabel(what)
    axes.set_ylabel("bandwidth of an accelerator, Gb/s")
    axes.set_ylim(0, 1.12 * max(most, *(float(point.rates.max()) * 8e-9 for point in points)))
    thousands(axes.yaxis)
    name = f"{first.pattern} {first.algorithm}" if first.algorithm else first.pattern
    title = f"{name} on {first.machine}, {first.accelerators:,} accelerators, by {first.level}s"
    axes.set_title("\n".join(wrap(title, int(12 * width))), fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return encoded(figure, form)
