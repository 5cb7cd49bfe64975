"""Fits the cost parameters ("prices") of NCCL's algorithms to measured times, so that a machine predicts them.

A time is ``start + hops x hop + network hops x hop + bytes sent x price + bytes worked on x price`` of one channel. The
model of NCCL gives these amounts of work for its own choice (``docs/gpus.md``). Each algorithm with a protocol has its
own prices, one set for a single box and one for several boxes. All collectives and numbers of ranks share these prices.
The prices minimize the relative errors and are not negative. The sum of absolute errors is minimized, so large errors
have less weight than in least squares. Prices that the points do not determine are NCCL's own constants times a common
factor.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unisono._core import InputError, Machine, UnsupportedError, dtypes, gpu_architecture
from unisono.base.reports import LibraryPrices, LibraryReport
from unisono.logs.collectives import Measured
from unisono.machines.descriptions import machine as described
from unisono.planning.libraries import library_choice

__all__ = [
    "FAR",
    "ONE_BLOCK",
    "Group",
    "Residual",
    "boxes_of",
    "calibrated",
    "check_gpus",
    "choice_at",
    "chosen_points",
    "launch_notes",
    "nnls",
    "preset_of",
]

#: Collectives on one vector; all other collectives have a block for each rank.
ONE_BLOCK = frozenset(("broadcast", "reduce", "allreduce", "scan", "barrier"))
#: The relative error above which a prediction does not describe the point.
FAR = 0.35
#: The weight of NCCL's own prices in the fit. A price of twice NCCL's own price is penalized like this relative error
#: at one point.
_PRIOR = 0.03
#: The relative error below which points have full weight. Iterated weights approximate the minimum of the sum of
#: absolute relative errors, which a few disturbed points hardly change.
_TOLERATED = 0.02
_ROUNDS = 20
#: A call counts as disturbed if its time exceeds, by more than this factor, the time of a call of more bytes by the
#: same algorithm.
_DISTURBED = 1.15
#: The minimum scale by which the distance of each price from NCCL's own price is divided, in the units of
#: :data:`_KEYS`.
_LEAST = (1.0, 0.1, 0.1, 1e-3, 1e-3)
_KEYS = ("start_us", "hop_us", "network_hop_us", "sent_ns_per_byte", "worked_ns_per_byte")
#: The presets, by a pattern of the GPU's name with hyphens and the number of GPUs in a box.
_PRESETS = {
    ("A100-SXM", 8): "dgx-a100",
    ("B200", 8): "dgx-b200",
    ("H100(?!-PCIe|-NVL)", 8): "dgx-h100",
    ("H200(?!-NVL)", 8): "dgx-h200",
    ("V100-SXM", 8): "ndv2",
    ("V100-SXM", 16): "dgx2",
    ("MI300X", 8): "mi300x",
    ("MI250", 16): "mi250",
}

_Key = tuple[str, str, bool]


@dataclass(frozen=True)
class Residual:
    """A measured and a predicted time, in seconds."""

    point: Measured
    algorithm: str
    protocol: str
    predicted: float
    #: True if the prices were fitted to this point, false if the point was only compared.
    fitted: bool

    @property
    def error(self) -> float:
        """Returns the relative error of the prediction: predicted / measured - 1."""
        return self.predicted / self.point.seconds - 1


@dataclass(frozen=True)
class Group:
    """The prices of an algorithm with a protocol, in one box or across boxes (``key``), fitted to ``points`` points."""

    key: _Key
    prices: dict[str, float]
    points: int

    def used(self) -> dict[str, float]:
        """Returns the prices. The price of a step between boxes is omitted if all jobs had one box."""
        return {name: price for name, price in self.prices.items() if self.key[2] or name != "network_hop_us"}

    def table(self) -> dict[str, Any]:
        """Returns the fitted prices as an entry of the table ``[nccl]`` of a machine file."""
        algorithm, protocol, across = self.key
        return {
            "algorithm": algorithm,
            "protocol": protocol,
            "across_boxes": across,
            **{name: float(f"{price:.6g}") for name, price in self.used().items()},
            "points": self.points,
        }


def preset_of(points: Sequence[Measured]) -> str:
    """Returns the preset with the GPUs that the logs name.

    The number of GPUs in a box is the largest number on a node of the logs.

    Raises:
        InputError: no preset has these GPUs, or the logs name several.

    """
    gpus = {point.gpu for point in points}
    boxes = {-(-point.ranks // point.nodes) for point in points}
    for (word, count), preset in _PRESETS.items():
        if len(gpus) == 1 and _is_of(word, next(iter(gpus))) and max(boxes) == count:
            return preset
    raise InputError("the logs do not say which machine was measured; name one like it with --machine")


def _is_of(word: str, gpu: str) -> bool:
    return re.search(rf"\b{word}", gpu.replace(" ", "-")) is not None


def chosen_points(points: Sequence[Measured], count: int | None) -> list[Measured]:
    """Returns ``count`` evenly spread sizes of each collective on each number of ranks; all if None."""
    if count is None:
        return list(points)
    groups: dict[tuple[str, int, int], list[Measured]] = {}
    for point in points:
        groups.setdefault((point.collective, point.ranks, point.nodes), []).append(point)
    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda point: point.bytes)
        few = min(count, len(ordered))
        found += [ordered[(2 * at + 1) * len(ordered) // (2 * few)] for at in range(few)]
    return found


def calibrated(
    machine: Machine, points: Sequence[Measured], count: int | None = None
) -> tuple[Machine, list[Group], list[Residual], list[str]]:
    """Returns the machine with fitted prices, the prices, all residuals, and sentences about points left out.

    Raises:
        InputError: the machine does not state its GPUs or has other GPUs than the logs, or NCCL has no algorithm for
            any point.

    """
    notes = check_gpus(machine, (point.gpu for point in points)) + launch_notes(points)
    if (machine.describe().get("gpu") or {}).get("architecture", "").startswith("cdna"):
        raise InputError(
            f"prices are fitted to the algorithms of NCCL, and {machine.name} has GPUs of AMD; 'unisono diagnose LOG "
            f"--machine {machine.name}' compares logs with RCCL's own times"
        )
    kept = []
    for point in points:
        try:
            found = choice_at(machine, point)
        except UnsupportedError as refused:
            notes.append(str(refused))
            continue
        if not found["choices"]:
            notes.append(f"times of {point.collective} are left out: NCCL's model has no prices of messages to fit")
            continue
        kept.append(point)
    if not kept:
        raise InputError(f"no point can be fitted: {notes[-1]}")
    fitted, disturbed = _undisturbed(machine, chosen_points(kept, count))
    notes += disturbed
    groups = _groups(machine, fitted)
    table = machine.describe()
    table["nccl"] = {"measured": _measured(fitted), "fits": [group.table() for group in groups]}
    made = described(table)
    chosen = set(map(id, fitted))
    residuals = []
    for point in kept:
        choice = choice_at(made, point)["choices"][0]
        residuals.append(
            Residual(point, choice["algorithm"], choice["protocol"], choice["seconds"], id(point) in chosen)
        )
    notes += [note for note in made.notes() if note not in machine.notes()]
    return made, groups, residuals, list(dict.fromkeys(notes))


def _undisturbed(machine: Machine, points: Sequence[Measured]) -> tuple[list[Measured], list[str]]:
    """Returns the points without disturbed calls (:data:`_DISTURBED`), and sentences about the disturbed calls."""
    calls: dict[tuple[str, int, int, _Key], list[Measured]] = {}
    for point in points:
        best = choice_at(machine, point)["choices"][0]
        key = (best["algorithm"], best["protocol"], point.nodes > 1)
        calls.setdefault((point.collective, point.ranks, point.nodes, key), []).append(point)
    late, notes = set(), []
    for (collective, ranks, _, _), of in calls.items():
        for point in of:
            longer = [other.seconds for other in of if other.bytes > point.bytes]
            if longer and point.seconds > _DISTURBED * min(longer):
                late.add(id(point))
                notes.append(
                    f"{collective} of {point.bytes} bytes on {ranks} GPUs took {1e6 * point.seconds:.1f} µs, more than "
                    f"a longer call by the same algorithm ({1e6 * min(longer):.1f} µs), and is not fitted"
                )
    return [point for point in points if id(point) not in late], notes


def check_gpus(machine: Machine, names: Iterable[str]) -> list[str]:
    """Raises an error if the machine's GPUs have another architecture than the GPUs that logs name.

    Returns sentences on GPUs whose architecture is not known, and on GPUs of another preset.

    Raises:
        InputError: the machine is not a network, or logs name GPUs of another architecture.

    """
    if machine.kind != "network":
        raise InputError(
            f"{machine.name} is of kind {machine.kind}; times of NCCL are fitted on networks of GPUs, as dgx-a100"
        )
    stated = (machine.describe().get("gpu") or {}).get("architecture")
    own = [word for (word, _), preset in _PRESETS.items() if re.fullmatch(rf"{preset}(-x\d+)?", machine.name)]
    notes = []
    for gpu in filter(None, dict.fromkeys(names)):
        measured = gpu_architecture(gpu)
        if measured is None and stated is not None:
            notes.append(
                f"the architecture of {gpu} is not known here; it is taken for {stated}, as {machine.name} states"
            )
        elif own and not any(_is_of(word, gpu) for word in own):
            like = next((preset for (word, _), preset in _PRESETS.items() if _is_of(word, gpu)), None)
            other = f"name {like} with --machine" if like else "give --machine a file with its links"
            notes.append(f"the logs are of {gpu}, and {machine.name} has other GPUs; {other}")
        if stated is not None and measured not in (None, stated):
            raise InputError(
                f"the logs are of {gpu}, which is {measured}, and {machine.name} states GPUs of {stated}; name the "
                "machine that was measured"
            )
    return notes


def launch_notes(points: Iterable[Measured]) -> list[str]:
    """Returns a sentence if in any log one thread starts the kernels of several GPUs, else an empty list."""
    most = max((point.launched for point in points), default=1)
    if most == 1:
        return []
    return [
        f"one thread of the test started the kernels of {most} GPUs, which takes about 5.5 µs each, so the starts may "
        f"be the times of short vectors; '-g 1' under mpirun measures programs with a process for each GPU"
    ]


def _measured(points: Sequence[Measured]) -> str:
    ranks = sorted({point.ranks for point in points})
    kinds = sorted({point.collective for point in points})
    return f"{len(points)} times of {', '.join(kinds)} on {', '.join(map(str, ranks))} GPUs"


def boxes_of(machine: Machine, point: Measured) -> tuple[Machine, list[int]]:
    """Returns the machine with one box for each node of a measurement, and the accelerators of its ranks."""
    if point.ranks % point.nodes:
        raise InputError(f"{point.ranks} GPUs of a log are not equally many on each of {point.nodes} nodes")
    each = point.ranks // point.nodes
    boxed = machine.asked(nodes=point.nodes) if point.nodes > 1 else machine
    size = boxed.describe()["topology"].get("accelerators", each)
    if each > size:
        on = f"{point.nodes} node{'s' if point.nodes > 1 else ''}"
        raise InputError(
            f"a log has {point.ranks} GPUs on {on}, and a box of {machine.name} has {size}; state the nodes of its "
            "times (in a CSV by a column 'nodes'), or name the machine of the log"
        )
    return boxed, [box * size + gpu for box in range(point.nodes) for gpu in range(each)]


def choice_at(machine: Machine, point: Measured, library: str = "nccl") -> LibraryReport:
    """Returns a GPU library's own choice at a point, by its model."""
    boxed, places = boxes_of(machine, point)
    # A block has at least one element.
    blocks = 1 if point.collective in ONE_BLOCK else point.ranks
    count = max(1, point.bytes // (dtypes()[point.dtype] * blocks))
    return library_choice(point.collective, boxed, count, point.dtype, point.op, places=places, library=library)


def _groups(machine: Machine, points: Iterable[Measured]) -> list[Group]:
    rows: dict[_Key, list[tuple[list[float], float, LibraryPrices]]] = {}
    for point in points:
        best = choice_at(machine, point)["choices"][0]
        work, prices = best["work"], best["prices"]
        if work is None or prices is None:
            raise RuntimeError("NCCL's model states the work of every call")
        features = [1.0, work["hops"], work["network_hops"], work["sent_bytes"] / 1e3, work["worked_bytes"] / 1e3]
        key = (best["algorithm"], best["protocol"], point.nodes > 1)
        rows.setdefault(key, []).append((features, point.seconds * 1e6, prices))
    groups = []
    for key, of in sorted(rows.items()):
        # NCCL's own prices are taken from the call with the longest time, because there the price of a byte is most
        # accurate.
        own = max(of, key=lambda row: row[1])[2]
        prior = [own["start_us"], own["hop_us"], own["network_hop_us"], own["ns_per_byte"], own["ns_per_byte"]]
        prices = _fit(np.array([row[0] for row in of]), np.array([row[1] for row in of]), np.array(prior))
        groups.append(Group(key, dict(zip(_KEYS, map(float, prices), strict=True)), len(of)))
    return groups


def _fit(features: Any, times: Any, prior: Any) -> Any:
    """Returns non-negative prices with small relative errors.

    Prices that the times do not determine are near NCCL's own prices times a common factor.
    """
    # On a slow network all prices are larger, so NCCL's own prices are first scaled by a common factor.
    prior = prior * np.median(times / (features @ prior))
    scale = np.maximum(prior, _LEAST)
    unit, target = np.diag(_PRIOR / scale), _PRIOR * prior / scale
    relative, weights = features / times[:, None], np.ones(len(times))
    prices = prior
    for _ in range(_ROUNDS):
        prices = nnls(np.vstack([relative * weights[:, None], unit]), np.concatenate([weights, target]))
        off = np.abs(relative @ prices - 1)
        weights = 1 / np.sqrt(np.maximum(off / _TOLERATED, 1))
    return prices


def nnls(design: Any, target: Any) -> Any:
    """Solves non-negative least squares by an active set (Lawson, Hanson, "Solving Least Squares Problems", 23)."""
    count = design.shape[1]
    norms = np.linalg.norm(design, axis=0)
    norms[norms == 0] = 1.0
    design = design / norms
    free, found = np.zeros(count, dtype=bool), np.zeros(count)
    for _ in range(10 * count):
        gain = np.where(free, -1.0, design.T @ (target - design @ found))
        if gain.max() <= 1e-10:
            break
        free[gain.argmax()] = True
        while True:
            trial = np.zeros(count)
            trial[free] = np.linalg.lstsq(design[:, free], target, rcond=None)[0]
            if (trial[free] > 0).all():
                found = trial
                break
            out = free & (trial <= 0)
            step = (found[out] / (found[out] - trial[out])).min()
            found = np.maximum(found + step * (trial - found), 0.0)
            free &= found > 1e-14
            found[~free] = 0.0
    return found / norms
