"""What `unisono simulate` does among ranks: schedules at a machine's prices, and GOAL programs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

import unisono
from unisono import EndpointRun, InputError, Machine, NetworkRun, Schedule, SimulationError
from unisono._files import check_writable, read_text
from unisono._inputs import DTYPE_BYTES
from unisono._simulation import checked_pes
from unisono.cli._failures import NO, say
from unisono.cli._output import number, print_fields, print_json, print_lines, print_table, working
from unisono.cli._types import TracedPes

#: The most ranks whose times JSON lists.
_LISTED = 4096
_PARAMETERS = ("L", "o", "g", "G", "O", "S")
_NOISE = {"uniform": 1, "normal": 2, "exponential": 1}

#: Where to write a trace, and of which ranks.
Record = tuple[str, TracedPes]


@dataclass(frozen=True)
class Options:
    """The options that only runs among ranks have."""

    goal: str | None
    parameters: dict[str, Any]
    zero_byte: str | None
    noise: tuple[str, float] | tuple[str, float, float] | None
    late: list[float] | None
    timeline: str | None


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds these options to a command, which gets them as ``ranks_options``."""

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

    units = {"S": "bytes from which a send waits for its receiver"}
    added = [
        click.option("--goal", metavar="FILE.goal", help="Run this GOAL program under LogGOPS in place of a schedule."),
        *(
            click.option(
                f"--{name}", f"loggops_{name}", type=int, metavar="N", help=f"With --goal: {units.get(name, 'ns')}."
            )
            for name in _PARAMETERS
        ),
        click.option(
            "--zero-byte",
            type=click.Choice(["wrapped", "sane"]),
            help="With --goal: what a message without bytes costs, as in LogGOPSim [wrapped] or as one byte.",
        ),
        click.option(
            "--noise",
            metavar="KIND:NS",
            help="Among ranks: uniform:MOST, normal:MEAN:DEVIATION or exponential:MEAN lengthens what holds a CPU.",
        ),
        click.option(
            "--late",
            metavar="NS,...|FILE",
            help="Among ranks: when each begins, nanoseconds: a list, or a file with a number a line.",
        ),
        click.option(
            "--timeline", metavar="FILE.png|svg", help="Among ranks: draw the run, a row a rank, for at most 64 ranks."
        ),
    ]
    for option in reversed(added):
        wrapped = option(wrapped)
    return wrapped


def refuse(given: Options) -> None:
    """Options among ranks have no meaning on a wafer.

    Raises:
        UsageError: one is given.

    """
    named = {"--noise": given.noise, "--late": given.late, "--timeline": given.timeline, "--zero-byte": given.zero_byte}
    for name, value in named.items():
        if value is not None:
            raise click.UsageError(f"{name} is for runs among ranks, and the machine is a wafer")
    _no_parameters(given)


def schedule(
    planned: Schedule,
    where: Machine | None,
    given: Options,
    model: str | None,
    seed: int,
    record: Record | None,
    as_json: bool,
) -> int:
    """Runs a schedule, on its machine or ``where``, prints what it did and returns the exit code."""
    _no_parameters(given)
    _check_files(given)
    pes = _recorded(record, planned.nodes)
    late = _checked_late(given.late, planned.ranks)
    with working("simulating"):
        run = unisono.simulate(planned, where, model=model, late=late, noise=given.noise, seed=seed, trace_pes=pes)
    assert isinstance(run, EndpointRun), "machines of ranks run among ranks"
    machine = planned.machine
    assert machine is not None, "what ran has a machine"
    described = {
        "collective": planned.collective,
        "machine": machine.name,
        "model": model or machine.describe().get("model"),
        "ranks": planned.ranks,
        "elements": planned.elements,
        "dtype": planned.dtype,
        "result_correct": run.result_correct,
    }
    size = planned.elements * DTYPE_BYTES[planned.dtype]
    what = f"{planned.collective} of {planned.elements} {planned.dtype} ({size} bytes) on {planned.ranks} ranks"
    return _finish(run, described, f"{what} of {machine.name}", given, record, as_json)


