"""Values and names in messages: printable, and short however long they are."""

import re
import reprlib

__all__ = ["MOST_MESSAGE", "counted", "cut", "printable", "sentence", "shown"]

#: Characters of one value, of one word of a message, and of a whole message.
MOST_VALUE, MOST_WORD, MOST_MESSAGE = 100, 200, 1500

#: Controls, marks that turn the direction of text, line separators, and halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")
_LONG_WORD = re.compile(rf"\S{{{MOST_WORD + 1},}}")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = MOST_VALUE
_short.maxlong = 60


def shown(value: object) -> str:
    """The value as Python writes it, shortened, for a message that names it.

    A value whose own text fails is named by its type.
    """
    try:
        text = _short.repr(value)
    except Exception:
        text = f"a value of type {type(value).__name__}"
    return cut(printable(" ".join(text.split())), MOST_VALUE)


def counted(number: int, noun: str) -> str:
    """``1 message``, ``2 messages``; the plural takes an s."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def printable(text: str) -> str:
    """The text with characters that act on a terminal, or that no encoding has, as escapes."""
    return _UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    # A byte of a name that is not UTF-8.
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, most: int) -> str:
    """The beginning and the end of a text that is longer than ``most``, with the number of characters left out."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 6
    return f"{text[:head]}[{len(text) - head - tail} characters more]{text[len(text) - tail :]}"


def sentence(text: str) -> str:
    """A message as one line of bounded length: long words are cut first, then the whole."""
    line = printable(" ".join(text.split()))
    return cut(_LONG_WORD.sub(lambda word: cut(word[0], MOST_WORD), line), MOST_MESSAGE)
