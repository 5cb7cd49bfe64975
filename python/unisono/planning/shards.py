"""Writes and merges files with parts of a sweep, for jobs that share the sweep."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from unisono._core import InputError
from unisono.base.files import MOST_DESCRIPTION_BYTES, read_json, read_text, title
from unisono.base.reports import SweepPoint
from unisono.base.studies import checksum_of
from unisono.base.typed_json import has_type
from unisono.planning.sweeps import merge_shards

__all__ = ["merge_parts", "part_of"]

_VERSION = 2
#: The keys whose values are equal in all parts of one sweep.
_STUDY = ("collective", "machine", "lengths", "total", "asked", "notes")


def part_of(study: Mapping[str, Any], shard: tuple[int, int], points: Sequence[SweepPoint]) -> dict[str, Any]:
    """Returns the contents of a shard's file: the study, with the keys of :data:`_STUDY`, and the points."""
    return signed({"unisono_sweep": _VERSION, **study, "shard": list(shard), "points": list(points)})


def signed(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a part with the checksum of its other values, by which a reader refuses values of another program."""
    values = {key: value for key, value in part.items() if key != "checksum"}
    return {**values, "checksum": checksum_of("sweep", values)}


def merge_parts(paths: Sequence[str | os.PathLike[str]]) -> tuple[dict[str, Any], list[SweepPoint]]:
    """Returns the study whose parts the files have, in any order, and all its points.

    Raises:
        InputError: a file is not a part, or parts are of different studies, repeated or missing.

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
    kind = "a part of a sweep, as `unisono sweep --shard` writes it"
    # The reader of JSON would describe a table in CSV by a wrong character.
    part = read_json(path) if read_text(path, MOST_DESCRIPTION_BYTES, kind).lstrip().startswith("{") else None
    if not isinstance(part, dict) or part.get("unisono_sweep") != _VERSION or part["unisono_sweep"] is True:
        raise InputError(
            f"'{title(path)}' is no part of a sweep of this version; 'unisono sweep --shard I/N -o PART' writes one"
        )
    shard: Any = part.get("shard")
    points: Any = part.get("points")
    whole = isinstance(shard, list) and len(shard) == 2 and all(type(number) is int for number in shard)
    if (
        part != signed(part)
        or not whole
        or not 1 <= shard[0] <= shard[1] <= 10**6
        or not has_type(points, list[SweepPoint])
        or not all(isinstance(part.get(key), str) for key in ("collective", "machine", "asked"))
        or not all(type(part.get(key)) is int and 1 <= part[key] <= 10**9 for key in ("lengths", "total"))
        or part["total"] % part["lengths"]
        or not has_type(part.get("notes"), list[str])
    ):
        raise InputError(f"'{title(path)}' is a damaged part of a sweep; compute its points again")
    return part
