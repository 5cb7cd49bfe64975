"""Files in and out. What is written appears whole under its name, or not at all."""

import os
import stat
from pathlib import Path

from unisono._core import InputError, Registers, Schedule

#: The largest file that is read: 4 GiB.
MOST_BYTES = 2**32


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file.

    Raises:
        InputError: it is no regular file (a device may never end), has more than 4 GiB, or is not UTF-8.
        OSError: it cannot be read.

    """
    found = check_regular(path)
    if found.st_size > MOST_BYTES:
        raise InputError(f"'{os.fspath(path)}' has {found.st_size} bytes, and files are read up to {MOST_BYTES} bytes")
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"'{os.fspath(path)}' is not a text file: byte {error.start} is no UTF-8") from None


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """What the system knows of a file that may be read.

    Raises:
        InputError: it is no regular file (a device may never end).
        OSError: it is not there.

    """
    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"'{os.fspath(path)}' is not a regular file")
    return found


def check_writable(path: str | os.PathLike[str]) -> None:
    """Fails before long work where :func:`write` is bound to fail after it.

    Raises:
        InputError: the folder of the file does not exist or cannot be written to, or the path is a folder.

    """
    if _is_device(path):
        return
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError(f"cannot write '{os.fspath(path)}': it is a folder")
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{os.fspath(path)}': there is no folder '{target.parent}'")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write '{os.fspath(path)}': the folder '{target.parent}' is not writable")


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes a file whole: into a neighbour first, which then takes its name.

    Raises:
        InputError: the path cannot be a file.
        OSError: it cannot be written; what was there before still is.

    """
    check_writable(path)
    raw = data.encode() if isinstance(data, str) else data
    if _is_device(path):
        Path(path).write_bytes(raw)
        return
    # A link keeps pointing where it did.
    target = Path(path).resolve()
    neighbour = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        neighbour.write_bytes(raw)
        neighbour.replace(target)
    except BaseException:
        neighbour.unlink(missing_ok=True)
        raise


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a pipe, a terminal or the like, which takes data but cannot be replaced."""
    file = Path(path)
    return file.exists() and not (file.is_file() or file.is_dir())


def load(path: str | os.PathLike[str]) -> Schedule:
    """The schedule in a ``.sched`` or ``.json`` file.

    Raises:
        InputError: the file is damaged or of another version; the message names line and place.
        OSError: it cannot be read.

    """
    text, origin = read_text(path), os.fspath(path)
    return Schedule.parse_json(text, origin) if origin.endswith(".json") else Schedule.parse(text, origin)


def save(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Writes a schedule: as JSON where the path ends in ``.json``, as text (``.sched``) elsewhere.

    Raises:
        InputError: the path cannot be a file.
        OSError: it cannot be written; no half-written file is left.

    """
    write(path, schedule.to_json() if os.fspath(path).endswith(".json") else schedule.to_text())


def load_registers(path: str | os.PathLike[str]) -> Registers:
    """The registers of switches that reduce, in a ``.registers`` file.

    Raises:
        InputError: the file is damaged; the message names the line.
        OSError: it cannot be read.

    """
    return Registers.parse(read_text(path), os.fspath(path))


def check_folder(path: str | os.PathLike[str]) -> None:
    """Fails before long work where :func:`write_folder` is bound to fail after it.

    Raises:
        InputError: the path is a file, or its parent does not exist.

    """
    folder = Path(path).resolve()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"cannot write to '{os.fspath(path)}': it is a file, not a folder")
    if not folder.parent.is_dir():
        raise InputError(f"cannot write to '{os.fspath(path)}': there is no folder '{folder.parent}'")


def write_folder(path: str | os.PathLike[str], files: dict[str, str]) -> list[str]:
    """Writes files, by relative path, into a folder that is made if it is missing; returns their names.

    Raises:
        InputError: the path cannot be a folder.
        OSError: a file cannot be written.

    """
    check_folder(path)
    folder = Path(path)
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, text)
    return list(files)
