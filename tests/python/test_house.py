"""The structure of the code: permitted imports between crates and packages, and complete registries."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import unisono as un

from .conftest import ROOT

_LEFT_OF_PLACED = {"base", "machine", "collective", "schedule"}
_LEFT_OF_CHOICE = _LEFT_OF_PLACED | {"lower", "synthesis", "algorithms", "cost"}
#: The crates of formats, and the list of them.
_FORMATS = {"tables", "formats", "gpu", "emit"}
#: The crates that each crate may import: those further left in these chains, none in its own bracket. base <
#: [machine | collective] < [schedule | workload] < lower < [algorithms | cost | formats] < sim < discover < plan < py,
#: collective < tables < plan, formats < [csl | gpu] < emit < plan, and schedule < runtime < mpi <
#: [preload | taskrun < py]; taskrun imports discover too.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "machine": {"base"},
    "collective": {"base"},
    "schedule": {"base", "machine", "collective"},
    "workload": {"base", "collective"},
    "lower": _LEFT_OF_PLACED,
    "synthesis": {"base", "machine"},
    "algorithms": _LEFT_OF_PLACED | {"lower", "synthesis"},
    "cost": _LEFT_OF_PLACED | {"lower", "synthesis"},
    "tables": {"collective"},
    "formats": _LEFT_OF_PLACED | {"lower", "workload"},
    "csl": _LEFT_OF_PLACED | {"lower", "formats"},
    "gpu": _LEFT_OF_PLACED | {"lower", "formats"},
    "emit": {"workload", "formats", "csl", "gpu"},
    "sim": _LEFT_OF_CHOICE,
    "plan": _LEFT_OF_CHOICE | _FORMATS | {"workload", "sim", "discover"},
    "discover": _LEFT_OF_CHOICE,
    "runtime": _LEFT_OF_PLACED,
    "mpi": _LEFT_OF_PLACED | {"runtime"},
    "preload": _LEFT_OF_PLACED | {"runtime", "mpi"},
    "taskrun": _LEFT_OF_PLACED | {"discover", "runtime", "mpi"},
    "py": _LEFT_OF_CHOICE | _FORMATS | {"workload", "sim", "plan", "discover", "runtime", "mpi", "taskrun"},
    # A separate program.
    "fabric": set(),
    # The last three are not part of the product: no crate may import them.
    "fuzz": _LEFT_OF_CHOICE | _FORMATS | {"workload", "sim", "plan", "discover", "runtime"},
    "tests": set(),
    "oracles": set(),
}
#: Folders with one unit a file, and the constant in `mod.rs` that lists the units.
REGISTRIES = [
    (ROOT / "crates" / "algorithms" / "src" / "catalog", "ALGORITHMS"),
    *((folder, "BOUNDS") for folder in sorted((ROOT / "crates" / "cost" / "src").glob("*/bounds"))),
    (ROOT / "crates" / "cost" / "src" / "wafer" / "models", "MODELS"),
    (ROOT / "crates" / "fuzz" / "src" / "targets", "TARGETS"),
    (ROOT / "crates" / "machine" / "src" / "network" / "catalog", "FAMILIES"),
    (ROOT / "crates" / "tables" / "src" / "targets", "TUNINGS"),
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
        # `path` is set for crates of this workspace. Tests may import any crate, so development dependencies are free.
        ours = {d["name"].removeprefix("unisono-") for d in dependencies if d.get("path") and d["kind"] != "dev"}
        assert name in ALLOWED, f"crate '{name}' has no place in the line of layers"
        assert ours <= ALLOWED[name], f"crate '{name}' may not import {sorted(ours - ALLOWED[name])}"


def features(*of: str) -> set[str]:
    """Returns every package with its version and features, as cargo compiles it with the options ``of``."""
    command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} [{f}]", *of]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.removesuffix(" (*)").replace(" (proc-macro)", "") for line in done.stdout.splitlines() if line}


def test_the_extension_and_the_tests_share_one_build() -> None:
    built = features("--package", "unisono-py", "--package", "unisono-preload", "--edges", "normal,build")
    assert built - features("--workspace") == set()
    assert features("--package", "unisono-py", "--edges", "normal,build") <= built


def test_crates_are_named_after_their_folders() -> None:
    folders = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert folders == set(packages())


def test_only_the_extension_knows_python() -> None:
    for name, package in packages().items():
        dependencies = package["dependencies"]
        assert isinstance(dependencies, list)
        bindings = {d["name"] for d in dependencies} & {"pyo3", "numpy", "pythonize"}
        assert not bindings or name == "py"


def registered(file: Path, constant: str) -> list[str]:
    """Returns the modules of the entries of a registry, in their order."""
    found = re.search(rf"pub(?:\(crate\))? const {constant}: &\[.*?=\s+&\[(.*?)\];", file.read_text(), re.DOTALL)
    assert found, f"{file} has no list {constant}"
    return re.findall(r"(\w+)::\w+", found[1])


@pytest.mark.parametrize(("folder", "constant"), REGISTRIES, ids=lambda value: getattr(value, "name", value))
def test_every_file_of_a_registry_is_registered(folder: Path, constant: str) -> None:
    text = (folder / "mod.rs").read_text()
    files = sorted(path.stem for path in folder.glob("*.rs") if path.stem != "mod")
    modules = re.findall(r"^(?:pub(?:\(crate\))? )?mod (\w+);", text, re.MULTILINE)
    assert modules == files, f"the `mod` lines of {folder.name}/mod.rs are its files, sorted"
    entries = registered(folder / "mod.rs", constant)
    # One file may have two units, such as a bound as printed and as corrected.
    assert entries or modules == [], f"{constant} is empty"
    imported = dict(re.findall(r"use (\w+)::(\w+);", text))
    assert set(entries) | set(imported) >= set(files), f"{constant} lacks {sorted(set(files) - set(entries))}"
    assert entries == sorted(entries), f"{constant} is sorted by name"


def test_every_kind_of_machine_has_its_bounds_registered() -> None:
    folders = {folder.parent.name for folder, constant in REGISTRIES if constant == "BOUNDS"}
    listed = re.search(
        r"pub const BOUNDS: .*?=\s+&\[(.*?)\];", (ROOT / "crates/cost/src/lib.rs").read_text(), re.DOTALL
    )
    assert listed
    assert re.findall(r"(\w+)::bounds::BOUNDS", listed[1]) == sorted(folders)
    assert folders == {path.stem for path in REGISTRIES[-1][0].glob("*.rs")} - {"mod"}


def test_every_output_format_is_registered() -> None:
    lib = ROOT / "crates" / "emit" / "src" / "lib.rs"
    of_gpus, others = (
        {path.parent.name for path in (ROOT / "crates" / crate / "src").glob("*/mod.rs")}
        for crate in ("gpu", "formats")
    )
    entries, read = registered(lib, "EMITTERS"), registered(lib, "IMPORTERS")
    assert entries == sorted(entries)
    assert read == sorted(read)
    # The formats of CSL are in a separate crate.
    assert set(entries) == of_gpus | others | {"csl"}
    assert set(read) < set(entries)
    assert set(registered(ROOT / "crates" / "gpu" / "src" / "lib.rs", "FORMATS")) == of_gpus


def test_registered_algorithms_are_the_files() -> None:
    folder = REGISTRIES[0][0]
    files = sorted(path.stem.replace("_", "-") for path in folder.glob("*.rs") if path.stem != "mod")
    assert sorted(algorithm["name"] for algorithm in un.algorithms()) == files


def test_machine_files_are_the_presets() -> None:
    files = sorted(path.stem for path in (ROOT / "machines").glob("*.toml"))
    presets = un.machine_presets()
    assert [preset["name"] for preset in presets] == files
    for preset in presets:
        # The file gives the same machine as the preset.
        file = un.machine(ROOT / "machines" / f"{preset['name']}.toml")
        assert file.describe() == un.machine(preset["name"]).describe()


def test_minimum_rust_is_stated_once() -> None:
    stated = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated
    assert f"Rust >= {stated[1]}" in (ROOT / "README.md").read_text()
    assert not (ROOT / "rust-toolchain.toml").exists()


def test_continuous_integration_runs_every_test() -> None:
    script = ROOT / ".ci" / "run"
    text = script.read_text()
    assert "make test" in text
    assert {"check-rust", "check-python"} <= set(text.split('beside="')[1].split('"')[0].split())
    assert script.stat().st_mode & 0o111


def test_no_file_holds_the_marks_of_an_unfinished_merge() -> None:
    marks = ["git", "grep", "--line-number", "-E", "^(<{7} |>{7} |={7}$)"]
    done = subprocess.run(marks, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr


def test_comments_in_rust_end_by_column_120() -> None:
    """Comments fit in 120 columns, although rustfmt does not break them; tables and aligned text may be longer."""
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "crates").rglob("*.rs"))
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        if len(line) > 120 and re.match(r"\s*//[/!]? [^|]*$", line) and "   " not in line.strip()
    ]
    assert not long, long


def comments() -> Iterator[str]:
    """Yields the comments of Rust files, and the comments and docstrings of Python files."""
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        yield from re.findall(r"^\s*//[/!]?(.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    for path in (path for folder in ("python", "tests", "docs", "benches") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"^\s*#:? (.*)", text, re.MULTILINE)
        yield from re.findall(r'^\s*"""(.*?)"""', text, re.MULTILINE | re.DOTALL)


def test_comments_name_their_subjects() -> None:
    """Chains of relative clauses are hard to read: per thousand words, few are "what", "where" or "whether"."""
    words = re.findall(r"[a-z']+", "\n".join(comments()).lower())
    for word, most in (("what", 1.0), ("where", 1.5), ("whether", 3.0)):
        assert 1000 * words.count(word) / len(words) < most, word


def test_version_is_one() -> None:
    stated = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated
    assert un.__version__ == stated[1]


#: The packages and modules of `unisono`; each imports only from earlier ones. The name `unisono` stands for the package
#: itself, which exports names of the packages before it.
PYTHON_LAYERS = (
    "_core", "base", "certificate_checker", "machines", "planning", "simulation", "pictures", "viewing", "discovery",
    "mpi", "lab", "logs", "tuning", "probing", "tasks", "unisono", "reproduce", "cli", "__main__",
)  # fmt: skip
PYTHON = ROOT / "python" / "unisono"


@cache
def modules() -> dict[str, Path]:
    """Returns all modules by name, packages by the name of their folder."""
    found = {}
    for path in sorted(PYTHON.rglob("*.py")):
        parts = path.relative_to(PYTHON.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """Returns the modules of `unisono` that a file imports, also in functions; ``from unisono import x`` may be x."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() or name == "unisono._core" else str(node.module) for name in names}
    return frozenset(name for name in found if name.split(".")[0] == "unisono")


