"""Runs the unsafe code under valgrind: `make sanitize`.

The unit tests of the crate `mpi` run without MPI. Then C programs run under Open MPI with the preloaded library, and
Python programs with worlds; with `--all` under MPICH too. Errors within other libraries that concern their own memory
are counted separately. Words after the command select the runs whose name contains a word.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import unisono as un
from unisono.mpi.launchers import LIBRARY

ROOT = Path(__file__).parents[2]
#: Parts of the names of this project's object files in stacks: its libraries, and its test program.
OURS = ("libunisono_preload", "_core.abi3", "unisono_mpi-")
OPEN_MPI, MPICH = ROOT / ".venv", ROOT / ".venv-mpich"


def valgrind(logs: Path, *more: str) -> list[str]:
    """Returns the command of valgrind, which writes an XML file for every process."""
    options = ["--xml=yes", f"--xml-file={logs}/%p.xml", "--leak-check=no", "--num-callers=40", "--trace-children=no"]
    return ["valgrind", "--quiet", *options, *more]


def errors(logs: Path) -> tuple[list[str], int]:
    """Returns the errors of this project's code as text, and the number of errors in other libraries."""
    ours, others = [], 0
    for file in sorted(logs.glob("*.xml")):
        try:
            tree = ElementTree.parse(file)
        except ElementTree.ParseError:
            ours.append(f"{file.name} is cut off: the process was ended from outside")
            continue
        for error in tree.iter("error"):
            # With XML, valgrind always reports leaks; the project never frees some memory on purpose.
            if (error.findtext("kind") or "").startswith("Leak"):
                continue
            stacks = error.findall("stack")
            frames = [frame for stack in stacks for frame in stack.findall("frame")]
            places = [[frame.findtext("obj") or "" for frame in stack.findall("frame")] for stack in stacks]
            # An error is ours by its own stack; an invalid address also by the stacks that allocated or freed the
            # memory. The origins of unset values do not count, since the system fills memory of the MPI libraries
            # without valgrind's knowledge.
            if not (error.findtext("kind") or "").startswith("Invalid"):
                places = places[:1]
            if any(_is_ours(place) for place in places):
                told = [f"  {frame.findtext('fn')} in {Path(frame.findtext('obj') or '?').name}" for frame in frames]
                what = error.findtext("what") or error.findtext("xwhat/text") or "error"
                ours.append("\n".join([f"{error.findtext('kind')}: {what}", *told[:16]]))
            else:
                others += 1
    return ours, others


def _is_ours(objects: list[str]) -> bool:
    """Returns whether the innermost frame, except valgrind's own memory functions, is in `OURS`."""
    innermost = next((obj for obj in objects if "vgpreload" not in obj), "")
    return any(name in innermost for name in OURS)


def unit_tests() -> list[Path]:
    """Returns the test programs of the crate `mpi`."""
    command = [
        "cargo",
        "test",
        "--release",
        "--locked",
        "--package",
        "unisono-mpi",
        "--no-run",
        "--message-format=json",
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in built.stdout.splitlines()]
    return [Path(row["executable"]) for row in found if row.get("executable")]


def plans(folder: Path, ranks: int) -> Path:
    """Writes a plan of seven collectives."""
    path = folder / f"{ranks}.plan"
    of = partial(un.plan, machine=un.machine("archer", ranks))
    names = ("allreduce", "reduce", "broadcast", "allgather", "reduce-scatter", "alltoall")
    rows = [(of(name, elements=16), 0, 10**9) for name in names]
    un.save_plans([*rows, (of("barrier", algorithm="dissemination"), 0, 0)], path)
    return path


def limited(folder: Path) -> Path:
    """Writes a plan for two ranks and 64 to 1023 bytes, which leaves the other calls of `left.c` to the library."""
    path = folder / "limited.plan"
    rows = [(un.plan(name, "archer", shape=2, elements=64), 64, 1023) for name in ("allreduce", "broadcast", "gather")]
    un.save_plans(rows, path)
    return path


def mpiexec(environment: Path, ranks: int) -> list[str]:
    shared = ["--oversubscribe"] if environment == OPEN_MPI else []
    return [str(environment / "bin" / "mpiexec"), *shared, "-n", str(ranks)]


def main() -> int:
    if shutil.which("valgrind") is None:
        sys.stderr.write("error: valgrind is not installed; install it, or leave 'make sanitize' out.\n")
        return 1
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    path = {"PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}", "PYTHONMALLOC": "malloc"}
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan, some = plans(folder, 2), limited(folder)
        runs: list[tuple[str, list[str], dict[str, str]]] = []
        runs.extend((f"unit tests {file.name}", [str(file), "--test-threads=1"], {}) for file in unit_tests())
        compilers = [(OPEN_MPI, "mpicc")]
        if "--all" in sys.argv[1:]:
            # Ranks of MPICH never yield, so these runs take very long if ranks share cores.
            compilers += [(MPICH, "mpicc"), (MPICH, "mpicc_abi")]
        for environment, compiler in compilers:
            programs: list[tuple[str, list[str]]] = [("hostile", []), ("collectives", ["50"]), ("random", ["1", "40"])]
            programs += [("begun", ["5"]), ("vectors", ["12"]), ("left", [])]
            for source, arguments in programs:
                program = str(folder / f"{source}-{environment.name}-{compiler}")
                wrapper = str(environment / "bin" / compiler)
                file = str(ROOT / "tests" / "mpi" / f"{source}.c")
                subprocess.run([wrapper, "-g", "-O1", file, "-o", program, "-lm"], check=True)
                for check in ("0", "1"):
                    used = some if source == "left" else plan
                    served = {"UNISONO_PLAN": str(used), "UNISONO_SAFE_OPS": "1", "UNISONO_CHECK": check}
                    served |= {"UNISONO_NONBLOCKING": "1"} if source == "begun" else {}
                    command = ["env", f"LD_PRELOAD={LIBRARY}", program, *arguments]
                    told = f"{source}.c, {environment.name} {compiler}, check {check}"
                    runs.append((told, command, {"mpi": str(environment), **served}))
        for case in ("dropped", "left-and-dropped", "wrong-arguments", "interrupted"):
            python, script = str(OPEN_MPI / "bin" / "python"), str(ROOT / "tests" / "mpi" / "lifetimes.py")
            command = [python, script, case, str(plan), str(folder)]
            runs.append((f"lifetimes.py {case}", command, {"mpi": str(OPEN_MPI), **path}))
        wanted = [word for word in sys.argv[1:] if word != "--all"]
        for number, (told, command, variables) in enumerate(runs):
            if wanted and not any(word in told for word in wanted):
                continue
            logs = folder / str(number)
            logs.mkdir()
            launcher = mpiexec(Path(variables.pop("mpi")), 2) if "mpi" in variables else []
            # `env` with the variables comes before the program only, since valgrind must not load the library.
            front = command[:2] if command[0] == "env" else []
            tool = valgrind(logs, "--trace-children=yes") if front else valgrind(logs)
            done = subprocess.run(
                [*launcher, *tool, *command],
                env={**os.environ, **root, **variables},
                capture_output=True,
                text=True,
                timeout=None if "--all" in sys.argv[1:] else 1800,
                check=False,
            )
            ours, others = errors(logs)
            failed |= bool(ours) or done.returncode != 0
            print(
                f"{told}: exit {done.returncode}, {len(ours)} errors of ours, {others} of other libraries", flush=True
            )
            for text in ours[:5]:
                print(text)
            if done.returncode:
                print(done.stdout[-2000:] + done.stderr[-2000:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
