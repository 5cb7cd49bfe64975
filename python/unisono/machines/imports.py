"""The import of machines from files of other programs."""

import os
import re
from pathlib import Path
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base.files import MOST_DESCRIPTION_BYTES, file_name, read_text, title
from unisono.base.inputs import whole
from unisono.base.names import named
from unisono.machines.graphs import of_graph
from unisono.machines.named_cables import named_nodes

__all__ = ["IMPORTED_NETWORKS", "import_machine"]

#: The names of all formats.
IMPORTED_NETWORKS = ("nccl-topo", "edges", "graphml")
#: Formats by the file's suffix; files with other suffixes are lists of cables.
_ENDS = {".xml": "nccl-topo", ".graphml": "graphml"}

#: A record of a switch or a card in the output of ibnetdiscover.
_DISCOVERED = re.compile(r'^(?:Switch|Ca|Rt)\s+\d+\s+"', re.MULTILINE)
#: A program of awk that prints the cables of the switches. A cable between two switches occurs in the records of both
#: switches, and is printed once.
_CABLES = r'/^[A-Z]/ {s = /^Switch/ ? $2 : ""} /^\[/ && s && (s < $2 || $2 !~ /^S/) {print s, $2}'

#: The first line of the matrices that `nvidia-smi topo -m` and `rocm-smi --showtopo` print.
_MATRIX = re.compile(r"^[ \t]+GPU0\b[^\n]*\n[ \t]*GPU0\b", re.MULTILINE)
#: A line of Slurm's topology.conf.
_SLURM = re.compile(r"^[ \t]*SwitchName=", re.MULTILINE | re.IGNORECASE)

#: The limit of the numbers of boxes and of accelerators.
_MOST = 2**24


def import_machine(
    file: str | os.PathLike[str],
    source: str | None = None,
    *,
    name: str | None = None,
    boxes: SupportsIndex = 1,
    accelerators: SupportsIndex | str | None = None,
) -> Machine:
    """Imports the network in another program's file.

    ``source`` is the format: ``"nccl-topo"``, a topology that NCCL or RCCL wrote (``NCCL_TOPO_DUMP_FILE``),
    ``"edges"``, a line ``A B`` for each cable, or ``"graphml"``, in which nodes with ``switch`` true are switches and
    edges may have ``gbps``, ``measured``, ``ns`` and ``count``; by default it follows from the end of the file's name.
    The machine is called ``name``, by default like the file. A topology of NCCL describes one of ``boxes`` boxes, which
    are joined by their network interfaces. In a list of cables the nodes with numbers below ``accelerators`` are
    accelerators, all by default; if its nodes have names, ``accelerators`` has patterns of those of accelerators:
    ``"host*,gpu[0-9]"``.

    Raises:
        InputError: the file has another format, or does not describe a network.

    """
    path = file_name(file)
    found = named("the format", source) if source is not None else _ENDS.get(Path(path).suffix, "edges")
    counts = {"boxes": whole("boxes", boxes)}
    patterns = accelerators if isinstance(accelerators, str) else None
    if accelerators is not None and not isinstance(accelerators, str):
        counts["accelerators"] = whole("accelerators", accelerators)
    for key, count in counts.items():
        if not 1 <= count < _MOST:
            raise InputError(f"{key} is {count}; accepted are whole numbers from 1 to {_MOST - 1}")
    text = read_text(path, MOST_DESCRIPTION_BYTES, "a topology")
    called = named("the name", name) if name is not None else Path(path).stem
    if found == "graphml":
        # Imported late, because the XML parser takes longer to import than the rest of this package.
        from unisono.machines import graphml

        if accelerators is not None or counts["boxes"] != 1:
            raise InputError("a graph names all nodes and states which are switches; drop boxes and accelerators")
        try:
            return of_graph(graphml.parse(text, called))
        except InputError as error:
            raise InputError(f"{title(path)}: {error}") from None
    if found not in IMPORTED_NETWORKS:
        raise InputError(f"'{found}' is no format of topologies; accepted are {', '.join(IMPORTED_NETWORKS)}")
    number, names = counts.get("accelerators"), None
    if found == "edges":
        _check_edges(text, title(path))
        try:
            named_by = named_nodes(text, patterns)
        except InputError as error:
            raise InputError(f"{title(path)}: {error}") from None
        if named_by is not None:
            names, number = named_by
    elif patterns is not None:
        raise InputError("patterns of accelerators are for a list of cables whose nodes have names; drop them")
    return _core.import_network(text, title(path), found, called, counts["boxes"], number, names)


def _check_edges(text: str, origin: str) -> None:
    """Refuses outputs and files of other programs, which have no rates of cables."""
    if _MATRIX.search(text):
        raise InputError(
            f"{origin} is a matrix of GPUs, as 'nvidia-smi topo -m' prints, which states the kinds of links and no "
            "rates; run a program of NCCL or RCCL on all GPUs with NCCL_TOPO_DUMP_FILE=topo.xml, and import topo.xml"
        )
    if _SLURM.search(text):
        raise InputError(
            f"{origin} is a topology.conf of Slurm, which states no rates; accepted is a line 'A B gbps=RATE' for each "
            "cable"
        )
    if _DISCOVERED.search(text):
        raise InputError(
            f"{origin} is the output of ibnetdiscover, and accepted is a line 'A B gbps=RATE' for each cable: write "
            f"the list by `awk -F'\"' '{_CABLES}' {origin} > cables.txt`, append the rates, and import it with "
            "--accelerators 'H-*'"
        )