def goal(given: Options, machine: str | None, seed: int, record: Record | None, as_json: bool) -> int:
    """Runs a GOAL program, prints what it did and returns the exit code."""
    assert given.goal is not None, "there is a program"
    _check_files(given)
    try:
        with working("simulating"):
            run = unisono.simulate_goal(
                given.goal,
                machine=None if machine is None else unisono.machine(machine),
                **given.parameters,
                zero_byte=given.zero_byte or "wrapped",
                late=given.late,
                noise=given.noise,
                seed=seed,
            )
    except SimulationError as stuck:
        if as_json:
            nothing = dict.fromkeys(("seconds", "nanoseconds", "finish", "finish_ns", "events"))
            print_json({"goal": given.goal, "parameters": given.parameters, **nothing, "deadlock": stuck.stuck})
        return say(str(stuck), NO)
    described = {"goal": given.goal, "parameters": given.parameters, "deadlock": []}
    return _finish(run, described, f"{given.goal}, {len(run.finish_ns)} ranks", given, record, as_json)


def _finish(
    run: EndpointRun, described: dict[str, Any], title: str, given: Options, record: Record | None, as_json: bool
) -> int:
    files = []
    if record is not None:
        run.trace(record[0], _recorded(record, len(run.finish_ns)))
        files.append(record[0])
    if given.timeline is not None:
        run.timeline(given.timeline)
        files.append(given.timeline)
    listed = len(run.finish_ns) <= _LISTED
    report = {
        **described,
        "sim": "network" if isinstance(run, NetworkRun) else "endpoint",
        "seconds": run.seconds,
        "nanoseconds": run.nanoseconds,
        "finish": run.finish if listed else None,
        "finish_ns": run.finish_ns if listed else None,
        "events": run.events,
        "messages": run.messages,
        **_of_packets(run),
        "stalls": run.stalls,
        "wall_seconds": run.wall_seconds,
        "files": files,
    }
    if as_json:
        print_json(report)
        return 0
    ends = run.finish_ns
    print_lines(title)
    rate = f", {run.events / run.wall_seconds / 1e6:.1f} million a second" if run.wall_seconds > 0 else ""
    print_fields(
        [
            ("simulated", f"{run.seconds * 1e6:.3f} µs"),
            ("result", "correct: the schedule is proved" if "result_correct" in report else ""),
            ("work", f"{run.events} events, {run.messages} messages in {run.wall_seconds:.2f} s{rate}"),
            ("packets", _packets_text(run)),
            ("unreceived", f"{run.stalls} messages" if run.stalls else ""),
        ]
    )
    print_lines("")
    rows = (
        [[number(float(ends.min()), 3), number(float(ends.mean()), 3), number(float(ends.max()), 3)]]
        if len(ends)
        else []
    )
    print_table(["first rank done, ns", "mean", "last"], rows, right=["first rank done, ns", "mean", "last"])
    print_lines(*(f"wrote {file}" for file in files))
    return 0


def _of_packets(run: EndpointRun) -> dict[str, int]:
    if not isinstance(run, NetworkRun):
        return {}
    return {"packets": run.packets, "hops": run.hops, "planes": run.planes}


def _packets_text(run: EndpointRun) -> str:
    if not isinstance(run, NetworkRun):
        return ""
    alike = f"; {run.planes} planes carry the same, one was simulated" if run.planes > 1 else ""
    return f"{run.packets} over {run.hops} links{alike}"


def _recorded(record: Record | None, count: int) -> list[int] | None:
    return None if record is None else checked_pes(record[1].of(count), count)


def _check_files(given: Options) -> None:
    if given.timeline is not None:
        if not given.timeline.endswith((".png", ".svg")):
            raise InputError(f"'{given.timeline}' ends in neither .png nor .svg, and a timeline is one of these")
        check_writable(given.timeline)


def _no_parameters(given: Options) -> None:
    if given.parameters or given.zero_byte is not None:
        name = f"--{next(iter(given.parameters))}" if given.parameters else "--zero-byte"
        raise click.UsageError(f"{name} goes with --goal; a machine file says the parameters of a machine")


def _noise(text: str | None) -> tuple[str, float] | tuple[str, float, float] | None:
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
            "from 0 on"
        )
    return (kind, values[0]) if len(values) == 1 else (kind, values[0], values[1])


def _late(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        # A list of many ranks is too long for the name of a file, so it is no file first.
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


def _checked_late(late: list[float] | None, ranks: int) -> list[float] | None:
    if late is not None and len(late) != ranks:
        raise InputError(f"--late says when {len(late)} ranks begin, and there are {ranks}")
    return late
