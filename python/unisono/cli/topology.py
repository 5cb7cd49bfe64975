"""`unisono topology`: describes, prices and draws a network, and checks its routing."""

from typing import Any

import click

import unisono
from unisono import InputError, Machine
from unisono.base.files import write
from unisono.base.pictures import form_of
from unisono.cli._completion import complete, machines
from unisono.cli._failures import NO
from unisono.cli._options import fail_option, json_option, limit_options, nodes_option
from unisono.cli._output import number, print_fields, print_json, print_lines, print_table, working
from unisono.cli._pictures import check_picture
from unisono.machines import check_routing, part_names, plane
from unisono.planning.comparison import failed_names, without_failures

__all__ = ["topology"]

_SOLD_PORTS = 64
_KINDS = ("board", "dac", "aoc")
#: The prices in dollars that a machine file without prices has.
_PAPER = {"switch_usd": 14280.0, "dac_usd": 272.0, "aoc_usd": 603.0}


@click.command()
@click.argument("name", required=False, shell_complete=complete(machines, files=True))
@nodes_option
@fail_option
@click.option("--check", is_flag=True, help="Check that the routing cannot deadlock.")
@click.option("--cables", is_flag=True, help="List every cable of a plane, by the numbers and the names of its nodes.")
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the network, or a part of a large network.")
@json_option
@limit_options
def topology(
    name: str | None,
    nodes: int | None,
    fail: tuple[str, ...],
    check: bool,
    cables: bool,
    plot: str | None,
    as_json: bool,
) -> int:
    """Describes the network NAME (a preset or a TOML file) and its price; without NAME, lists the families."""
    if name is None:
        if check or fail or cables or nodes is not None or plot is not None:
            raise InputError("name a network: a preset (see 'unisono machines') or a TOML file")
        _families(as_json)
        return 0
    check_picture(plot)
    machine = unisono.machine(name, nodes=nodes, failed=fail)
    facts = machine.topology
    if facts is None:
        raise InputError(f"{machine.name} is of kind {machine.kind}; this needs a network")
    report: dict[str, Any] = dict(facts)
    if report["failed"]:
        report["failed_names"] = failed_names(machine)
        report["whole"] = _whole(machine)
    if check:
        with working(f"checking the routing of {machine.name}"):
            report["routing"] = check_routing(machine)
    if cables:
        report["cable_list"] = _cables(machine)
    if plot is not None:
        _draw(machine, plot)
        report["file"] = plot
    if as_json:
        print_json(report)
    else:
        _print(machine, report)
    return 0 if not check or report["routing"]["deadlock_free"] else NO


def _cables(machine: Machine) -> list[dict[str, Any]]:
    """Returns the cables of a plane: two nodes (accelerators have the lowest numbers), kind, rate, latency and name.

    The rate is the measured one if the machine file states measured rates.
    """
    found, names = plane(machine), part_names(machine)
    columns = [found[key].tolist() for key in ("a", "b", "kind", "gbps", "latency_ns")]
    return [
        {
            "a": a,
            "b": b,
            "kind": _KINDS[kind],
            "gbps": gbps,
            "latency_ns": ns,
            "name": f"{names[a]} to {names[b]}",
        }
        for a, b, kind, gbps, ns in zip(*columns, strict=True)
    ]


def _whole(machine: Machine) -> dict[str, Any]:
    """Returns the family, the number of accelerators and their extents without the failures."""
    facts = without_failures(machine).topology
    assert facts is not None  # the machine is a network
    return {key: facts[key] for key in ("family", "accelerators", "extents")}


def _draw(machine: Machine, path: str) -> None:
    # Imported late, because matplotlib takes long to import.
    from unisono.pictures.networks import draw

    write(path, draw(machine, form_of(path)))


def _families(as_json: bool) -> None:
    families = unisono.topologies()
    if as_json:
        print_json({"topologies": families})
        return
    rows = [[f["name"], ", ".join(f["keys"]), f["summary"], f["reference"]] for f in families]
    print_table(["family", "keys", "summary", "reference"], rows)


