"""Runs of schedules and GOAL programs on simulated machines."""

import math
import os
from collections.abc import Sequence, Sized
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Schedule, Simulation
from unisono.base.files import check_regular, file_name, is_folder, title
from unisono.base.inputs import MachineLike, checked_probability, checked_seed, finite, items, whole
from unisono.base.messages import shown
from unisono.base.names import named
from unisono.machines import with_shape
from unisono.simulation.runs import Run
from unisono.simulation.traces import SIMULATORS, Traced, checked_pes, listed_pes

__all__ = ["Noise", "simulate", "simulate_beside", "simulate_goal"]

#: The largest number of ranks of a collective.
_MOST_RANKS = 2**22

#: A distribution of noise in nanoseconds: ``("uniform", most)``, ``("normal", mean, deviation)`` or ``("exponential",
#: mean)``.
Noise = tuple[str, float] | tuple[str, float, float]


def simulate(
    schedule: Schedule,
    machine: MachineLike | None = None,
    *,
    queue_depth: int | None = None,
    noop_probability: float = 0.0,
    seed: SupportsIndex = 0,
    trace_pes: Sequence[int] | None = None,
    model: str | None = None,
    late: Sequence[float] | None = None,
    noise: Noise | None = None,
    places: Sequence[SupportsIndex] | None = None,
) -> Run:
    """Runs a schedule on its machine, or on ``machine``.

    The schedule is proved first. On a wafer it runs wavelet by wavelet on the fabric, with its data. Between ranks its
    messages have the costs of the machine, by ``model`` or the machine's own model; rank ``k`` begins at ``late[k]``
    nanoseconds, and ``noise``, ``("uniform", most)``, ``("normal", mean, deviation)`` or ``("exponential", mean)`` in
    nanoseconds, drawn by ``seed``, lengthens the times of CPUs. On a network messages consist of packets; rank ``k`` is
    on accelerator ``places[k]``, such as :func:`unisono.submesh` returns, else at the schedule's own place, or on
    accelerator ``k`` of the part that the shape of ``machine`` names. In switches that reduce, packets with data flow
    through the trees of the schedule.

    On a wafer ``queue_depth`` replaces the machine's limit of wavelets that wait at a router, per color and input. A PE
    idles in the fraction ``noop_probability`` of its cycles, drawn by ``seed``, as wafers do against overheating. The
    PEs or ranks ``trace_pes`` are recorded for :meth:`Run.trace`.

    Raises:
        InputError: there is no machine, or a value is wrong.
        UnsupportedError: the schedule needs more colors, switch positions or the like than the machine has.
        VerifyError: the schedule is refused; ``.diagnostics`` lists the reasons.
        SimulationError: the run got stuck, or wavelets met that must not; ``.stuck`` lists the places.

    """
    if not isinstance(schedule, Schedule):
        raise InputError(f"{shown(schedule)} is not a schedule; a plan has one as .schedule")
    where = None if machine is None else with_shape(machine, None)
    listed = None if places is None else checked_places(places)
    target = where or schedule.machine
    placed = schedule if (where is None and listed is None) or target is None else schedule.on(target, listed)
    if queue_depth is not None and not 0 <= whole("queue_depth", queue_depth) < 2**32:
        raise InputError(f"queue_depth is {queue_depth}; accepted are whole numbers of 32 bits from 0 on")
    options = (
        None if model is None else named("the model", model),
        queue_depth,
        checked_probability("noop_probability", noop_probability),
        as_starts(late),
        as_noise(noise),
        checked_seed(seed),
    )
    traced = checked_pes([] if trace_pes is None else listed_pes(trace_pes), placed.nodes)
    if traced and placed.machine is not None and SIMULATORS[placed.machine.simulator].records == "nothing":
        raise InputError(f"trace_pes is given, and the simulator {placed.machine.simulator} records nothing; drop it")
    simulation = _core.simulate(placed, *options, traced)
    ran_on = placed.machine
    assert ran_on is not None, "what ran has a machine"
    shape = ran_on.shape or (placed.nodes,)
    size = f"{placed.collective} of {placed.elements} {placed.dtype}"
    if simulation.cycles is None:
        text = f"{size} on {placed.ranks} ranks: {placed.origin}"
    else:
        text = f"{size} on {'x'.join(map(str, shape))} PEs"
    about = Traced(text, placed.nodes, ran_on.name, shape, traced)
    return Run(about, simulation, lambda pes: _core.simulate(placed, *options, pes))


