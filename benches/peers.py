"""CPU seconds of two peers beside Unisono's: rows of benches/results/ranks.csv and networks.csv.

`benches/peers.py LOGGOPSIM HTSIM` takes two folders of built programs. LogGOPSim (github.com/spcl/LogGOPSim) has
`txt2bin` and `LogGOPSim`, htsim (github.com/Broadcom/csg-htsim) has `htsim_ndp`. All programs run by turns on the same
GOAL text, or on the same fat tree, pairs, bytes and packets. Figures are medians; `start` is Unisono's time for a
program of one task, and is part of its other times. htsim stores a packet at each switch before it is sent on, and
sends acknowledgments and pulls; Unisono's packets cut through and have credits.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from common.figures import Figures, Of, parsed

UNISONO = [sys.executable, "-m", "unisono"]
#: For each case the number of ranks, the steps around the ring of ranks, the bytes of a message, and whether a receive
#: is posted once the round before it has arrived.
GOALS = {
    "dissemination, 65,536 ranks, 8 bytes": (1 << 16, [1 << k for k in range(16)], 8, False),
    "ring, 1,024 ranks, 1 Mi bytes": (1024, [1] * 2046, 1024, False),
    "ring, 1,024 ranks, 1 Mi bytes, a receive at a time": (1024, [1] * 2046, 1024, True),
}
PARAMETERS = {"L": 2500, "o": 1500, "g": 1000, "G": 6, "O": 0, "S": 65535}
#: For each case the traffic, the ports down of a leaf, the bytes of a pair, and htsim's window and choice of paths.
TRAFFIC = {
    "permutation, fat tree of 1,024, 4 MiB, paths by load": ("permutation", 32, 4 << 20, 30, "ecmp_ar"),
    "permutation, fat tree of 1,024, 4 MiB, htsim's paths by turns": ("permutation", 32, 4 << 20, 30, "perm"),
    "alltoall, fat tree of 256, 32 KiB a pair, paths by load": ("alltoall", 16, 32 << 10, 1, "ecmp_ar"),
}
PACKET, GBPS, HOP_NS, PLACES, END_US = 8192, 1600, 80, 4096, 100


class Measured:
    """The runs of a program: CPU seconds of each, the most MB, and the last output."""

    def __init__(self, words: list[str], folder: str) -> None:
        self.words, self.folder, self.seconds, self.mb, self.output = words, folder, list[float](), 0, ""

    def run(self) -> None:
        with Path(self.folder, "output").open("w+") as output:
            child = subprocess.Popen(self.words, cwd=self.folder, stdout=output)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.output = output.read()
        if child.returncode:
            sys.exit(f"{' '.join(self.words)} ended with {child.returncode}:\n{self.output[-2000:]}")
        self.seconds.append(used.ru_utime + used.ru_stime)
        self.mb = max(self.mb, used.ru_maxrss >> 10)

    @property
    def cpu(self) -> float:
        return median(self.seconds)


def goal(ranks: int, steps: list[int], size: int, waits: bool) -> Iterator[str]:
    """Yields a GOAL program whose sends wait for the receive of the round before. Tags are rounds: LogGOPSim may post
    receives of the same tag in any order."""
    yield f"num_ranks {ranks}\n"
    for rank in range(ranks):
        yield f"rank {rank} {{\n"
        for at, step in enumerate(steps):
            yield f"l{2 * at + 1}: send {size}b to {(rank + step) % ranks} tag {at}\n"
            yield f"l{2 * at + 2}: recv {size}b from {(rank - step) % ranks} tag {at}\n"
            later = (2 * at + 1, 2 * at + 2)[: 1 + waits] if at else ()
            yield from (f"l{label} requires l{2 * at}\n" for label in later)
        yield "}\n"


def cycle(ranks: int) -> list[int]:
    """Returns the permutation of `unisono traffic permutation --seed 0`; equal numbers of hops confirm it."""
    to = list(range(ranks))
    for at in range(ranks - 1, 0, -1):
        x = at
        for _ in range(2):
            x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
            x = (x ^ x >> 27) * 0x94D049BB133111EB % (1 << 64)
            x ^= x >> 31
        to[at], to[x % at] = to[x % at], to[at]
    return to


def run_goals(programs: Path, folder: str, rounds: int, figures: Figures, only: str) -> None:
    options = [word for name, value in PARAMETERS.items() for word in (f"--{name}", str(value))]
    peers = [word.removeprefix("-") for word in options[::2]]
    Path(folder, "start.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 1\n}\n")
    for case, program in GOALS.items():
        if only not in case:
            continue
        with Path(folder, "text.goal").open("w") as text:
            text.writelines(goal(*program))
        run = [*UNISONO, "simulate", "--json", *options, "--goal"]
        peer = [word for name, value in zip(peers, options[1::2], strict=True) for word in (name, value)]
        own, start, converted, simulated = (
            Measured(words, folder)
            for words in (
                [*run, "text.goal"],
                [*run, "start.goal"],
                [str(programs / "txt2bin"), "-i", "text.goal", "-o", "text.bin"],
                [str(programs / "LogGOPSim"), "-b", *peer, "-f", "text.bin"],
            )
        )
        by_turns(rounds, own, start, converted, simulated)
        ours = json.loads(own.output)["seconds"] * 1e9
        theirs = re.search(r"finishing time at host \d+: (\d+)", simulated.output)
        if not theirs or round(ours) != int(theirs[1]):
            sys.exit(f"{case}: {ours} ns here; LogGOPSim: {simulated.output[-300:]}")
        figures.add(
            case,
            Of("CPU", own.cpu, "s", "LogGOPSim", converted.cpu + simulated.cpu, gain=True),
            Of("CPU of the start", start.cpu, "s"),
            Of("CPU of txt2bin", converted.cpu, "s"),
            Of("CPU of LogGOPSim", simulated.cpu, "s"),
            Of("memory", own.mb, "MB", "LogGOPSim", simulated.mb, gain=True),
            note=f"both end at {theirs[1]} ns",
        )


def by_turns(rounds: int, *programs: Measured) -> None:
    for _ in range(rounds):
        for program in programs:
            program.run()
        sys.stderr.write(f"{[round(program.seconds[-1], 2) for program in programs]} CPU s\n")


def run_traffic(programs: Path, folder: str, rounds: int, figures: Figures, only: str) -> None:
    for case, (traffic, down, size, window, paths) in TRAFFIC.items():
        if only not in case:
            continue
        ranks = down * down
        tree = [f"Downlink_speed_Gbps {GBPS}", f"Radix_Down {down}", f"Downlink_Latency_ns {HOP_NS}"]
        text = ["Tier 0", *tree, f"Radix_Up {down}", "Tier 1", *tree]
        Path(folder, "tree.topo").write_text("\n".join((f"Nodes {ranks}", "Tiers 2", f"Podsize {ranks}", *text, "")))
        machine = f"""name = "tree"\nkind = "network"\nsummary = "a fat tree"\nplanes = 1\nlink_gbps = {GBPS}
