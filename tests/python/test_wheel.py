"""The wheel that maturin makes from the results of `make build`, without another compilation of Rust."""

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import unisono as un

from .conftest import ROOT, written

#: A replacement for cargo that compiles nothing: it describes the workspace, and reports an existing library.
CARGO = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
if "rustc" not in words:
    sys.exit(subprocess.call([{cargo!r}, *words]))
command = [{cargo!r}, "metadata", "--format-version", "1", "--no-deps", "--offline"]
(package,) = (p for p in json.loads(subprocess.check_output(command))["packages"] if p["name"] == "unisono-py")
(target,) = (t for t in package["targets"] if "cdylib" in t["kind"])
profile = {{"opt_level": "3", "debuginfo": 0, "debug_assertions": False, "overflow_checks": False, "test": False}}
print(json.dumps({{
    "reason": "compiler-artifact", "package_id": package["id"], "manifest_path": package["manifest_path"],
    "target": target, "profile": profile, "features": [], "filenames": [{library!r}], "executable": None,
    "fresh": True,
}}))
print(json.dumps({{"reason": "build-finished", "success": True}}))
"""


def test_the_wheel_holds_the_package_and_its_entry_point(tmp_path: Path) -> None:
    cargo = shutil.which("cargo")
    assert cargo is not None
    # maturin may change the library that it packs.
    library = shutil.copy(un._core.__file__, tmp_path / "lib_core.so")
    script = written(tmp_path / "cargo", CARGO.format(python=sys.executable, cargo=cargo, library=str(library)))
    script.chmod(0o755)
    env = {**os.environ, "CARGO": str(script), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    maturin = [str(Path(sys.executable).with_name("maturin")), "build", "--release", "--offline", "--locked"]
    options = ["--out", str(tmp_path / "wheels"), "--target-dir", str(tmp_path / "target"), "--auditwheel", "skip"]
    done = subprocess.run([*maturin, *options], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        points = configparser.ConfigParser()
        points.read_string(packed.read(about).decode())
        mode = packed.getinfo("unisono/_lib/unisono-fabric").external_attr >> 16
    assert mode & 0o111 == 0o111, "a program that installers leave executable"
    assert dict(points["console_scripts"]) == {"unisono": "unisono.__main__:main"}
    tracked = subprocess.run(["git", "ls-files", "python"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = {name.removeprefix("python/") for name in tracked.stdout.splitlines() if (ROOT / name).is_file()}
    built = {
        f"unisono/{name}"
        for name in (
            "_core.abi3.so",
            "_lib/libunisono_preload.so",
            "_lib/unisono-fabric",
            "_web/view.js",
            "base/_reported.py",
        )
    }
    assert sources | built <= names
    assert not [name for name in names if not name.startswith(("unisono/", "unisono-")) or "__pycache__" in name]
