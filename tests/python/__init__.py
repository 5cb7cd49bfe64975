"""Tests of the command line, the Python module and the house."""
