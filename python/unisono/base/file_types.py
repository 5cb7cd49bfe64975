"""Recognises the form of a file that Unisono writes or reads by its name and first bytes."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unisono import _core
from unisono._core import InputError
from unisono.base.files import BYTE_ORDER_MARK, check_regular, exists, file_name, is_file, is_folder, read_text, title

__all__ = [
    "BOUND", "CERTIFICATE", "DIAGNOSIS", "EXPECTATION", "FORMS", "GPU_PLAN", "HEAD", "MACHINE", "PROBE", "PROGRAM",
    "REPORTED", "SCHEDULE", "form_of", "is_gpu_plan", "is_task_program", "reading", "rules_of",
]  # fmt: skip

BOUND = "certificate of a bound"
CERTIFICATE = "certificate of a schedule"
DIAGNOSIS = "diagnosis"
EXPECTATION = "expectation"
GPU_PLAN = "plan for GPUs"
MACHINE = "machine"
PROBE = "probe"
PROGRAM = "program"
SCHEDULE = "schedule"

#: The number of bytes at the beginning of a file by which its form is recognised.
HEAD = 4096


def form_of(path: str | os.PathLike[str]) -> str | None:
    """Returns the form of a file, recognised by its name and contents; None if no form matches.

    A plan for GPUs is recognised by its whole text, any other form by at most :data:`HEAD` bytes.
    """
    name = file_name(path)
    head = b"" if is_folder(name) else _beginning(name)
    return next((form for form, recognises in FORMS if recognises(name, head)), None)


@contextmanager
def reading(path: str | bytes | os.PathLike[str], what: str, wanted: tuple[str, ...], source: str) -> Iterator[None]:
    """Replaces an ``InputError`` of a reader by an error that names the file's form, if the form is not in ``wanted``.

    ``wanted`` are the forms that the reader accepts. For these forms, and for programs of other tools, the original
    error is raised. In the new error, ``what`` names an accepted file, and ``source`` is a clause on the commands that
    write such files.

    Raises:
        InputError: the file has another form, or is damaged.

    """
    try:
        yield
    except InputError:
        # The form PROGRAM is not reported, because programs may have any file name ending.
        form = form_of(file_name(path)) if exists(path) else None
        if form is None or form in (*wanted, PROGRAM):
            raise
        article = "" if form.startswith("rules") else "a "
        raise InputError(
            f"'{title(path)}' is {article}{form}, and no {what}; {source}, and 'unisono show' prints this file"
        ) from None


def is_gpu_plan(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file whose name ends in ``.json`` is an execution plan of MSCCL++; False for other names."""
    name = file_name(path)
    return name.endswith(".json") and is_file(name) and _core.is_gpu_plan(read_text(path))


def is_task_program(name: str) -> bool:
    """Returns whether a file begins like a program of tasks in JSON; False for a folder."""
    # The first list may be longer than the part of the file that is read, so only the first key is tested.
    return is_file(name) and re.match(rb'\s*{\s*"(buffers|tasks)"\s*:', _beginning(name)) is not None


def _beginning(name: str) -> bytes:
    check_regular(name)
    with open(name, "rb") as file:  # noqa: PTH123
        return file.read(HEAD).removeprefix(BYTE_ORDER_MARK)


#: The pattern of the beginning of a rule for NCCL and NCCLX, with a place for the sizes, which are two numbers for
#: NCCL. ``_RULES`` has, for each format of rules, the pattern of a file's beginning without its comments.
_OF_NCCL = r"(allgather|allreduce|broadcast|reduce|reducescatter) *, *{} *, *\w+ *, *(ll|ll128|simple|\*) *,"
_RULES = (
    ("openmpi-json", r'\s*{(?s:.*)"rule_file_version"'),
    ("openmpi-han", r"\s*(\d+\s+){8}(han|tuned)\b"),
    ("mpich-json", r'\s*{\s*"collective=\w+"'),
    ("ucc", r"\s*(export +)?UCC_\w+_TUNE *="),
    ("nccl-tuner-csv", r"\s*" + _OF_NCCL.format(r"\d+ *, *\d+")),
    ("ncclx-csv", r"\s*" + _OF_NCCL.format(r"(\d+|\*|[\[(]\d* *, *\d*[\])])")),
)


def rules_of(head: bytes) -> str | None:
    """Returns the format of a file of rules for a library, recognised by its first bytes; None if no format matches."""
    text = head.decode("utf-8", "replace")
    whole = len(head) < HEAD
    kept = "\n".join(line.partition("#")[0] for line in (text if whole else text.rpartition("\n")[0]).split("\n"))
    found = next((name for name, begin in _RULES if re.match(begin, kept)), None)
    return found or ("openmpi-rules" if _are_rules_of_openmpi(kept.split(), whole) else None)