def layer(module: str) -> str:
    return (module.split(".") + ["unisono"])[1]


def test_python_imports_run_one_way() -> None:
    order = {name: at for at, name in enumerate(PYTHON_LAYERS)}
    for module, path in modules().items():
        if module == "unisono":
            continue
        assert layer(module) in order, f"{module} has no place among the layers"
        for name in imported(path):
            assert order[layer(name)] <= order[layer(module)], f"{module} may not import {name}"


def test_the_documented_order_of_python_layers_is_this_one() -> None:
    listed = re.search(r"^_core < .*?__main__$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE | re.DOTALL)
    assert listed
    assert tuple(re.split(r"\s*<\s*", listed[0])) == PYTHON_LAYERS


def test_the_package_takes_its_names_from_the_layers_before_it() -> None:
    before = PYTHON_LAYERS[: PYTHON_LAYERS.index("unisono")]
    assert {layer(name) for name in imported(modules()["unisono"])} <= set(before)


@pytest.mark.parametrize("package", ["", ".machines", ".mpi", ".planning", ".simulation"])
def test_names_of_a_package_are_those_that_type_checkers_see(package: str) -> None:
    (block,) = (node for node in ast.parse(modules()[f"unisono{package}"].read_text()).body if isinstance(node, ast.If))
    names = [alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    found = import_module(f"unisono{package}")
    assert found.__all__ == sorted(map(str, names))
    assert all(hasattr(found, name) for name in found.__all__)


@pytest.mark.parametrize(
    "imports", ["unisono", *(f"unisono.cli.{name}" for name in ("plan", "sweep", "run", "simulate"))]
)
def test_planning_does_without_numpy(imports: str) -> None:
    program = f"import sys, {imports}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    "command",
    ["simulate --goal tests/goal/ring_P4_d4096.goal", "traffic permutation --machine fattree-small --bytes 2"],
)
def test_runs_with_json_do_without_numpy(command: str) -> None:
    program = "import sys; from unisono.cli import main; sys.exit(main(sys.argv[1:]) or 'numpy' in sys.modules)"
    given = [sys.executable, "-c", program, *command.split(), "--json"]
    assert subprocess.run(given, cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0


def test_public_modules_state_their_names() -> None:
    for module, path in modules().items():
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), f"{module} has no docstring"
        # The checker of certificates has no `__all__`: it is one file, whose page states its names.
        if module == "unisono.certificate_checker" or any(part.startswith("_") for part in module.split(".")):
            continue
        stated = import_module(module).__all__
        assert len(stated) == len(set(stated)), f"__all__ of {module} has a name twice"
        for name in stated:
            assert hasattr(import_module(module), name) or f"{module}.{name}" in modules(), f"{module} lacks {name}"


def test_commands_import_public_modules_only() -> None:
    for module, path in modules().items():
        if layer(module) != "cli":
            continue
        for name in imported(path):
            own = name.startswith("unisono.cli")
            assert own or not any(part.startswith("_") for part in name.split(".")), f"{module} imports {name}"


@pytest.mark.parametrize("name", un.__all__)
def test_public_members_have_docstrings(name: str) -> None:
    found = getattr(un, name)
    members = [member for member in dir(found) if not member.startswith("_")] if isinstance(found, type) else []
    members = [member for member in members if not hasattr(Exception, member)]
    # Fields of data classes have comments, and plain values have the documentation of their types.
    members = [member for member in members if member not in getattr(found, "__dataclass_fields__", {})]
    missing = [member for member in members if not getattr(getattr(found, member), "__doc__", None)]
    assert not missing, f"{name} has members without docstrings: {', '.join(missing)}"
