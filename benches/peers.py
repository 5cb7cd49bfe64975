"""CPU seconds of two peers beside Unisono's: rows of benches/results/ranks.csv and networks.csv.

Takes the folders of programs of github.com/spcl/LogGOPSim and github.com/Broadcom/csg-htsim. Figures are medians of 5
runs by turns, on the same GOAL text, or the same fat tree, pairs and packets. CPU seconds of Unisono include its start,
which a tiny case measures. Switches of htsim receive a packet completely before they send it on, and its receivers send
acknowledgments and pulls; packets of Unisono cut through, and links have credits.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from common.commands import PROGRAM, run
from common.figures import Figures, Of, parsed

#: For each case the ranks, the steps around the ring of ranks, the bytes, and whether a receive waits for the last one.
GOALS = {
    "dissemination, 65,536 ranks, 8 bytes": (1 << 16, [1 << k for k in range(16)], 8, False),
    "ring, 1,024 ranks, 1 Mi bytes": (1024, [1] * 2046, 1024, False),
    "ring, 1,024 ranks, 1 Mi bytes, a receive at a time": (1024, [1] * 2046, 1024, True),
}
PARAMETERS = "L=2500, o=1500, g=1000, G=6, O=0, S=65535"
#: For each case the ports down of a leaf, the bytes of a pair, and htsim's window in packets and choice of paths.
TRAFFIC = {
    "permutation, fat tree of 1,024, 4 MiB, paths by load": (32, 4 << 20, 30, "ecmp_ar"),
    "permutation, fat tree of 1,024, 4 MiB, htsim's paths by turns": (32, 4 << 20, 30, "perm"),
    "alltoall, fat tree of 256, 32 KiB a pair, paths by load": (16, 32 << 10, 1, "ecmp_ar"),
}
PACKET, GBPS, HOP_NS, PLACES, END_US = 8192, 1600, 80, 4096, 100


def goal(ranks: int, steps: list[int], size: int, waits: bool) -> Iterator[str]:
    """Yields a GOAL program. Tags are rounds, because LogGOPSim may match messages of equal tags in any order."""
    yield f"num_ranks {ranks}\n"
    for rank in range(ranks):
        yield f"rank {rank} {{\n"
        for at, step in enumerate(steps):
            yield f"l{2 * at + 1}: send {size}b to {(rank + step) % ranks} tag {at}\n"
            yield f"l{2 * at + 2}: recv {size}b from {(rank - step) % ranks} tag {at}\n"
            yield from (f"l{2 * at + later} requires l{2 * at}\n" for later in range(1, 2 + waits) if at)
        yield "}\n"


def cycle(ranks: int) -> list[int]:
    """Returns the permutation of `unisono traffic permutation --seed 0`."""
    to = list(range(ranks))
    for at in range(ranks - 1, 0, -1):
        x = at
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)) * 2:
            x = (x ^ x >> shift) * factor % (1 << 64)
        to[at], to[x % at] = to[x % at], to[at]
    return to


def on_ranks(case: str, folder: Path, programs: Path) -> list[str]:
    """Writes a GOAL text, and returns the commands of Unisono, of its start and of the peer."""
    with (folder / "text").open("w") as file:
        file.writelines(goal(*GOALS[case]))
    (folder / "start").write_text("num_ranks 1\nrank 0 {\nl1: calc 1\n}\n")
    own = f"{PROGRAM} simulate --json --{PARAMETERS.replace(', ', ' --')} --goal"
    peer = f"{programs}/LogGOPSim -b -f bin -{PARAMETERS.replace('=', '').replace(', ', ' -')}"
    return [f"{own} text", f"{own} start", f"{programs}/txt2bin -i text -o bin", peer]


def on_network(case: str, folder: Path, programs: Path) -> list[str]:
    """Writes a fat tree and its pairs, and returns the commands of Unisono, of its start and of the peer."""
    (down, size, window, paths), traffic = TRAFFIC[case], case.partition(",")[0]
    ranks, tier = down * down, f"\nDownlink_speed_Gbps {GBPS}\nRadix_Down {down}\nDownlink_Latency_ns {HOP_NS}\n"
    tiers = f"Tiers 2\nPodsize {ranks}\nTier 0{tier}Radix_Up {down}\nTier 1{tier}"
    (folder / "topology").write_text(f"Nodes {ranks}\n{tiers}")
    (folder / "tree.toml").write_text(f"""name = "tree"\nkind = "network"\nsummary = "a fat tree"\nplanes = 1
