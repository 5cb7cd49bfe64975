"""Plans a collective on a machine, and computes lower bounds."""

import os
from collections.abc import Mapping
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine, Plan, UnsupportedError
from unisono.base import names
from unisono.base.files import MOST_LIBRARY_BYTES, read_bytes
from unisono.base.inputs import MachineLike, Root, checked_root, element_count, whole
from unisono.base.reports import Bound
from unisono.machines.descriptions import Shape, with_shape
from unisono.planning.libraries import OF_NCCL

__all__ = ["bounds", "plan"]


def plan(
    collective: str,
    machine: MachineLike,
    *,
    shape: Shape | None = None,
    ranks: SupportsIndex | None = None,
    elements: SupportsIndex | None = None,
    bytes: SupportsIndex | str | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    algorithm: str | None = None,
    params: Mapping[str, str | int] | None = None,
    model: str | None = None,
    target: str | None = None,
    library: str | os.PathLike[str] | None = None,
    as_library: str | None = None,
    bits: str | None = None,
    contributors: SupportsIndex | None = None,
) -> Plan:
    """Returns the best schedule of a collective by the machine's model, with every candidate.

    ``shape`` or ``ranks`` chooses the part of the machine, as in :func:`machine`; by default it is all. The size is
    given as ``elements``, or as ``bytes`` (a number, or text such as ``"64KiB"``). ``root`` is an index in row-major
    order or ``(row, column)``. With ``algorithm`` only that one is ranked. Its parameters that ``params``
    leaves out are the best ones of the ranking, unless ``params`` is a whole candidate; ``params={}`` plans the
    algorithm's own defaults. Without ``algorithm``, only candidates with the values of ``params`` are left. ``model``
    is one of the machine's; with ``"packets"`` the best candidates on a network are simulated, and their ``source`` is
    ``"simulated"``. Without ``model`` the best candidates on a wafer are.

    With ``target``, a format of :func:`emit` such as ``"csl"``, candidates are timed and built in the form of this
    format, and the plan is the best one that it can express. With a format of tuning files such as ``"openmpi-rules"``
    it is the best one that the library has under a name of its own; ``"mpich-json"`` reads the names from ``library``,
    the ``libmpi.so`` of an MPICH. The name of a library stands for the format that it reads: ``"openmpi"``,
    ``"mpich"``, ``"nccl"``, ``"ncclx"``, ``"msccl"``. With ``"preload"`` the plan is the best one for a ``.plan`` for
    MPI programs. Each candidate's ``expressible`` is then True or False, with the reason in ``refused``, or None if it
    was not tested.

    ``as_library="nccl"`` adds the choice of NCCL itself on the machine, by its cost model of its own algorithms, to the
    report: ``report()["library"]``. The machine must state its GPUs in a table ``[gpu]``. The target ``"nccl"``
    without an algorithm adds it if the machine does. ``"openmpi"`` and ``"mpich"`` choose by the tables of these
    libraries, and the time is that of the same algorithm here.

    With ``bits`` all candidates have a property, and the report has its price as ``bits_cost``: with ``"ranks"`` all
    ranks have the same bits, with ``"place"`` all elements of a result have the same expression too, and with
    ``"size"`` the programs of a ``.plan`` have the same expression at every size that they serve. See
    :func:`plan_table` for many sizes, and for ``"ranks-count"`` with a number of ``contributors``. With ``as_library``
    too, the report has the settings of the library that give the property: ``report()["library"]["bits"]``.

    Raises:
        InputError: a name, size, shape or root that does not exist, or a library without a table or a model.
        UnsupportedError: the algorithm does not support this case.
        NotExpressibleError: the target can express no candidate, or none has the bits.
        OSError: the library cannot be read.

    """
    kind, of, how = names.collective(collective), names.datatype(dtype), names.operator(op)
    count = element_count(elements, bytes, of, kind)
    only = None if algorithm is None else names.algorithm(algorithm)
    on, at = with_shape(machine, shape, ranks), checked_root(root)
    form = None if target is None else names.format_of(names.named("the target", target))
    if (library is None) is (form == "mpich-json"):
        raise InputError(
            "the names of mpich-json are those of an installed MPICH; give its libmpi.so.12 as library="
            if library is None
            else "library is for target='mpich-json', which takes names from it, and not for "
            + ("a plan without a target" if form is None else form)
        )
    image = None if library is None else read_bytes(library, MOST_LIBRARY_BYTES)
    own = None if as_library is None else names.library(names.named("the library", as_library))
    if own is None and only is None and form in OF_NCCL:
        # A tuning file for NCCL names NCCL's own algorithms, so the report also states NCCL's choice.
        own = _known_library(kind, on, count, of, how)
    asked = kind, on, count, of, how, at, only, params, model
    of_bits = None if contributors is None else whole("contributors", contributors)
    if of_bits is not None and bits != "ranks-count":
        raise InputError("contributors is the number of logical contributors of bits='ranks-count'; give both or none")
    return _core.plan(*asked, target=form, library=image, behaves_as=own, bits=bits, contributors=of_bits)


def _known_library(kind: str, on: Machine, count: int, dtype: str, op: str) -> str | None:
    """Returns ``nccl`` if NCCL's choice on the machine is known, else None."""
    try:
        _core.library_choice_of("nccl", kind, on, count, dtype, op, None)
    except (InputError, UnsupportedError):
        return None
    return "nccl"


def bounds(
    collective: str,
    machine: MachineLike,
    *,
    shape: Shape | None = None,
    ranks: SupportsIndex | None = None,
    elements: SupportsIndex | None = None,
    bytes: SupportsIndex | str | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    model: str | None = None,
) -> list[Bound]:
    """Returns every lower bound that applies.

    A bound has ``name``, ``cycles`` (None on a machine without cycles), ``seconds``, ``reference``, ``source`` and
    ``assumes``. For ranks, ``model`` chooses a model for which the machine has the parameters.

    Raises:
        InputError: a name, size, shape or root that does not exist.

    """
    kind, of, how = names.collective(collective), names.datatype(dtype), names.operator(op)
    count = element_count(elements, bytes, of, kind)
    return _core.bounds(kind, with_shape(machine, shape, ranks), count, of, how, checked_root(root), model)
