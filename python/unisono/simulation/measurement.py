"""Measurement of collectives on the simulated wafer by the method for hardware, without a common clock of PEs."""

from dataclasses import dataclass
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Schedule
from unisono.base.inputs import MachineLike, checked_probability, checked_seed, whole
from unisono.base.messages import shown
from unisono.machines.descriptions import with_shape

__all__ = ["Measurement", "measure"]

_MOST = 2**32 - 1


@dataclass(frozen=True)
class Measurement:
    """The times in cycles of a calibrated measurement, and the true times, which only a simulator has."""

    #: The number of writes by which a PE waits, divided by the number for a wafer without idle cycles.
    alpha: float
    #: The number of runs of the calibration.
    runs: int
    #: True if the measured starts of the PEs differ by less than the wanted spread.
    calibrated: bool
    #: The cycles between first and last start if each PE started by its own clock.
    clock_spread: int
    #: The spread in cycles if each PE started at the trigger.
    trigger_spread: int
    #: The measured cycles between first and last start.
    start_spread: int
    #: The true cycles between first and last start.
    true_start_spread: int
    #: The measured time of the run.
    measured_cycles: int
    #: The run's time by a common clock.
    true_cycles: int
    #: The cycles of a run without idle cycles in which all PEs start simultaneously.
    quiet_cycles: int
    result_correct: bool


def measure(
    schedule: Schedule,
    machine: MachineLike | None = None,
    *,
    queue_depth: int | None = None,
    noop_probability: float = 0.0,
    seed: SupportsIndex = 0,
    clock_skew: int = 1000,
    wanted_spread: int | None = None,
) -> Measurement:
    """Measures a schedule on the fabric of its wafer as in "Near-Optimal Wafer-Scale Reduce" (section 8.3).

    PE (0, 0) broadcasts a trigger, at which each PE samples its clock. PEs then wait so that all start simultaneously;
    a calibration finds the parameter of the wait. The measured time is from the first start to the last end, both
    relative to the trigger. Clocks differ by up to ``clock_skew`` cycles. The calibration ends when starts differ by
    less than ``wanted_spread`` cycles: by default the paper's 57 in a row of PEs and 129 on a grid. The other options
    are as in :func:`simulate`.

    Raises:
        InputError: there is no machine, the machine is not a wafer, or a value is wrong.
        UnsupportedError: the schedule needs more than the wafer has.
        VerifyError: the schedule is refused; ``.diagnostics`` lists the reasons.
        SimulationError: the run got stuck, or wavelets met that must not; ``.stuck`` lists the places.

    """
    if not isinstance(schedule, Schedule):
        raise InputError(f"{shown(schedule)} is not a schedule; a plan has one as .schedule")
    placed = schedule if machine is None else schedule.on(with_shape(machine, None))
    if placed.machine is not None:
        _core.require_offer(placed.machine, "grid", "measurements are made on")
    limits = [("clock_skew", clock_skew), *([] if wanted_spread is None else [("wanted_spread", wanted_spread)])]
    for name, value in limits:
        if not 0 <= whole(name, value) <= _MOST:
            raise InputError(f"{name} is {value}; accepted are 0 to {_MOST}")
    noise = checked_probability("noop_probability", noop_probability)
    found = _core.measure(placed, queue_depth, noise, checked_seed(seed), clock_skew, wanted_spread)
    return Measurement(**found)
