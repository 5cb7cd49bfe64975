"""`unisono machines`: lists presets, prints or writes one, or imports a machine from another program's file."""

import re
from typing import Any

import click

import unisono
from unisono import InputError, parse_shape
from unisono.base.files import check_writable, write
from unisono.base.names import did_you_mean
from unisono.cli._completion import complete, of_names
from unisono.cli._completion import machines as presets
from unisono.cli._options import json_option, nodes_option, shape_option
from unisono.cli._output import fields_of, print_fields, print_json, print_lines, print_notes, print_table
from unisono.cli._sources import LIST, refuse_unused
from unisono.cli._types import INT
from unisono.machines.imports import IMPORTED_NETWORKS

__all__ = ["machines"]

#: The first argument of an import, before the name of the file.
_IMPORT = "import"
_HOW = "to import a machine, run 'unisono machines import FILE -o MACHINE.toml'"


@click.command()
@click.argument("name", required=False, shell_complete=complete(lambda: [_IMPORT, *presets()], files=True))
@click.argument("file", required=False)
@shape_option
@nodes_option
@click.option(
    "--from",
    "source",
    metavar="FORMAT",
    shell_complete=of_names(IMPORTED_NETWORKS),
    help="With import: the format of FILE: nccl-topo, edges or graphml [by the name of FILE].",
)
@click.option("-o", "--output", metavar="FILE.toml", help="The machine file to write, of an import or of a preset.")
@click.option(
    "--boxes", type=INT, metavar="N", help="With import: the number of boxes; a topology of NCCL describes one [1]."
)
@click.option(
    "--accelerators",
    metavar="N|NAMES",
    help="With import of a list of cables: the accelerators, as the nodes below N or by names, as in 'host*,gpu*' [all "
    "nodes].",
)
@json_option
def machines(
    name: str | None,
    file: str | None,
    shape: str | None,
    nodes: int | None,
    output: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Lists the machine presets, or the parameters of machine NAME (a preset or a TOML file).

    `unisono machines NAME -o MACHINE.toml` writes the file of a preset, with the sources of its numbers, to be changed.
    `unisono machines import FILE -o MACHINE.toml` writes the machine that another program's FILE describes.
    """
    if name == _IMPORT:
        if nodes is not None:
            raise click.UsageError("--nodes is of a machine; the boxes of an import are --boxes N")
        _import(file, output, shape, options, as_json)
        return
    if file is not None:
        raise click.UsageError(f"'{name}' and '{file}' are two names; {_HOW}")
    if any(value is not None for value in options.values()):
        boxes = "" if options["boxes"] is None else "; boxes of a machine are --nodes N"
        raise click.UsageError(f"--from, --boxes and --accelerators go with an import; {_HOW}{boxes}")
    if output is not None:
        if nodes is not None:
            raise click.UsageError("--nodes is a part of a machine, and -o writes the file of a whole preset; drop it")
        _write_preset(name, output, shape, as_json)
        return
    if name is None:
        refuse_unused(LIST)
        presets = unisono.machine_presets()
        if as_json:
            print_json({"machines": presets})
        else:
            print_table(["machine", "kind", "summary"], [[p["name"], p["kind"], p["summary"]] for p in presets])
        return
    machine = unisono.machine(name, None if shape is None else parse_shape(shape), nodes=nodes)
    part = {} if shape is None else {"shape": list(machine.shape or ())}
    if as_json:
        print_json({**machine.describe(), **part})
        return
    print_lines(f"{machine.name}: {machine.summary}" if machine.summary else machine.name, "")
    about = {key: value for key, value in machine.describe().items() if key not in ("name", "summary")} | part
    print_fields(fields_of(about))
    if name in {preset["name"] for preset in unisono.machine_presets()}:
        print_lines("", f"the sources of these numbers: unisono machines {name} -o {name}.toml")


def _write_preset(name: str | None, output: str, shape: str | None, as_json: bool) -> None:
    if name is None:
        raise click.UsageError("-o writes the file of a preset or of an import; name one")
    if shape is not None:
        raise click.UsageError("--shape is a part of a machine, and -o writes the file of a whole preset; drop it")
    if name not in (presets := [preset["name"] for preset in unisono.machine_presets()]):
        raise InputError(f"there is no preset '{name}'{did_you_mean(name, presets)}; 'unisono machines' lists them")
    if not output.endswith(".toml"):
        raise InputError(f"'{output}' is no machine file; accepted are names that end in .toml")
    check_writable(output)
    write(output, unisono.preset_toml(name))
    if as_json:
        print_json({**unisono.machine(name).describe(), "file": output})
        return
    print_lines(f"wrote {output}: the file of preset {name}, with the sources of its numbers")


def _accelerators(text: str | None) -> int | str | None:
    """Returns the number that a text states, or else the text, which has patterns of names."""
    return int(text) if text is not None and re.fullmatch("-?[0-9]{1,12}", text) else text


def _import(file: str | None, output: str | None, shape: str | None, options: dict[str, Any], as_json: bool) -> None:
    if file is None or output is None:
        raise click.UsageError(_HOW)
    if shape is not None:
        raise click.UsageError("--shape is a part of a machine, and an import makes a whole one; drop it")
    if not output.endswith(".toml"):
        raise InputError(f"'{output}' is no machine file; accepted are names that end in .toml")
    check_writable(output)
    source, boxes = options["source"], 1 if options["boxes"] is None else options["boxes"]
    machine = unisono.import_machine(file, source, boxes=boxes, accelerators=_accelerators(options["accelerators"]))
    write(output, machine.to_toml())
    if as_json:
        print_json({**machine.describe(), "file": output, "format": source})
        return
    print_lines(f"wrote {output}: {machine.summary}")
    notes, about = machine.notes(), machine.describe()
    if about.get("send_machines_per") == "link":
        notes.append(f"each link sends for itself (send_machines = {about['send_machines']} of each link)")
    if not any((about.get("prices") or {}).values()):
        notes.append("no prices, which the file does not have; write them into [prices] for costs")
    print_notes(notes)
