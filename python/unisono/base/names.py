"""Converts names as users spell them: with other case and separators, as in NumPy or MPI, or misspelt.

The extension module and files use one spelling of each name. The functions here convert names such as ``All-Reduce``,
``reduce_scatter`` or ``float32`` to this spelling. An error for an unknown name states the nearest accepted name.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from unisono._core import InputError, algorithms, collectives, dtypes, emitters, operators, preset_names, tunings
from unisono.base.messages import shown

__all__ = [
    "algorithm",
    "collective",
    "datatype",
    "did_you_mean",
    "forget_algorithms",
    "format_of",
    "library",
    "named",
    "operator",
    "preset",
]

#: Other names of datatypes, from NumPy and machine learning; without `float`, `int` and `long`, on which C and NumPy
#: disagree.
_DATATYPES = {
    "float32": "f32", "single": "f32", "fp32": "f32",
    "float64": "f64", "double": "f64", "fp64": "f64",
    "float16": "f16", "half": "f16", "fp16": "f16",
    "bfloat16": "bf16",
    "int16": "i16", "short": "i16",
    "int32": "i32",
    "int64": "i64",
}  # fmt: skip
#: Other names of operators, from NumPy, NCCL and C.
_OPERATORS = {"add": "sum", "plus": "sum", "product": "prod", "mul": "prod", "minimum": "min", "maximum": "max"}
_COLLECTIVES = {"bcast": "broadcast", "alltoallsingle": "alltoall", "prefixsum": "scan"}
#: The format that each library reads; for Open MPI, the format of the releases up to 5.
_LIBRARIES = {
    "mpich": "mpich-json",
    "msccl": "msccl-xml",
    "msccl++": "mscclpp",
    "nccl": "nccl-tuner-csv",
    "ncclx": "ncclx-csv",
    "openmpi": "openmpi-rules",
}
#: The libraries whose algorithms have names of Unisono's algorithms, but differ from them. For example, NCCL's ring is
#: not the algorithm `ring`.
_OWN = ("nccl", "rccl", "openmpi", "mpich")
#: The longest name that is compared with accepted names, in characters; longer text is slow.
_LONGEST = 64
#: The minimum similarity (by difflib, from 0 to 1) of a proposed name that does not begin with the text. ``rign`` and
#: ``ring`` have 0.75.
_ALIKE = 0.7


def collective(name: object) -> str:
    """Returns the collective of that name, as in ``all-reduce`` or ``MPI_Allreduce``.

    Raises:
        InputError: there is no such name.

    """
    return _chosen("the collective", name, "a collective", tuple(collectives()), _COLLECTIVES)


#: Parts of the names of datatypes with elements of one byte, in lower case without separators.
_OF_ONE_BYTE = ("int8", "i8", "u8", "f8", "fp8", "float8", "e4m3", "e5m2", "byte")


def datatype(name: object) -> str:
    """Returns the datatype of that name or of that type of NumPy, as in ``float32`` or ``numpy.float32``.

    Raises:
        InputError: there is no such name.

    """
    # The name of a scalar type of NumPy, or of a `numpy.dtype`.
    word = getattr(name, "__name__", None) if isinstance(name, type) else getattr(name, "name", None)
    if getattr(name, "isnative", True) is False:
        raise InputError(
            f"the datatype is {shown(name)}, of another byte order than this machine's; accepted is its own"
        )
    asked = word if isinstance(word, str) else name
    if isinstance(asked, str) and any(part in _folded(asked) for part in _OF_ONE_BYTE):
        raise InputError(
            f"{shown(asked)} is not a datatype, because none has one byte; messages take the time of their bytes: plan "
            "--bytes in f16 (on GPUs, sums of such a type have no NVLS: ask for NCCL's choice with --op prod); "
            f"accepted are {', '.join(dtypes())}"
        )
    return _chosen("the datatype", asked, "a datatype", tuple(dtypes()), _DATATYPES)


def operator(name: object, accepted: tuple[str, ...] | None = None, others: str = "") -> str:
    """Returns the operator of that name, as in ``SUM`` or ``add``, among the ``accepted`` ones, by default all.

    ``others`` are the words for what a call accepts besides names.

    Raises:
        InputError: there is no such name.

    """
    if isinstance(name, str) and _folded(name) in ("avg", "average", "mean"):
        raise InputError(
            f"{shown(name)} is not an operator; an average is a sum that each rank scales: plan sum, at the same cost "
            f"(NCCL's avg has no NVLS: ask for its choice with prod); accepted are {', '.join(operators())}"
        )
    known = tuple(operators()) if accepted is None else accepted
    return _chosen("the operator", name, "an operator", known, _OPERATORS, f"accepted are {', '.join(known)}{others}")


def algorithm(name: object) -> str:
    """Returns the algorithm of that name, as in ``Recursive_Doubling``.

    Raises:
        InputError: there is no such name.

    """
    accepted, library = _algorithms(), None
    if isinstance(name, str) and _spelling(name, accepted, {}) is None:
        library = next((one for one in _OWN if _folded(name).startswith(one)), None)
    if library is not None:
        raise InputError(
            f"{shown(name)} is not an algorithm of Unisono; --as {library} names the algorithms of {library} itself, "
            "with their times"
        )
    return _chosen("the algorithm", name, "an algorithm", accepted, {}, "'unisono algorithms' lists them")


def library(name: str) -> str:
    """Returns the library of this name in any spelling, as in ``NCCL`` or ``Open MPI``; else the name."""
    return _spelling(name, _OWN, {}) or name


def format_of(name: str) -> str:
    """Returns the format of this name in any spelling, or the format that this library reads; else the name."""
    return _spelling(name, _formats(), _LIBRARIES) or name


#: The current names of renamed presets, by their old names.
RENAMED_PRESETS = {"dgx-h100-kernels": "dgx-h100"}


def preset(name: str) -> str | None:
    """Returns the machine preset of that name, or None."""
    return _spelling(name, tuple(preset_names()), {})


def did_you_mean(found: str, accepted: Iterable[str]) -> str:
    """Returns `` (did you mean ring?)`` if an accepted name is similar to ``found``, contains it, or begins with it.

    The text is empty otherwise, and if ``found`` has fewer than 2 or more than 64 characters.
    """
    if not 2 <= len(found) <= _LONGEST:
        return ""
    # Imported late, because only misspelt names need it.
    from difflib import get_close_matches

    names = {_folded(name): name for name in accepted}
    word = _folded(found)
    # A name that contains the whole word, such as dgx-h200 for h200, is a better proposal than a name with similar
    # letters.
    parts = [folded for folded, name in names.items() if word in name.split("-")]
    near = get_close_matches(word, parts or names, n=1, cutoff=0 if parts else _ALIKE)
    if not near and len(word) > 2:
        near = [name for name in names if name.startswith(word)][:1]
    return f" (did you mean {names[near[0]]}?)" if near else ""


def named(what: str, value: object) -> str:
    """Returns the value if it is valid Unicode text.

    Raises:
        InputError: the value is not text, or has surrogates.

    """
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"{what} is {shown(value)}, and must be text")
    return value


@cache
def _formats() -> tuple[str, ...]:
    return tuple(row["name"] for row in [*emitters(), *tunings()])


@cache
def _algorithms() -> tuple[str, ...]:
    return tuple(entry["name"] for entry in algorithms())


def forget_algorithms() -> None:
    """Clears the cached names of algorithms, after algorithms were added or removed."""
    _algorithms.cache_clear()


def _folded(name: str) -> str:
    """Returns the name in lower case without ``mpi_`` and separators, for a comparison of spellings."""
    return name.strip().lower().removeprefix("mpi_").replace("-", "").replace("_", "").replace(" ", "")


@cache
def _spellings(accepted: tuple[str, ...]) -> dict[str, str]:
    return {_folded(name): name for name in accepted}


def _spelling(found: str, accepted: tuple[str, ...], others: Mapping[str, str]) -> str | None:
    if found in accepted:
        return found
    if len(found) > _LONGEST:
        return None
    word = _folded(found)
    other = others.get(word)
    return other if other in accepted else _spellings(accepted).get(word)


def _chosen(
    what: str, found: object, noun: str, accepted: tuple[str, ...], others: Mapping[str, str], listed: str = ""
) -> str:
    text = named(what, found)
    name = _spelling(text, accepted, others)
    if name is None:
        near = did_you_mean(text, accepted)
        listed = listed or f"accepted are {', '.join(accepted)}"
        raise InputError(f"{shown(text)} is not {noun}{near}; {listed}")
    return name
