"""Pictures of networks: one plane with its boards, switches and cables, or a part of a large plane.

Modules of this folder draw one or several families of topologies each.
"""

from collections.abc import Callable, Mapping
from typing import Any

from unisono._core import InputError, Machine
from unisono.base.pictures import Form
from unisono.pictures.networks import boxes, dragonfly, fattree, graph, hxmesh, hyperx, lattice
from unisono.pictures.networks._canvas import Canvas

__all__ = ["DRAWN", "draw"]

Draw = Callable[[Canvas, Machine, Mapping[str, Any]], str]

#: Functions by family that draw a machine from its table `topology`, and return a description of the drawn part.
DRAWN: dict[str, Draw] = {
    "boxes": boxes.draw,
    "dragonfly": dragonfly.draw,
    "fattree": fattree.draw,
    "graph": graph.draw,
    "hxmesh": hxmesh.draw,
    "hypercube": lattice.draw_hypercube,
    "hyperx": hyperx.draw,
    "mesh": lattice.draw_mesh,
    "torus": lattice.draw_torus,
}


def draw(machine: Machine, form: Form = "png") -> bytes:
    """Returns the picture of a network; the same machine gives the same bytes.

    Raises:
        InputError: the machine is not a network.

    """
    facts = machine.topology
    if facts is None:
        raise InputError(f"{machine.name} is of kind {machine.kind}; only networks are drawn")
    canvas = Canvas()
    part = DRAWN[facts["family"]](canvas, machine, machine.describe()["topology"])
    return canvas.picture(machine.summary or machine.name, f"one plane: {part}", form)
