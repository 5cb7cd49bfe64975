"""Completes names in the shell: in lists after a comma, in parameters, and as alternatives to files."""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

import unisono

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

#: The models of `--model`.
MODELS = (
    "paper", "links", "packets", "data-sheet", "hockney", "postal", "pipelining-postal", "logp", "loggp", "logfp",
    "loggops", "alpha-beta",
)  # fmt: skip


def complete(listed: Callable[[], Iterable[str]], *, several: bool = False, files: bool = False) -> Completer:
    """Returns a completer of names.

    With ``several`` it completes the name after the last comma; with ``files`` it also completes files.
    """

    def completer(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, word = incomplete.rpartition(",") if several else ("", "", incomplete)
        found = [CompletionItem(before + comma + name) for name in listed() if name.startswith(word)]
        return [*found, CompletionItem(incomplete, type="file")] if files else found

    return completer


def of_names(names: Iterable[str], *, several: bool = False) -> Completer:
    """Returns a completer of names that are known when the command is defined."""
    kept = tuple(names)
    return complete(lambda: kept, several=several)


def algorithms() -> list[str]:
    """Returns the names of all algorithms."""
    return [entry["name"] for entry in unisono.algorithms()]


def machines() -> list[str]:
    """Returns the names of the machine presets."""
    return [preset["name"] for preset in unisono.machine_presets()]


def workloads() -> list[str]:
    """Returns the names of the preset workloads."""
    return [preset["name"] for preset in unisono.workload_presets()]


def parameters(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes parameters of the algorithm given on the command line, or of all algorithms, with the equals sign."""
    asked = context.params.get("algorithm")
    known = {
        f"{param['name']}="
        for entry in unisono.algorithms()
        if asked in (None, entry["name"])
        for param in entry["params"]
    }
    return [CompletionItem(name) for name in sorted(known) if name.startswith(incomplete)]