def _are_rules_of_openmpi(words: list[str], whole: bool) -> bool:
    """Returns whether words are classic rules of Open MPI, or the beginning of such rules if the file is longer.

    Classic rules are nested lists of numbers. The length of each list precedes the list. The levels are collectives,
    sizes of communicators, and messages with four numbers each (five in version 2).
    """
    version = re.fullmatch(r"rule-file-version-(\d+)", words[0]) if words else None
    numbers = words[1:] if version else words
    if not all(word.isascii() and word.isdigit() and len(word) < 20 for word in numbers):
        return False
    width = 5 if version and int(version[1]) > 1 else 4
    left = iter(map(int, numbers))
    try:
        collectives = next(left)
        for _ in range(collectives):
            next(left)
            for _ in range(next(left)):
                next(left)
                for _ in range(next(left) * width):
                    next(left)
    except StopIteration:
        return not whole and len(numbers) > _MANY
    return collectives > 0 and next(left, None) is None


#: The minimum number of words at which the incomplete beginning of a file is accepted as rules of Open MPI.
_MANY = 64


def _begins(*marks: str) -> Callable[[str, bytes], bool]:
    return lambda _, head: head.startswith(tuple(mark.encode() for mark in marks))


def _ends(*endings: str) -> Callable[[str, bytes], bool]:
    return lambda name, _: name.endswith(endings)


def _holds(*keys: str) -> Callable[[str, bytes], bool]:
    """Returns a function that tests whether a file begins with ``{`` and has all these keys, in quotes, in its head."""
    return lambda _, head: head.lstrip()[:1] == b"{" and all(f'"{key}"'.encode() in head for key in keys)


def _is_machine(name: str, head: bytes) -> bool:
    return name.endswith(".toml") and re.search(rb"^kind *=", head, re.MULTILINE) is not None


def _is_program(name: str, head: bytes) -> bool:
    endings = (".et", ".et.gz", ".goal", ".hlo", ".toml", ".json", ".txt")
    return is_folder(name) or name.endswith(endings) or head.startswith((b"num_ranks", b"HloModule"))


#: Commands whose JSON is a report, with keys in its beginning. One command may print several kinds of report.
_REPORTS = (
    ("plan", ("collective", "machine", "algorithm")),
    ("workload", ("workload", "machine", "accelerators")),
    ("traffic", ("pattern", "machine", "level")),
    ("compare", ("level", "overlap", "fill", "rows")),
    ("discover", ("program", "rules", "nodes", "forwards")),
    ("simulate", ("machine", "sim", "queue_depth")),
    ("bench", ("collective", "per_node", "plan", "rows")),
    ("bound", ("collective", "machine", "bounds")),
    ("sweep", ("collective", "machine", "points")),
    ("verify", ("complete", "deadlock_free", "race_free")),
    ("verify", ("holds", "reason")),
)
#: The commands whose JSON `unisono show` prints.
REPORTED = tuple(sorted({"diagnose", "expect", "probe", *(command for command, _ in _REPORTS)}))

#: The forms with their tests, in the order in which they are tried.
FORMS: tuple[tuple[str, Callable[[str, bytes], bool]], ...] = (
    ("plan for MPI programs", _begins("UNISPLAN")),
    (CERTIFICATE, _begins("unisono-certificate")),
    # The key ``prices`` is not tested, because it is beyond the first bytes of a large certificate.
    (BOUND, lambda _, head: re.search(rb'"format" *: *"unisono-bound ', head) is not None),
    (GPU_PLAN, lambda name, _: is_gpu_plan(name)),
    (SCHEDULE, _begins("unisono-schedule", "unisono registers")),
    (SCHEDULE, _holds("version", "phases", "nodes")),
    (SCHEDULE, _ends(".xml")),
    (PROBE, _holds("machine", "factor", "cut", "accused")),
    (DIAGNOSIS, _holds("diagnosis_of", "machine", "library")),
    (EXPECTATION, _holds("collective", "rates", "library", "rows")),
    ("decision table", _holds("unisono_table", "rows")),
    ("trace", _holds("traceEvents")),
    ("part of a sweep", _holds("unisono_sweep")),
    *(("report", _holds(*keys)) for _, keys in _REPORTS),
    ("sweep", _begins("shape,elements,best")),
    ("rules for a library", lambda _, head: rules_of(head) is not None),
    (MACHINE, _is_machine),
    (PROGRAM, _is_program),
)
