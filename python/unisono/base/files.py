"""Reads and writes the files that a user names. A written regular file appears complete under its name, or not at all.

Only regular files are read: a device or a pipe may never end. An error has the name of the file as the user gave it.
"""

import contextlib
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from unisono import _core
from unisono._core import InputError, Schedule
from unisono.base.messages import shown

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BYTE_ORDER_MARK",
    "MOST_DESCRIPTION_BYTES",
    "check_folder",
    "check_regular",
    "check_writable",
    "exists",
    "file_name",
    "is_file",
    "is_folder",
    "load",
    "parse_json",
    "read_bytes",
    "read_inside",
    "read_json",
    "read_text",
    "save",
    "title",
    "write",
    "write_figure",
    "write_folder",
]

#: The size limit of schedules, plans and lists of data, in bytes.
MOST_BYTES = 2**32
#: The byte order mark, with which spreadsheets and editors begin a text.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: The first bytes of a plan for MPI programs.
PLAN_MARK = b"UNISPLAN"
#: The size limit of descriptions (a machine, a workload or a table in JSON), in bytes.
MOST_DESCRIPTION_BYTES = 2**26
#: The size limit of files of libraries, in bytes.
MOST_LIBRARY_BYTES = 2**30

_ACCESS_LIST = "system.posix_acl_access"
#: The endings of files that hold a schedule or a plan, one of which a message names in a folder.
_OF_SCHEDULES = (".sched", ".plan", ".json", ".xml")


def file_name(path: str | bytes | os.PathLike[str]) -> str:
    """Returns the path as text for the system; bytes that are not UTF-8 become surrogates, as in `os.fsdecode`.

    Raises:
        InputError: the value is not a path, or has a character that no path has.

    """
    try:
        name = os.fsdecode(path)
        raw = os.fsencode(name)
    except (TypeError, UnicodeError):
        raise InputError(f"{shown(path)} is not the name of a file; accepted are text and paths") from None
    if b"\0" in raw:
        raise InputError(f"{shown(path)} is not the name of a file: it has a character that no name has")
    return name


def title(path: str | bytes | os.PathLike[str]) -> str:
    """Returns the name of a file as valid Unicode text, for messages and as the origin of its contents."""
    return file_name(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def exists(path: str | bytes | os.PathLike[str]) -> bool:
    """Returns whether a file or folder has that name."""
    return os.path.exists(file_name(path))


def is_file(path: str | bytes | os.PathLike[str]) -> bool:
    """Returns whether there is a regular file of that name."""
    return os.path.isfile(file_name(path))


def is_folder(path: str | bytes | os.PathLike[str]) -> bool:
    """Returns whether there is a folder of this name."""
    return os.path.isdir(file_name(path))


def read_bytes(
    path: str | bytes | os.PathLike[str], most: int = MOST_BYTES, kind: str = "", *, as_stored: bool = False
) -> bytes:
    """Reads a file of at most ``most`` bytes. Unless ``as_stored``, a byte order mark is dropped.

    ``kind`` names the accepted files in the error for a missing one.

    Raises:
        InputError: the file is not a regular file, or has more bytes.
        OSError: the file cannot be read.

    """
    if kind and not exists(path):
        raise FileNotFoundError(errno.ENOENT, f"there is no such file; accepted is {kind}", title(path))
    check_regular(path)
    with _named(path):
        # Another file may have replaced the checked one; without this flag, opening a FIFO would wait for its other
        # end.
        descriptor = os.open(file_name(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            _refuse_irregular(path, found)
            raw = b"" if found.st_size > most else _up_to(file, most + 1)
    if found.st_size > most or len(raw) > most:
        size = max(found.st_size, len(raw))
        raise InputError(f"'{title(path)}' has {size} bytes, and files of this kind are read up to {most} bytes")
    return raw if as_stored else raw.removeprefix(BYTE_ORDER_MARK)


def _up_to(file: BinaryIO, most: int) -> bytes:
    """Returns the first ``most`` bytes of a file, or all if it has fewer.

    The file is read in pieces, because one read of ``most`` bytes would allocate them all.
    """
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, 1 << 24))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def read_text(
    path: str | bytes | os.PathLike[str],
    most: int = MOST_BYTES,
    kind: str = "",
    *,
    as_stored: bool = False,
    with_mark: bool = False,
) -> str:
    """Reads the text of a file. Unless ``as_stored``, line ends become line feeds.

    A byte order mark is dropped, unless ``with_mark``. ``kind`` names the accepted files in the error for a missing
    one.

    Raises:
        InputError: the file is not a regular file, is longer than ``most`` bytes, is not UTF-8, or is a plan for MPI
            programs.
        OSError: the file cannot be read.

    """
    # A plan for MPI programs has no byte order mark, so a mark is dropped after this check.
    raw = read_bytes(path, most, kind, as_stored=True)
    if raw.startswith(PLAN_MARK):
        raise InputError(
            f"'{title(path)}' is a plan for MPI programs, whose schedules are proved whenever it is read; "
            "'unisono show' prints it"
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"'{title(path)}' is not a text file: byte {error.start} is not UTF-8") from None
    text = text if with_mark else text.removeprefix(BYTE_ORDER_MARK.decode())
    return text if as_stored else text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | bytes | os.PathLike[str], most: int = MOST_DESCRIPTION_BYTES, kind: str = "") -> Any:
    """Reads a file of JSON. ``kind`` names the accepted files in the error for a missing one.

    Raises:
        InputError: the text is not JSON (the message names the line), has a key twice, nests too deeply, or cannot be
            read as in :func:`read_text`.
        OSError: the file cannot be read.

    """
    try:
        return parse_json(read_text(path, most, kind))
    except RecursionError:
        raise InputError(f"'{title(path)}' is not read: its JSON nests too deeply") from None
    except ValueError as error:
        raise InputError(f"'{title(path)}' is not JSON: {error}") from None


