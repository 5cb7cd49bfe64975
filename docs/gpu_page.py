"""Writes docs/gpus.md: the predicted times of GPU libraries, beside measured ones of docs/measured."""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import unisono as un
from unisono.base.reports import LibraryReport
from unisono.logs.collectives import Measured, read_log
from unisono.logs.library_calibration import Residual, calibrated
from unisono.machines.descriptions import machine as described
from unisono.planning.libraries import library_choice

PAGE = Path(__file__).with_name("gpus.md")
DATA = Path(__file__).with_name("measured")
#: The line of the page after which everything is generated.
_MARK = "`python docs/generate.py` writes the sections below.\n"
POINTS = 6
_GOOD = 0.15
#: Microseconds of a message between boxes if a row states none: those of InfiniBand in the presets.
_NETWORK_US = 2.6
_NVLINK = {"volta": 200, "ampere": 200, "hopper": 200, "blackwell": 400}


def page() -> str:
    """Returns the text of the page."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    return head + mark + _posted() + _logs() + _amd() + _calibrated() + _network()


def posted(name: str = "posted.tsv") -> list[dict[str, str]]:
    """Returns the rows of a table of docs/measured."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def machine_of(row: dict[str, str]) -> Any:
    """Returns the machine of a posted row: boxes of GPUs with PCIe, and an NVSwitch or a bridge of the first two GPUs.

    A row with a rate in ``cpus`` has two CPUs with half of the GPUs each. Rows with a mesh use the preset `mi300x`.
    """
    gpus, boxes, nics = int(row["gpus"]), int(row["boxes"]), int(row["interfaces"])
    if row["joined"] == "mesh":
        return _boxes_of_mi300x(boxes, row["gbps"])
    rate, pcie = _NVLINK[row["architecture"]] * int(row["nvlinks"]), 8 * int(row["pcie"])
    nvswitch, host, between = gpus, gpus + 1, int(row.get("cpus", 0))
    other = host + 1 + nics
    # A message between boxes passes six cables, three in each box.
    ns = f"ns={1000 * float(row.get('network_us') or _NETWORK_US) / 6:.6g}"
    inside = [f"{gpu} {other if between and 2 * gpu >= gpus else host} gbps={pcie} {ns} board" for gpu in range(gpus)]
    inside += [f"{host} {host + 1 + nic} gbps={row['gbps']} {ns} board" for nic in range(nics)]
    if between:
        inside.append(f"{host} {other} gbps={8 * between} board")
    if row["joined"] == "switch" and rate > 0 and gpus > 1:
        inside += [f"{gpu} {nvswitch} gbps={rate} board" for gpu in range(gpus)]
    elif row["joined"] == "pairs":
        inside.append(f"0 1 gbps={rate} board")
    # A graph has no nodes without cables: without the NVSwitch, later nodes get smaller numbers.
    if not any(line.split()[1] == str(nvswitch) for line in inside):
        inside = [_renumbered(line, nvswitch) for line in inside]
        host -= 1
    topology: dict[str, Any] = {"name": "graph", "accelerators": gpus, "edges": "\n".join(inside)}
    if boxes > 1:
        uplinks = "\n".join(f"{host + 1 + nic} {nic} gbps={row['gbps']} {ns} aoc" for nic in range(nics))
        topology = {"name": "boxes", "boxes": boxes, "accelerators": gpus, "inside": "\n".join(inside)}
        topology["uplinks"] = uplinks
    base = un.machine("a100x4").describe()
    gpu = {"architecture": row["architecture"], "nvlinks": int(row["nvlinks"]), "cpu": row.get("cpu", "intel")}
    if row.get("processes") == "one":
        gpu["process_gpus"] = gpus
    return described({**base, "name": "posted", "gpu": gpu, "topology": topology})


def _boxes_of_mi300x(boxes: int, gbps: str) -> Any:
    base = un.machine("mi300x").describe()
    if boxes > 1:
        inside = base["topology"]["edges"] + "".join(f"{gpu} {gpu + 8} gbps={gbps} board\n" for gpu in range(8))
        uplinks = "".join(f"{nic} {nic - 8} gbps={gbps} aoc\n" for nic in range(8, 16))
        topology = {"name": "boxes", "boxes": boxes, "accelerators": 8, "inside": inside, "uplinks": uplinks}
        base = {**base, "name": "posted", "topology": topology}
    return described(base)


def _renumbered(line: str, missing: int) -> str:
    a, b, *rest = line.split()
    ends = [str(int(end) - (int(end) > missing)) for end in (a, b)]
    return " ".join([*ends, *rest])


def predicted(row: dict[str, str]) -> LibraryReport:
    """Returns NCCL's choice for a posted row."""
    elements = int(row["bytes"]) // 4
    return library_choice(row["collective"], machine_of(row), elements)


