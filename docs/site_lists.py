"""Conversion of GitHub's lists to those of Python-Markdown."""

import re

__all__ = ["deepened"]

_ITEM = re.compile(r"(?:[*+-]|\d+\.) ")


def deepened(markdown: str) -> str:
    """Returns the text with an empty line before each list, and items indented by 4 spaces a level.

    GitHub accepts a list directly after a paragraph, and 2 or 3 spaces a level.
    """
    lines: list[str] = []
    code: int | None = None
    in_list = below_item = False
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if code is not None:
            # Within a block of code only the indentation of the block itself changes.
            lines.append((" " * _deep(code) + line[min(indent, code) :]) if text else "")
            code = None if text.startswith("```") else code
            continue
        is_item = _ITEM.match(text) is not None
        below_item = is_item if text and not indent else below_item
        if is_item and not in_list and lines and lines[-1]:
            lines.append("")
        in_list = bool(text) and (is_item or in_list)
        # Below text that is no item, 4 spaces make a block of code.
        is_code = indent > 3 and not below_item
        lines.append(line if is_code else " " * _deep(indent) + text if text else "")
        code = indent if text.startswith("```") else None
    return "\n".join(lines)


def _deep(indent: int) -> int:
    """Returns 4 spaces for each level of 2 spaces; 1 to 3 spaces, as under ``1. ``, are one level."""
    return 4 * (indent // 2) if indent > 3 else 4 * (indent > 0)
