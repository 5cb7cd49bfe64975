"""Plans of one algorithm that cut a vector into other numbers of pieces, to be timed beside the model's choice."""

from collections.abc import Mapping, Sequence

from unisono._core import InputError, Machine, Plan, UnsupportedError
from unisono.planning.plans import plan as planned

__all__ = ["in_other_pieces"]

#: Parameters that are numbers of pieces of a vector, and the factor between the numbers that are tried.
_PIECES = ("chunks", "blocks")
_FACTOR = 4
#: The most predicted time, beside the least of the given plans, of an algorithm that is added because it cuts vectors.
_NEAR = 1.1


def in_other_pieces(plans: Sequence[Plan], machine: Machine, ranks: int, elements: int) -> list[Plan]:
    """Returns the best plan that cuts the vector again, with messages four times as long, and a fourth of it.

    Libraries send messages above a limit in another way, which no machine file states: over TCP a ring of long messages
    takes up to twice the time of the wire. If none of the plans cuts the vector, the best such plan of the machine, if
    it is predicted to take hardly longer, is returned too. Of plans with equal predicted times the first is the best.
    """
    best = min(plans, key=_seconds, default=None)
    if best is None:
        return []
    cut = [plan for plan in plans if _pieces(plan.params)]
    added = [] if cut else _added(best, machine, ranks, elements)
    plan = min(cut or added, key=_seconds, default=None)
    if plan is None:
        return []
    name = _pieces(plan.params)
    assert name is not None
    number = int(plan.params[name])
    tried = [number // _FACTOR] * (number >= _FACTOR) + [number * _FACTOR]
    made = (
        _with(plan.collective, plan.algorithm, machine, ranks, elements, {**plan.params, name: str(other)})
        for other in tried
    )
    # The planner bounds the number by the elements, and gives the same plan again.
    known, found = [plan.params], added
    for other in made:
        if other is not None and other.params not in known:
            known.append(other.params)
            found.append(other)
    return found


def _pieces(params: Mapping[str, str]) -> str | None:
    """Returns the parameter that is a number of pieces; None if there is none."""
    return next((key for key in _PIECES if key in params), None)


def _seconds(plan: Plan) -> float:
    return plan.predicted["seconds"] or 0.0


def _added(best: Plan, machine: Machine, ranks: int, elements: int) -> list[Plan]:
    """Returns the best plan of the machine that cuts the vector, unless it takes far longer than the best of all."""
    collective, most = best.collective, _NEAR * _seconds(best)
    for row in planned(collective, machine, shape=ranks, elements=elements).candidates:
        seconds = row["seconds"]
        if seconds is None or seconds > most:
            break
        made = None
        if _pieces(row["params"]):
            made = _with(collective, row["algorithm"], machine, ranks, elements, row["params"])
        if made is not None:
            return [made]
    return []


def _with(
    collective: str, algorithm: str, machine: Machine, ranks: int, elements: int, params: Mapping[str, str]
) -> Plan | None:
    """Returns the plan of an algorithm with these parameters, or None if it does not serve programs."""
    try:
        made = planned(collective, machine, shape=ranks, elements=elements, algorithm=algorithm, params={**params})
    except (InputError, UnsupportedError):
        return None
    # All ranks of an allreduce end with the same bits, because programs rely on that.
    return made if collective != "allreduce" or made.schedule.verify().repeatable else None
