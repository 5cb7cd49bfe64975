"""Planned allreduces beside the library's own, at 2 and 4 ranks, 8 B to 16 MiB; compiles and runs `allreduce.c`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import unisono as un

ROOT = Path(__file__).resolve().parents[2]
#: By ranks: (algorithm, or None for the library's own; first bytes; last bytes).
TABLES: dict[int, list[tuple[str | None, int, int | None]]] = {
    2: [("recursive-doubling", 0, 2047), ("ring", 2048, None)],
    4: [(None, 0, 255), ("recursive-doubling", 256, 65535), (None, 65536, 131071), ("rabenseifner", 131072, None)],
}


def main() -> None:
    rounds = sys.argv[1] if len(sys.argv) > 1 else "6"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "allreduce"
        source = Path(__file__).with_name("allreduce.c")
        subprocess.run([ROOT / ".venv" / "bin" / "mpicc", "-O2", source, "-o", program], check=True)
        for ranks, table in TABLES.items():
            rows: list[tuple[un.Plan | un.Schedule | tuple[str, int], int, int | None]] = []
            for algorithm, first, last in table:
                if algorithm is None:
                    rows.append((("allreduce", ranks), first, last))
                else:
                    plan = un.plan("allreduce", "archer", shape=ranks, elements=1 << 16, algorithm=algorithm)
                    rows.append((plan, first, last))
            path = Path(folder) / f"{ranks}.plan"
            un.save_plans(rows, path)
            print(f"{ranks} ranks: " + ", ".join(f"{a or 'library'} from {first}" for a, first, _ in table), flush=True)
            command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), "--plan", str(path), "--"]
            # On shared cores a rank that waits must yield, or the others get no turn.
            shared = {"OMPI_MCA_mpi_yield_when_idle": "1"}
            subprocess.run([*command, str(program), rounds], env={**os.environ, **shared}, check=True)


if __name__ == "__main__":
    main()
