"""Finds booleans that a function reads and never computes, in the MIR of a build.

rustc 1.92 to 1.97 may remove a comparison that is still needed, if a function uses its outcome as a number and a caller
branches on it (rust-lang/rust#158206). The value is then undefined, and tests find it by chance only. ``python -m
tools.undefined_flags FOLDER`` reads all MIR files in a folder; its exit code is 1 if one has such a value.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: Beginnings of the lines that neither compute nor read a value.
SILENT = ("let ", "debug ", "Storage", "scope ", "//")
LOCAL = re.compile(r"_\d+")


def functions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the first line of each function, and the stripped lines of its body."""
    head, lines = "", list[str]()
    for line in text.splitlines():
        if not head and line.startswith("fn ") and line.endswith("{"):
            head, lines = line, []
        elif head and line.startswith("}"):
            yield head, lines
            head = ""
        elif head:
            lines.append(line.strip())


def undefined(head: str, lines: list[str]) -> set[str]:
    """Returns the local booleans of a function that are read, and are neither computed nor arguments."""
    computed, read = set(re.findall(r"(_\d+):", head)), set[str]()
    for line in lines:
        if line.startswith(SILENT):
            continue
        target, found, value = line.partition(" = ")
        if found and "(*" not in target:
            computed.update(LOCAL.findall(target)[:1])
        read.update(LOCAL.findall(re.sub(r'"[^"]*"', "", value if found else line)))
    flags = {m[1] for line in lines if (m := re.match(r"let (?:mut )?(_\d+): bool;", line))}
    return (read & flags) - computed


def main(folder: Path) -> int:
    files = sorted(folder.glob("unisono*.mir"))
    wrong = [
        f"{file.name}: {head}: {flag}"
        for file in files
        for head, lines in functions(file.read_text("utf-8", errors="replace"))
        for flag in sorted(undefined(head, lines))
    ]
    print(f"{len(files)} files of MIR, {len(wrong)} undefined truth values", *wrong, sep="\n")
    return int(not files or bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
