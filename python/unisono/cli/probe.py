"""`unisono probe`: the slow cables of a network, under mpiexec or in the packet simulator."""

from typing import Any

import click

import unisono
from unisono import InputError
from unisono.base.inputs import parse_bytes
from unisono.cli._measurements import import_alike, note_shared_cores
from unisono.cli._options import json_option, machine_option, slow_option
from unisono.cli._output import counted, print_json, print_lines, print_notes, print_table, working
from unisono.mpi.library import check_several, together
from unisono.probing import Probe, Sets, Simulated
from unisono.probing import probe as run
from unisono.probing.measuring import UnderMpi, serve

__all__ = ["probe"]

_SHOWN = 30


@click.command()
@machine_option
@click.option("--bytes", "size", metavar="SIZE", help="The size of each message [by the rates of the machine].")
@click.option("--rounds", type=int, default=3, show_default=True, metavar="N", help="Times that each set is measured.")
@click.option("--simulate", is_flag=True, help="Measure with the packet simulator instead of MPI.")
@slow_option("Of --simulate")
@json_option
def probe(
    machine: str, size: str | None, rounds: int, simulate: bool, slow: tuple[tuple[str, float], ...], as_json: bool
) -> int:
    """Names the slow cables of a network: mpiexec -n 8 unisono probe --machine M.toml, rank k on accelerator k.

    Sends sets of messages whose loads on the cables are known and differ. A message is as slow as the slowest of its
    cables, and fast messages acquit theirs. Exit code 1: a cable is slow.
    """
    if len(dict(slow)) < len(slow):
        raise InputError("--slow names a cable twice; give each cable one share of its rate")
    if slow and not simulate:
        raise InputError("--slow is for --simulate, which has no cables of its own; drop it")
    bytes = None if size is None else parse_bytes(size)
    if simulate:
        with working("sending messages"):
            sets = Sets(unisono.machine(machine), bytes=bytes)
            found = run(sets, Simulated(sets.links, dict(slow)), rounds)
        return _print(found, as_json)
    mpi = import_alike()
    world = mpi.COMM_WORLD

    def made() -> Sets | None:
        check_several(world, "a probe", "probe --machine cluster.toml")
        # Ranks of a lab share cores, so one rank makes the sets.
        return Sets(unisono.machine(machine), world.size, bytes) if world.rank == 0 else None

    sets_of_first = together(world, made)
    note_shared_cores(mpi, world)
    if sets_of_first is None:
        serve(mpi)
    else:
        measurer = UnderMpi(mpi)
        with working("sending messages"):
            found = run(sets_of_first, measurer, rounds)
        measurer.end()
    # A launcher takes the code of any rank.
    return int(world.bcast(None if sets_of_first is None else _print(found, as_json)))


def _print(found: Probe, as_json: bool) -> int:
    code = 1 if found.accused else 0
    if as_json:
        print_json(found.report())
        return code
    print_lines(
        f"{counted(found.messages, 'message')} of {found.bytes} bytes in {counted(found.sets, 'set')}, "
        f"{counted(found.ranks, 'rank')} of {found.machine}: {_verdict(found)}"
    )
    if found.accused:
        columns = ["cable", "Gb/s", "expected", "share", "confidence", "slow messages"]
        rows: list[list[Any]] = [
            [
                " or ".join(of.cables[:4]) + (" or ..." if len(of.cables) > 4 else ""),
                f"{of.rate:.3g}",
                f"{of.expected:.3g}",
                f"{of.rate / of.expected:.2f}",
                f"{of.confidence:.3f}",
                f"{of.slow} of {of.seen}",
            ]
            for of in found.accused[:_SHOWN]
        ]
        print_lines("")
        print_table(columns, rows, right=columns[1:])
        if len(found.accused) > _SHOWN:
            print_lines(f"and {len(found.accused) - _SHOWN} more: --json")
        print_lines("")
    print_lines(
        *(f"all tested cables of node {node} are slow: the node or its card is to blame" for node in found.nodes)
    )
    untested = found.untested
    if untested:
        shown = ", ".join(untested[:4])
        print_lines(f"not tested, as no message between these ranks uses them: {len(untested)} cables, such as {shown}")
    print_notes(found.notes)
    return code


def _verdict(found: Probe) -> str:
    return f"{counted(len(found.accused), 'slow cable')}" if found.accused else "no slow cable"