def parse_json(text: str | bytes) -> Any:
    """Returns the value of a text of JSON that another program may have written.

    Raises:
        ValueError: the text is not JSON, or an object has a key twice, so that one of its values would be lost.
        RecursionError: the text nests too deeply.

    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {shown(next(key for key in made if keys.count(key) > 1))} is there twice")
    return made


def read_inside(folder: str | os.PathLike[str], named: str, what: str) -> str:
    """Reads the text of a file in ``folder`` or below.

    ``named`` is the name of the file as another file of the folder states it.

    Raises:
        InputError: the name leads out of the folder, also by a link, or there is no such text file.
        OSError: the file cannot be read.

    """
    outside = os.path.isabs(named) or ".." in re.split(r"[/\\]", named)
    if not outside:
        base = os.path.realpath(file_name(folder))
        path = os.path.realpath(os.path.join(base, file_name(named)))
        outside = os.path.commonpath([base, path]) != base
    if outside:
        raise InputError(f"{what} {shown(named)} is not in the folder of the file that names it; move it there")
    if not os.path.exists(path):
        raise InputError(f"{what} {shown(named)} does not exist in the folder '{title(folder)}'")
    return read_text(path, MOST_DESCRIPTION_BYTES)


def check_regular(path: str | bytes | os.PathLike[str]) -> os.stat_result:
    """Returns the status of a file that may be read.

    Raises:
        InputError: the name is empty, or the file is not a regular file (a device may never end).
        OSError: the file does not exist, or its status cannot be read.

    """
    if not os.fspath(path):
        raise InputError("the name of a file is empty; write '.' for the current folder")
    with _named(path):
        found = os.stat(file_name(path))
    _refuse_irregular(path, found)
    return found


def _refuse_irregular(path: str | bytes | os.PathLike[str], found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        name = os.fsdecode(path)
        inside: list[str] = []
        with contextlib.suppress(OSError), os.scandir(name) as entries:
            inside = sorted(entry.name for entry in entries if entry.name.endswith(_OF_SCHEDULES))
        hint = f", as {shown(os.path.join(name, inside[0]))}" if inside else ""
        raise InputError(f"'{title(path)}' is a folder, not a regular file; name a file in it{hint}")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"'{title(path)}' is not a regular file")


@contextlib.contextmanager
def _named(path: str | bytes | os.PathLike[str]) -> Iterator[None]:
    """Replaces the file name in errors of the system by the name that the user gave."""
    try:
        yield
    except OSError as error:
        # `OSError` chooses its subclass by the error number.
        raise OSError(error.errno, error.strerror or str(error), title(path)) from None


def check_writable(path: str | bytes | os.PathLike[str]) -> None:
    """Raises an error early if :func:`write` would fail.

    Raises:
        InputError: the folder of the file does not exist or cannot be written to, or the path is a folder, a read-only
            file, a pipe, a socket or a disk.

    """
    name = title(path)
    if _descriptor(path) is not None or _is_device(path):
        return
    target = os.path.realpath(file_name(path))
    folder = os.path.dirname(target)
    if os.path.isdir(target) or not os.path.basename(file_name(path)):
        raise InputError(f"cannot write '{name}': it is a folder")
    if not os.path.isdir(folder):
        raise InputError(f"cannot write '{name}': there is no folder '{title(folder)}'")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write '{name}': the folder '{title(folder)}' is not writable")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise InputError(f"cannot write '{name}': the file is read-only")


def check_files(*paths: str | None) -> None:
    """Raises an error early if one of the files to write cannot be written; an absent option is None.

    Raises:
        InputError: as for :func:`check_writable`.

    """
    for path in paths:
        if path is not None:
            check_writable(path)


def check_distinct(outputs: Mapping[str, str], reads: Iterable[str]) -> None:
    """Raises an error if a file that the command writes would replace another file of the command.

    ``outputs`` maps each option to its file. ``reads`` are words of the command line, some of which name files to read.

    Raises:
        InputError: an output is a file that is read, or two options write one file.

    """
    read = [file_name(text) for text in reads if is_file(text)]
    taken: dict[str, str] = {}
    for option, path in outputs.items():
        if _descriptor(path) is not None or _is_device(path):
            continue
        if is_file(path) and any(os.path.samefile(other, file_name(path)) for other in read):
            raise InputError(f"writing '{title(path)}' would replace the file that is read; name another file")
        other = taken.setdefault(os.path.realpath(file_name(path)), option)
        if other != option:
            raise InputError(f"{other} and {option} both write '{title(path)}'; name two files")


def write(path: str | bytes | os.PathLike[str], data: str | bytes) -> None:
    """Writes a whole file: first under another name in its folder, then renamed.

    Devices and descriptors are written directly. A replaced file's owner and permissions are kept. If the path is a
    link, its target is replaced.

    Raises:
        InputError: the path cannot be a file, or its owner cannot be kept.
        OSError: the file cannot be written; a previous regular file is unchanged.

    """
    check_writable(path)
    raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    with _named(path):
        if (descriptor := _descriptor(path)) is not None:
            _write_through(descriptor, raw)
        elif _is_device(path):
            with open(file_name(path), "wb", buffering=0) as device:
                _write_all(device.fileno(), raw)
        else:
            _replace(path, os.path.realpath(file_name(path)), raw)


def write_figure(folder: "Path", name: str, image: bytes, table: str) -> list[str]:
    """Writes a picture as ``NAME.png`` and its numbers as ``NAME.csv``, and returns both paths."""
    write(picture := folder / f"{name}.png", image)
    write(numbers := folder / f"{name}.csv", table)
    return [str(picture), str(numbers)]


def _replace(path: str | bytes | os.PathLike[str], target: str, raw: bytes) -> None:
    before = os.stat(target) if os.path.exists(target) else None
    # The temporary name is short, because the name of the target may already have the maximum length.
    neighbour = os.path.join(os.path.dirname(target), f".unisono-{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        # A new file has the system's default mode; a replacement is private until its mode is set.
        descriptor = os.open(neighbour, flags, 0o666 if before is None else 0o600)
        try:
            _write_all(descriptor, raw)
            if before is not None:
                _take_over(path, target, descriptor, before)
        finally:
            os.close(descriptor)
        os.replace(neighbour, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(neighbour)
        raise


def _take_over(path: str | bytes | os.PathLike[str], target: str, descriptor: int, before: os.stat_result) -> None:
    """Gives a new file the owner, the access control list and the permissions of the file that it replaces."""
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
        except PermissionError:
            message = f"cannot write '{title(path)}': it belongs to another user or group; remove it first"
            raise InputError(message) from None
    mode = stat.S_IMODE(before.st_mode)
    if hasattr(os, "getxattr"):
        try:
            os.setxattr(descriptor, _ACCESS_LIST, os.getxattr(target, _ACCESS_LIST))
        except OSError as error:
            # The file has no access control list, or the system does not support these lists.
            if error.errno not in (errno.ENODATA, errno.ENOTSUP, errno.ENOSYS):
                mode &= ~0o070
    os.fchmod(descriptor, mode)


def _write_all(descriptor: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(descriptor, left) :]


def _write_through(number: int, raw: bytes) -> None:
    """Writes to an open descriptor of this process, after the data that Python has buffered for it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    _write_all(number, raw)