def _posted() -> str:
    lines = [
        "\n## Large vectors: posted and predicted",
        "The table has bus bandwidths of allreduces in GB/s. No constant was fitted to them. "
        "`docs/measured/posted.tsv` describes the boxes. `ratio` is the predicted bandwidth divided by the posted "
        "one.\n",
        "| GPUs | boxes | interfaces of a box | bytes | posted | predicted | ratio | NCCL's choice | source |",
        "|---|---:|---|---:|---:|---:|---:|---|---|",
    ]
    for row in posted():
        choice = predicted(row)
        ratio = (choice["busbw"] or 0.0) / float(row["busbw"])
        lines.append(
            f"| {row['gpus']} {row['architecture']}, {row['nvlinks']} NVLinks | {row['boxes']} "
            f"| {row['interfaces']} x {row['gbps']}G | {int(row['bytes']):,} | {row['busbw']} | {choice['busbw']:.0f} "
            f"| {ratio:.2f} | {choice['algorithm']} {choice['protocol']} | {row['source']} |"
        )
    return "\n".join(lines) + "\n"


def log_ratios(row: dict[str, str]) -> list[tuple[int, float, float | None, str]]:
    """Returns the rows of a posted log: bytes, measured microseconds, ratio, and the library's choice.

    The ratio is predicted / measured time, or None if the library's model has no time.
    """
    machine, found = machine_of(row), []
    library = "rccl" if row["joined"] == "mesh" else "nccl"
    for power, text in enumerate(row["times_us"].split()):
        size = int(row["first"]) << power
        choice = library_choice(row["collective"], machine, size // 4, library=library)
        ratio = None if choice["seconds"] is None else choice["seconds"] * 1e6 / float(text)
        found.append((size, float(text), ratio, f"{choice['algorithm']} {choice['protocol']}"))
    return found


#: The greatest ratio, in either direction, of near times. They are counted up to `_SHORT` bytes; long sizes begin at
#: `_LONG` bytes.
_NEAR = 1.5
_SHORT, _LONG = 1 << 20, 256 << 20


def _logs() -> str:
    lines = [
        "\n## Whole logs: posted and predicted",
        "The logs are of allreduces out of place; `docs/measured/posted-times.tsv` names the sources. One constant is "
        "fitted to them: the start of a kernel by a process with several GPUs (logs 3, 10, 13 and 18). A prediction is "
        "near if it differs from the posted time by at most a factor of 1.5. Some times that are not near have a known "
        "cause: RoCE without its settings (2), GPUs that send to each other through the memory of the CPUs (10, 18), "
        "a setting of 32 channels for short sizes (13), NVLS for 64 B to 2 MiB (17), and single sizes that took longer "
        "than larger ones (4, 5, 7, 8, 13). RCCL's choice has no time on several boxes (12).\n",
        "| | machine | library | near, of sizes to 1 MiB | within 15 %, of sizes from 256 MiB |",
        "|---|---|---|---|---|",
    ]
    logs = posted("posted-times.tsv")
    ratios = [log_ratios(row) for row in logs]
    for at, (row, of) in enumerate(zip(logs, ratios, strict=True), 1):
        short = [ratio for size, _, ratio, _ in of if ratio is not None and size <= _SHORT]
        long = [ratio for size, _, ratio, _ in of if ratio is not None and size >= _LONG]
        near = sum(1 / _NEAR <= ratio <= _NEAR for ratio in short)
        within = sum(abs(ratio - 1) <= _GOOD for ratio in long)
        library = "RCCL" if row["joined"] == "mesh" else "NCCL"
        lines.append(f"| {at} | {row['name']} | {library} | {near} of {len(short)} | {within} of {len(long)} |")
    lines += [
        "\nThe next table has the predicted time divided by the posted one, at every third size; its columns are the "
        "logs:\n",
        "| bytes | " + " | ".join(str(at) for at in range(1, len(logs) + 1)) + " |",
        "|---:" * (len(logs) + 1) + "|",
    ]
    for size in sorted({size for of in ratios for size, *_ in of})[::3]:
        cells = [next((f"{ratio:.2f}" for s, _, ratio, _ in of if s == size and ratio), "") for of in ratios]
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


#: Of 8 MI300X: collective, bytes, GB/s of bus bandwidth by RCCL's own choice (github.com/rouge3877/ns3-msccl-data,
#: commit 76fd624), and the algorithm of our plan.
_MI300X = (("allgather", 1 << 30, 305.0, "balanced-shift"), ("allreduce", 1 << 28, 304.7, "forest"))


def amd() -> list[tuple[str, int, float, float]]:
    """Returns collective, bytes as in rccl-tests, and the posted and predicted bus bandwidth of 8 MI300X in GB/s."""
    rows = []
    for kind, size, busbw, algorithm in _MI300X:
        of = size // 8 if kind == "allgather" else size
        params = {"depth": "1"} if algorithm == "forest" else {}
        report = un.plan(kind, "mi300x", bytes=of, algorithm=algorithm, params=params).report()
        rows.append((kind, size, busbw, report["busbw"] or 0.0))
    return rows


def _amd() -> str:
    lines = [
        "\nThe next table has the bus bandwidth in GB/s of Unisono's plan for `mi300x`, beside that of RCCL "
        "(rouge3877/ns3-msccl-data):\n",
        "| 8 MI300X | bytes | posted | plan | ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [f"| {kind} | {size:,} | {busbw} | {plan:.0f} | {plan / busbw:.2f} |" for kind, size, busbw, plan in amd()]
    return "\n".join(lines) + "\n"


def measured(name: str = "a100x4-nvlink.csv") -> list[Measured]:
    """Returns the times of a table of docs/measured."""
    return read_log((DATA / name).read_text(encoding="utf-8"), name)


def _groups(residuals: list[Residual]) -> Iterator[tuple[str, list[Residual]]]:
    groups: dict[str, list[Residual]] = {}
    for residual in residuals:
        groups.setdefault(f"{residual.point.collective}, {residual.point.ranks} GPUs", []).append(residual)
    yield from groups.items()


@cache
def uncalibrated() -> list[Residual]:
    """Returns the residuals of all measured times by NCCL's own model."""
    # With 0 points to fit, all prices keep their values.
    plain = un.machine("a100x4")
    return calibrated(plain, measured(), 0)[2]


@cache
def fitted() -> list[Residual]:
    """Returns the residuals after a fit to `POINTS` sizes of each collective and number of GPUs."""
    return calibrated(un.machine("a100x4"), measured(), POINTS)[2]


def _calibrated() -> str:
    residuals = fitted()
    seen = sum(r.fitted for r in residuals)
    lines = [
        "\n## One node of 4 A100, by NCCL's own constants and calibrated",
        "The times were measured with NCCL 2.31.2. The second and third columns are for sizes up to 1 MiB; `ratios` "
        "are predicted times divided by measured ones. "
        "`unisono calibrate --from docs/measured/a100x4-nvlink.csv --machine a100x4 --points "
        f"{POINTS} -o M.toml` fits 12 prices (a start, a step and two prices of bytes for each of three protocols) to "
        f"{seen} of {len(residuals)} times: {POINTS} sizes of each collective on each number of GPUs, except one that "
        "took longer than a larger size by the same algorithm. The three largest errors are of calls of 8 B and 1 KiB "
        "on 2 GPUs, which took longer than calls of 2 KiB.\n",
        "| collective | own constants: within a factor of 1.5 | ratios | calibrated: within 15 % | largest error |",
        "|---|---|---|---|---|",
    ]
    own = dict(_groups([r for r in uncalibrated() if r.point.bytes <= 1 << 20]))
    for name, of in _groups(residuals):
        ratios = [1 + r.error for r in own[name]]
        near = f"{sum(1 / _NEAR <= ratio <= _NEAR for ratio in ratios)} of {len(ratios)}"
        within = sum(abs(r.error) <= _GOOD for r in of)
        worst = max(of, key=lambda r: abs(r.error))
        lines.append(
            f"| {name} | {near} | {min(ratios):.2f} to {max(ratios):.2f} | {within} of {len(of)} "
            f"| {100 * worst.error:+.0f} % at {worst.point.bytes:,} B |"
        )
    within = sum(abs(r.error) <= _GOOD for r in residuals)
    lines.append(
        f"\nOf all times, {within} of {len(residuals)} ({100 * within / len(residuals):.0f} %) are within 15 %."
    )
    return "\n".join(lines) + "\n"


def two_boxes() -> tuple[list[Residual], list[Residual]]:
    """Returns the residuals of allreduces on two nodes, by NCCL's own constants and by a fit to `POINTS` sizes."""
    machine = un.machine(str(DATA / "a100-2x4.toml"))
    points = measured("a100-2x4-slingshot-tcp.csv")
    return calibrated(machine, points, 0)[2], calibrated(machine, points, POINTS)[2]


def _network() -> str:
    own, fit = two_boxes()
    unseen = [r for r in fit if not r.fitted]
    within = sum(abs(r.error) <= _GOOD for r in unseen)
    lines = [
        "\n## Two such nodes over TCP",
        "The times are of allreduces on two nodes of 4 A100, with NCCL over TCP on four interfaces of Slingshot in "
        "each node. NCCL's own constants are for RDMA. "
        "`unisono calibrate --from docs/measured/a100-2x4-slingshot-tcp.csv --machine "
        f"docs/measured/a100-2x4.toml --points {POINTS} -o M.toml` fits to {POINTS} sizes, except one that took longer "
        f"than a larger size by the same algorithm. Of the other sizes, {within} of {len(unseen)} are within 15 %. "
        "The fit misses 512 B, which took longer than 4 KiB, and 192 to 512 KiB, which took longer than 768 KiB. "
        "No fitted size runs by tree LL128, which keeps NCCL's constants. The table has every second size; * marks "
        "fitted sizes:\n",
        "| bytes | measured, µs | own constants | calibrated | error | by |",
        "|---:|---:|---:|---:|---:|---|",
    ]
    for before, after in list(zip(own, fit, strict=True))[::2]:
        point = after.point
        star = "*" if after.fitted else ""
        lines.append(
            f"| {point.bytes:,} | {1e6 * point.seconds:,.1f} | {1e6 * before.predicted:,.1f} "
            f"| {1e6 * after.predicted:,.1f}{star} | {100 * after.error:+.0f} % | {after.algorithm} {after.protocol} |"
        )
    return "\n".join(lines) + "\n"