link_gbps = {GBPS}\nlink_latency_ns = {HOP_NS}\ninput_latency_ns = 0\noutput_latency_ns = 0\nhost_overhead_ns = 0
gamma_ns_per_byte = 0\npacket_bytes = {PACKET}\nbuffer_bytes = {PACKET * PLACES}\n[topology]\nname = "fattree"
accelerators = {ranks}\nlevels = 2\ndown = {down}\nup = {down}\ntop = {down}\n""")
    shifts = ((at + at // ranks + 1) % ranks for at in range(ranks * (ranks - 1)))
    to = cycle(ranks) if traffic == "permutation" else list(shifts)
    pairs = "".join(f"{at % ranks}->{end} id {at + 1} start 0 size {size}\n" for at, end in enumerate(to))
    (folder / "pairs").write_text(f"Nodes {ranks}\nConnections {len(to)}\n{pairs}")
    sizes = f"-nodes {ranks} -mtu {PACKET} -linkspeed {GBPS}000 -q {PLACES} -cwnd {window} -end {END_US}"
    own, peer = f"{PROGRAM} traffic --machine tree.toml --json", f"{programs}/htsim_ndp -topo topology -tm pairs"
    return [f"{own} {traffic} --bytes {size}", f"{own} permutation --bytes 2", f"{peer} -strat {paths} {sizes}"]


def figures_of(case: str, runs: list[tuple[float, str]], peer: str) -> Iterator[Of]:
    """Yields the figures of a case; exits if ends, or numbers of packets, differ."""
    (cpu, text), (start, _), *theirs = runs
    report, output, other = json.loads(text), theirs[-1][1], sum(seconds for seconds, _ in theirs)
    ends = [float(end) for end in re.findall(r"finish\w+ (?:time )?at (?:host \d+: )?([\d.]+)", output)]
    yield from (Of("CPU", cpu, "s", peer, other, gain=True), Of("CPU of the start", start, "s"))
    if packets := report.get("packets"):
        for unit in ("packets", "hops"):
            yield Of(f"{unit} a CPU second", round(report[unit] / cpu), "", peer, round(report[unit] / other))
        yield Of("simulated", report["seconds"] * 1e6, "µs", peer, max(ends))
    else:
        yield from (Of("CPU of txt2bin", theirs[0][0], "s"), Of("CPU of LogGOPSim", theirs[1][0], "s"))
    same = f"New: {packets} Rtx: 0 Bounced: 0" in output and f"Connections: {len(ends)} " in output
    if not same and ends != [round(report["seconds"] * 1e9)]:
        sys.exit(f"{case}: Unisono reports {text}; {peer}: {output[-999:]}")


def main() -> None:
    """Runs the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs=2, metavar=("LOGGOPSIM", "HTSIM"))
    parser.add_argument("--only", default="", metavar="WORD", help="only cases whose name contains WORD")
    given = parsed(parser)
    for at, name in enumerate(("LogGOPSim", "txt2bin", "htsim_ndp")):
        if not os.access(given.folders[at // 2] / name, os.X_OK):
            parser.error(f"{given.folders[at // 2]} has no program {name}; build it, and name the folder that has it")
    tree = f"packets of {PACKET} bytes, {GBPS} Gb/s, {HOP_NS} ns a hop, buffers of {PLACES} packets; htsim: NDP"
    kinds = (
        ("ranks", "Endpoint simulator", f"from text; {PARAMETERS} ns", [*GOALS], on_ranks, "LogGOPSim"),
        ("networks", "Packet simulator", tree, [*TRAFFIC], on_network, "htsim"),
    )
    for (table, topic, note, cases, prepare, peer), programs in zip(kinds, given.folders, strict=True):
        with TemporaryDirectory() as name, Figures(table, topic, given, note=note) as figures:
            for case in (name for name in cases if given.only in name):
                commands = prepare(case, Path(name), programs.resolve())
                rounds = [[run(command.split(), name)[1:] for command in commands] for _ in range(5)]
                runs = [(median(cpu for cpu, _ in of), of[-1][1].decode()) for of in zip(*rounds, strict=True)]
                figures.add(case, *figures_of(case, runs, peer))


if __name__ == "__main__":
    main()
