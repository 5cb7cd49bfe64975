"""Builds wheels and source archives for pip: those of maturin, with the library for MPI programs in the wheel.

Python packaging tools call these functions (PEP 517 and 660) in the folder of the project. A source archive holds the
files that git tracks, because maturin leaves out crates and data that only the library and the presets need.
"""

import filecmp
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import maturin

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, Any] | None

_ROOT = Path(__file__).resolve().parents[1]
_LIBRARY = "libunisono_preload.so"
#: The list of the files of an unpacked source archive, which is no checkout.
_MANIFEST = "MANIFEST"


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:  # noqa: ARG001
    """Needs nothing from an index; Rust is the one thing that pip cannot install."""
    _need_rust()
    return []


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    """As for a wheel."""
    return get_requires_for_build_wheel(settings)


def get_requires_for_build_sdist(settings: Settings = None) -> list[str]:  # noqa: ARG001
    """Needs nothing: a source archive is not compiled."""
    return []


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """The metadata alone, of the same name and version."""
    _need_rust()
    found: str = maturin.prepare_metadata_for_build_wheel(folder, settings)
    return found


def prepare_metadata_for_build_editable(folder: str, settings: Settings = None) -> str:
    """As for a wheel."""
    return prepare_metadata_for_build_wheel(folder, settings)


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Writes the wheel into a folder, and returns its name."""
    _build_library()
    made: str = maturin.build_wheel(folder, settings, metadata)
    return made


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Writes a wheel that leads to this folder, and returns its name."""
    _build_library()
    made: str = maturin.build_editable(folder, settings, metadata)
    return made


def build_sdist(folder: str, settings: Settings = None) -> str:  # noqa: ARG001
    """Writes the source archive into a folder, and returns its name."""
    version = _version()
    top = f"unisono-{version}"
    names = _files()
    about = f"Metadata-Version: 2.1\nName: unisono\nVersion: {version}\n"
    made = {"PKG-INFO": about, _MANIFEST: "".join(f"{name}\n" for name in names)}
    with tarfile.open(Path(folder) / f"{top}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.add(_ROOT / name, f"{top}/{name}", recursive=False)
        for name, text in made.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{top}.tar.gz"


def _version() -> str:
    """The version of the workspace, which Cargo.toml states."""
    import tomllib

    with (_ROOT / "Cargo.toml").open("rb") as file:
        version: str = tomllib.load(file)["workspace"]["package"]["version"]
    return version


def _files() -> list[str]:
    """The files of the project: those that git tracks, or those that an unpacked archive lists."""
    if (_ROOT / _MANIFEST).is_file():
        return (_ROOT / _MANIFEST).read_text(encoding="utf-8").splitlines()
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("error: a source archive is made from a git checkout, and this folder is none") from None
    listed = [name for name in done.stdout.decode().split("\0") if name]
    if "Cargo.toml" not in listed:
        raise SystemExit("error: a source archive is made from a git checkout of Unisono, and this folder is none")
    return sorted(name for name in listed if (_ROOT / name).is_file())


def _need_rust() -> None:
    if shutil.which("cargo") is None:
        raise SystemExit(
            "error: building Unisono needs Rust, and 'cargo' was not found; install it, or a prebuilt wheel"
        )


def _build_library() -> None:
    """Compiles the library for MPI programs and puts it where maturin takes it into the wheel; it is for Linux."""
    _need_rust()
    if platform.system() != "Linux":
        return
    # Cargo says where it puts the library, which its settings decide.
    command = ["cargo", "build", "--release", "--locked", "--package", "unisono-preload"]
    command.append("--message-format=json-render-diagnostics")
    done = subprocess.run(command, cwd=_ROOT, check=False, stdout=subprocess.PIPE)
    made = [name for line in done.stdout.splitlines() for name in json.loads(line).get("filenames", [])]
    found = [Path(name) for name in made if Path(name).name == _LIBRARY]
    if done.returncode or not found:
        raise SystemExit("error: the library for MPI programs was not built; the reason is above")
    built = found[-1]
    place = _ROOT / "python" / "unisono" / "_lib"
    place.mkdir(exist_ok=True)
    # Programs may be running with the library: it is replaced whole, and only where it differs.
    if not (place / _LIBRARY).is_file() or not filecmp.cmp(built, place / _LIBRARY, shallow=False):
        new = place / f".{_LIBRARY}.{os.getpid()}"
        shutil.copy2(built, new)
        new.replace(place / _LIBRARY)
