"""Computes the expected times and bus bandwidths of a collective: by a bound, a library's own choice and a plan."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base import names
from unisono.base.inputs import MachineLike, Root, element_count, items
from unisono.base.messages import shown
from unisono.base.reports import Expectation, ExpectationRow, Expected, PlanReport
from unisono.base.studies import KeptPoints, results
from unisono.machines.descriptions import Shape, with_shape
from unisono.planning.plans import plan

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["expect", "has_busbw", "prometheus_text"]

#: The largest default size of the larger buffer in bytes, as in usual runs of nccl-tests.
_MOST_BYTES = 2**30
_METRICS = (
    ("busbw_gigabytes_per_second", "Bus bandwidth as nccl-tests define it, in 10^9 bytes a second."),
    ("seconds", "Time of one call in seconds."),
)


def expect(
    collective: str,
    machine: MachineLike,
    *,
    shape: Shape | None = None,
    ranks: SupportsIndex | None = None,
    sizes: Iterable[SupportsIndex | str] | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    algorithm: str | None = None,
    params: Mapping[str, str | int] | None = None,
    model: str | None = None,
    as_library: str | None = None,
    executor: "Executor | None" = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Expectation:
    """Returns the times to expect of a collective by its size, in ascending order of bytes.

    A row has ``ceiling`` (the plan's lower bound, by the data sheet), ``library`` (the choice of ``as_library`` by its
    own rules, else None) and ``plan``, in seconds, the ``source`` of ``plan`` (``"simulated"``, or the part of the
    model), and the ``busbw`` of each in GB/s, None if nccl-tests do not define it. ``sizes`` are in bytes, as numbers
    or text such as ``"64KiB"``, and count as those of :func:`plan`, whose other options mean the same here. The default
    sizes are 8 bytes and the powers of 4 from 64 bytes, while all blocks together take at most 1 GiB, or the memory of
    a PE of a wafer.

    An ``executor`` plans sizes at the same time, and ``kept`` keeps them, as in :func:`sweep`; ``progress`` is called
    with the number of sizes done and of all sizes.

    Raises:
        InputError, UnsupportedError: as :func:`plan`, for one of the sizes.

    """
    kind, of, on = names.collective(collective), names.datatype(dtype), with_shape(machine, shape, ranks)
    if sizes is None:
        given: list[Any] = _default_sizes(kind, on)
    else:
        given = items(sizes, f"sizes is {shown(sizes)}, and must be a list of sizes in bytes")
        if not given:
            raise InputError("sizes is an empty list, and must have at least one size in bytes")
    counts = [0] if kind == "barrier" else sorted({element_count(None, size, of, kind) for size in given})

    options = {"dtype": of, "op": op, "root": root, "algorithm": algorithm, "params": params, "model": model}
    calls = [(kind, on, {"elements": count, **options, "as_library": as_library}) for count in counts]
    reports: list[PlanReport] = []
    for report in results(_report, calls, executor, kept):
        reports.append(report)
        if progress is not None:
            progress(len(reports), len(counts))
    last = reports[-1]
    notes = [note for report in reports for note in report["notes"]]
    notes += [
        f"as {report['library']['name']}, {note}"
        for report in reports
        if "library" in report
        for note in report["library"]["notes"]
    ]
    if (blocks := _blocks(kind, last["ranks"])) > 1:
        notes.append(f"sizes are of one block; nccl-tests state that of all {blocks} blocks")
    return {
        "collective": kind,
        "machine": last["machine"],
        "shape": last["shape"],
        "ranks": last["ranks"],
        "dtype": of,
        "operator": last["operator"],
        "root": last["root"],
        "model": last["model"],
        "rates": last["rates"],
        "library": last["library"]["name"] if "library" in last else None,
        "failed": on.describe().get("failed", []),
        "rows": [_row(report) for report in reports],
        "notes": list(dict.fromkeys(notes)),
    }


def _report(call: tuple[Any, ...]) -> PlanReport:
    """Returns the report of the plan at one size. Executors call this, also in other processes."""
    kind, on, options = call
    return plan(kind, on, **options).report()


def has_busbw(collective: str) -> bool:
    """Returns whether nccl-tests define a bus bandwidth of the collective."""
    return _core.bandwidths(collective, 2, 1, 1.0)["busbw"] is not None


def _blocks(collective: str, ranks: int) -> int:
    """Returns the number of blocks in a collective's larger buffer; 1 for collectives on a vector."""
    rate = _core.bandwidths(collective, ranks, 1, 1.0)["algbw"]
    return 1 if rate is None else max(round(rate * 1e9), 1)


def _default_sizes(collective: str, machine: Machine) -> list[int]:
    blocks = _blocks(collective, math.prod(machine.shape or (1,)))
    most = min(_MOST_BYTES, machine.describe().get("sram_bytes") or _MOST_BYTES) // blocks
    return [8, *(4**power for power in range(3, 16) if 4**power <= most)]


def _row(report: PlanReport) -> ExpectationRow:
    bound, choice = report["lower_bound"], report.get("library")
    times: Expected = {
        "ceiling": None if bound is None else bound["seconds"],
        "library": None if choice is None else choice["seconds"],
        "plan": report["predicted"]["seconds"],
    }

    def busbw(seconds: float | None) -> float | None:
        if seconds is None:
            return None
        return _core.bandwidths(report["collective"], report["ranks"], report["bytes"], seconds)["busbw"]

    return {
        "bytes": report["bytes"],
        "elements": report["elements"],
        **times,
        "busbw": {
            "ceiling": busbw(times["ceiling"]),
            "library": busbw(times["library"]),
            "plan": busbw(times["plan"]),
        },
        "bound": None if bound is None else bound["name"],
        "choice": None
        if choice is None
        else {"algorithm": choice["algorithm"], "protocol": choice["protocol"], "channels": choice["channels"]},
        "algorithm": report["algorithm"],
        "params": report["params"],
        "source": report["predicted"]["source"],
    }


def prometheus_text(expected: Expectation) -> str:
    """Returns the rows as gauges in the text format of Prometheus, without None values; notes are comments.

    Source: Prometheus, "Exposition formats", text-based format 0.0.4.
    """
    lines = [f"# note: {' '.join(note.split())}" for note in expected["notes"]]
    failed = {"failed": " ".join(expected["failed"])} if expected["failed"] else {}
    for metric, meaning in _METRICS:
        name = f"unisono_expected_{metric}"
        samples = []
        for row in expected["rows"]:
            values: Expected = row if metric == "seconds" else row["busbw"]
            for of in ("ceiling", "library", "plan"):
                if (value := values[of]) is not None:
                    labels: dict[str, str | int] = {
                        "collective": expected["collective"],
                        "machine": expected["machine"],
                        "bytes": row["bytes"],
                        "of": of,
                        "ranks": expected["ranks"],
                        "dtype": expected["dtype"],
                        **failed,
                    }
                    # More than twelve digits would show rounding errors.
                    samples.append(f"{name}{{{_labels(labels)}}} {float(f'{value:.12g}')!r}")
        if samples:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: dict[str, str | int]) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return ",".join(f'{name}="{str(value).translate(escaped)}"' for name, value in labels.items())
