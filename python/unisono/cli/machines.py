"""`unisono machines`: the presets, or the parameters of one machine."""

import click

import unisono
from unisono import parse_shape
from unisono.cli._options import json_option, shape_option
from unisono.cli._output import print_fields, print_json, print_lines, print_table
from unisono.cli._sources import LIST, refuse_unused

__all__ = ["machines"]


@click.command()
@click.argument("name", required=False)
@shape_option
@json_option
def machines(name: str | None, shape: str | None, as_json: bool) -> None:
    """Lists the machine presets, or the parameters of machine NAME (a preset or a TOML file)."""
    if name is None:
        refuse_unused(LIST)
        presets = unisono.machine_presets()
        if as_json:
            print_json({"machines": presets})
        else:
            print_table(["machine", "kind", "summary"], [[p["name"], p["kind"], p["summary"]] for p in presets])
        return
    machine = unisono.machine(name, None if shape is None else parse_shape(shape))
    if as_json:
        print_json(machine.describe())
        return
    print_lines(f"{machine.name}: {machine.summary}", "")
    print_fields([(key, _text(value)) for key, value in machine.describe().items() if key not in ("name", "summary")])


def _text(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
