"""Fixtures that the tests of MPI programs have in common with those of the command line."""

from ..python.conftest import shared

__all__ = ["shared"]
