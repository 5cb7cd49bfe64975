"""Broadcasts, reduces and allreduces of one vector beside their bounds.

A broadcast and a reduce are parts of an allreduce, so neither may take longer. `plain` is a cluster with a latency of
2 µs and 10 GB/s whose receives are free; `nodes` is the same with 16 ranks a node, where both are 5 times better.
Networks are simulated packet by packet, clusters message by message. CPU seconds of a plan count the machine, all
candidates and the report; the first case also loads the module. `--all` adds 16,384 ranks and accelerators, which are
planned and not simulated.
"""

import argparse
import tempfile
import time
from pathlib import Path

import unisono as un
from common.figures import Figures, Of, parsed

PLAIN = 'name = "plain"\nkind = "endpoint"\nmodel = "postal"\nalpha_ns = 2000\nbeta_ns_per_byte = 0.1\n'
NODE = '[[levels]]\nname = "node"\nsize = 16\nalpha_ns = 400\nbeta_ns_per_byte = 0.02\n'
OWN = {"plain": PLAIN, "nodes": PLAIN.replace("plain", "nodes") + NODE}
MIB = 1 << 20
#: Rows of a machine, its number of ranks (None for all), and the bytes of the vector.
CASES = (
    ("torus2d-small", None, 16 * MIB),
    ("hx2mesh-small", None, 16 * MIB),
    ("plain", 1000, MIB),
    ("plain", 1024, MIB),
    ("nodes", 256, MIB),
)
LARGE = (("torus2d-large", None, 16 * MIB), ("hx2mesh-large", None, 16 * MIB), ("plain", 16384, MIB))


def add_figures(kind: str, machine: str, ranks: int | None, size: int, simulate: bool, figures: Figures) -> None:
    """Adds the figures of one collective of `size` bytes on a machine."""
    name = Path(machine).stem
    start = time.process_time()
    plan = un.plan(kind, machine, shape=ranks, bytes=size)
    report = plan.report()
    planning = time.process_time() - start
    bound = max(float(bound["seconds"]) for bound in un.bounds(kind, machine, shape=ranks, bytes=size))
    simulated: list[Of] = []
    if simulate:
        seconds = un.simulate(plan.schedule).seconds
        assert seconds is not None
        simulated = [Of("simulated", seconds * 1e6, "µs", "bound", bound * 1e6)]
    params = " ".join([plan.algorithm, *(f"{key}={value}" for key, value in sorted(plan.params.items()))])
    figures.add(
        f"{kind} of {size // MIB} MiB, {report['ranks']:,} ranks of {name}",
        Of("predicted", float(plan.predicted["seconds"]) * 1e6, "µs", "bound", bound * 1e6),
        *simulated,
        Of("plan", f"{planning:.1f}", "CPU s"),
        note=params,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="plan the cases of 16,384 too")
    parser.add_argument("--machines", nargs="+", metavar="NAME", help="only these machines")
    given = parsed(parser)
    with Figures("proofs", "Guidelines between collectives", given) as figures, tempfile.TemporaryDirectory() as own:
        files = {name: Path(own) / f"{name}.toml" for name in OWN}
        for name, path in files.items():
            path.write_text(OWN[name])
        for machine, ranks, size in (*CASES, *(LARGE if given.all else ())):
            if given.machines and machine not in given.machines:
                continue
            for kind in ("broadcast", "reduce", "allreduce"):
                add_figures(
                    kind, str(files.get(machine, machine)), ranks, size, (machine, ranks, size) in CASES, figures
                )


main()
