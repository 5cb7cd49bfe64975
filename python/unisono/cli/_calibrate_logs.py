"""`unisono calibrate --from`: fits a machine to logs of benchmarks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import tomli_w

import unisono
from unisono import InputError
from unisono.base.files import check_files, write
from unisono.base.messages import shown
from unisono.cli._output import microseconds, print_fields, print_json, print_lines, print_notes, print_table, working
from unisono.logs.collectives import read_logs
from unisono.logs.library_calibration import FAR, Group, Residual, calibrated, check_gpus, preset_of
from unisono.logs.link_calibration import Compared, with_links
from unisono.logs.message_calibration import OF_MPI, calibrated_messages, has_logs_of_mpi, model_of, read_messages

_Predicted = TypeVar("_Predicted", Compared, Residual)

_GOOD = 0.15
_SHOWN = 12


@dataclass(frozen=True)
class LogOptions:
    """The options of ``calibrate --from``."""

    logs: tuple[str, ...]
    machine: str | None
    output: str
    name: str | None
    points: int | None
    library: str | None
    ranks: list[int]
    per_node: list[int]
    as_json: bool


def calibrate_from(given: LogOptions) -> None:
    """Fits the machine to logs, writes its file, and prints how well it predicts the logged times."""
    if not given.output.endswith(".toml"):
        raise InputError(f"'{given.output}' does not end in .toml, and a machine file does")
    if given.points is not None and given.points < 1:
        raise InputError(f"--points is {given.points}; accepted is at least 1")
    check_files(given.output)
    if given.library is not None or has_logs_of_mpi(given.logs):
        _calibrate_messages(given)
        return
    if given.ranks or given.per_node:
        raise InputError("--ranks and --per-node are for logs of MPI, and logs of GPUs state their ranks; drop them")
    measured, links, left_out = read_logs(given.logs)
    if given.machine is None and links:
        raise InputError("logs of links do not say which machine was measured; name one like it with --machine")
    if given.points is not None and not measured:
        raise InputError("--points chooses among times of collectives, and the logs have none; drop it")
    base = given.machine if given.machine is not None else preset_of(measured)
    made, compared, of_links = unisono.machine(base), list[Compared](), list[str]()
    if links:
        of_gpus = check_gpus(made, (gpu for log in links for gpu in log.gpus.values()))
        made, compared, of_links = with_links(made, links)
        of_links = of_gpus + of_links
    groups, residuals, notes = list[Group](), list[Residual](), list[str]()
    if measured:
        made, groups, residuals, notes = calibrated(made, measured, given.points)
    described = {**made.describe(), **({"name": given.name} if given.name is not None else {})}
    notes = [*left_out, *of_links, *notes]
    comment = "# Measured rates and latencies of links: by `unisono calibrate --from`.\n" if links else ""
    if measured:
        comment += "# [nccl]: times of NCCL, fitted by `unisono calibrate --from` to logs; prices are of one channel.\n"
    write(given.output, comment + tomli_w.dumps(described))
    if given.as_json:
        print_json(
            {
                **described,
                "file": given.output,
                "notes": notes,
                "residuals": [_row(of) for of in residuals],
                "links": [{**vars(of), "error": of.error} for of in compared],
            }
        )
        return
    counted = [f"{len(of)} {noun}" for of, noun in ((residuals, "times"), (compared, "figures of links")) if of]
    print_lines(f"{' and '.join(counted)} of {', '.join(given.logs)} on {base}")
    print_notes(notes)
    if compared:
        _print_links(compared)
    if residuals:
        _print_prices(groups)
        _print_residuals(residuals, "GPUs", "variables such as NCCL_ALGO")
    of = " --as nccl" if residuals else ""
    print_lines("", f"wrote {given.output}; 'unisono plan COLLECTIVE --machine {given.output}{of}' predicts with it")


def _calibrate_messages(given: LogOptions) -> None:
    """Fits the prices of messages and reductions to logs of MPI, and writes and prints them."""
    if given.library is not None and given.library not in OF_MPI:
        raise InputError(f"--as is {shown(given.library)}, and logs are fitted by the rules of {' or '.join(OF_MPI)}")
    base = None if given.machine is None else unisono.machine(given.machine)
    model_of(base)
    measured, size, left_out = read_messages(given.logs, given.ranks, given.per_node)
    with working("fitting"):
        found = calibrated_messages(
            measured, size, given.library, base, given.points, lambda note: print_notes([note], err=True)
        )
    table = found.machine.describe()
    table["name"] = given.name or (base.name if base is not None else table["name"])
    notes = [*left_out, *found.notes]
    comment = "# Prices of messages and reductions, fitted by `unisono calibrate --from` to logs of MPI; nanoseconds.\n"
    write(given.output, comment + tomli_w.dumps(table))
    if given.as_json:
        print_json({**table, "file": given.output, "notes": notes, "residuals": [_row(of) for of in found.residuals]})
        return
    of_library = f", as {given.library}" if given.library else ""
    print_lines(f"{len(found.residuals)} times of {', '.join(given.logs)}{of_library}")
    print_notes(notes)
    print_fields([("model", table["model"]), *_prices_of(table)])
    for at, prices in [
        *((f"from {of['from_bytes']} bytes", of) for of in table.get("protocols", ())),
        *((f"within nodes of {of['size']} ranks", of) for of in table.get("levels", ())),
    ]:
        print_fields([(at, ", ".join(" ".join(one) for one in _prices_of(prices)))])
    _print_residuals(found.residuals, "ranks", "another library, or other ranks on a node")
    print_lines(
        "", f"wrote {given.output}; 'unisono plan COLLECTIVE --machine {given.output} --ranks P' predicts with it"
    )


def _prices_of(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, f"{value:g}") for key, value in table.items() if "_ns" in key]


def _print_links(compared: list[Compared]) -> None:
    """Prints how well the cables of the machine describe the measured figures, and which figures deviate."""
    print_fields([("links", _fit(compared))])
    off = _off(compared)
    if not off:
        return
    rows = [[of.of, _figure(of, of.measured), _figure(of, of.predicted), f"{of.error:+.0%}"] for of in off[:_SHOWN]]
    print_table(["do not fit", "measured", "machine", "error"], rows, right=["measured", "machine", "error"])
    if len(off) > _SHOWN:
        print_lines(f"and {len(off) - _SHOWN} more: --json")


def _fit(predicted: Sequence[_Predicted]) -> str:
    errors = sorted(abs(of.error) for of in predicted)
    within = sum(error <= _GOOD for error in errors)
    return (
        f"{within} of {len(errors)} within {_GOOD:.0%}, median {errors[len(errors) // 2]:.1%}, largest {errors[-1]:.1%}"
    )


def _off(predicted: Sequence[_Predicted]) -> list[_Predicted]:
    """Returns the collectives that the machine does not predict well, the worst prediction first."""
    return sorted((of for of in predicted if abs(of.error) > _GOOD), key=lambda of: -abs(of.error))


def _figure(of: Compared, value: float) -> str:
    return f"{microseconds(value * 1e-9)} µs" if of.unit == "ns" else f"{value / 8:.2f} GB/s"


def _row(of: Residual) -> dict[str, Any]:
    point = of.point
    return {
        "collective": point.collective,
        "ranks": point.ranks,
        "nodes": point.nodes,
        "bytes": point.bytes,
        "algorithm": of.algorithm,
        "protocol": of.protocol,
        "measured": point.seconds,
        "predicted": of.predicted,
        "error": of.error,
        "fitted": of.fitted,
    }


def _print_prices(groups: list[Group]) -> None:
    rows = [
        [
            " ".join(group.key[:2]),
            "several" if group.key[2] else "one",
            str(group.points),
            *(f"{price:.3g}" if name in group.used() else "-" for name, price in group.prices.items()),
        ]
        for group in groups
    ]
    columns = ["start µs", "hop µs", "network hop µs", "ns/B sent", "ns/B worked"]
    print_table(["algorithm", "boxes", "points", *columns], rows, right=["points", *columns])


def _print_residuals(residuals: list[Residual], ranks: str, causes: str) -> None:
    for title, of in (
        ("fitted", [r for r in residuals if r.fitted]),
        ("not seen", [r for r in residuals if not r.fitted]),
    ):
        if of:
            print_fields([(title, _fit(of))])
    off = _off(residuals)
    if not off:
        return
    rows = [
        [
            r.point.collective,
            str(r.point.ranks),
            str(r.point.bytes),
            f"{r.algorithm} {r.protocol}".rstrip(),
            microseconds(r.point.seconds),
            microseconds(r.predicted),
            f"{r.error:+.0%}",
        ]
        for r in off[:_SHOWN]
    ]
    right = [ranks, "bytes", "measured µs", "predicted µs", "error"]
    print_table(["off by more", ranks, "bytes", "by", *right[2:]], rows, right=right)
    if len(off) > _SHOWN:
        print_lines(f"and {len(off) - _SHOWN} more: --json")
    far = Counter((r.point.collective, r.point.ranks) for r in off if abs(r.error) > FAR)
    for (collective, many), count in far.items():
        points = "a point does" if count == 1 else f"{count} points do"
        print_lines(
            f"{points} not fit by more than {FAR:.0%}: {collective} on {many} {ranks}; measure again, or look for "
            f"{causes}"
        )