def _print(machine: Machine, report: dict[str, Any]) -> None:
    print_lines(f"{machine.name}: {machine.summary}" if machine.summary else machine.name, "")
    print_fields(
        [
            ("family", _family(report)),
            ("accelerators", _accelerators(report)),
            ("injection", _injection(report)),
            ("failed", ", ".join(report.get("failed_names", ()))),
            ("diameter", f"{report['diameter']} cables"),
            ("bisection", _bisection(report)),
        ]
    )
    plane = report["plane"]
    is_measured = report["measured_injection_gbps"] is not None
    if plane["unlike_links"]:
        print_lines("")
        heads = ["cables with their own speed, a plane", "Gb/s by data sheet" if is_measured else "Gb/s", "ns"]
        print_table(
            heads,
            [[f"{u['cables']:,}", number(u["gbps"]), number(u["latency_ns"])] for u in plane["unlike_links"]],
            right=heads,
        )
    rows = [
        [what, f"{one:,}", f"{every:,}"]
        for what, one, every in [
            ("switches", plane["switches"], report["switches"]),
            ("copper cables (DAC)", plane["cables"]["dac"], report["cables"]["dac"]),
            ("optical cables (AoC)", plane["cables"]["aoc"], report["cables"]["aoc"]),
        ]
    ]
    rows.append(["cost", _dollars(plane["cost_usd"]), _dollars(report["cost_usd"])])
    print_lines("")
    if report["planes"] == 1:
        print_table(["", "count"], [[what, every] for what, _, every in rows], right=["count"])
    else:
        heads = ["a plane", f"all {report['planes']} planes"]
        print_table(["", *heads], rows, right=heads)
    spare = _spare(plane)
    if spare:
        print_lines("", spare)
    prices = machine.describe().get("prices")
    if prices is not None and _PAPER.items() <= prices.items() and report["cost_usd"] is not None:
        each = f"a switch {_PAPER['switch_usd']:g} $, DAC {_PAPER['dac_usd']:g} $, AoC {_PAPER['aoc_usd']:g} $"
        print_lines("", f"prices: those of the HammingMesh paper, which hold where a file states none ({each})")
    if report["cost_usd"] is None and plane["switch_ports"] > _SOLD_PORTS:
        print_lines("", f"no price: a switch of {plane['switch_ports']} ports is not sold, those that are have 64")
    elif report["cost_usd"] is None:
        print_lines("", "no price: the machine file states none")
    if "cable_list" in report:
        print_lines("")
        rows = [
            [
                f"{c['a']}-{c['b']}",
                c["name"],
                c["kind"],
                number(c["gbps"]),
                number(c["latency_ns"]),
            ]
            for c in report["cable_list"]
        ]
        heads = ["Gb/s as measured" if is_measured else "Gb/s", "ns"]
        print_table(["cable", "name", "kind", *heads], rows, right=heads)
    if "routing" in report:
        print_lines("", _routing(report["routing"]))
    if "file" in report:
        print_lines("", f"wrote {report['file']}")


def _injection(report: dict[str, Any]) -> str:
    least, most = number(report["injection_gbps_least"]), number(report["injection_gbps"])
    measured = report["measured_injection_gbps"]
    reached = "" if measured is None else f", {number(measured)} as measured"
    return f"{most if least == most else f'{least} to {most}'} Gb/s an accelerator{reached}"


def _family(report: dict[str, Any]) -> str:
    """Returns the family of the network.

    A network with failures is described by the family of the whole network, because the family's rules of routing do
    not hold for the remaining network.
    """
    whole = report.get("whole")
    if whole is None or whole["family"] == report["family"]:
        return str(report["family"])
    return f"{whole['family']}, without failed parts routed as a {report['family']}"


def _accelerators(report: dict[str, Any]) -> str:
    whole = report.get("whole", report)
    shape = " x ".join(map(str, whole["extents"])) if len(whole["extents"]) > 1 else ""
    if whole["accelerators"] == report["accelerators"]:
        return f"{report['accelerators']:,}" + (f" ({shape})" if shape else "")
    return f"{report['accelerators']:,} of {whole['accelerators']:,}" + (f" ({shape})" if shape else "")


def _bisection(report: dict[str, Any]) -> str:
    share = report["bisection_share"]
    if share is None:
        return "not known"
    narrowest, of_injection = report["narrowest_cut_share"], f"{100 * share:.2f} % of injection"
    if report["bisection_is_least"]:
        return of_injection
    if narrowest < share:
        return f"{of_injection} by halves of all lines; the narrowest cut that was found has {100 * narrowest:.2f} %"
    return f"at most {of_injection}, the narrowest cut that was found"


def _spare(plane: dict[str, Any]) -> str:
    """Returns a sentence on the ports without a cable, if there are any."""
    spare, kinds = plane["spare_cables"], {"dac": "copper", "aoc": "optical"}
    parts = [f"{spare[key]:,} {kind}" for key, kind in kinds.items() if spare[key]]
    if not parts:
        return ""
    bought = "are counted and paid (spare_ports)" if plane["spare_is_bought"] else "are not counted and not paid"
    return f"ports without a cable: {' and '.join(parts)} cables a plane would fill them, and {bought}"


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "-"
    return f"{amount / 1e6:,.3f} M$" if amount >= 1e6 else f"{amount:,.0f} $"


def _routing(found: dict[str, Any]) -> str:
    channels = found["virtual_channels"]
    rule = f"routing: {found['name']}, {channels} virtual channel" + ("s" if channels > 1 else "")
    if found["deadlock_free"]:
        uses = f"{found['channels']:,} channels with {found['dependencies']:,} dependencies and no cycle"
        return f"{rule}; free of deadlock: {uses}"
    return f"{rule}; it can block: {found['fault']}"
