"""An HTML page that contains its data, its program and its style, and loads nothing from a network."""

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from unisono._core import UnsupportedError, __version__

__all__ = ["page"]

#: The program and the style of the page, which Vite builds from the folder `web`.
_PROGRAM, _STYLE = "view.js", "view.css"
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, form: str, facts: Mapping[str, Any], panels: Sequence[Mapping[str, Any]]) -> str:
    """Returns the page of a subject, with its facts and its panels in order; ``form`` names the kind of subject.

    Raises:
        ValueError: a number of the data is infinite or NaN.
        UnsupportedError: this installation has no program for pages.

    """
    data = {"title": title, "form": form, "facts": facts, "panels": panels, "version": __version__}
    # "<" is escaped, because it can begin text that a browser takes for the end of a script.
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)} - Unisono</title>\n<style>{_part(_STYLE)}</style>\n</head>\n<body>\n"
        '<div id="page"><noscript>This page needs JavaScript.</noscript></div>\n'
        f'<script type="application/json" id="data">{text}</script>\n<script>{_part(_PROGRAM)}</script>\n'
        "</body>\n</html>\n"
    )


def _part(name: str) -> str:
    part = files("unisono").joinpath("_web", name)
    if not part.is_file():
        raise UnsupportedError("this installation has no program for pages; in a checkout, 'make build' makes it")
    return part.read_text(encoding="utf-8")