link_latency_ns = {HOP_NS}\ninput_latency_ns = 0\noutput_latency_ns = 0\npacket_bytes = {PACKET}
buffer_bytes = {PACKET * PLACES}\nhost_overhead_ns = 0\ngamma_ns_per_byte = 0
[topology]\nname = "fattree"\naccelerators = {ranks}\nlevels = 2\ndown = {down}\nup = {down}\ntop = {down}\n"""
        Path(folder, "tree.toml").write_text(machine)
        pairs = [(rank, (rank + step) % ranks) for step in range(1, ranks) for rank in range(ranks)]
        if traffic == "permutation":
            pairs = list(enumerate(cycle(ranks)))
        lines = (f"{a}->{b} id {at} start 0 size {size}\n" for at, (a, b) in enumerate(pairs, 1))
        Path(folder, "pairs").write_text(f"Nodes {ranks}\nConnections {len(pairs)}\n" + "".join(lines))
        options = f"-topo tree.topo -tm pairs -nodes {ranks} -mtu {PACKET} -linkspeed {GBPS}000 -q {PLACES}"
        words = [*options.split(), "-cwnd", str(window), "-strat", paths, "-end", str(END_US)]
        run = [*UNISONO, "traffic", traffic, "--machine", "tree.toml", "--json", "--bytes"]
        own = Measured([*run, str(size)], folder)
        start = Measured(["permutation" if word == traffic else word for word in [*run, "2"]], folder)
        peer = Measured([str(programs / "htsim_ndp"), *words], folder)
        by_turns(rounds, own, start, peer)
        ours = json.loads(own.output)
        packets, hops = ours["packets"], ours["hops"]
        counted = sum(2 if a // down == b // down else 4 for a, b in pairs) * (packets // len(pairs))
        ends = [float(end) for end in re.findall(r"finished at ([\d.]+)", peer.output)]
        sent = f"New: {packets} Rtx: 0 Bounced: 0"
        if len(ends) != len(pairs) or hops != counted or sent not in peer.output:
            sys.exit(f"{case}: {packets} packets, {hops} hops here, not {counted}; htsim: {peer.output[-300:]}")
        figures.add(
            case,
            Of("CPU", own.cpu, "s", "htsim", peer.cpu, gain=True),
            Of("CPU of the start", start.cpu, "s"),
            Of("packets", packets),
            Of("packet-hops", hops),
            Of("packets a CPU second", round(packets / own.cpu), "", "htsim", round(packets / peer.cpu)),
            Of("hops a CPU second", round(hops / own.cpu), "", "htsim", round(hops / peer.cpu)),
            Of("simulated", ours["seconds"] * 1e6, "µs", "htsim", max(ends)),
            Of("memory", own.mb, "MB", "htsim", peer.mb, gain=True),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loggopsim", type=Path, help="the folder of txt2bin and LogGOPSim")
    parser.add_argument("htsim", type=Path, help="the folder of htsim_ndp")
    parser.add_argument("--only", default="", metavar="WORDS", help="only cases whose name contains these words")
    parser.add_argument("--rounds", type=int, default=5, help="the number of runs of each program")
    given = parsed(parser)
    for program in (given.loggopsim / "txt2bin", given.loggopsim / "LogGOPSim", given.htsim / "htsim_ndp"):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is no program; build it from its sources, and name the folder that contains it")
    with TemporaryDirectory() as folder:
        note = ", ".join(f"{name}={value}" for name, value in PARAMETERS.items())
        with Figures("ranks", "Endpoint simulator", given, note=f"from text; {note} ns") as figures:
            run_goals(given.loggopsim.resolve(), folder, given.rounds, figures, given.only)
        note = f"packets of {PACKET} bytes, {GBPS} Gb/s, {HOP_NS} ns a hop, buffers of {PLACES} packets; htsim: NDP"
        with Figures("networks", "Packet simulator", given, note=note) as figures:
            run_traffic(given.htsim.resolve(), folder, given.rounds, figures, given.only)


if __name__ == "__main__":
    main()