def _descriptor(path: str | bytes | os.PathLike[str]) -> int | None:
    """Returns the descriptor that a path names, such as 1 for ``/dev/stdout``; None if the path names no descriptor."""
    name = file_name(path)
    if (number := {"/dev/stdout": 1, "/dev/stderr": 2}.get(name)) is not None:
        return number
    match = re.fullmatch(r"(?:/dev|/proc/self)/fd/([0-9]{1,6})", name)
    return int(match[1]) if match else None


def _is_device(path: str | bytes | os.PathLike[str]) -> bool:
    """Returns whether the path is a character device, such as ``/dev/null``, which a write does not replace.

    Raises:
        InputError: the path is a pipe, which would wait for a reader, a socket, or a disk, which would be overwritten.

    """
    name = file_name(path)
    if not os.path.exists(name) or os.path.isfile(name) or os.path.isdir(name):
        return False
    if stat.S_ISCHR(os.stat(name).st_mode):
        return True
    raise InputError(f"cannot write '{title(path)}': it is not a regular file; for a pipe, write to /dev/stdout")


def load(path: str | bytes | os.PathLike[str], *, elements: int | None = None, dtype: str | None = None) -> Schedule:
    """Reads the schedule in a ``.sched`` or ``.json`` file, or derives it from ``.registers`` or a plan for GPUs.

    A plan for GPUs is an execution plan of MSCCL++ (``.json``) or a file of MSCCL (``.xml``). A plan serves many sizes:
    its schedule is for ``elements`` of ``dtype``, as MPI counts them; by default for the size that the file states, or
    for the fewest elements.

    Raises:
        InputError: the file is damaged or of another version; the message names line and place.
        OSError: the file cannot be read.

    """
    origin = title(path)
    # A certificate has the digest of the stored characters, so line ends must not be converted.
    text = read_text(path, as_stored=not origin.endswith((".registers", ".xml", ".json")))
    # Imported late, because `file_types` imports this module.
    from unisono.base.file_types import GPU_PLAN, SCHEDULE, reading

    with reading(
        path, "schedule", (SCHEDULE, GPU_PLAN), "'unisono schedule' and 'unisono plan -o FILE.sched' write one"
    ):
        if origin.endswith(".xml"):
            return _core.import_schedule(text, "msccl-xml", origin, elements, dtype)
        if origin.endswith(".json") and _core.is_gpu_plan(text):
            return _core.import_schedule(text, "mscclpp", origin, elements, dtype)
        if elements is not None or dtype is not None:
            raise InputError(f"'{origin}' is a schedule of one size; elements and dtype are for plans for GPUs")
        if origin.endswith(".registers"):
            return _core.import_schedule(text, "registers", origin)
        if origin.endswith(".json"):
            return Schedule.parse_json(text, origin)
        first = next((line for line in text.split("\n") if line.partition(";")[0].strip()), "")
        if not first:
            raise InputError(f"'{origin}' is no schedule: it is empty")
        if not first.lstrip().startswith("unisono-"):
            begins = shown(first.strip())
            raise InputError(
                f"'{origin}' is no schedule: it begins with {begins}; 'unisono show' prints what is in a file"
            )
        return Schedule.parse(text, origin)


