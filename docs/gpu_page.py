"""Writes docs/gpus.md: the predicted times of GPU libraries, beside measured ones of docs/measured."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import unisono as un
from unisono.base.reports import LibraryReport
from unisono.collective_logs import Measured, read_log
from unisono.library_calibration import FAR, Residual, calibrated
from unisono.machines.descriptions import machine as described
from unisono.planning.libraries import library_choice

PAGE = Path(__file__).with_name("gpus.md")
DATA = Path(__file__).with_name("measured")
_HEAD = """# What a GPU library chooses

To see which algorithm and protocol NCCL takes for a collective, and in what time, name it with `--as`:

```
unisono plan allreduce --machine dgx-h100 --nodes 2 --bytes 64MiB --as nccl
```

The command prints NCCL's choice with its channels, time and bus bandwidth below the plan, and a table of all that
NCCL enables there (`library` in JSON; in Python `un.plan(..., as_library="nccl").library`). NCCL chooses the least of
its own estimates, so `own estimate` explains the choice. `predicted` corrects the estimate of a ring on one box for
short calls, which run on few channels, and for broadcasts, whose chunks of 512 KiB fill a pipeline. Both are NCCL's
model (NVIDIA/nccl 5067397c, June 2026) and not measured, until the machine is calibrated. NCCL 2.32 has another
model.

[`unisono expect`](commands.md#unisono-expect) lists NCCL's time and bus bandwidth by size, beside the best possible
and the plan's.

The machine must state its GPUs; presets of NVIDIA's servers and imported topologies of NCCL do:

```toml
[gpu]
architecture = "hopper" # volta, ampere, hopper or blackwell
nvlinks = 18            # of a GPU; without it, the rate of its cables divided by that of a link
cpu = "intel"           # intel, amd or arm [intel]
```

NCCL reduces with NVLS on one box of GPUs from Hopper on behind NVSwitches, with CollNet where all switches between
the boxes reduce (`[[switches]]`). Rates of links are those that NCCL assumes (20, 20.6 and 40.1 GB/s a link), because
it chooses by them. Exact are the formulas, the constants, and the channels of GPUs behind NVSwitches or of up to 8
GPUs with direct NVLinks on one box. Approximate are channels across boxes (any interface serves any GPU), trees over
direct NVLinks (the rate of the rings) and PCIe (one rate a GPU). Variables such as `NCCL_ALGO`, user buffers and the
latency that an interface states are not read. RCCL has constants of its own, which are not modelled.

## Calibrate to your logs
`unisono calibrate --from` reads the output of nccl-tests or rccl-tests, or a CSV with the columns `op`, `gpus`,
`bytes`, `time_us` (and `nodes`), and needs no MPI:

```
unisono calibrate --from all_reduce.log --from all_gather.log --machine dgx-a100 -o mine.toml
unisono plan allreduce --machine mine.toml --bytes 1MiB --as nccl
```

It fits five prices for each algorithm and protocol that NCCL chose: the start, a step inside a box, a step between
boxes, a byte that a channel sends, and a byte that it works on. All collectives and sizes share them. They are
non-negative, and the sum of the relative errors is least; where few points leave a price open, NCCL's own constant
stands in. The command prints every point that is off by more than 15 %, and writes the prices to the table `[nccl]` of
the machine.
A log is refused if a row is cut, has wrong elements or has bandwidths that are not those of its size, time and test,
and if it names GPUs of another architecture than the machine. Several tests in one file keep their names.
The choice remains that of NCCL's own constants, because NCCL does not know the prices. `--points N` fits to N sizes
of each collective and number of GPUs and judges by the others.

## A tuner file
`unisono plan allreduce --machine mine.toml --bytes 1MiB --as nccl --for nccl -o tuner.csv` writes the best of NCCL's
own algorithms for all sizes, or those of `--serve`, for its example tuner plugin ([export](export.md#nccl-tuner-csv)).
Each line names an algorithm and a protocol that NCCL enables on that machine. On a calibrated machine only
measured algorithms and NCCL's own choice are compared; on another machine the lines are NCCL's own choices.

`python docs/generate.py` generates the tables below from the data in `docs/measured`.
"""
POINTS = 6
_GOOD = 0.15
_NVLINK = {"ampere": 200, "hopper": 200}


def page() -> str:
    """Returns the text of the page."""
    return _HEAD + _posted() + _uncalibrated() + _calibrated()


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


def measured() -> list[Measured]:
    """Returns the times of docs/measured/a100x4-nvlink.csv."""
    path = DATA / "a100x4-nvlink.csv"
    return read_log(path.read_text(encoding="utf-8"), path.name)


def _groups(residuals: list[Residual]) -> Iterator[tuple[str, list[Residual]]]:
    groups: dict[str, list[Residual]] = {}
    for residual in residuals:
        groups.setdefault(f"{residual.point.collective}, {residual.point.ranks} GPUs", []).append(residual)
    yield from groups.items()


def uncalibrated() -> list[Residual]:
    """Returns the residuals of NCCL's own model."""
    # With 0 points to fit, all prices keep their values.
    plain = un.machine("a100x4")
    return calibrated(plain, measured(), 0)[2]


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
    lines.append(f"\n{within} of {len(residuals)} times ({within / len(residuals):.0%}) are within 15 %.")
    return "\n".join(lines) + "\n"
