"""Fixtures that the tests of MPI programs share with those of the command line."""

from ..python.conftest import shared

__all__ = ["shared"]
