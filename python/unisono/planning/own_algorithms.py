"""Adds algorithms written in Python, which plans, sweeps and tuning rank together with all others."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from unisono._core import InputError, Schedule, ScheduleBuilder, register_algorithm, unregister_algorithm
from unisono.base import names
from unisono.base.messages import shown
from unisono.base.studies import OWN

__all__ = ["AlgorithmCase", "algorithm", "remove_algorithm"]

#: The largest number of combinations of parameters that the planner ranks.
_MOST_SETTINGS = 256
_NAME = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")
_KINDS = {"wafer": (True, False), "ranks": (False, True)}


@dataclass(frozen=True)
class AlgorithmCase:
    """The request for a schedule: one collective of one size, on ranks or PEs of one shape."""

    collective: str
    ranks: int
    #: The number of elements: of the whole vector for broadcast, reduce, allreduce and scan, otherwise of one rank's
    #: block.
    elements: int
    root: int
    dtype: str
    op: str
    #: ``(ranks,)``, or ``(rows, columns)`` of a grid of PEs; rank ``k`` is PE ``k`` in row-major order.
    shape: tuple[int, ...]

    def builder(self) -> ScheduleBuilder:
        """Returns a builder for a schedule of this case."""
        return ScheduleBuilder(
            self.ranks,
            self.elements,
            collective=self.collective,
            root=self.root,
            dtype=self.dtype,
            operator=self.op,
        )


_Function = TypeVar("_Function", bound=Callable[..., Schedule])


def algorithm(
    name: str,
    *,
    collectives: Iterable[str],
    on: Sequence[str] = ("ranks",),
    params: Mapping[str, Sequence[object]] | None = None,
    summary: str = "an algorithm of the user's own",
    reference: str = "",
) -> Callable[[_Function], _Function]:
    """Adds a function that makes schedules to the registry of algorithms, until :func:`remove_algorithm` removes it.

    The function takes an :class:`AlgorithmCase`, and one keyword for each parameter, as text; it returns a schedule, or
    raises :class:`unisono.UnsupportedError` for a case without one. ``on`` lists the machines of such schedules:
    ``"ranks"`` that exchange messages, on clusters and networks, or a ``"wafer"``. ``params`` lists the values of each
    parameter that the planner ranks; if a plan names the algorithm and some values only, the planner ranks those that
    are listed. Every schedule is proved before it is ranked. Another exception of the function, or a wrong schedule, is
    an error if the plan names the algorithm; otherwise the plan omits the algorithm, with a warning. A second function
    of the same name replaces the first.

    >>> import unisono as un
    >>> @un.algorithm("to-zero-and-back", collectives=["allreduce"])
    ... def to_zero_and_back(case):
    ...     b, others = case.builder(), range(1, case.ranks)
    ...     there = [b.stream(rank, [0]) for rank in others]
    ...     back = [b.stream(0, [rank]) for rank in others]
    ...     b.combine(0, [b.input(0)[:], *there], [b.output(0)[:], *back])
    ...     for rank, up, down in zip(others, there, back):
    ...         b.combine(rank, [b.input(rank)[:]], [up])
    ...         b.combine(rank, [down], [b.output(rank)[:]])
    ...     return b.build()
    >>> un.plan("allreduce", "archer", shape=4, elements=8, algorithm="to-zero-and-back").algorithm
    'to-zero-and-back'
    >>> un.remove_algorithm("to-zero-and-back")

    Raises:
        InputError: a name of the registry, or one that is not a name; a collective or a kind that does not exist.

    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{shown(name)} is no name of an algorithm; accepted are words as in 'my-ring'")
    kinds = [names.collective(kind) for kind in ([collectives] if isinstance(collectives, str) else collectives)]
    if not kinds:
        raise InputError(f"algorithm '{name}' is for no collective")
    places = [on] if isinstance(on, str) else list(on)
    for place in places:
        if place not in _KINDS:
            raise InputError(f"algorithm '{name}' is on {shown(place)}; accepted are ranks and wafer")
    values = {str(key): [str(value) for value in found] for key, found in (params or {}).items()}
    settings = [list(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    if not 1 <= len(settings) <= _MOST_SETTINGS:
        raise InputError(
            f"the parameters of algorithm '{name}' have {len(settings)} settings; accepted are 1 to {_MOST_SETTINGS}"
        )

    def add(function: _Function) -> _Function:
        def call(case: dict[str, Any], given: dict[str, str]) -> Schedule:
            made = function(AlgorithmCase(**{**case, "shape": tuple(case["shape"])}), **given)
            if not isinstance(made, Schedule):
                raise InputError(f"it returned {shown(made)}, and must return a schedule")
            return made

        register_algorithm(
            name,
            kinds,
            summary,
            reference or _place_of(function),
            [(key, ", ".join(found)) for key, found in values.items()],
            settings,
            "wafer" in places,
            "ranks" in places,
            call,
        )
        OWN.add(name)
        names.forget_algorithms()
        return function

    return add


def _place_of(function: Callable[..., Schedule]) -> str:
    """Returns a reference for an algorithm: the name of its function, with file and line if known."""
    code = getattr(function, "__code__", None)
    place = function.__module__ if code is None else f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    return f"function {getattr(function, '__qualname__', shown(function))} of {place}"


def remove_algorithm(name: str) -> None:
    """Removes an algorithm that :func:`algorithm` added.

    Raises:
        InputError: no algorithm of that name was added.

    """
    if not unregister_algorithm(names.named("the algorithm", name)):
        raise InputError(f"no algorithm {shown(name)} was added")
    OWN.discard(name)
    names.forget_algorithms()
