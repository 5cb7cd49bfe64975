"""The page of unsafe code, docs/unsafe.md, from the sources of the three crates that have some."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("unsafe.md")
CRATES = ("mpi", "preload", "py")
_SHOWN = 90
_HEAD = """# Unsafe code

This page is made from the sources by `python docs/generate.py`, and a test compares the two. Unsafe code is in three
crates: `mpi` calls the MPI library and computes on addresses, `preload` exports C functions, `py` hands arrays of
Python to MPI. Everywhere else the compiler forbids it. Clippy demands an argument (`SAFETY`) for every block, and one
operation a block.

## Assumptions
The arguments below rest on these, which no check of ours can replace:
* **Handles are MPI's.** Communicators, datatypes and operators come from the program, which has them from the same MPI
  library. A number that is no handle is as wrong as in a call of MPI itself. A program does not free its own operator
  while a call with it is under way.
* **A C program's memory is as it states.** The addresses and counts that it gives to a collective are those of its
  memory, as in a call of MPI. `preload` refuses only what can be seen: no address, `MPI_IN_PLACE` where a result goes,
  negative and unfitting counts.
* **Arrays of Python are the call's until it is over.** The buffer protocol keeps them from being freed or resized
  (`numpy.ndarray.resize` with `refcheck=False` is told not to look); what another thread writes meanwhile is lost or
  mixed, and stays inside the array.
* **Programs of a plan stay inside their buffers**, which reading a plan checks (`schedule/src/plan_file/read.rs`).
* **The MPI library does what MPI says**, and writes to a message's memory only until its request has ended.
* **The platform is Linux with 64 bits, little-endian**, where integers and handles take a register or a slot of the
  stack each. `Library::find` finds no library elsewhere.

## Lifetimes and locks
MPI may write to the memory of a call until the call is over. A call of Python therefore belongs to a list of the
process (`UNDER_WAY` in `py/src/mpi/under_way.rs`), with its arrays, its scratch memory and its communicator. Dropping
the last reference in Python, an exception, or Ctrl-C during the wait leave it there. Later calls carry it on, and so
does the end of the program, before mpi4py finalizes MPI. A call that failed, and one that other ranks do not take part
in before the program's end loses its patience (30 seconds, `UNISONO_PATIENCE`), are never freed.

A mutex there is held to move a value, and never during a wait, a call of MPI, or code of Python. A thread that works on
a channel takes its state out; a second one finds none and is refused with an error. Threads that MPI does not serve
(less than `MPI_THREAD_MULTIPLE`) are refused too.

`make sanitize` runs all of this under valgrind.
"""
_UNSAFE = re.compile(r"\bunsafe\b")
_FUNCTION = re.compile(r"\bfn (\w+)|macro_rules! (\w+)|impl(?:<[^>]*>)? (?:[\w:]+ for )?([A-Z]\w*)")


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    total = 0
    for crate in CRATES:
        for file in sorted((ROOT / "crates" / crate / "src").glob("**/*.rs")):
            rows = _rows(file.read_text(encoding="utf-8").splitlines())
            if rows:
                total += len(rows)
                name = file.relative_to(ROOT / "crates").as_posix()
                parts.append(f"\n## {name}\n| in | code | argument |\n|---|---|---|\n" + "".join(rows))
    parts.insert(1, f"\n{total} uses of `unsafe` follow, by file.\n")
    return "".join(parts)


def _rows(lines: list[str]) -> list[str]:
    rows = []
    within, signatures = "", 0
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        # A function's own line names it, and so does that of an `unsafe impl`.
        if found := _FUNCTION.search(code):
            within = next(name for name in found.groups() if name)
        if not _UNSAFE.search(code) or "unsafe_" in code:
            continue
        if re.search(r'c"PMPI_\w+";$', line):
            signatures += 1
            continue
        argument = _argument(lines, number)
        rows.append(f"| `{within}` | `{_cell(_code(lines, number))}` | {_cell(argument)} |\n")
    if signatures:
        text = "types: each is the function's in mpi.h; who calls one has the argument"
        rows.append(f"| `functions!` | {signatures} signatures of `PMPI_` functions | {text} |\n")
    return rows


def _code(lines: list[str], number: int) -> str:
    """From the word on, until its braces are closed."""
    text = lines[number][lines[number].index("unsafe") :].strip()
    if lines[number].lstrip().startswith("#[unsafe"):
        text = lines[number].strip()
    elif re.match(r"unsafe (fn|extern|impl)", text):
        text = text.split("{")[0].strip().rstrip(";,")
    else:
        at = number + 1
        while text.count("{") > text.count("}") and at < len(lines):
            text += " " + lines[at].strip()
            at += 1
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 2].rstrip() + " …"


def _argument(lines: list[str], number: int) -> str:
    """The comment above, or what the documentation of a function asks of its callers."""
    if "no_mangle" in lines[number]:
        return "the name is MPI's, or begins with `unisono_`, and this library is the only one that exports it"
    if "transmute" not in lines[number] and re.search(r"unsafe extern \"C\" (fn|\{)", lines[number]):
        if "{" in lines[number].split('"C"')[1][:2]:
            return "the C signatures of the loader's functions, which every block that calls one goes by"
        return "a type: who calls it has the argument"
    comment: list[str] = []
    at = number - 1
    while at >= 0 and not lines[at].strip().startswith("//"):
        # A statement may begin on lines above the word.
        if lines[at].strip().endswith((";", "}")) or number - at > 4:
            return "**missing**"
        at -= 1
    while at >= 0 and lines[at].strip().startswith("//"):
        comment.insert(0, lines[at].strip().lstrip("/").strip())
        at -= 1
    text = " ".join(comment)
    if "SAFETY:" in text:
        return text.split("SAFETY:")[1].strip()
    if "# Safety" in text:
        return "callers promise: " + text.split("# Safety")[1].strip()
    return "**missing**"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
