"""Plans of one algorithm that cut a vector into other numbers of pieces, to be timed beside the model's choice."""

from collections.abc import Sequence

from unisono._core import InputError, Machine, Plan, UnsupportedError
from unisono.planning.plans import plan as planned

__all__ = ["in_other_pieces"]

#: Parameters that are numbers of pieces of a vector, and the factor between the numbers that are tried.
_PIECES = ("chunks", "blocks")
_FACTOR = 4


def in_other_pieces(plans: Sequence[Plan], machine: Machine, ranks: int, elements: int) -> list[Plan]:
    """Returns the plan with the least predicted time again, with messages four times as long, and a fourth of it.

    Libraries send messages above a limit in another way, which no machine file states. There are no such plans if the
    algorithm does not cut the vector.
    """
    plan = min(plans, key=lambda plan: plan.predicted["seconds"] or 0.0, default=None)
    if plan is None:
        return []
    name = next((key for key in _PIECES if key in plan.params), None)
    if name is None:
        return []
    number = int(plan.params[name])
    tried = [number // _FACTOR] * (number >= _FACTOR) + [number * _FACTOR]
    made = (_with(plan, machine, ranks, elements, {**plan.params, name: str(other)}) for other in tried)
    # The planner bounds the number by the elements, and gives the same plan again.
    known, found = [plan.params], []
    for other in made:
        if other is not None and other.params not in known:
            known.append(other.params)
            found.append(other)
    return found


def _with(plan: Plan, machine: Machine, ranks: int, elements: int, params: dict[str, str]) -> Plan | None:
    """Returns the plan with other parameters, or None if it does not serve programs."""
    collective, algorithm = plan.collective, plan.algorithm
    try:
        made = planned(collective, machine, shape=ranks, elements=elements, algorithm=algorithm, params=params)
    except (InputError, UnsupportedError):
        return None
    # All ranks of an allreduce end with the same bits, because programs rely on that.
    return made if collective != "allreduce" or made.schedule.verify().repeatable else None
