"""The page of the kinds of machines, docs/machines.md, from the presets."""

from pathlib import Path

import unisono as un

FOLDER = Path(__file__).parent
PAGE = FOLDER / "machines.md"
#: Patterns of the file name of a kind's page.
_NAMES = ("{}.md", "{}s.md", "{}-model.md")
_HEAD = """# Machines

A machine is a preset of this table or a TOML file of your own; `unisono machines` prints each preset with a summary.
Each kind has its own keys in a machine file, its own lower bounds and its own models of time. An algorithm applies only
to kinds with one of the means that it needs.

| kind | page | means | simulator | presets |
|---|---|---|---|---|
"""


def page() -> str:
    """Returns the text of the page."""
    return _HEAD + "".join(_row(kind, names) for kind, names in _presets().items())


def page_names() -> list[str]:
    """Returns the file names of the pages of all kinds."""
    return [_page_of(kind) for kind in _presets()]


def _presets() -> dict[str, list[str]]:
    """Returns the names of the presets, by kind of machine."""
    found: dict[str, list[str]] = {}
    for preset in un.machine_presets():
        found.setdefault(preset["kind"], []).append(preset["name"])
    return dict(sorted(found.items()))


def _row(kind: str, names: list[str]) -> str:
    machine = un.machine(names[0])
    own = _page_of(kind)
    return (
        f"| `{kind}` | [{own}]({own}) | {', '.join(machine.offers)} | {machine.simulator} "
        f"| {', '.join(f'`{name}`' for name in names)} |\n"
    )


def _page_of(kind: str) -> str:
    """Returns the file name of the page of a kind.

    Raises:
        FileNotFoundError: the kind has no page in docs/.

    """
    names = [name.format(kind) for name in _NAMES]
    for name in names:
        if (FOLDER / name).exists():
            return name
    raise FileNotFoundError(f"docs/ has no page of the kind {kind}; write {names[0]}")
