"""HTML tables of objects for notebooks; `_repr_html_` of the classes calls :func:`display`."""

from collections.abc import Mapping
from typing import Any

from unisono._core import Machine, Plan, Proof, Schedule
from unisono.base.html import facts_table, table, time_text

__all__ = ["display"]

#: The largest number of candidates, and of facts, in a table.
_SHOWN = 12


def display(subject: Plan | Proof | Schedule | Machine) -> str:
    """Returns a table of the subject's facts, and for a plan also of its candidates."""
    match subject:
        case Plan():
            return facts_table(_plan(subject)) + _candidates(subject)
        case Proof():
            return facts_table(_proof(subject))
        case Schedule():
            return facts_table(_schedule(subject))
        case Machine():
            plain = {name: value for name, value in subject.describe().items() if isinstance(value, str | int | float)}
            return facts_table({name: value for name, value in list(plain.items())[:_SHOWN] if "\n" not in str(value)})


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "collective": plan.collective,
        "algorithm": _words(plan.algorithm, plan.params),
        "predicted": _time(plan.predicted["cycles"], plan.predicted["seconds"]),
        "bound": f"{_time(plan.bound['cycles'], plan.bound['seconds'])} ({plan.bound['name']})",
        "ratio": None if plan.ratio is None else f"{plan.ratio:.3f}",
    }


def _candidates(plan: Plan) -> str:
    rows = [
        (_words(row["algorithm"], row["params"]), _time(row["cycles"], row["seconds"]), _ratio(row["ratio"]))
        for row in plan.candidates[:_SHOWN]
    ]
    more = len(plan.candidates) - len(rows)
    return table(("candidate", "predicted", "ratio"), rows) + (f"<p>and {more} more</p>" if more > 0 else "")


def _proof(proof: Proof) -> dict[str, Any]:
    names = ("complete", "deadlock_free", "race_free", "repeatable")
    facts: dict[str, Any] = {name.replace("_", "-"): "yes" if getattr(proof, name) else "no" for name in names}
    facts["method"] = proof.method
    found = proof.diagnostics
    return facts | {f"finding {at + 1}": diagnostic["message"] for at, diagnostic in enumerate(found[:3])}


def _schedule(schedule: Schedule) -> dict[str, Any]:
    return {
        "collective": f"{schedule.collective} of {schedule.elements} {schedule.dtype}",
        "ranks": schedule.ranks,
        "algorithm": schedule.origin,
        "instructions": schedule.instructions,
        "machine": None if schedule.machine is None else schedule.machine.name,
    }


def _words(name: str, params: Mapping[str, str]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in params.items())])


def _time(cycles: float | None, seconds: float | None) -> str:
    """Returns a text with cycles if the machine counts cycles, else with a time."""
    if cycles is not None:
        return f"{cycles:g} cycles"
    return "" if seconds is None else time_text(seconds)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
