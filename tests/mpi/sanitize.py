"""Runs the unsafe code under valgrind: `make sanitize`.

The unit tests of the crate `mpi` need no MPI. Then C programs run under Open MPI and MPICH with the library for MPI
programs before them, and worlds of Python. Errors whose stacks have no frame of this project are the MPI library's own
or Python's, and are counted apart.
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
from unisono._mpirun import LIBRARY

ROOT = Path(__file__).parents[2]
#: What stacks of this project's errors have: its libraries, and its test program.
OURS = ("libunisono_preload", "_core.abi3", "unisono_mpi-")
OPEN_MPI, MPICH = ROOT / ".venv", ROOT / ".venv-mpich"


def valgrind(logs: Path, *more: str) -> list[str]:
    """The command; a file of XML for every process."""
    options = ["--xml=yes", f"--xml-file={logs}/%p.xml", "--leak-check=no", "--num-callers=40", "--trace-children=no"]
    return ["valgrind", "--quiet", *options, *more]


def errors(logs: Path) -> tuple[list[str], int]:
    """Our errors as text, and how many there are of others."""
    ours, others = [], 0
    for file in sorted(logs.glob("*.xml")):
        try:
            tree = ElementTree.parse(file)
        except ElementTree.ParseError:
            ours.append(f"{file.name} is cut off: the process was ended from outside")
            continue
        for error in tree.iter("error"):
            stacks = error.findall("stack")
            frames = [frame for stack in stacks for frame in stack.findall("frame")]
            objects = [frame.findtext("obj") or "" for frame in frames]
            first = [frame.findtext("obj") or "" for frame in stacks[0].findall("frame")] if stacks else []
            # A wrong address may be used in a library that we gave it to; a value that was never set counts where it is
            # used, as the MPI libraries look at memory that the system filled behind valgrind's back.
            addresses = (error.findtext("kind") or "").startswith("Invalid") and _is_ours(objects)
            if addresses or _is_ours(first[:1]) or ("vgpreload" in "".join(first[:1]) and _is_ours(first[1:2])):
                told = [f"  {frame.findtext('fn')} in {Path(frame.findtext('obj') or '?').name}" for frame in frames]
                what = error.findtext("what") or error.findtext("xwhat/text") or "error"
                ours.append("\n".join([f"{error.findtext('kind')}: {what}", *told[:16]]))
            else:
                others += 1
    return ours, others


def _is_ours(objects: list[str]) -> bool:
    return any(name in obj for obj in objects for name in OURS)


def unit_tests() -> list[Path]:
    """The test programs of the crate `mpi`."""
    command = ["cargo", "test", "--release", "--locked", "--package", "unisono-mpi", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in built.stdout.splitlines()]
    return [Path(row["executable"]) for row in found if row.get("executable")]


def plans(folder: Path, ranks: int) -> Path:
    """A plan of every collective."""
    path = folder / f"{ranks}.plan"
    of = partial(un.plan, machine=un.machine("archer", ranks))
    names = ("allreduce", "reduce", "broadcast", "allgather", "reduce-scatter", "alltoall")
    rows = [(of(name, elements=16), 0, 10**9) for name in names]
    un.save_plans([*rows, (of("barrier", algorithm="dissemination"), 0, 0)], path)
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
        plan = plans(folder, 2)
        runs: list[tuple[str, list[str], dict[str, str]]] = []
        runs.extend((f"unit tests {file.name}", [str(file), "--test-threads=1"], {}) for file in unit_tests())
        for environment, compiler in ((OPEN_MPI, "mpicc"), (MPICH, "mpicc"), (MPICH, "mpicc_abi")):
            for source, arguments in (("hostile", []), ("collectives", ["50"]), ("random", ["1", "40"])):
                program = folder / f"{source}-{environment.name}-{compiler}"
                command = [environment / "bin" / compiler, "-g", "-O1", ROOT / "tests" / "mpi" / f"{source}.c", "-o", program]
                subprocess.run([*map(str, command), "-lm"], check=True)
                for check in ("0", "1"):
                    served = {"UNISONO_PLAN": str(plan), "UNISONO_SAFE_OPS": "1", "UNISONO_CHECK": check}
                    command = ["env", f"LD_PRELOAD={LIBRARY}", str(program), *arguments]
                    told = f"{source}.c, {environment.name} {compiler}, check {check}"
                    runs.append((told, command, {"mpi": str(environment), **served}))
        for case in ("dropped", "left-and-dropped", "wrong-arguments", "interrupted"):
            program = [str(OPEN_MPI / "bin" / "python"), str(ROOT / "tests" / "mpi" / "lifetimes.py")]
            command = [*program, case, str(plan), str(folder)]
            runs.append((f"lifetimes.py {case}", command, {"mpi": str(OPEN_MPI), **path}))
        wanted = sys.argv[1:]
        for number, (told, command, variables) in enumerate(runs):
            if wanted and not any(word in told for word in wanted):
                continue
            logs = folder / str(number)
            logs.mkdir()
            launcher = mpiexec(Path(variables.pop("mpi")), 2) if "mpi" in variables else []
            # What is set for the program comes after valgrind, which is not to load it.
            front = command[:2] if command[0] == "env" else []
            tool = valgrind(logs, "--trace-children=yes") if front else valgrind(logs)
            done = subprocess.run(
                [*launcher, *tool, *command],
                env={**os.environ, **root, **variables},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            ours, others = errors(logs)
            failed |= bool(ours) or done.returncode != 0
            print(f"{told}: exit {done.returncode}, {len(ours)} errors of ours, {others} of other libraries", flush=True)
            for text in ours[:5]:
                print(text)
            if done.returncode:
                print(done.stdout[-2000:] + done.stderr[-2000:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
