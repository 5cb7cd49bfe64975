"""Tests under mpiexec, with the MPI libraries that are here."""
