"""Plans variants of an algorithm that divide a vector into other numbers of pieces, to be timed too."""

from collections.abc import Mapping, Sequence

from unisono._core import InputError, Machine, Plan, UnsupportedError
from unisono.planning.plans import plan as planned

__all__ = ["in_other_pieces"]

#: The parameters that are numbers of pieces of a vector, and the factor between the numbers that are tried.
_PIECES = ("chunks", "blocks")
_FACTOR = 4
#: The largest predicted time, relative to the best given plan, of an algorithm that is added because it divides
#: vectors.
_NEAR = 1.1


def in_other_pieces(plans: Sequence[Plan], machine: Machine, ranks: int, elements: int) -> list[Plan]:
    """Returns the best plan that divides the vector, with messages four times as long and with a fourth of the length.

    Libraries use another protocol for messages above a limit, which no machine file states: over TCP a ring of long
    messages takes up to twice the time of the wire. If none of the plans divides the vector, the machine's best such
    plan is returned too, unless its predicted time is much longer. If several plans have equal predicted times, the
    first plan counts as the best.
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
    # The planner limits the number of pieces to the elements, so it may return the same plan again.
    known, found = [plan.params], added
    for other in made:
        if other is not None and other.params not in known:
            known.append(other.params)
            found.append(other)
    return found


def _pieces(params: Mapping[str, str]) -> str | None:
    """Returns the name of the parameter that is a number of pieces; None if there is none."""
    return next((key for key in _PIECES if key in params), None)


def _seconds(plan: Plan) -> float:
    return plan.predicted["seconds"] or 0.0


def _added(best: Plan, machine: Machine, ranks: int, elements: int) -> list[Plan]:
    """Returns the machine's best plan that divides the vector; empty if it takes longer than :data:`_NEAR` permits."""
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
    # Programs rely on equal bits on all ranks after an allreduce, so other plans are refused.
    return made if collective != "allreduce" or made.schedule.verify().repeatable else None
