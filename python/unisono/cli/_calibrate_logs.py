"""`unisono calibrate --from`: the times of a library on a machine, from logs of its benchmarks."""

from collections import Counter
from typing import Any

import tomli_w

import unisono
from unisono import InputError
from unisono.base.files import check_files, write
from unisono.cli._output import microseconds, print_fields, print_json, print_lines, print_table
from unisono.collective_logs import read_logs
from unisono.library_calibration import FAR, Group, Residual, calibrated, preset_of

__all__ = ["calibrate_from"]

_GOOD = 0.15
_SHOWN = 12


def calibrate_from(
    logs: tuple[str, ...], machine: str | None, output: str, name: str | None, points: int | None, as_json: bool
) -> None:
    """Fits the machine to logs, writes it, and prints how well it predicts them."""
    if not output.endswith(".toml"):
        raise InputError(f"'{output}' does not end in .toml, and a machine file does")
    if points is not None and points < 1:
        raise InputError(f"--points is {points}; accepted is at least 1")
    check_files({"-o": output}, *logs)
    measured = read_logs(logs)
    base = machine if machine is not None else preset_of(measured)
    made, groups, residuals, notes = calibrated(unisono.machine(base), measured, points)
    described = {**made.describe(), **({"name": name} if name is not None else {})}
    comment = "# [nccl]: times of NCCL, fitted by `unisono calibrate --from` to logs; prices are of one channel.\n"
    write(output, comment + tomli_w.dumps(described))
    if as_json:
        print_json({**described, "file": output, "notes": notes, "residuals": [_row(of) for of in residuals]})
        return
    print_lines(f"{len(residuals)} times of {', '.join(logs)} on {base}")
    print_lines(*(f"note: {note}" for note in notes))
    _print_prices(groups)
    _print_residuals(residuals)
    print_lines("", f"wrote {output}; 'unisono plan COLLECTIVE --machine {output} --as nccl' predicts with it")


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


def _print_residuals(residuals: list[Residual]) -> None:
    for title, of in (
        ("fitted", [r for r in residuals if r.fitted]),
        ("not seen", [r for r in residuals if not r.fitted]),
    ):
        if of:
            errors = sorted(abs(r.error) for r in of)
            within = sum(error <= _GOOD for error in errors)
            print_fields(
                [
                    (
                        title,
                        f"{within} of {len(errors)} within {_GOOD:.0%}, median {errors[len(errors) // 2]:.1%}, "
                        f"largest {errors[-1]:.1%}",
                    )
                ]
            )
    off = sorted((r for r in residuals if abs(r.error) > _GOOD), key=lambda r: -abs(r.error))
    if not off:
        return
    rows = [
        [
            r.point.collective,
            str(r.point.ranks),
            str(r.point.bytes),
            f"{r.algorithm} {r.protocol}",
            microseconds(r.point.seconds),
            microseconds(r.predicted),
            f"{r.error:+.0%}",
        ]
        for r in off[:_SHOWN]
    ]
    right = ["GPUs", "bytes", "measured µs", "predicted µs", "error"]
    print_table(["off by more", "GPUs", "bytes", "by", *right[2:]], rows, right=right)
    if len(off) > _SHOWN:
        print_lines(f"and {len(off) - _SHOWN} more: --json")
    far = Counter((r.point.collective, r.point.ranks) for r in off if abs(r.error) > FAR)
    for (collective, ranks), count in far.items():
        points = "a point does" if count == 1 else f"{count} points do"
        print_lines(
            f"{points} not fit by more than {FAR:.0%}: {collective} on {ranks} GPUs; measure again, or look for "
            "variables such as NCCL_ALGO"
        )