def simulate_beside(schedules: Sequence[Schedule]) -> list[Run]:
    """Runs schedules simultaneously on a machine whose switches reduce, each on its planned nodes.

    Each tree gets the first identifier that is free at all of its switches. A link or memory that trees share gives
    each tree a fixed fraction of the time, so a run may take longer than :func:`simulate` of the schedule alone. The
    metric ``identifiers`` lists the identifiers of a schedule.

    Raises:
        InputError: there is no schedule, the schedules have different machines or a machine of another kind, or a
            switch has more trees than identifiers.
        VerifyError: a schedule is refused; ``.diagnostics`` lists the reasons.

    """
    accepted = "simulate_beside takes a list of schedules, at least one"
    listed = items(schedules, f"{shown(schedules)} is not a list; {accepted}")
    if not listed:
        raise InputError(f"no schedule is given; {accepted}")
    for schedule in listed:
        if not isinstance(schedule, Schedule):
            raise InputError(f"{shown(schedule)} is not a schedule; a plan has one as .schedule")
    runs = []
    for schedule, simulation in zip(listed, _core.simulate_beside(listed), strict=True):
        ran_on = schedule.machine
        assert ran_on is not None, "what ran has a machine"
        size = f"{schedule.collective} of {schedule.elements} {schedule.dtype}"
        text = f"{size} on {schedule.ranks} ranks: {schedule.origin}"
        about = Traced(text, schedule.nodes, ran_on.name, ran_on.shape or (schedule.nodes,), [])
        runs.append(Run(about, simulation, None))
    return runs


#: Picoseconds per nanosecond.
_PICOSECONDS = 1000


def _parameters(given: dict[str, float | None]) -> tuple[tuple[int | None, ...], int]:
    """Returns LogGOPS parameters in ticks, and the ticks per nanosecond.

    A nanosecond has 1000 ticks if a parameter other than S is a float, otherwise 1.

    Raises:
        InputError: a parameter is negative, too large, or finer than a picosecond.

    """
    is_fraction = {name: isinstance(value, float) and name != "S" for name, value in given.items()}
    ticks = _PICOSECONDS if any(is_fraction.values()) else 1
    found: list[int | None] = []
    for name, value in given.items():
        scale = 1 if name == "S" else ticks
        if value is None:
            found.append(None)
            continue
        if is_fraction[name]:
            if not math.isfinite(value):
                raise InputError(f"{name} is {value}; accepted are numbers from 0 to (2^63 - 1) / 1000")
            # Imported late, because few parameters have fractions.
            from fractions import Fraction

            exact = Fraction(repr(finite(name, value))) * scale
            if exact.denominator != 1:
                raise InputError(f"{name} is {value}; accepted are multiples of 0.001 ns, a picosecond")
            count = int(exact)
        else:
            count = whole(name, value) * scale
        if not 0 <= count < 2**63:
            most = "2^63 - 1" if scale == 1 else "(2^63 - 1) / 1000"
            numbers = "numbers" if is_fraction[name] else "whole numbers"
            raise InputError(f"{name} is {value}; accepted are {numbers} from 0 to {most}")
        found.append(count)
    return tuple(found), ticks


