"""A picture of the expected bus bandwidth of a collective by its size."""

from textwrap import wrap

from matplotlib.figure import Figure

from unisono.base.pictures import Form, encoded
from unisono.base.reports import Expectation

__all__ = ["draw"]

_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def draw(expected: Expectation, form: Form = "png") -> bytes:
    """Draws lines by bytes for the bound, the library's choice and the plan."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    library = f"{expected['library']}, by its own rules"
    # The bound is drawn first, so that it is below lines that reach the bound.
    for of, label, color, style, marker in (
        ("ceiling", "ceiling: no schedule has more", "0.35", "--", None),
        ("library", library, "#d1495b", "-", "s"),
        ("plan", "plan", "#3b6fb6", "-", "o"),
    ):
        points = [
            (row["bytes"], value)
            for row in expected["rows"]
            if (value := row["busbw"][of]) is not None and row["bytes"] > 0  # type: ignore[literal-required]
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True), color=color, linestyle=style, marker=marker, markersize=4, label=label
            )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: _size(value))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("bytes")
    axes.set_ylabel("busbw, GB/s")
    title = f"{expected['collective']} on {expected['ranks']} ranks of {expected['machine']}"
    axes.set_title("\n".join(wrap(title, 70)), fontsize=10)
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return encoded(figure, form)


def _size(count: float) -> str:
    unit, name = next(((unit, name) for unit, name in _UNITS if count >= unit), _UNITS[-1])
    return f"{count / unit:g} {name}"
