"""Logs that people posted in issues, rebuilt from their sizes and times with other names of hosts.

Each has its source, the finding of its thread, and the texts that `unisono diagnose` must print, if any. If a thread
states only rates, times follow from them. Ranks and GPUs that a thread does not state are chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from unisono import _core

__all__ = ["MISSED", "POSTED", "Posted", "nccl_log", "osu_log"]

Rows = Sequence[tuple[int, float]]
HEAD = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"


def hosts(nodes: int, each: int, gpu: str, names: str = "abcde") -> list[str]:
    """Returns the lines of a log of nccl-tests that list the ranks."""
    return [
        f"#  Rank {node * each + at:2} Group  0 Pid {7000 + node * each + at} on host-{names[node]} device {at:2} "
        f"[0x{at:02x}] {gpu}"
        for node in range(nodes)
        for at in range(each)
    ]


def rows_of(collective: str, ranks: int, rows: Rows) -> list[str]:
    """Returns rows of nccl-tests for sizes in bytes and times in µs, with their bandwidths."""
    lines = []
    for size, time in rows:
        rates = _core.bandwidths(collective, ranks, 1, 1.0)
        algbw = size / time * 1e-3
        busbw = algbw * (rates["busbw"] or 0.0) / (rates["algbw"] or 1.0)
        cells = f"{time:9.2f} {algbw:7.2f} {busbw:7.2f}"
        lines.append(f"{size:12} {size // 4:13}     float     {_op(collective)}      -1 {cells}      0 {cells}    N/A")
    return lines


def _op(collective: str) -> str:
    return "sum" if "reduce" in collective else "none"


def nccl_log(
    collective: str,
    nodes: int,
    each: int,
    rows: Rows,
    gpu: str = "NVIDIA H100 80GB HBM3",
    before: Sequence[str] = (),
    names: str = "abcde",
) -> str:
    """Returns the output of one test of nccl-tests."""
    test = {"allreduce": "all_reduce", "allgather": "all_gather"}.get(collective, collective)
    lines = [
        *before,
        f"# Collective test starting: {test}_perf",
        "# Using devices",
        *hosts(nodes, each, gpu, names),
        "#",
        HEAD,
    ]
    return "\n".join([*lines, *rows_of(collective, nodes * each, rows), "# Out of bounds values : 0 OK"]) + "\n"


def osu_log(name: str, rows: Rows) -> str:
    """Returns the output of one benchmark of OSU."""
    lines = [f"# OSU MPI {name} Latency Test v7.1", "# Size       Avg Latency(us)"]
    return "\n".join([*lines, *(f"{size:<10} {time:18.2f}" for size, time in rows)]) + "\n"


def imb_log(ranks: int, tests: dict[str, Rows]) -> str:
    """Returns the output of IMB-MPI1."""
    lines = []
    for name, rows in tests.items():
        sized = name != "Barrier"
        lines += [f"# Benchmarking {name}", f"# #processes = {ranks}"]
        lines.append(f"{'#bytes' if sized else ''} #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]")
        lines += [f"{size if sized else ''} 1000 {time:.2f} {time:.2f} {time:.2f}" for size, time in rows]
        lines.append("")
    return "\n".join(lines)


@dataclass(frozen=True)
class Posted:
    """The logs of one thread, and the expected findings."""

    source: str
    #: The finding of the thread; or the complaint, if the thread has no answer.
    end: str
    logs: dict[str, str]
    #: Texts that the first three sentences must have; if empty, there must be no finding.
    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    #: The box of GPUs as docs/measured/posted.tsv describes it: architecture, GPUs, NVLinks, interfaces, Gb/s, PCIe.
    box: tuple[str, int, int, int, int, int] | None = None
    boxes: int = 1
    joined: str = "switch"
    kinds: tuple[str, ...] = field(default=())


def busbw(collective: str, ranks: int, size: int, rate: float) -> tuple[int, float]:
    """Returns a size in bytes, and the time in µs of the bus bandwidth ``rate`` in GB/s."""
    rates = _core.bandwidths(collective, ranks, 1, 1.0)
    return size, size * (rates["busbw"] or 0.0) / (rates["algbw"] or 1.0) / rate * 1e-3


def labelled(label: str, text: str) -> str:
    """Returns a text with a label before each line."""
    return "".join(f"{label}{line}\n" for line in text.splitlines())


A100 = ("ampere", 8, 12, 4, 200, 24)
H100 = ("hopper", 8, 18, 8, 400, 48)
GIB, MIB = 1 << 30, 1 << 20

_APART = "\n".join(
    [
        "# Using devices",
        "# Using devices",
        *hosts(1, 2, "NVIDIA A100-PCIE-40GB"),
        *hosts(1, 2, "NVIDIA A100-PCIE-40GB", "b"),
    ]
    + [HEAD, *rows_of("allreduce", 2, [(134217728, 29770.0), (134217728, 27666.0), (268435456, 55270.0)])]
)
_ALONE = "\n".join([HEAD, *rows_of("allreduce", 1, [(134217728, 631.9), (134217728, 419.3), (536870912, 2202.2)])])
A100_NAME = "NVIDIA A100-SXM4-80GB"
_PAIRS = {"ab": 49.36, "cd": 88.36, "ef": 49.28, "da": 49.30, "gb": 86.81}

POSTED = [
    Posted(
        "aws/aws-ofi-nccl#65",
        "complaint: bandwidth drops at buffers from about 46 MB on",
        {
            "p4d.log": HEAD
            + "\n"
            + "\n".join(
                rows_of(
                    "allreduce",
                    16,
                    [
                        (8 << 20, 1321.5),
                        (16 << 20, 1896.7),
                        (32 << 20, 1931.6),
                        (64 << 20, 6586.3),
                        (128 << 20, 8189.9),
                        (256 << 20, 11812.0),
                    ],
                )
            )
        },
        ("takes 1.70 x the time per byte of 32 MiB at 64 MiB",),
        ("--ranks", "16", "--nodes", "2"),
    ),
    Posted(
        "NVIDIA/nccl#1453",
        "complaint: three nodes over two racks of RoCE are slow from 64 MB on, two nodes are not",
        {
            "three.log": labelled(
                "[0]",
                nccl_log(
                    "allreduce",
                    3,
                    8,
                    [
                        (4194304, 622.6),
                        (8388608, 992.6),
                        (16777216, 1334.9),
                        (33554432, 2180.1),
                        (67108864, 24410.0),
                        (134217728, 49264.0),
                        (268435456, 125807.0),
                        (536870912, 193909.0),
                    ],
                ),
            )
        },
        ("x the expected time at 8 sizes", "flow control (PFC)", "at 256 MiB"),
        box=H100,
        boxes=3,
    ),
    Posted(
        "NVIDIA/nccl-tests#182",
        "each node tested for itself; compile with MPI=1",
        {"two.log": _APART},
        ("did not know each other", "MPI=1"),
        kinds=("not-connected",),
    ),
    Posted(
        "NVIDIA/nccl-tests#294",
        "the bus bandwidth is 0: processes of one rank",
        {"zero.log": _ALONE},
        ("nothing was sent", "MPI=1"),
        kinds=("not-connected",),
    ),
    Posted(
        "open-mpi/ompi#1713",
        "barrier and allreduce are not tuned: reduce and broadcast together are quicker than an allreduce",
        {
            "imb.log": imb_log(
                180,
                {"Reduce": [(4, 7.88)], "Bcast": [(4, 12.1)], "Allreduce": [(4, 40.2)], "Barrier": [(0, 63.3)]},
            )
        },
        ("barrier <= allreduce by 1.57", "allreduce <= reduce + broadcast by 2.01"),
        kinds=("guideline",),
    ),
    Posted(
        "open-mpi/ompi#9062",
        "complaint: coll/tuned is so-so for short vectors",
        {
            "osu.log": "App launch reported: 9 (out of 9) daemons\n"
            + osu_log(
                "Allreduce",
                [
                    (4, 599.60),
                    (8, 321.18),
                    (16, 481.45),
                    (32, 483.63),
                    (64, 483.59),
                    (128, 567.62),
                    (256, 472.35),
                    (512, 431.96),
                ],
            )
        },
        ("1.87 x as long at 4 B as at 8 B",),
        ("--ranks", "128", "--nodes", "8"),
    ),
    Posted(
        "openucx/ucc#981",
        "complaint: HCOLL is quicker than UCC, but not at every size",
        {
            "hcoll.log": osu_log(
                "Allreduce",
                [(4096, 19.15), (8192, 28.63), (16384, 47.27), (32768, 498.13), (65536, 152.94), (131072, 235.62)],
            )
        },
        ("5.27 x the time per byte of 16 KiB at 32 KiB",),
        ("--ranks", "512", "--nodes", "4"),
    ),
    Posted(
        "open-mpi/ompi#9761",
        "complaint: HCOLL has a size that takes 50 times as long as its neighbours",
        {"bcast.log": osu_log("Broadcast", [(2048, 25.23), (4096, 53.03), (8192, 2555.19), (16384, 145.0)])},
        ("25.32 x the time per byte of 2 KiB at 8 KiB",),
        ("--ranks", "1024"),
    ),
    Posted(
        "ROCm/rccl#1490",
        "complaint: an allgather of 2 MiB on Slingshot takes 70 ms",
        {
            "allgather.log": labelled(
                " 0: ",
                nccl_log(
                    "allgather",
                    4,
                    8,
                    [
                        (65536, 107.5),
                        (131072, 210.0),
                        (262144, 211.1),
                        (524288, 692.3),
                        (1048576, 1456.6),
                        (2097152, 70248.0),
                    ],
                    "AMD Instinct MI250X",
                ),
            )
        },
        ("41.60 x the time per byte of 256 KiB at 2 MiB",),
    ),
    Posted(
        "NVIDIA/nccl#1357, nccl-tests#232",
        "one GPU uses one interface of 400 Gb/s; 50 GB/s is its limit",
        {"tree.log": nccl_log("allreduce", 2, 1, [busbw("allreduce", 2, 8 * GIB, 49.8)])},
        (),
        box=("hopper", 1, 0, 4, 400, 63),
        boxes=2,
    ),
    Posted(
        "NVIDIA/nccl#2169",
        "complaint: an alltoall loses 12 to 15 % behind 512 MB",
        {
            "alltoall.log": nccl_log(
                "alltoall",
                1,
                4,
                [
                    busbw("alltoall", 4, 535822336, 334.9),
                    busbw("alltoall", 4, 536870912, 335.0),
                    busbw("alltoall", 4, 537919488, 289.0),
                    busbw("alltoall", 4, 549453824, 290.0),
                ],
            )
        },
        ("1.16 x the time per byte of 512 MiB at 513 MiB",),
        kinds=("cliff",),
    ),
    Posted(
        "NVIDIA/nccl#1368",
        "complaint: NCCL_ALGO=Tree reaches 150 GB/s and NCCL_ALGO=Ring 190",
        {
            "ring.log": nccl_log("allreduce", 5, 8, [busbw("allreduce", 40, GIB, 190)], before=["-x NCCL_ALGO=Ring"]),
            "tree.log": nccl_log("allreduce", 5, 8, [busbw("allreduce", 40, GIB, 150)], before=["-x NCCL_ALGO=Tree"]),
        },
        ("tree.log: allreduce on 40 ranks takes up to 1.27 x", "NCCL_ALGO=Tree leaves NCCL no other algorithms"),
    ),
    Posted(
        "NVIDIA/nccl#949",
        "27 of 50 GB/s in virtual machines until ACS was set up",
        {"vm.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, 8 * GIB, 27)], "NVIDIA A100-SXM4-80GB")},
        ("x the expected time", "links, settings or nodes are slower"),
        box=("ampere", 8, 12, 2, 200, 24),
        boxes=2,
    ),
    Posted(
        "NVIDIA/nccl-tests#156",
        "76 GB/s in virtual machines, 96 on their hosts",
        {"vm.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, 8 * GIB, 76)], "NVIDIA A800-SXM4-80GB")},
        ("x the expected time",),
        box=A100,
        boxes=2,
    ),
    Posted(
        "NVIDIA/nccl-tests#309",
        "470 GB/s on two nodes is a good number",
        {"good.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, 8 * GIB, 470)])},
        (),
        box=H100,
        boxes=2,
    ),
    Posted(
        "NVIDIA/nccl-tests#178",
        "a third GPU without a bridge makes PCIe the limit",
        {"three.log": nccl_log("allreduce", 1, 3, [busbw("allreduce", 3, GIB, 20)], "NVIDIA A100-PCIE-40GB")},
        (),
        box=("ampere", 3, 12, 1, 200, 24),
        joined="pairs",
    ),
    Posted(
        "NVIDIA/nccl-tests#106",
        "pairs of nodes reach 49 or 88 GB/s; one node is slow",
        {
            f"{name}.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, GIB, rate)], A100_NAME, names=name)
            for name, rate in _PAIRS.items()
        },
        ("(and da.log, ab.log)", "only slow logs have: host-a (in 2 of 3)"),
        kinds=("spread",),
    ),
    Posted(
        "NVIDIA/nccl#837",
        "complaint: one version of NCCL has 57 GB/s and the next 7",
        {
            "2.10.3.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, GIB, 57.06)], "NVIDIA A100-SXM4-80GB"),
            "2.11.4.log": nccl_log("allreduce", 2, 8, [busbw("allreduce", 16, GIB, 7.05)], "NVIDIA A100-SXM4-80GB"),
        },
        ("2.11.4.log", "x the expected time", "8.09 x the time of other logs at 1 size of 1"),
        box=("ampere", 8, 12, 2, 200, 24),
        boxes=2,
    ),
]

#: Threads whose cause times cannot show, with the reason.
MISSED = {
    "intel/mpi-benchmarks#37": "Sendrecv is not a collective",
    "NVIDIA/nccl-tests#293": "the cause is a setting of the BIOS (NUMA nodes of a socket)",
    "NVIDIA/nccl#820": "the cause is the order of interfaces in a topology; jobs of the logs are concurrent",
    "open-mpi/ompi#11022": "the barrier of the benchmark decides the measured broadcast",
    "NVIDIA/nccl-tests#167": "the log is refused for wrong results",
}
