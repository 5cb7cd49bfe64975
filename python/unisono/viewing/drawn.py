"""The panel of a figure that `unisono.pictures` draws."""

import base64
from typing import Any

__all__ = ["panel"]


def panel(title: str, note: str, svg: bytes) -> dict[str, Any]:
    """Returns the panel of a figure in SVG; the page holds the figure itself, since it loads nothing."""
    image = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return {"kind": "picture", "title": title, "note": note, "image": image}
