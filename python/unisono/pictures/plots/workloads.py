"""A picture of one training iteration: compute above, communication below."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from unisono.base.pictures import Form, encoded
from unisono.base.reports import WorkloadReport

__all__ = ["draw"]

#: The width of a letter and the height of a line of text, as fractions of the picture's width, and the number of
#: letters of an upright name that fit into a bar.
_LETTER = 0.007
_LINE = 0.012
_HIGH = 10
_COMPUTE, _HIDDEN, _EXPOSED = "#3b6fb6", "#7fb069", "#d1495b"


def draw(report: WorkloadReport, form: Form = "png") -> bytes:
    """Returns the picture's file for a report of :func:`unisono.workload`."""
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    axes = figure.subplots()
    computing = [(phase["begin"] * 1e3, phase["compute_seconds"] * 1e3) for phase in report["phases"]]
    axes.broken_barh(computing, (1.1, 0.8), facecolors=_COMPUTE, edgecolor="white", linewidth=0.5)
    for phase in report["phases"]:
        for c in phase["communication"]:
            begin, end = c["begin"] * 1e3, c["end"] * 1e3
            axes.broken_barh([(begin, end - begin)], (0.1, 0.8), facecolors=_EXPOSED, edgecolor="white", linewidth=0.3)
            # Communication that overlaps with compute is marked as hidden.
            for start, length in computing:
                low, high = max(begin, start), min(end, start + length)
                if high > low:
                    axes.broken_barh([(low, high - low)], (0.1, 0.8), facecolors=_HIDDEN)
    whole = report["seconds"] * 1e3 * 1.005
    axes.set_xlim(0, whole)
    steps = [((phase["name"], phase["name"]), *bar) for phase, bar in zip(report["phases"], computing, strict=True)]
    _name(axes, whole, 1.5, steps, beside=False)
    made = (c for phase in report["phases"] for c in phase["communication"])
    bars = [
        ((f"{c['collective']} among {c['ranks']}", c["collective"]), c["begin"] * 1e3, (c["end"] - c["begin"]) * 1e3)
        for c in made
    ]
    _name(axes, whole, 0.5, bars, beside=True)
    axes.set_ylim(0, 2)
    axes.set_yticks([0.5, 1.5], ["communication", "compute"])
    axes.set_xlabel("time (ms)")
    share = report["exposed_seconds"] / report["seconds"] if report["seconds"] else 0.0
    axes.set_title(
        f"{report['workload']} on {report['accelerators']:,} accelerators of {report['machine']}: "
        f"{report['seconds'] * 1e3:.4g} ms, of which {100 * share:.1f} % is exposed communication",
        fontsize=11,
    )
    axes.grid(axis="x", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    labels = [(_COMPUTE, "compute"), (_HIDDEN, "hidden communication"), (_EXPOSED, "exposed communication")]
    handles = [Patch(color=color, label=label) for color, label in labels]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return encoded(figure, form)


def _name(
    axes: Axes, whole: float, height: float, bars: Iterable[tuple[tuple[str, str], float, float]], *, beside: bool
) -> None:
    """Writes names into bars: the long name if there is room, else the short name.

    With ``beside``, a name that is too long is written upright or beside its bar, if there is room. Steps follow each
    other without gaps, so a name beside a step would seem to belong to other steps.
    """
    free = 0.0
    ordered = sorted(bars, key=lambda bar: bar[1])
    for at, ((long, short), begin, length) in enumerate(ordered):
        name = long if len(long) * _LETTER * whole <= length else short
        width, end = len(name) * _LETTER * whole, begin + length
        if beside and width > length >= _LINE * whole and len(name) <= _HIGH:
            center = begin + length / 2
            axes.text(center, height, name, ha="center", va="center", fontsize=8, color="white", rotation="vertical")
            free = max(free, end)
            continue
        if width > length and not beside:
            free = max(free, end)
            continue
        following = ordered[at + 1][1] if at + 1 < len(ordered) else whole
        if width <= length:
            left, color = end - (length + width) / 2, "white"
        elif end + 1.1 * width <= following:
            left, color = end + 0.05 * width, "black"
        else:
            left, color = begin - 1.05 * width, "black"
        if left >= free:
            axes.text(left + width / 2, height, name, ha="center", va="center", fontsize=8, color=color)
            free = left + width
        free = max(free, end)
