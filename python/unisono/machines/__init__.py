"""Machines by name or file, and jobs on the boards of a network."""

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    from unisono._core import check_routing as check_routing
    from unisono._core import part_names as part_names
    from unisono._core import plane as plane
    from unisono.machines.allocation import TRACE as TRACE
    from unisono.machines.allocation import allocate as allocate
    from unisono.machines.allocation import submesh as submesh
    from unisono.machines.descriptions import Shape as Shape
    from unisono.machines.descriptions import machine as machine
    from unisono.machines.descriptions import shape_of as shape_of
    from unisono.machines.descriptions import with_shape as with_shape
    from unisono.machines.imports import import_machine as import_machine

__all__, __getattr__ = lazy(__name__, globals())
