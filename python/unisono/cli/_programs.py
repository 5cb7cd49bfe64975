"""Programs of other tools on the command line: the changes of `--what-if`, and the tables of a step."""

import click

from unisono.base.names import algorithm, collective
from unisono.base.reports import SecondOpinion, StepReport
from unisono.cli._output import duration, number, params_text, print_lines, print_notes, print_table

# The maximum number of communications that are printed with a cheaper replacement, in descending order of savings.
_MOST_OPINIONS = 10


def parse_changes(text: str) -> dict[str, object]:
    """Reads the changes of one `--what-if`: ``link_gbps=800,planes=2``.

    Raises:
        BadParameter: a part that is not KEY=VALUE, or a key that occurs twice.

    """
    changes: dict[str, object] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not key or not equals or not value:
            raise click.BadParameter(f"'{part}' is not KEY=VALUE, as in link_gbps=800", param_hint="--what-if")
        if key in changes:
            of_value = "give each value a --what-if of its own"
            several = "name several failures as fail=3-17+4" if key == "fail" else of_value
            raise click.BadParameter(f"'{key}' occurs twice; {several}", param_hint="--what-if")
        changes[key] = _number(key, value) if key in ("tflops", "memory_gb_per_second") else value
    return changes


def parse_algorithms(text: str) -> dict[str, str]:
    """Reads the algorithms of `--algorithm` for a program: ``allreduce=ring,allgather=bruck``.

    Raises:
        UsageError: a part that is not KIND=NAME, or a kind that occurs twice.

    """
    algorithms: dict[str, str] = {}
    for part in text.split(","):
        kind, _, name = part.strip().partition("=")
        if not kind or not name:
            raise click.UsageError(
                "--algorithm is for vgg16 on switches that reduce, or KIND=NAME as in allreduce=ring; "
                f"'{part}' is neither"
            )
        kind = collective(kind)
        if kind in algorithms:
            raise click.UsageError(f"--algorithm names two algorithms for {kind}; drop one of them")
        algorithms[kind] = algorithm(name)
    return algorithms


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{key} is '{value}'; accepted is a number", param_hint="--what-if") from None


def print_step(report: StepReport) -> None:
    """Prints the collectives of a step, the operations of unknown time, and the times after changes."""
    slowest = ["slowest"] if report["level"] != "model" else []
    rows = [
        [
            f"{c['kind']} among {c['group']}",
            str(c["groups"]),
            f"{c['bytes']:,}",
            str(c["count"]),
            f"{c['algorithm']} {params_text(c['params'])}".rstrip(),
            duration(c["seconds"]),
            *(duration(c["slowest_seconds"]) for _ in slowest),
            number(c["ratio"]),
            f"{c['share']:.1%}",
            duration(c["exposed_seconds"]),
        ]
        for c in report["collectives"]
    ]
    figures = ["takes", *slowest, "ratio", "share", "exposed"]
    columns = ["collective", "groups", "bytes", "count", "algorithm", *figures]
    print_table(columns, rows, right=["groups", "bytes", "count", *figures])
    _print_opinions(report["second_opinion"])
    if report["notes"]:
        print_lines("")
        print_notes(report["notes"])
    if report["unknown"]:
        unknown = ", ".join(f"{name} ({count})" for name, count in sorted(report["unknown"].items()))
        counts_local = report["format"] in ("hlo", "tasks")
        counted = "local ones counted by their memory traffic" if counts_local else "left out unless stated"
        print_lines("", f"operations whose time is not known, {counted}: {unknown}")
    if report["what_if"]:
        priced = any(row["cost_usd"] is not None for row in report["what_if"])
        changed = [
            [
                ", ".join(f"{key}={value}" for key, value in row["changes"].items()),
                duration(row["seconds"]),
                duration(row["communication_seconds"]),
                duration(row["exposed_seconds"]),
                number(row["speed_up"], 3),
                *(_prices(row["cost_usd"], row["time_x_cost"], report["time_x_cost"]) if priced else []),
            ]
            for row in report["what_if"]
        ]
        print_lines("")
        columns = ["what if", "step", "communication", "exposed", "times faster"]
        columns += ["network, M$", "step x price"] if priced else []
        print_table(columns, changed, right=columns[1:])


def _print_opinions(rows: list[SecondOpinion]) -> None:
    """Prints the communications that a cheaper communication could replace, in descending order of savings."""
    if not rows:
        return
    rows = sorted(rows, key=lambda row: -row["saved_seconds"])
    print_lines("", *map(_opinion, rows[:_MOST_OPINIONS]))
    if more := rows[_MOST_OPINIONS:]:
        saved = duration(sum(row["saved_seconds"] for row in more))
        print_lines(f"and {len(more)} more, of which cheaper ones would save {saved} in all: --json lists them")


def _opinion(row: SecondOpinion) -> str:
    """Returns a sentence about a communication that is not needed, or that a cheaper communication could replace."""
    among = f"{row['kind']} among {row['group']}"
    if row["suffices"] == "nothing":
        again = f", {row['count']} times" if row["count"] > 1 else ""
        takes = f"it takes {duration(row['seconds'])}{again}"
        return f"{row['name']}: this {among} is not needed, because {row['reason']}; {takes}"
    found = f"{row['name']}: each rank uses one part of this {among}"
    times = f"{duration(row['suffices_seconds'])} instead of {duration(row['seconds'])}"
    return f"{found}; {row['suffices']} suffices and takes {times}"


def _prices(cost: float | None, time_x_cost: float | None, before: float | None) -> list[str]:
    """Formats the price of a network in M$, and time x price divided by the value before the change."""
    price = "" if cost is None else number(cost * 1e-6, 2)
    product = "" if time_x_cost is None or not before else number(time_x_cost / before, 3)
    return [price, product]
