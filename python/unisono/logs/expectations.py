"""Computes the expected time of each measured collective on a machine, by a library or a plan, and its bound."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unisono._core import InputError, Machine, UnsupportedError
from unisono.base import names
from unisono.base.messages import shown
from unisono.logs.collectives import Measured
from unisono.logs.library_calibration import FAR, ONE_BLOCK, boxes_of, check_gpus, choice_at, launch_notes
from unisono.machines.descriptions import with_shape
from unisono.planning.libraries import library_choice
from unisono.planning.plans import bounds, plan

__all__ = ["Choice", "Expected", "Key", "expected_times", "key_of", "library_of"]

#: The collective, ranks, nodes, bytes, datatype and operator of a measured time.
Key = tuple[str, int, int, int, str, str]
#: Libraries of GPUs, and the collectives whose times are known. For others the time of a plan is expected.
_OF_RCCL = ("allgather", "allreduce", "broadcast", "reduce", "reduce-scatter")
_GPU = {"nccl": (*_OF_RCCL, "alltoall", "gather", "scatter"), "rccl": _OF_RCCL}
#: Libraries that choose by rules.
_MPI = ("mpich", "openmpi")
#: The number of bytes from which a vector counts as long, and the relative errors that are normal for predictions. On a
#: node without faults, measured times are 2.2 times NCCL's own estimate for short vectors, 1.5 times for long vectors,
#: and less for allreduces (docs/measured/a100x4-nvlink.csv).
_LONG = 256 << 20
_LONG_ALLREDUCE, _LONG_ESTIMATE, _SHORT_ESTIMATE = 0.25, 0.5, 1.25
#: The normal relative error if the time of Unisono's best plan is the prediction for a library. The error is large,
#: because the library's algorithms are seldom the best.
_PLAN = 0.5
_ELEMENT = 4


@dataclass(frozen=True)
class Choice:
    """An algorithm with a protocol that a library enables, and its predicted time."""

    algorithm: str
    #: The protocol; empty for MPI libraries, which have no protocols.
    protocol: str
    seconds: float
    #: True if the time is by prices that were fitted to logs of this algorithm and protocol.
    is_fitted: bool = False

    @property
    def name(self) -> str:
        """Returns the algorithm with its protocol."""
        return f"{self.algorithm} {self.protocol}".rstrip()


@dataclass(frozen=True)
class Expected:
    """The expected time of one collective."""

    seconds: float
    #: The lower bound on the time by the data sheet, in seconds; None if the machine has no part like the log's, if it
    #: has no bound for the collective, or if blocks are shorter than an element.
    ceiling: float | None
    #: The normal relative error of the prediction.
    error: float
    #: The library's choice. It is followed by the other choices that a library of GPUs enables, or by the best choice
    #: that rules can make Open MPI use. Empty if a plan predicts the time.
    choices: tuple[Choice, ...] = ()
    #: A sentence on the rules that make Open MPI use the last choice; empty for other libraries.
    advice: str = ""


def key_of(point: Measured) -> Key:
    """Returns the properties of a measurement on which its expected time depends."""
    return point.collective, point.ranks, point.nodes, point.bytes, point.dtype, point.op


def library_of(machine: Machine, named: str | None) -> str | None:
    """Returns the library whose times are expected: ``named``, else that of the machine's GPUs; None without GPUs.

    Raises:
        InputError: the choices of the named library are not known.

    """
    named = None if named is None else names.library(named)
    if named is not None and named not in (*_GPU, *_MPI):
        raise InputError(
            f"the own choice of {shown(named)} is not known; accepted are {', '.join(sorted((*_GPU, *_MPI)))}; without "
            "--as the best plan is expected"
        )
    gpu = machine.describe().get("gpu") if machine.kind == "network" else None
    if named or not gpu:
        return named
    return "rccl" if gpu["architecture"].startswith("cdna") else "nccl"


def expected_times(
    machine: Machine,
    points: Iterable[Measured],
    library: str | None,
    on_time: Callable[[int, int], None] | None = None,
) -> tuple[dict[Key, Expected], list[str]]:
    """Returns the expected times of all points that the machine can represent, and sentences about other points.

    Points of one rank are left out silently. ``on_time`` is called with the number of times done and of all times.

    Raises:
        InputError: the logs name GPUs of another architecture, or the machine can represent none of the points.

    """
    wanted, notes = {key_of(point): point for point in points if point.ranks > 1}, list[str]()
    if library in _GPU:
        notes = check_gpus(machine, (point.gpu for point in wanted.values())) + launch_notes(wanted.values())
    if machine.kind == "wafer":
        notes.append(f"{machine.name} is a wafer, whose ranks are PEs; logs of GPUs or of MPI are of another machine")
    found: dict[Key, Expected] = {}
    for done, (key, point) in enumerate(wanted.items(), 1):
        try:
            found[key] = _expected(machine, point, library)
        except UnsupportedError as refused:
            notes.append(f"{point.collective}: {refused}")
        except InputError as refused:
            notes.append(f"{point.collective} on {point.ranks} ranks: {refused}")
        if on_time is not None:
            on_time(done, len(wanted))
    if wanted and not found:
        raise InputError(f"{machine.name} has no expected time for these logs: {notes[-1]}")
    return found, list(dict.fromkeys(notes))


def _expected(machine: Machine, point: Measured, library: str | None) -> Expected:
    part = _part(machine, point)
    blocks = 1 if point.collective in ONE_BLOCK else point.ranks
    elements = 0 if point.collective == "barrier" else max(1, point.bytes // (_ELEMENT * blocks))
    # A bound for bytes rounded down to whole elements is still valid; a bound for bytes rounded up is not.
    is_whole = point.collective == "barrier" or point.bytes >= _ELEMENT * blocks
    ceiling = None
    if part is not None and is_whole:
        ceiling = max((of["seconds"] for of in bounds(point.collective, part, elements=elements)), default=None)
    own = None
    if library in _GPU and point.collective in _GPU[library]:
        own = choice_at(machine, point, library)
    if own is not None and own["seconds"] is not None:
        of = tuple(
            Choice(one["algorithm"], one["protocol"], one["seconds"], one["calibrated"]) for one in own["choices"]
        )
        return Expected(own["seconds"], ceiling, FAR if own["calibrated"] else _error(point), of)
    if part is None:
        raise InputError(f"a plan for {point.ranks} ranks on {point.nodes} nodes needs all accelerators of its nodes")
    if library in _MPI:
        by_rules = library_choice(point.collective, part, elements, library=library)
        if by_rules["seconds"] is not None:
            return _of_rules(
                Choice(by_rules["algorithm"], "", by_rules["seconds"]),
                library,
                point.collective,
                part,
                elements,
                ceiling,
            )
    seconds = plan(point.collective, part, elements=elements).predicted["seconds"]
    return Expected(seconds, ceiling, _PLAN)


def _of_rules(
    own: Choice, library: str, collective: str, part: Machine, elements: int, ceiling: float | None
) -> Expected:
    """Returns the time of an MPI library's choice; for Open MPI also the best choice that a file of rules can make."""
    if library != "openmpi":
        return Expected(own.seconds, ceiling, _PLAN, (own,))
    try:
        best = plan(collective, part, elements=elements, target="openmpi-rules")
    except (InputError, UnsupportedError):
        return Expected(own.seconds, ceiling, _PLAN, (own,))
    advice = f"'unisono plan {collective} --for openmpi -o FILE', with the machine and size, writes the rules for it"
    other = Choice(best.algorithm, "", best.predicted["seconds"])
    return Expected(own.seconds, ceiling, _PLAN, (own, other), advice=advice)


def _error(point: Measured) -> float:
    """Returns the normal relative error of a GPU library's own estimate of a point."""
    if point.bytes < _LONG:
        return _SHORT_ESTIMATE
    return _LONG_ALLREDUCE if point.collective == "allreduce" else _LONG_ESTIMATE


def _part(machine: Machine, point: Measured) -> Machine | None:
    """Returns the part of a machine that a measurement used; None if several nodes were used only partly."""
    if machine.kind != "network":
        return with_shape(machine, point.ranks)
    boxed, places = boxes_of(machine, point)
    is_start = places == list(range(point.ranks))
    return with_shape(boxed, point.ranks) if is_start else None
