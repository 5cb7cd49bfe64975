"""Which schedules are worth running: the best few algorithms of a machine's model."""

from unisono._core import Machine, Plan, UnsupportedError
from unisono.planning.plans import plan

__all__ = ["proposals", "propose"]

#: The datatype of an operator that does not commute, where a proof needs data.
_DTYPES = {"ordered": "i64"}


def proposals(collective: str, machine: Machine, elements: int, most: int, op: str = "sum") -> list[Plan]:
    """The best algorithms by the model, each once at its best parameters, best first.

    Of an allreduce only those whose ranks all end with the same bits: programs rely on that, and break without.

    Raises:
        InputError: a size, or a number of ranks, that does not exist.
        UnsupportedError: the machine is none of ranks, or no algorithm serves.

    """
    ranked = plan(collective, machine, elements=elements, op=op, dtype=_DTYPES.get(op, "f32"))
    found: list[Plan] = []
    best: dict[str, dict[str, str]] = {}
    for candidate in ranked.candidates:
        best.setdefault(candidate["algorithm"], candidate["params"])
    for name, params in best.items():
        if len(found) == most:
            break
        proposal = propose(collective, machine, elements, name, params, op)
        if proposal is not None:
            found.append(proposal)
    return found


def propose(
    collective: str, machine: Machine, elements: int, algorithm: str, params: dict[str, str] | None, op: str = "sum"
) -> Plan | None:
    """One algorithm, without parameters at those that it ranks best with; None where it does not serve."""
    try:
        dtype = _DTYPES.get(op, "f32")
        made = plan(
            collective, machine, elements=elements, op=op, dtype=dtype, algorithm=algorithm, params=params or None
        )
    except UnsupportedError:
        return None
    if collective == "allreduce" and not made.schedule.verify().repeatable:
        return None
    return made
