"""Parts of sweeps as files, for jobs that share a sweep."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from unisono._core import InputError
from unisono.base.files import read_json, title
from unisono.base.reports import SweepPoint
from unisono.planning.sweeps import merge_shards

__all__ = ["merge_parts", "part_of"]

_VERSION = 1
#: What parts of one sweep have in common.
_STUDY = ("collective", "machine", "lengths", "total")


def part_of(study: Mapping[str, Any], shard: tuple[int, int], points: Sequence[SweepPoint]) -> dict[str, Any]:
    """The file of a shard: of the study ``collective``, ``machine``, ``lengths`` and ``total``, and the points."""
    return {"unisono_sweep": _VERSION, **study, "shard": list(shard), "points": list(points)}


def merge_parts(paths: Sequence[str | os.PathLike[str]]) -> tuple[dict[str, Any], list[SweepPoint]]:
    """The study of the parts in some files, in any order, and all its points.

    Raises:
        InputError: a file is no part, parts are of different studies, twice there or missing.

    """
    if not paths:
        raise InputError("there is no part to merge")
    parts: dict[int, Mapping[str, Any]] = {}
    first = _read(paths[0])
    count: int = first["shard"][1]
    for path in paths:
        part = _read(path)
        at, of = part["shard"]
        if [part[key] for key in _STUDY] != [first[key] for key in _STUDY] or of != count:
            raise InputError(f"'{title(path)}' is a part of another sweep than '{title(paths[0])}'")
        if at in parts:
            raise InputError(f"'{title(path)}' is shard {at} of {of}, which another file is too")
        parts[at] = part
    missing = [str(at) for at in range(1, count + 1) if at not in parts]
    if missing:
        raise InputError(f"of {count} shards these are missing: {', '.join(missing[:20])}")
    for at, part in parts.items():
        own = len(range(at - 1, first["total"], count))
        if len(part["points"]) != own:
            raise InputError(f"shard {at} of {count} has {len(part['points'])} points, and {own} are its own")
    points = merge_shards([parts[at]["points"] for at in range(1, count + 1)])
    return {key: first[key] for key in _STUDY}, points


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    part = read_json(path)
    if not isinstance(part, dict) or part.get("unisono_sweep") != _VERSION:
        raise InputError(f"'{title(path)}' is no part of a sweep; 'unisono sweep --shard I/N -o PART' writes one")
    shard: Any = part.get("shard")
    points: Any = part.get("points")
    whole = isinstance(shard, list) and len(shard) == 2 and all(type(number) is int for number in shard)
    keys = set(SweepPoint.__annotations__)
    if (
        not whole
        or not 1 <= shard[0] <= shard[1] <= 10**6
        or not isinstance(points, list)
        or not all(isinstance(point, dict) and set(point) == keys for point in points)
        or any(key not in part for key in _STUDY)
        or type(part["total"]) is not int
        or not 0 <= part["total"] <= 10**9
    ):
        raise InputError(f"'{title(path)}' is a damaged part of a sweep")
    return part
