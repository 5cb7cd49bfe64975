"""The site's page of commands: docs/commands.md, with parts that are generated from the program.

The parts are usage, examples and options of each command, and the keys of its JSON, from `unisono.base.reports`. A
comment in docs/commands.md marks the place of each part. The text around the parts is written by hand.
"""

import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import click
from unisono.base import reports
from unisono.cli import COMMANDS
from unisono.cli._examples import EXAMPLES

PAGE = Path(__file__).with_name("commands.md")
#: An option that this number of commands or more have, with the same text, is listed in the table of shared options.
_SHARED = 3
#: Groups of shared options; a command that has all options of a group lists the group's name in their place.
_GROUPS = {
    "a part": ("--shape", "--ranks", "--nodes", "--subset", "--fail"),
    "a vector": ("--elements", "--bytes", "--dtype", "--op", "--root"),
    "a choice": ("--algorithm", "--param", "--model"),
    "limits": ("--limit-memory", "--no-limit"),
}
_PLACE = re.compile(r"<!-- help (\S+) -->\n")
_KEYS = re.compile(r"<!-- keys (\w+) -->\n")


def page() -> str:
    """Returns the text of the page with its generated parts.

    Raises:
        ValueError: the page lacks the mark of a command, or has a mark of a command that does not exist.

    """
    options = {command.name or "": _options(command) for command in COMMANDS}
    times = Counter(option for rows in options.values() for option in rows)
    shared = [option for option, count in times.items() if count >= _SHARED]
    parts = {"options": f"{_table(shared)}\nSections list some of these options under one name:\n\n{_groups()}"}
    for command in COMMANDS:
        name = command.name or ""
        own = [option for option in options[name] if option not in shared]
        others = [_last_name(option) for option in options[name] if option in shared]
        parts[name] = _part(command, own, others)
    text = PAGE.read_text(encoding="utf-8")
    if sorted(_PLACE.findall(text)) != sorted(parts):
        differing = sorted(set(_PLACE.findall(text)) ^ set(parts))
        raise ValueError(
            f"docs/commands.md and the program differ in {', '.join(differing) or 'a place that is there twice'}: "
            "each command needs one section with '<!-- help NAME -->'"
        )
    text = _KEYS.sub(lambda found: _keys(getattr(reports, found[1])), text)
    return _PLACE.sub(lambda found: parts[found[1]], text)


def _keys(report: Any) -> str:
    """Returns the keys of a report as a block of text; the keys of a nested type are in braces at its first use."""
    return f"```text\n{textwrap.fill(_listed(report, set()), 100, break_on_hyphens=False)}\n```\n"


def _listed(report: Any, seen: set[Any]) -> str:
    found = []
    for name, hint in get_type_hints(report).items():
        inner, brackets = _inner(hint)
        text = name
        if inner is not None:
            keys = "..." if inner in seen else _listed(inner, seen)
            seen.add(inner)
            text = f"{name}: [{{{keys}}}]" if brackets else f"{name}: {{{keys}}}"
        found.append(text)
    return ", ".join(found)


def _inner(hint: Any) -> tuple[Any, bool]:
    """Returns the `TypedDict` within a type (None without one), and whether the value is a list of it."""
    if is_typeddict(hint):
        return hint, False
    for part in get_args(hint):
        inner, brackets = _inner(part)
        if inner is not None:
            return inner, brackets or getattr(hint, "__origin__", None) is list
    return None, False


def _options(command: click.Command) -> list[tuple[str, str]]:
    """Returns for each option its names with the placeholder of its value, and its help text."""
    context = click.Context(command, info_name=f"unisono {command.name}")
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    records = [record for option in found if (record := option.get_help_record(context))]
    return [(names, " ".join(text.split())) for names, text in records]


def _last_name(option: tuple[str, str]) -> str:
    last: str = re.findall(r"(?:^|, )(-[\w-]+)", option[0])[-1]
    return last


def _part(command: click.Command, own: list[tuple[str, str]], others: list[str]) -> str:
    context = click.Context(command, info_name=f"unisono {command.name}")
    usage = f"unisono {command.name} {' '.join(command.collect_usage_pieces(context))}"
    summary = " ".join((command.help or "").split("\n\n")[0].split())
    lines = [summary, "", "```text", usage, *(f"unisono {line}" for line in EXAMPLES[command.name or ""]), "```", ""]
    text = "\n".join(lines)
    if own:
        text += "\n" + _table(own)
    if others:
        listed = f"[Shared](#options-that-commands-share): {', '.join(_grouped(list(dict.fromkeys(others))))}"
        text += "\n" + textwrap.fill(listed, 118, break_on_hyphens=False) + "\n"
    return text


def _grouped(names: list[str]) -> list[str]:
    """Replaces the names of each complete group by the name of the group."""
    texts = {name: f"`{name}`" for name in names}
    for group, members in _GROUPS.items():
        if all(name in texts for name in members):
            texts[members[0]] = group
            for name in members[1:]:
                del texts[name]
    return list(texts.values())


def _groups() -> str:
    return "\n".join(f"* *{group}*: {', '.join(f'`{name}`' for name in of)}" for group, of in _GROUPS.items()) + "\n"


def _table(options: list[tuple[str, str]]) -> str:
    rows = (f"| {_names(names)} | {_cell(text)} |\n" for names, text in options)
    return "| option | meaning |\n|---|---|\n" + "".join(rows)


def _names(names: str) -> str:
    return ", ".join(f"`{_cell(name)}`" for name in re.split(r", (?=-)", names))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
