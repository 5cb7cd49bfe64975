"""Encodes figures as picture files, so that the same figure always gives the same bytes."""

import io
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["FORMS", "Form", "encoded", "form_of", "thousands"]

Form = Literal["png", "svg", "pdf"]
#: The formats of pictures, which are also the endings of file names.
FORMS: tuple[Form, ...] = ("png", "svg", "pdf")
#: The metadata that is removed from pictures, because dates, versions and program names would change the bytes.
_METADATA: dict[Form, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_DPI = 150


def form_of(path: str) -> Form:
    """Returns the format of a file by its name, whose ending must be one of :data:`FORMS`."""
    ending = path.lower().rpartition(".")[2]
    assert ending in FORMS, path
    return ending


def encoded(figure: "Figure", form: Form = "png", dpi: int = _DPI) -> bytes:
    """Returns the figure as a file of that format; ``dpi`` is the resolution of a PNG."""
    # Imported late, because the names of formats are checked without drawing.
    import matplotlib as mpl

    file = io.BytesIO()
    # Without a salt the ids in an SVG are random.
    with mpl.rc_context({"savefig.dpi": dpi, "svg.hashsalt": "unisono"}):
        figure.savefig(file, format=form, metadata=dict(_METADATA[form]))
    return file.getvalue()


def thousands(axis: "Axis") -> None:
    """Separates thousands in the numbers of a linear axis whose limits are set and that has such numbers."""
    if axis.get_view_interval()[1] >= 1000:
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
