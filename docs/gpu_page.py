"""Writes docs/gpus.md: the predicted times of GPU libraries, beside measured ones of docs/measured."""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import unisono as un
from unisono.base.reports import LibraryReport
from unisono.logs.collectives import Measured, read_log
from unisono.logs.library_calibration import FAR, Residual, calibrated
from unisono.machines.descriptions import machine as described
from unisono.planning.libraries import library_choice

PAGE = Path(__file__).with_name("gpus.md")
DATA = Path(__file__).with_name("measured")
#: The text before it is written by hand.
_MARK = "`python docs/generate.py` generates the tables below from the data in `docs/measured`.\n"
POINTS = 6
_GOOD = 0.15
_NVLINK = {"ampere": 200, "hopper": 200}


def page() -> str:
    """Returns the text of the page."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(_MARK)
    return head + mark + _posted() + _amd() + _uncalibrated() + _calibrated() + _network()


def posted() -> list[dict[str, str]]:
    """Returns the rows of docs/measured/posted.tsv."""
    lines = (DATA / "posted.tsv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def machine_of(row: dict[str, str]) -> Any:
    """Returns the machine of a posted row: boxes of GPUs with PCIe and NVSwitches, or a bridge of the first two."""
    gpus, boxes, nics = int(row["gpus"]), int(row["boxes"]), int(row["interfaces"])
    rate, pcie = _NVLINK[row["architecture"]] * int(row["nvlinks"]), 8 * int(row["pcie"])
    nvswitch, host = gpus, gpus + 1
    inside = [f"{gpu} {host} gbps={pcie} board" for gpu in range(gpus)]
    inside += [f"{host} {host + 1 + nic} gbps={row['gbps']} board" for nic in range(nics)]
    if row["joined"] == "switch" and rate > 0 and gpus > 1:
        inside += [f"{gpu} {nvswitch} gbps={rate} board" for gpu in range(gpus)]
    elif row["joined"] == "pairs":
        inside.append(f"0 1 gbps={rate} board")
    # A node without cables would not be in the graph.
    if not any(line.split()[1] == str(nvswitch) for line in inside):
        inside = [_renumbered(line, nvswitch) for line in inside]
        host -= 1
    topology: dict[str, Any] = {"name": "graph", "accelerators": gpus, "edges": "\n".join(inside)}
    if boxes > 1:
        uplinks = "\n".join(f"{host + 1 + nic} {nic} gbps={row['gbps']} aoc" for nic in range(nics))
        topology = {"name": "boxes", "boxes": boxes, "accelerators": gpus, "inside": "\n".join(inside)}
        topology["uplinks"] = uplinks
    base = un.machine("a100x4").describe()
    gpu = {"architecture": row["architecture"], "nvlinks": int(row["nvlinks"]), "cpu": "intel"}
    return described({**base, "name": "posted", "gpu": gpu, "topology": topology})


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
        "Bus bandwidth in GB/s; no point was fitted to. The boxes and the sources are in `docs/measured/posted.tsv`.\n",
        "| GPUs | boxes | interfaces of a box | bytes | posted | predicted | ratio | NCCL's choice | source |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in posted():
        choice = predicted(row)
        ratio = (choice["busbw"] or 0.0) / float(row["busbw"])
        lines.append(
            f"| {row['gpus']} {row['architecture']}, {row['nvlinks']} NVLinks | {row['boxes']} "
            f"| {row['interfaces']} x {row['gbps']}G | {row['bytes']} | {row['busbw']} | {choice['busbw']:.0f} "
            f"| {ratio:.2f} | {choice['algorithm']} {choice['protocol']} | {row['source']} |"
        )
    return "\n".join(lines) + "\n"


#: GB/s on the bus of 8 MI300X by RCCL's own choice (github.com/rouge3877/ns3-msccl-data, commit 76fd624), and a plan.
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
        "\nRCCL's choice is not modelled. On `mi300x` the own plan is compared with what RCCL reached "
        "(rouge3877/ns3-msccl-data); [GPU plans](gpu-plans.md) has 32 times of MSCCL files on the same machine.\n",
        "| 8 MI300X | bytes | posted | plan | ratio |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {kind} | {size} | {busbw} | {plan:.0f} | {plan / busbw:.2f} |" for kind, size, busbw, plan in amd()]
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
    """Returns the residuals of NCCL's own model."""
    # With 0 points to fit, all prices keep their values.
    plain = un.machine("a100x4")
    return calibrated(plain, measured(), 0)[2]


