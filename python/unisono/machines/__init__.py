"""Machines by name or file, and jobs on the boards of a network."""

from unisono._core import check_routing, part_names, plane
from unisono.machines.allocation import TRACE, allocate, submesh
from unisono.machines.descriptions import Shape, machine, shape_of, with_shape
from unisono.machines.imports import import_machine

__all__ = [
    "TRACE",
    "Shape",
    "allocate",
    "check_routing",
    "import_machine",
    "machine",
    "part_names",
    "plane",
    "shape_of",
    "submesh",
    "with_shape",
]
