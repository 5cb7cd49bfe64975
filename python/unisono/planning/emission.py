"""Writes schedules as code for other tools, and imports schedules of other tools."""

import mimetypes
import os
from collections.abc import Mapping
from pathlib import Path

from unisono import _core
from unisono._core import InputError, Schedule
from unisono.base import names
from unisono.base.file_types import GPU_PLAN, SCHEDULE, reading
from unisono.base.files import check_folder, check_writable, file_name, read_text, title, write, write_folder
from unisono.base.reports import Diagnostic

__all__ = [
    "FORMATS",
    "IMPORTED_FORMATS",
    "PLANNED_FORMATS",
    "TARGETS",
    "TUNINGS",
    "check_registers",
    "check_target",
    "emission_notes",
    "emit",
    "emit_files",
    "import_schedule",
    "write_target",
]

#: The names of all formats of emitted code.
FORMATS = tuple(row["name"] for row in _core.emitters())
#: Formats that transform or restrict schedules, so that the best algorithm may differ from the machine's best.
PLANNED_FORMATS = ("csl", "csl-measured", "csl-module", "msccl-xml", "mscclpp")
#: Formats of files by which libraries choose among their own algorithms.
TUNINGS = tuple(row["name"] for row in _core.tunings())
#: The targets of plans: formats of code, tuning files of libraries, and ``preload``, a ``.plan`` for MPI programs.
TARGETS = (*FORMATS, *TUNINGS, "preload")
IMPORTED_FORMATS = tuple(row["name"] for row in _core.importers())

#: The forms of imported files that are not schedules, by format. ``_WRITER`` names the command that writes such files.
_FORMS_OF = {"mscclpp": GPU_PLAN}
_WRITER = "'unisono emit --format {}' writes one"


def emit_files(
    schedule: Schedule,
    target: str,
    *,
    in_place: bool | None = None,
    gpus_per_box: int | None = None,
    thread_blocks: int | None = None,
) -> dict[str, str | bytes]:
    """Returns the files of a target, as text or bytes by relative path; the schedule is proved first.

    ``in_place`` means that calls give one buffer as input and output. ``gpus_per_box`` is the number of GPUs that share
    memory. ``thread_blocks`` is the number of thread blocks that share the work of a GPU. Only ``"mscclpp"`` has these
    options, and ``"msccl-xml"`` the last, as instances. By default a plan is in place if ``torch.distributed`` is
    (allreduce, broadcast, reduce), and the boxes are those of the machine. The default number of thread blocks is the
    fastest one in simulations if the machine has the rates of thread blocks, else it follows from the size of chunks.

    Raises:
        InputError: there is no such target.
        VerifyError: the proof fails.
        NotExpressibleError: the target cannot express the schedule, with the reason.

    """
    form = names.format_of(names.named("the target", target))
    return _core.emit(schedule, form, in_place, gpus_per_box, thread_blocks)


def emission_notes(schedule: Schedule, target: str, files: Mapping[str, str | bytes] | None = None) -> list[str]:
    """Returns sentences on what the files of a target leave out or add for the collective of a schedule.

    With ``files``, the result of :func:`emit_files`, only sentences that apply to these files are returned.
    """
    texts = None if files is None else [text for text in files.values() if isinstance(text, str)]
    form = names.format_of(names.named("the target", target))
    notes = _core.emission_notes(schedule, form, texts)
    # A step of MSCCL fixes the order of its operands, which changes the bits of operators other than a sum.
    if form == "msccl-xml" and texts and schedule.operator != "sum" and schedule.verify().repeatable:
        found = _core.check_plan(texts[0], "msccl-xml")
        if found["complete"] and not found["repeatable"]:
            reason = found["unlike_elements"] or "its steps have another order of operands"
            notes.append(f"results of the file may differ between ranks, and those of the schedule do not: {reason}")
    return notes


