"""`unisono probe`: finds the slow cables of a network, under mpiexec or in the packet simulator."""

from typing import Any

import click

from unisono import InputError
from unisono.cli._measurements import import_alike, note_shared_cores
from unisono.cli._options import json_option, machine_option, slow_option
from unisono.cli._output import counted, print_json, print_lines, print_notes, print_table, working
from unisono.cli._types import INT
from unisono.probing import Probe, emit_probe
from unisono.probing import probe as run
from unisono.probing.asking import ROUNDS

__all__ = ["probe"]

_SHOWN = 30


@click.command()
@machine_option
@click.option("--bytes", "size", metavar="SIZE", help="Size of each message [by the rates of the machine].")
@click.option(
    "--rounds",
    type=INT,
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="Number of measurements of each set of messages.",
)
@click.option("--simulate", is_flag=True, help="Measure with the packet simulator instead of MPI.")
@slow_option("With --simulate")
@click.option(
    "--emit",
    metavar="DIR",
    help="Write to this folder the messages and a program in C that sends them, and measure nothing.",
)
@click.option(
    "--ranks",
    type=click.IntRange(2),
    metavar="P",
    help="With --emit: the number of ranks of the program [all accelerators].",
)
@click.option("--from", "results", metavar="FILE", help="Read the times from the output of the program of --emit.")
@json_option
def probe(
    machine: str,
    size: str | None,
    rounds: int,
    simulate: bool,
    slow: tuple[tuple[str, float], ...],
    emit: str | None,
    ranks: int | None,
    results: str | None,
    as_json: bool,
) -> int:
    """Names the slow cables of a network: mpiexec -n 8 unisono probe --machine M.toml, rank k on accelerator k.

    Sends sets of messages whose loads on the cables are known and differ. A message is as slow as its slowest cable, so
    a fast message shows that none of its cables is slow. Exit code 1: a cable is slow.
    """
    if len(dict(slow)) < len(slow):
        raise InputError("--slow names a cable twice; give each cable one share of its rate")
    if slow and not simulate:
        raise InputError("--slow is for --simulate, which has no cables of its own; drop it")
    if sum((simulate, emit is not None, results is not None)) > 1:
        raise InputError("--simulate, --emit and --from exclude each other; keep one")
    if ranks is not None and emit is None:
        raise InputError("--ranks is for --emit, as the launcher states the ranks of a probe; drop it")
    if results is not None and (size is not None or rounds != ROUNDS):
        raise InputError("--bytes and --rounds are for messages to send, and --from has sent its own; drop them")
    if emit is not None:
        return _emitted(emit_probe(machine, emit, ranks=ranks, bytes=size, rounds=rounds), as_json)
    if simulate or results is not None:
        with working("sending messages" if simulate else "reading times"):
            found = run(machine, bytes=size, rounds=rounds, simulate=simulate, slow=dict(slow), results=results)
        return _print(found, as_json)
    mpi = import_alike()
    note_shared_cores(mpi, mpi.COMM_WORLD)
    with working("sending messages"):
        found = run(machine, bytes=size, rounds=rounds)
    # All ranks return the same code, because a launcher may return the code of any rank.
    return _print(found, as_json) if mpi.COMM_WORLD.rank == 0 else int(bool(found.accused))


def _emitted(files: list[str], as_json: bool) -> int:
    if as_json:
        print_json({"files": files})
        return 0
    print_lines(
        *(f"wrote {file}" for file in files),
        "",
        "on the cluster: mpicc -O2 probe.c -o probe && mpiexec -n RANKS ./probe messages.txt > results.txt",
        "anywhere:       unisono probe --machine M --from results.txt",
    )
    return 0


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
