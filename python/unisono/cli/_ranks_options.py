"""The options of `unisono simulate` for simulations among ranks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from unisono.base.files import read_text
from unisono.cli._types import INT, Nanoseconds
from unisono.simulation.schedules import Noise

_PARAMETERS = ("L", "o", "g", "G", "O", "S")
_HELP = {
    "L": "latency in ns, as 2500 or 812.5",
    "o": "time of a CPU for a message, in ns",
    "g": "least time between two messages, in ns",
    "G": "time of a byte on a network interface, in ns, as 6 or 0.08",
    "O": "time of a byte on a CPU, in ns",
    "S": "size in bytes above which a send waits for its receiver",
}
_NOISE = {"uniform": 1, "normal": 2, "exponential": 1}


@dataclass(frozen=True)
class Options:
    """The values of the options for simulations among ranks."""

    goal: str | None
    parameters: dict[str, Any]
    zero_byte: str | None
    noise: Noise | None
    late: list[float] | None
    timeline: str | None


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command, which receives their values as ``ranks_options``."""

    @wraps(command)
    def wrapped(**given: Any) -> Any:
        parameters = {name: given.pop(f"loggops_{name}") for name in _PARAMETERS}
        made = Options(
            goal=given.pop("goal"),
            parameters={name: value for name, value in parameters.items() if value is not None},
            zero_byte=given.pop("zero_byte"),
            noise=_noise(given.pop("noise")),
            late=_late(given.pop("late")),
            timeline=given.pop("timeline"),
        )
        return command(ranks_options=made, **given)

    added = [
        click.option(
            "--goal",
            metavar="FILE.goal|DIR",
            help="Run this GOAL program, or the Chakra traces of this folder, in place of a schedule.",
        ),
        *(
            click.option(
                f"--{name}",
                f"loggops_{name}",
                type=INT if name == "S" else Nanoseconds(),
                metavar="N",
                help=f"With --goal: {_HELP[name]}.",
            )
            for name in _PARAMETERS
        ),
        click.option(
            "--zero-byte",
            type=click.Choice(["wrapped", "sane"]),
            help="With --goal: a message of 0 bytes costs as much as in LogGOPSim (wrapped, the default), or as one "
            "byte (sane).",
        ),
        click.option(
            "--noise",
            metavar="KIND:NS",
            help="Among ranks: lengthen each CPU operation by a random time in ns: uniform:MOST, "
            "normal:MEAN:DEVIATION or exponential:MEAN.",
        ),
        click.option(
            "--late",
            metavar="NS,...|FILE",
            help="Among ranks: the start time of each rank in ns, as a list or a file with one number a line.",
        ),
        click.option(
            "--timeline",
            metavar="FILE.png|svg|pdf",
            help="Among ranks: draw the run with one row for each rank, up to 64 ranks.",
        ),
    ]
    for option in reversed(added):
        wrapped = option(wrapped)
    return wrapped


def _noise(text: str | None) -> Noise | None:
    if text is None:
        return None
    kind, *numbers = text.split(":")
    try:
        values = [float(value) for value in numbers]
    except ValueError:
        values = []
    if kind not in _NOISE or len(values) != _NOISE[kind] or not all(0 <= value < 1e13 for value in values):
        raise click.BadParameter(
            f"'{text}' is no noise; accepted are uniform:MOST, normal:MEAN:DEVIATION and exponential:MEAN, nanoseconds "
            "from 0 to below 1e13"
        )
    return (kind, values[0]) if len(values) == 1 else (kind, values[0], values[1])


def _late(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        # The text is first read as a list, because a list for many ranks may be too long to be tested as a file name.
        return _times(text.split(","))
    except ValueError:
        pass
    try:
        return _times(read_text(text).split())
    except (ValueError, OSError):
        raise click.BadParameter(
            f"'{text}' is neither a file of times nor a list of them; accepted is one number a rank, in nanoseconds, "
            "as in 0,150,30"
        ) from None


def _times(parts: list[str]) -> list[float]:
    return [float(part) for part in parts]
