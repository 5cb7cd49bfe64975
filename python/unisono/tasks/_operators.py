"""The functions that combine partial results, and their neutral elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

#: A function for each operator that returns its neutral element for a type of elements.
NEUTRAL: dict[str, Callable[[np.dtype[Any]], Any]] = {
    "sum": lambda _: 0,
    "prod": lambda _: 1,
    "max": lambda dtype: -np.inf if dtype.kind == "f" else np.iinfo(dtype).min,
    "min": lambda dtype: np.inf if dtype.kind == "f" else np.iinfo(dtype).max,
}
#: The function of each operator that combines two arrays.
COMBINE: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
NAMES = tuple(NEUTRAL)
#: The kinds of dtypes (`numpy.dtype.kind`) that each operator combines.
KINDS = {"sum": "biufcm", "prod": "biufc", "max": "iuf", "min": "iuf"}
#: The names of these kinds in messages.
KIND_NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "m": "timedelta"}


def by_mpi(dtype: np.dtype[Any]) -> bool:
    """Returns whether an MPI library combines elements of this type by all operators."""
    return dtype.isnative and (dtype.kind in "iu" or dtype.char in "fd")
