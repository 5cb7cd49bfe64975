"""Reads decision tables from files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from unisono._core import InputError
from unisono.base.files import is_file, read_bytes, read_json, title
from unisono.base.messages import shown
from unisono.planning.plan_files import load_plans

__all__ = ["read_table"]

_KEYS = {"collective", "ranks", "per_node", "class", "first_bytes", "last_bytes", "algorithm", "params"}


def read_table(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Reads the rows of a decision table: of a ``.plan`` file, or of its JSON form.

    The JSON form is ``{"unisono_table": 1, "rows": [...]}``. Its rows have ``collective``, ``ranks``, ``per_node``,
    ``first_bytes``, ``last_bytes``, ``algorithm``, ``params`` and ``class``; ``last_bytes`` may be null for no limit,
    ``algorithm`` may be ``library``, and ``per_node`` (for any ranks per node), ``params`` and ``class`` may be
    missing. Rows of a ``.plan`` also have ``tuned``, the conditions of their measurement, or None.

    Raises:
        InputError: the file is not a decision table; the message names the row.
        OSError: the file cannot be read.

    """
    name = title(path)
    if is_file(path) and not _starts_like_json(path):
        kept = ("collective", "ranks", "per_node", "first_bytes", "last_bytes", "params", "tuned")
        rows: Sequence[Mapping[str, Any]] = load_plans(path)
        return [{key: r[key] for key in kept} | {"class": r["operators"], "algorithm": _chosen(r)} for r in rows]
    found = read_json(path, kind="a decision table")
    mark = found.get("unisono_table") if isinstance(found, dict) else None
    if mark != 1 or mark is True or not isinstance(found.get("rows"), list):
        raise InputError(f'\'{name}\' is no decision table: it needs "unisono_table": 1 and a list "rows"')
    return [_row(row, f"'{name}', row {at}") for at, row in enumerate(found["rows"])]


def _starts_like_json(path: str | os.PathLike[str]) -> bool:
    return read_bytes(path, kind="a decision table")[:64].lstrip()[:1] in (b"{", b"[")


def _chosen(row: Mapping[str, Any]) -> str:
    return "library" if row["algorithm"] is None else str(row["algorithm"])


def _row(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"{where}: {shown(row)} is not an object")
    if unknown := sorted(set(row) - _KEYS):
        raise InputError(f"{where} has the key {shown(unknown[0])}; accepted are {', '.join(sorted(_KEYS))}")
    params = {} if row.get("params") is None else row["params"]
    if not isinstance(params, dict):
        raise InputError(f"{where}: params are {shown(params)}, not an object")
    for key, value in params.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(f"{where}: the parameter {shown(key)} is {shown(value)}; accepted are a text and a number")
    return {
        "collective": _text(row, "collective", where),
        "ranks": _number(row, "ranks", where, 1, 2**22),
        "per_node": None if row.get("per_node") is None else _number(row, "per_node", where, 1, 2**22),
        "class": None if row.get("class") is None else _text(row, "class", where),
        "first_bytes": _number(row, "first_bytes", where, 0, 2**63 - 1),
        "last_bytes": None if row.get("last_bytes") is None else _number(row, "last_bytes", where, 0, 2**63 - 1),
        "algorithm": _text(row, "algorithm", where),
        "params": {str(key): str(value) for key, value in params.items()},
    }


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise InputError(f"{where}: {key} is {shown(value)}; accepted is a name")
    return value


def _number(row: dict[str, Any], key: str, where: str, low: int, high: int) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{where}: {key} is {shown(value)}; accepted is a whole number from {low} to {high}")
    return value