@cache
def fitted() -> list[Residual]:
    """Returns the residuals after a fit to few sizes of each collective and number of GPUs."""
    return calibrated(un.machine("a100x4"), measured(), POINTS)[2]


def _uncalibrated() -> str:
    lines = [
        "\n## One node of 4 A100 by NCCL's own constants",
        "Sizes up to 1 MiB; measured by NCCL 2.31.2 (`docs/measured/a100x4-nvlink.csv`). The ratio is predicted over "
        "measured time.\n",
        "| collective | sizes | within a factor of 1.5 | least ratio | largest ratio |",
        "|---|---|---|---|---|",
    ]
    for name, of in _groups([r for r in uncalibrated() if r.point.bytes <= 1 << 20]):
        ratios = [1 + r.error for r in of]
        within = sum(1 / 1.5 <= ratio <= 1.5 for ratio in ratios)
        lines.append(f"| {name} | {len(of)} | {within} | {min(ratios):.2f} | {max(ratios):.2f} |")
    return "\n".join(lines) + "\n"


def _calibrated() -> str:
    residuals = fitted()
    seen = sum(r.fitted for r in residuals)
    lines = [
        "\n## The same node after calibration",
        "`unisono calibrate --from docs/measured/a100x4-nvlink.csv --machine a100x4 --points "
        f"{POINTS} -o M.toml` fits 12 prices (a start, a step and two prices of bytes for each of three protocols) to "
        f"{seen} of {len(residuals)} times: {POINTS} sizes of each collective on each number of GPUs. The sizes of 8 B "
        "and 1 KiB on 2 GPUs that are far off took longer than 2 KiB did.\n",
        "| collective | sizes | within 15 % | largest error | further off than 35 % |",
        "|---|---|---|---|---|",
    ]
    for name, of in _groups(residuals):
        within = sum(abs(r.error) <= _GOOD for r in of)
        worst = max(of, key=lambda r: abs(r.error))
        far = ", ".join(f"{r.point.bytes} B ({r.error:+.0%})" for r in of if abs(r.error) > FAR)
        lines.append(
            f"| {name} | {len(of)} | {within} | {worst.error:+.0%} at {worst.point.bytes} B | {far or 'none'} |"
        )
    within = sum(abs(r.error) <= _GOOD for r in residuals)
    lines.append(
        f"\n{within} of {len(residuals)} times ({within / len(residuals):.0%}) are within 15 %; "
        "`--json` lists all of them."
    )
    return "\n".join(lines) + "\n"


def two_boxes() -> tuple[list[Residual], list[Residual]]:
    """Allreduces of two nodes over TCP: by NCCL's own constants, and after a fit to six of them."""
    base = un.machine("a100x4").describe()
    inside = base["topology"]["edges"] + "".join(f"{gpu} {gpu + 4} gbps=200 board\n" for gpu in range(4))
    uplinks = "".join(f"{nic} 0 gbps=200 aoc\n" for nic in range(4, 8))
    topology = {"name": "boxes", "boxes": 2, "accelerators": 4, "inside": inside, "uplinks": uplinks}
    machine = described({**base, "name": "a100x4-x2", "topology": topology})
    points = measured("a100-2x4-slingshot-tcp.csv")
    return calibrated(machine, points, 0)[2], calibrated(machine, points, POINTS)[2]


def _network() -> str:
    own, fit = two_boxes()
    unseen = [r for r in fit if not r.fitted]
    within = sum(abs(r.error) <= _GOOD for r in unseen)
    lines = [
        "\n## Two such nodes over TCP",
        "Allreduce on 8 GPUs, NCCL over TCP on four interfaces of Slingshot "
        "(`docs/measured/a100-2x4-slingshot-tcp.csv`). NCCL's constants are those of RDMA, so its own times are "
        f"those of another network. After a fit to {POINTS} sizes, {within} of {len(unseen)} others are within 15 %. "
        "Not described are 512 B, which took longer than 4 KiB, 192 to 512 KiB, which took longer than 768 KiB, and "
        "tree LL128, which none of the six is of.\n",
        "| bytes | measured, µs | own constants | calibrated | error | by |",
        "|---|---|---|---|---|---|",
    ]
    for before, after in zip(own, fit, strict=True):
        point = after.point
        star = "*" if after.fitted else ""
        lines.append(
            f"| {point.bytes} | {1e6 * point.seconds:.1f} | {1e6 * before.predicted:.1f} "
            f"| {1e6 * after.predicted:.1f}{star} | {after.error:+.0%} | {after.algorithm} {after.protocol} |"
        )
    return "\n".join(lines) + "\n"