def save(schedule: Schedule, path: str | bytes | os.PathLike[str]) -> None:
    """Writes a schedule: as JSON if the path ends in ``.json``, else as text (``.sched``).

    Raises:
        InputError: the path cannot be a file.
        OSError: the file cannot be written; no incomplete file remains.

    """
    if not isinstance(schedule, Schedule):
        raise InputError(f"{shown(schedule)} is not a schedule; a plan has one as .schedule")
    write(path, schedule.to_json() if file_name(path).endswith(".json") else schedule.to_text())


def check_folder(path: str | bytes | os.PathLike[str]) -> None:
    """Raises an error early if :func:`write_folder` could not create the folder of that path.

    Raises:
        InputError: the path is a file, or its parent does not exist.

    """
    folder = os.path.realpath(file_name(path))
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InputError(f"cannot write to '{title(path)}': it is a file, not a folder")
    if not os.path.isdir(os.path.dirname(folder)):
        raise InputError(f"cannot write to '{title(path)}': there is no folder '{title(os.path.dirname(folder))}'")


def write_folder(path: str | bytes | os.PathLike[str], files: Mapping[str, str | bytes]) -> list[str]:
    """Writes files, given by relative path, into a folder, which is created if missing; returns these paths.

    Raises:
        InputError: the path cannot be a folder.
        OSError: a file cannot be written.

    """
    check_folder(path)
    # Imported late, because the import takes a twentieth of a start of the program.
    from pathlib import Path

    folder = Path(file_name(path))
    for name, contents in files.items():
        target = folder / name
        with _named(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        write(target, contents)
    return list(files)
