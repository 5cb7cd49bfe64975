"""The shape of the code: which crate may know which, and that what lies in a registry's folder is registered."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import unisono as un

from .conftest import ROOT

_LEFT_OF_PLACED = {"base", "machine", "collective", "schedule"}
_LEFT_OF_CHOICE = _LEFT_OF_PLACED | {"lower", "algorithms", "cost", "emit"}
#: For every crate the crates that it may import: those further left in the line of layers, none in its own bracket.
#: base < [machine | collective] < schedule < lower < [algorithms | cost | emit] < sim < [plan | discover] < py, and
#: schedule < runtime < mpi < [preload | py].
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "machine": {"base"},
    "collective": {"base"},
    "schedule": {"base", "machine", "collective"},
    "lower": _LEFT_OF_PLACED,
    "algorithms": _LEFT_OF_PLACED | {"lower"},
    "cost": _LEFT_OF_PLACED | {"lower"},
    "emit": _LEFT_OF_PLACED | {"lower"},
    "sim": _LEFT_OF_CHOICE,
    "plan": _LEFT_OF_CHOICE | {"sim"},
    "discover": _LEFT_OF_CHOICE,
    "runtime": _LEFT_OF_PLACED,
    "mpi": _LEFT_OF_PLACED | {"runtime"},
    "preload": _LEFT_OF_PLACED | {"runtime", "mpi"},
    "py": _LEFT_OF_CHOICE | {"sim", "plan", "discover", "runtime", "mpi"},
    # Not part of the product: nothing may import it.
    "fuzz": _LEFT_OF_CHOICE | {"sim", "plan", "discover", "runtime"},
}
#: Folders where each file is one unit: the folder, and the constant of its `mod.rs` that lists them.
REGISTRIES = [
    (ROOT / "crates" / "algorithms" / "src" / "catalog", "ALGORITHMS"),
    (ROOT / "crates" / "cost" / "src" / "wafer" / "models", "MODELS"),
    (ROOT / "crates" / "emit" / "src" / "tuning" / "targets", "TUNINGS"),
    (ROOT / "crates" / "fuzz" / "src" / "targets", "TARGETS"),
    (ROOT / "crates" / "machine" / "src" / "network" / "catalog", "FAMILIES"),
    (ROOT / "crates" / "plan" / "src" / "targets", "TARGETS"),
]


def packages() -> dict[str, dict[str, object]]:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {p["name"].removeprefix("unisono-"): p for p in json.loads(done.stdout)["packages"]}


def test_imports_point_left_only() -> None:
    for name, package in packages().items():
        dependencies = package["dependencies"]
        assert isinstance(dependencies, list)
        # `path` is set for crates of this workspace. Tests may look anywhere, so development dependencies are free.
        ours = {d["name"].removeprefix("unisono-") for d in dependencies if d.get("path") and d["kind"] != "dev"}
        assert name in ALLOWED, f"crate '{name}' has no place in the line of layers"
        assert ours <= ALLOWED[name], f"crate '{name}' may not import {sorted(ours - ALLOWED[name])}"


def test_crates_are_named_after_their_folders() -> None:
    folders = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert folders == set(packages())


def test_only_the_extension_knows_python() -> None:
    for name, package in packages().items():
        dependencies = package["dependencies"]
        assert isinstance(dependencies, list)
        bindings = {d["name"] for d in dependencies} & {"pyo3", "numpy", "pythonize"}
        assert not bindings or name == "py"


@pytest.mark.parametrize(("folder", "constant"), REGISTRIES, ids=lambda value: getattr(value, "name", value))
def test_every_file_of_a_registry_is_registered(folder: Path, constant: str) -> None:
    text = (folder / "mod.rs").read_text()
    files = sorted(path.stem for path in folder.glob("*.rs") if path.stem != "mod")
    modules = re.findall(r"^(?:pub(?:\(crate\))? )?mod (\w+);", text, re.MULTILINE)
    assert modules == files, f"the `mod` lines of {folder.name}/mod.rs are its files, sorted"
    found = re.search(rf"pub(?:\(crate\))? const {constant}: &\[.*?= &\[(.*?)\];", text, re.DOTALL)
    assert found, f"{folder.name}/mod.rs has no list {constant}"
    entries = re.findall(r"(\w+)::\w+", found[1])
    # One file may hold two units, such as a bound as printed and as corrected.
    assert entries or modules == [], f"{constant} is empty"
    imported = dict(re.findall(r"use (\w+)::(\w+);", text))
    assert set(entries) | set(imported) >= set(files), f"{constant} lacks {sorted(set(files) - set(entries))}"
    assert entries == sorted(entries), f"{constant} is sorted by name"


def test_registered_algorithms_are_the_files() -> None:
    folder = REGISTRIES[0][0]
    files = sorted(path.stem.replace("_", "-") for path in folder.glob("*.rs") if path.stem != "mod")
    assert sorted(algorithm["name"] for algorithm in un.algorithms()) == files


def test_machine_files_are_the_presets() -> None:
    files = sorted(path.stem for path in (ROOT / "machines").glob("*.toml"))
    presets = un.machine_presets()
    assert [preset["name"] for preset in presets] == files
    for preset in presets:
        # A machine's text alone says all that the preset does.
        file = un.machine(ROOT / "machines" / f"{preset['name']}.toml")
        assert file.describe() == un.machine(preset["name"]).describe()


def test_minimum_rust_is_stated_once() -> None:
    stated = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated
    assert f"Rust >= {stated[1]}" in (ROOT / "README.md").read_text()
    assert not (ROOT / "rust-toolchain.toml").exists()


def test_continuous_integration_runs_every_test() -> None:
    script = ROOT / ".ci" / "run"
    assert "make test" in script.read_text()
    assert script.stat().st_mode & 0o111


def test_version_is_one() -> None:
    stated = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated
    assert un.__version__ == stated[1]
