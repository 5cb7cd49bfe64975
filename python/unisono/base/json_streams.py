"""Reads large files of JSON item by item, so that a long list in an object is never in memory as a whole."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from unisono._core import InputError
from unisono.base.files import check_regular, file_name, title

__all__ = ["members"]

#: The minimum number of characters of one read, and the maximum length of the text of an incomplete value.
_PIECE, _MOST = 1 << 20, 1 << 26
_BLANK = re.compile(r"[ \t\n\r]*")


def members(path: str | os.PathLike[str], long: str) -> Iterator[tuple[str, Any]]:
    """Yields the keys of the object in a file with their values, in the order of the file.

    Each item of the list with the key ``long`` is yielded separately. A key that occurs several times is yielded
    several times.

    Raises:
        InputError: the file is not JSON, is not an object, or has a value that is too long: 2^26 characters are
            always accepted, more than 2^27 never.
        OSError: the file cannot be read.

    """
    check_regular(path)
    with Path(file_name(path)).open(encoding="utf-8-sig") as file:
        try:
            yield from _Reader(file).members(long)
        except RecursionError:
            raise InputError(f"'{title(path)}' is not read: its JSON nests too deeply") from None
        except UnicodeDecodeError as error:
            raise InputError(f"'{title(path)}' is not a text file: byte {error.start} is not UTF-8") from None
        except ValueError as error:
            raise InputError(f"'{title(path)}' is not JSON: {error}") from None


class _Reader:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text, self._at, self._ended = "", 0, False
        # The position in the file of the first character of the text, as the number of lines before this character and
        # the number of characters before it in its line.
        self._lines, self._column = 0, 0
        self._decode = json.JSONDecoder().raw_decode

    def members(self, long: str) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        if self._next() != "}":
            while True:
                key = self._value()
                if not isinstance(key, str):
                    raise ValueError("a key is not text")
                self._expect(":")
                if key == long:
                    for item in self._items():
                        yield key, item
                else:
                    yield key, self._value()
                if self._next() != ",":
                    break
                self._at += 1
        self._expect("}")
        if self._next():
            raise ValueError("something follows the object")

    def _items(self) -> Iterator[Any]:
        self._expect("[")
        if self._next() != "]":
            while True:
                yield self._value()
                if self._next() != ",":
                    break
                self._at += 1
        self._expect("]")

    def _next(self) -> str:
        """Returns the next character that is not blank, or empty text at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def _expect(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            where = f"{self._place(self._at)}: {found!r} stands where '{mark}' is expected"
            raise ValueError(where if found else f"it ends before '{mark}'")
        self._at += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # The value may continue after the text read so far.
                if len(self._text) - self._at > _MOST:
                    raise ValueError(f"{self._place(self._at)} is a value of more than 64 MiB") from None
                if not self._read():
                    raise ValueError(f"{self._place(error.pos)}: {error.msg}") from None
                continue
            # A number at the end of the text may have more digits.
            if end < len(self._text) or not self._read():
                self._at = end
                return value

    def _passed(self, at: int) -> tuple[int, int]:
        """Returns the number of lines before a position in the text, and of characters before it in its line."""
        lines, last = self._text.count("\n", 0, at), self._text.rfind("\n", 0, at)
        return self._lines + lines, at - last - 1 if lines else self._column + at

    def _place(self, at: int) -> str:
        """Returns the line and column of a position in the text, both from 1, for messages."""
        lines, column = self._passed(at)
        return f"line {lines + 1} column {column + 1}"

    def _read(self) -> bool:
        """Reads more text, and drops the text before the current position; returns False at the end of the file."""
        piece = "" if self._ended else self._file.read(max(_PIECE, len(self._text) - self._at))
        self._ended = not piece
        self._lines, self._column = self._passed(self._at)
        self._text, self._at = self._text[self._at :] + piece, 0
        return bool(piece)