def emit(
    schedule: Schedule,
    target: str,
    folder: str | os.PathLike[str],
    *,
    in_place: bool | None = None,
    gpus_per_box: int | None = None,
    thread_blocks: int | None = None,
) -> list[str]:
    """Writes a schedule as code for ``target`` (such as ``"csl"``) into a folder, and returns the files' names.

    ``folder`` may be the name of a file instead, such as ``ring.goal``, if the target is a single file with that
    ending. ``in_place``, ``gpus_per_box`` and ``thread_blocks`` are as in :func:`emit_files`.

    Raises:
        InputError: there is no such target, or the folder cannot be one.
        VerifyError: the proof fails.
        NotExpressibleError: the target cannot express the schedule, with the reason; nothing is written.
        InputError: the folder holds CSL of another emission.

    """
    check_target(folder)
    files = emit_files(schedule, target, in_place=in_place, gpus_per_box=gpus_per_box, thread_blocks=thread_blocks)
    check_emission(folder, files)
    write_target(folder, files)
    return list(files)


#: The endings of files of this program and of its formats, beside those that are known to the system.
_OWN_ENDINGS = {".csl", ".goal", ".plan", ".registers", ".sched"}


def check_target(path: str | os.PathLike[str]) -> None:
    """Raises an error early if :func:`write_target` would fail.

    Raises:
        InputError: the path can be neither a folder nor, if it has an ending, a file.

    """
    target = Path(file_name(path))
    if target.suffix and not target.is_dir():
        check_writable(path)
    else:
        check_folder(path)


def check_emission(path: str | os.PathLike[str], files: Mapping[str, str | bytes]) -> list[str]:
    """Returns the existing files with other contents that :func:`write_target` will replace.

    Raises:
        InputError: the folder holds CSL of another emission, which would remain among the new files; or the path has
            the ending of a file that is not the only one.

    """
    target = Path(file_name(path))
    if not target.is_dir():
        only = next(iter(files)) if len(files) == 1 else ""
        is_file_name = target.suffix in _OWN_ENDINGS or mimetypes.guess_type(target.name)[0] is not None
        if is_file_name and target.suffix != Path(only).suffix:
            accepted = f"a file that ends in {Path(only).suffix}, and a folder" if only else "a folder"
            raise InputError(f"'{title(path)}' has the ending of another file; accepted are names of {accepted}")
        return []
    others = sorted(p for p in target.rglob("*.csl") if p.is_file() and str(p.relative_to(target)) not in files)
    if any(name.endswith(".csl") for name in files) and others:
        raise InputError(
            f"'{title(path)}' holds files of another program, such as {others[0].relative_to(target)}, which would "
            "stay between the new ones; empty it, or name another folder"
        )
    old = {name: target / name for name in files if (target / name).is_file()}
    new = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return [str(file) for name, file in old.items() if file.read_bytes() != new[name]]


def write_target(path: str | os.PathLike[str], files: Mapping[str, str | bytes]) -> list[str]:
    """Writes files into a folder, or a single file to a path with its ending; returns the paths written.

    Raises:
        InputError: the path can be neither a folder nor a file.
        OSError: a file cannot be written.

    """
    only = next(iter(files)) if len(files) == 1 else ""
    target = Path(file_name(path))
    if only and target.suffix == Path(only).suffix and not target.is_dir():
        write(path, files[only])
        return [str(target)]
    return [str(target / name) for name in write_folder(path, files)]


def import_schedule(
    path: str | os.PathLike[str],
    source: str,
    elements: int | None = None,
    dtype: str | None = None,
    op: str | None = None,
    root: int | None = None,
) -> Schedule:
    """Imports the schedule in another tool's file (as ``"msccl-xml"``); ``schedule.verify()`` then proves it.

    Values that are not given are those of the file; if the file lacks them, one element a chunk, ``f32``, ``sum`` and
    root 0.

    Raises:
        InputError: there is no such format, or the file is wrong; the message names the line.
        OSError: the file cannot be read.

    """
    text = read_text(path, kind=f"a file of the format {source}")
    with reading(path, f"file of the format {source}", (_FORMS_OF.get(source, SCHEDULE),), _WRITER.format(source)):
        return _core.import_schedule(text, source, title(path), elements, dtype, op, root)


def check_registers(path: str | os.PathLike[str]) -> list[Diagnostic]:
    """Returns the first fault of the registers in a file; empty if they agree, so that a schedule can be derived.

    Raises:
        InputError: a line is not a line of registers.
        OSError: the file cannot be read.

    """
    return _core.check_registers(read_text(path, kind="a file of registers"), title(path))