def simulate_goal(
    path: str | os.PathLike[str],
    *,
    machine: MachineLike | None = None,
    L: float | None = None,  # noqa: N803 - the field's own names
    o: float | None = None,
    g: float | None = None,
    G: float | None = None,  # noqa: N803
    O: float | None = None,  # noqa: E741, N803
    S: int | None = None,  # noqa: N803
    zero_byte: str = "wrapped",
    late: Sequence[float] | None = None,
    noise: Noise | None = None,
    seed: SupportsIndex = 0,
    trace_ranks: Sequence[int] | None = None,
) -> Run:
    """Runs the program of a GOAL file under LogGOPS, or on ``machine``, a network, packet by packet.

    ``path`` may also be a folder with the Chakra execution trace of each rank, of compute, sends and receives, such as
    ``emit`` writes.

    On a network rank k is on accelerator k, calcs are in nanoseconds, and parameters of LogGOPS are refused. The
    parameters ``L``, ``o``, ``g``, ``G`` and ``O`` are in nanoseconds, ``S`` is in bytes; the defaults are LogGOPSim's.
    If a parameter is a float such as ``G=0.08``, a multiple of 0.001, the clock counts picoseconds, unlike
    LogGOPSim's.

    ``zero_byte`` sets the cost of a message without bytes: ``wrapped`` as in LogGOPSim, which counts 2^64 - 1 bytes
    after the first, or ``sane``, the cost of one byte.

    Raises:
        InputError: the file does not exist or is not GOAL (the message has the line), or a parameter is negative or too
            large.
        SimulationError: the program cannot finish; ``.stuck`` lists tasks that never end.

    """
    parameters, ticks = _parameters({"L": L, "o": o, "g": g, "G": G, "O": O, "S": S})
    if zero_byte not in ("wrapped", "sane"):
        raise InputError(f"zero_byte is {shown(zero_byte)}; accepted are wrapped and sane")
    where = None if machine is None else with_shape(machine, None)
    if where is not None and (zero_byte != "wrapped" or any(value is not None for value in parameters)):
        raise InputError("a machine has its own prices; L, o, g, G, O, S and zero_byte are for a run without one")
    options = (as_starts(late), as_noise(noise), checked_seed(seed))
    name = file_name(path)
    program = None
    if is_folder(name):
        # Imported late, because GOAL files do not need it.
        from unisono.planning import read_workload

        program = read_workload(path)
    else:
        check_regular(path)

    def run(ranks: list[int]) -> Simulation:
        if where is not None:
            return _core.simulate_network_goal(where, name, *options, ranks, program)
        return _core.simulate_goal(name, parameters, zero_byte == "sane", *options, ranks, program, ticks)

    traced = [] if trace_ranks is None else listed_pes(trace_ranks)
    simulation = run(traced)
    ranks = simulation.nodes
    short = title(path).rstrip("/").rpartition("/")[2]
    about = Traced(short, ranks, "" if where is None else where.name, (ranks,), traced)
    return Run(about, simulation, run)


def checked_places(places: Sequence[SupportsIndex]) -> list[int]:
    """Returns the accelerator of each rank as a list.

    Raises:
        InputError: ``places`` is not a list of whole numbers from 0 to 2^32 - 1.

    """
    listed = items(places, f"places is {shown(places)}, and must be a list of accelerators")
    checked = [whole("the place of a rank", place) for place in listed]
    for at in checked:
        if not 0 <= at < 2**32:
            raise InputError(f"the place of a rank is {at}; accepted are numbers of accelerators, from 0 on")
    return checked


def as_starts(late: Sequence[float] | None) -> list[float] | None:
    """Returns the starting times of ranks in the form of the extension module.

    Raises:
        InputError: ``late`` is not a list of at most 2^22 times.

    """
    if late is None:
        return None
    message = f"late is {shown(late)}, and must be a list of nanoseconds, one of each rank"
    if isinstance(late, Sized) and len(late) > _MOST_RANKS:
        raise InputError(message)
    return [finite("the time when a rank begins", time) for time in items(late, message)]


#: The nanoseconds of a day.
_DAY_NS = 86_400e9


def as_noise(noise: Noise | None) -> tuple[str, float, float] | None:
    """Returns noise in the form of the extension module.

    Raises:
        InputError: a parameter is missing, or is not a number.

    """
    if noise is None:
        return None
    message = f"noise is {shown(noise)}; accepted is a name and its numbers, as in ('normal', 100, 20)"
    kind, *numbers = items(noise, message) or [None]
    if not isinstance(kind, str) or len(numbers) not in (1, 2):
        raise InputError(message)
    first, *second = (finite("a parameter of the noise", value) for value in numbers)
    if not all(0 <= value <= _DAY_NS for value in (first, *second)):
        raise InputError(f"noise is {shown(noise)}; accepted are nanoseconds from 0 to a day ({_DAY_NS:g})")
    if kind == "normal" and not second:
        raise InputError("normal noise has a mean and a deviation, as in ('normal', 100, 20)")
    return named("the kind of noise", kind), first, second[0] if second else 0.0
