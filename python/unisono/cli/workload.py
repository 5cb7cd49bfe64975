"""`unisono workload`: one training iteration on a network."""

import click

import unisono
from unisono._files import check_writable, write
from unisono.cli._options import json_option
from unisono.cli._output import number, print_fields, print_json, print_lines, print_table, working


@click.command()
@click.argument("name", required=False)
@click.option("--machine", metavar="NAME|FILE", help="A network: a preset (see 'unisono machines') or a TOML file.")
@click.option(
    "--level",
    type=click.Choice(["model", "packet"]),
    default="model",
    show_default=True,
    help="What communication takes: by the model that plans go by, or with every packet simulated.",
)
@click.option("--no-overlap", is_flag=True, help="Each step waits for all communication before it.")
@click.option("--plot", metavar="FILE.png|svg", help="Draw the iteration.")
@json_option
def workload(
    name: str | None, machine: str | None, level: str, no_overlap: bool, plot: str | None, as_json: bool
) -> None:
    """One training iteration of workload NAME (see the list without NAME) or of a TOML file."""
    if name is None:
        presets = unisono.workload_presets()
        if as_json:
            print_json({"workloads": presets})
        else:
            rows = [[p["name"], str(p["accelerators"]), p["summary"]] for p in presets]
            print_table(["workload", "accelerators", "summary"], rows, right=["accelerators"])
        return
    if machine is None:
        raise click.UsageError("say where it runs with --machine")
    if plot is not None:
        if not plot.endswith((".png", ".svg")):
            raise click.BadParameter(f"'{plot}' ends in neither .png nor .svg", param_hint="--plot")
        check_writable(plot)
    with working(f"running {name}"):
        report = unisono.workload(name, machine, level=level, overlap=not no_overlap)
    if plot is not None:
        # Imported here: drawing takes longer to load than everything else to run.
        from unisono import workload_plot

        write(plot, workload_plot.draw(report, plot[-3:]))
    if as_json:
        print_json({**report, "files": [plot] if plot is not None else []})
        return
    print_lines(f"{report['workload']} on {report['accelerators']} accelerators of {report['machine']}, by {level}")
    print_fields(
        [
            ("iteration", _ms(report["seconds"])),
            ("compute", _ms(report["compute_seconds"])),
            ("communication", _ms(report["communication_seconds"])),
            ("exposed", f"{_ms(report['exposed_seconds'])} ({report['exposed_seconds'] / report['seconds']:.1%})"),
        ]
    )
    print_lines("")
    rows = [
        [
            phase["name"],
            _ms(phase["begin"]),
            f"{c['collective']} among {c['ranks']}",
            f"{c['bytes']:,}",
            " ".join([c["algorithm"], c["params"]]).strip(),
            _ms(c["end"] - c["begin"]),
            "" if c["blocking"] else "no",
        ]
        for phase in report["phases"]
        for c in phase["communication"]
    ]
    print_table(["step", "begins", "communication", "bytes", "algorithm", "takes", "blocks"], rows, right=["bytes"])
    if plot is not None:
        print_lines("", f"wrote {plot}")


def _ms(seconds: float) -> str:
    return f"{number(seconds * 1e3, 3)} ms"
