"""Builds the packages of a release: the source archive, and from it a wheel for any Linux with glibc 2.17 or newer.

Usage: .venv-wheel/bin/python tools/wheel.py [FOLDER]   (default: out/packages)

The wheel is built from the unpacked archive, so the archive is complete. Zig links for the old C library. auditwheel
then confirms the version for every library and program in the wheel. Prints the names of the two files and of the
recipes in `recipes/`, filled in with the archive's checksum.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The oldest C library that Rust's standard library works with.
GLIBC = "2.17"
#: The recipes for conda-forge and Spack.
RECIPES = ("conda/recipe.yaml", "spack/package.py")


def main() -> None:
    """Builds both packages, and fills in the recipes."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/packages").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # In a fixed folder, cargo does not compile the whole workspace again.
    work = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "wheel"
    archive = folder / build("build_sdist", ROOT, folder)
    shutil.rmtree(work / "source", ignore_errors=True)
    with tarfile.open(archive) as packed:
        # The files keep their modification times, by which cargo decides which crates to compile.
        packed.extractall(work / "source", filter="data")
    (source,) = (work / "source").iterdir()
    wheel = folder / build("build_wheel", source, folder, CARGO_TARGET_DIR=str(work / "target"))
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True, check=True
    )
    tag = f"manylinux_{GLIBC.replace('.', '_')}_"
    if f'platform tag: "{tag}' not in " ".join(shown.stdout.split()):
        raise SystemExit(f"error: the wheel needs a newer C library than {GLIBC}:\n{shown.stdout}")
    recipes = [fill(ROOT / "recipes" / recipe, folder / recipe, archive) for recipe in RECIPES]
    sys.stdout.write("".join(f"{path}\n" for path in (archive, wheel, *recipes)))


def fill(recipe: Path, filled: Path, archive: Path) -> Path:
    """Writes a recipe with the checksum of the archive in place of zeros."""
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    filled.parent.mkdir(exist_ok=True)
    filled.write_text(recipe.read_text(encoding="utf-8").replace("0" * 64, checksum), encoding="utf-8")
    return filled


def build(call: str, source: Path, folder: Path, **changed: str) -> str:
    """Calls a function of the build backend in a folder of sources, and returns the name of the built file."""
    settings = {"glibc": GLIBC} if call == "build_wheel" else {}
    program = "import sys; sys.path.insert(0, 'tools'); import build_backend as b"
    program += f"; print(b.{call}({str(folder)!r}, {settings}))"
    tools = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **changed}
    for name in ("VIRTUAL_ENV", "PYO3_CONFIG_FILE", "PYO3_PYTHON"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=source, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"error: {call} failed in {source}; the reason is above")
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main()
