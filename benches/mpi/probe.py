"""Slow cables named by `unisono probe`: on emulated clusters (`unisono lab`), and in the packet simulator.

Each run slows CABLES random cables to a fifth of their rate, and is right if it accuses these and no others. Cables
that no message distinguishes are accused together; runs that accuse each cable alone are counted too.
Usage: probe.py [--runs N] [--seed S] [--mpi openmpi|mpich] NETWORK:CABLES...
A NETWORK is star-8, tree-8, tree-16, or a preset for the simulator; CABLES is how many are slow, 0 for none.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import unisono as un
from allreduce import BIN, LIBRARIES, ROOT
from lab import FAST, leaves
from unisono.probing import MessageSets, Simulated, probe_sets

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

SHARE = 0.2


NETWORKS = {
    "star-8": (8, [f"{host} 8 {FAST}" for host in range(8)]),
    "tree-8": (8, list(leaves(8, 2, "gbps=50 ns=150"))),
    "tree-16": (16, list(leaves(16, 4, "gbps=100 ns=150"))),
}


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--runs", type=int, default=20)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--mpi", choices=LIBRARIES, default="openmpi")
    words.add_argument("networks", nargs="+", metavar="NETWORK:CABLES")
    given = parsed(words)
    note = "a run is right if the slow cables, at a fifth of their rate, are accused and no other one"
    with Figures("networks", "Slow cables found by probe", given, note=note) as figures:
        for word in given.networks:
            name, _, count = word.partition(":")
            if name in NETWORKS:
                emulated(figures, name, int(count or 1), given.runs, given.seed, given.mpi)
            else:
                simulated(figures, name, int(count or 1), given.runs, given.seed)


def judged(links: list[dict[str, Any]], drawn: list[str]) -> tuple[bool, bool]:
    """Returns whether the drawn cables are accused and no others, and whether each is accused alone."""
    groups = [[of["link"], *of["or"]] for of in links]
    right = len(groups) == len(drawn) and all(any(cable in group for group in groups) for cable in drawn)
    return right, right and all(len(group) == 1 for group in groups)


def add(figures: Figures, case: str, results: list[tuple[bool, bool]], seconds: float) -> None:
    """Adds the figures of the runs on a network with a class of cables; all runs took `seconds`."""
    right, alone = (sum(of) for of in zip(*results, strict=True))
    figures.add(
        case,
        Of("right", right, "runs", "runs", len(results)),
        Of("cable named alone", alone, "runs"),
        Of("time of a run", seconds / len(results), "s"),
    )


def emulated(figures: Figures, name: str, slow: int, runs: int, seed: int, mpi: str) -> None:
    """Runs the probe on labs, each of which is started with its drawn cables slowed."""
    hosts, lines = NETWORKS[name]
    draw = random.Random(f"{name} {slow} {seed}")
    cables = ["-".join(line.split()[:2]) for line in lines]
    results = []
    # Sockets need short paths.
    with tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own:
        edges, machine = Path(own) / f"{name}.txt", Path(own) / f"{name}.toml"
        edges.write_text("".join(f"{line}\n" for line in lines))
        # PYTHONPATH provides the package, because the environment of MPICH has only MPI and NumPy.
        variables = {**os.environ, "XDG_RUNTIME_DIR": own, "PYTHONPATH": str(ROOT / "python")}

        def unisono(*options: str | Path) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [BIN / "unisono", *options], env=variables, capture_output=True, text=True, check=False
            )

        unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(hosts), "-o", machine)
        begin = time.monotonic()
        for at in range(runs):
            drawn = draw.sample(cables, slow)
            unisono("lab", "up", machine, *(word for cable in drawn for word in ("--slow", f"{cable}={SHARE}")))
            try:
                under = ("lab", "run", "-n", str(hosts), "--", LIBRARIES[mpi] / "python", "-m", "unisono")
                done = unisono(*under, "probe", "--machine", machine, "--json")
            finally:
                unisono("lab", "down")
            try:
                links = json.loads(done.stdout)["links"]
            except ValueError:
                print(f"{name} {at}: no report, code {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)
                results.append((False, False))
                continue
            results.append(judged(links, drawn))
            if not results[-1][0]:
                print(f"{name} {at}: drawn {drawn}, found {links}", file=sys.stderr)
        add(figures, f"lab, {name}; {slow} slow", results, time.monotonic() - begin)


def simulated(figures: Figures, name: str, slow: int, runs: int, seed: int) -> None:
    """Runs the probe in the packet simulator, for each class of cables: same kinds and ports of the ends, same rate."""
    sets = MessageSets(un.machine(name))
    links = sets.links
    classes: dict[str, list[str]] = {}
    for cable in links.cables.tolist():
        link = links.of_cable(cable)[0]
        ends = sorted("accelerator" if end < links.accelerators else "switch" for end in links.ends[link].tolist())
        ports = sorted(int(np.sum(links.ends[:, 0] == end)) for end in links.ends[link].tolist())
        kind = f"{ends[0]}-{ends[1]}, {links.gbps[link]:g} Gb/s, ports {ports[0]} and {ports[1]}"
        classes.setdefault(kind, []).append(links.name(cable))
    for kind, cables in classes.items() if slow else [("none", [])]:
        draw = random.Random(f"{name} {kind} {slow} {seed}")
        results = []
        begin = time.monotonic()
        for at in range(runs):
            drawn = draw.sample(cables, slow)
            # Noise of 1 % makes the runs differ.
            found = probe_sets(sets, Simulated(links, dict.fromkeys(drawn, SHARE), noise=0.01, seed=at))
            results.append(judged(found.report()["links"], drawn))
            if not results[-1][0]:
                print(f"{name} {at}: drawn {drawn}, found {found.report()['links'][:4]}", file=sys.stderr)
        add(figures, f"{name}; {slow} slow, {kind}", results, time.monotonic() - begin)


if __name__ == "__main__":
    main()
