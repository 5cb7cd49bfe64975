"""Tests under mpiexec, with the installed MPI libraries."""
