"""Formats values and names for messages: printable, and of limited length."""

import re
import reprlib

__all__ = ["MOST_MESSAGE", "counted", "cut", "printable", "sentence", "shown", "size_text"]

#: The numbers of characters above which a value, a word of a message, and a whole message are shortened.
MOST_VALUE, MOST_WORD, MOST_MESSAGE = 100, 200, 1500

#: Control characters, direction marks, line separators, and surrogates.
_UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
_LONG_WORD = rf"\S{{{MOST_WORD + 1},}}"

_short = reprlib.Repr()
_short.maxstring = _short.maxother = MOST_VALUE
_short.maxlong = 60


def shown(value: object) -> str:
    """Returns the shortened ``repr`` of a value, for a message.

    A value whose `repr` fails is described by its type.
    """
    try:
        text = _short.repr(value)
    except Exception:
        text = f"a value of type {type(value).__name__}"
    return cut(printable(" ".join(text.split())), MOST_VALUE)


def counted(number: int, noun: str) -> str:
    """Returns a number and its noun: ``1 message``, ``2 messages``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def size_text(size: int) -> str:
    """Returns a size in the largest binary unit that divides it: ``4 KiB``, ``4097 B``."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def printable(text: str) -> str:
    """Returns the text with escapes for characters that control a terminal or have no encoding."""
    # Most texts are printable. For them the pattern is not compiled, which would lengthen the start of the program.
    return text if text.isprintable() else re.sub(_UNPRINTABLE, _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    # The surrogate of a byte in a file name that is not UTF-8.
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, most: int) -> str:
    """Returns the text; if it has more than ``most`` characters, a note of their number replaces its middle."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 6
    return f"{text[:head]}[{len(text) - head - tail} characters more]{text[len(text) - tail :]}"


def sentence(text: str) -> str:
    """Returns a message as one line of limited length: long words are cut first, then the whole line."""
    line = printable(" ".join(text.split()))
    return cut(re.sub(_LONG_WORD, lambda word: cut(word[0], MOST_WORD), line), MOST_MESSAGE)
