"""The site's page of unsafe code, from the sources of the five crates with unsafe code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The path of the page on the site; docs/ has no such file.
PAGE = "unsafe.md"
CRATES = ("fabric", "mpi", "preload", "py", "taskrun")
_SHOWN = 90
_HEAD = """# Unsafe code

Five crates contain unsafe code: `mpi` calls the MPI library and computes on addresses, `preload` exports C functions,
`taskrun` passes the memory of programs to MPI, `py` passes the addresses of Python's arrays to `taskrun`, and
`fabric`, a program of its own, calls the system. In all other crates the compiler forbids it. Clippy requires an
argument (`SAFETY`) for every block, and one operation a block. `make site` makes this page from the sources, and a
test checks that every block has its argument.

## Assumptions
The arguments below make these assumptions, which Unisono cannot check:
* **Handles are valid.** Communicators, datatypes and operators come from the program, which got them from the same MPI
  library. An invalid handle is an error of the program, as in a call of MPI itself. A program does not free its own
  operator while a call with it is under way.
* **Addresses and counts of a C program are correct.** They describe memory of the program, as in a call of MPI.
  `preload` refuses only arguments that are visibly wrong: a missing address, `MPI_IN_PLACE` as the address of a result,
  counts that are negative or too large.
* **Arrays of Python belong to a call until it is complete.** The buffer protocol prevents their release and
  resizing (`numpy.ndarray.resize` with `refcheck=False` disables this protection). Data that another thread writes
  meanwhile is lost or mixed, and stays inside the array.
* **Programs of a plan stay inside their buffers**, which reading a plan checks
  (`crates/schedule/src/plan_file/read.rs`).
* **The MPI library conforms to MPI**, and writes to a message's memory only until its request has ended.
* **The platform is 64-bit little-endian Linux**, on which integers and handles take a register or a slot of the stack
  each. `Library::find` finds no library on other platforms.

## Lifetimes and locks
MPI may write to the memory of a call until the call is complete. A call of Python therefore belongs to a list of the
process (`CALLS` in `crates/taskrun/src/channel/mod.rs`), with its arrays, its scratch memory and its communicator. It
stays there if the last reference in Python is dropped, after an exception, and after Ctrl-C during the wait. Later
calls advance it, and so does the end of the program, before mpi4py finalizes MPI. The end of the program waits for 30
seconds (`UNISONO_PATIENCE`). A call that failed, and a call that other ranks do not join within this time, are never
freed.

An exchange of a program of tasks (`crates/taskrun/src/`) keeps its arrays and its packed data until its messages have
ended, and so does a message that was packed. A run returns when all of them have ended. After an error, which ends all
ranks, the memory of exchanges that have not ended is never freed.

The mutex of the list is held only to move a value, and never during a wait, a call of MPI, or code of Python. A thread
that works on a channel takes the channel's state out. A second thread finds no state, and gets an error. Threads that
MPI does not permit (less than `MPI_THREAD_MULTIPLE`) get an error too.

`make sanitize` runs all of this under valgrind.
"""
_UNSAFE = re.compile(r"\bunsafe\b")
_FUNCTION = re.compile(r"\bfn (\w+)|macro_rules! (\w+)|impl(?:<[^>]*>)? (?:[\w:]+ for )?([A-Z]\w*)")


def page() -> str:
    """Returns the text of the page."""
    parts = [_HEAD]
    total = 0
    for crate in CRATES:
        for file in sorted((ROOT / "crates" / crate / "src").glob("**/*.rs")):
            rows = _rows(file.read_text(encoding="utf-8").splitlines())
            if rows:
                total += len(rows)
                name = file.relative_to(ROOT).as_posix()
                parts.append(f"\n## {name}\n| in | code | argument |\n|---|---|---|\n" + "".join(rows))
    parts.insert(1, f"\n{total} uses of `unsafe` follow, by file.\n")
    return "".join(parts)


def _rows(lines: list[str]) -> list[str]:
    rows = []
    within, signatures = "", 0
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        # The declaration of a function, macro or impl gives the name for its line and those that follow.
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
        text = "types: each is the function's in mpi.h; the block that calls it has the argument"
        rows.append(f"| `functions!` | {signatures} signatures of `PMPI_` functions | {text} |\n")
    return rows


def _code(lines: list[str], number: int) -> str:
    """Returns the code from the word `unsafe` to its closing brace."""
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
    """Returns the comment above, or the requirements for callers in the documentation of a function."""
    if "no_mangle" in lines[number]:
        return "the name is MPI's, or begins with `unisono_`, and this library is the only one that exports it"
    if "transmute" not in lines[number] and re.search(r"unsafe extern \"C\" (fn|\{)", lines[number]):
        if "{" in lines[number].split('"C"')[1][:2]:
            return "the C signatures of the loader's functions, on which every block that calls one relies"
        return "a type: the block that calls it has the argument"
    comment: list[str] = []
    at = number - 1
    while at >= 0 and not lines[at].strip().startswith("//"):
        # A statement may begin on lines above the word `unsafe`.
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
