"""The interface of a probe: under MPI, in the packet simulator, or from the results of a program in C."""

import os
from collections.abc import Mapping
from typing import SupportsIndex

from unisono._core import InputError
from unisono.base.inputs import MachineLike, parse_bytes, whole
from unisono.machines.descriptions import machine as named
from unisono.mpi.library import check_alike, check_several, import_mpi, together
from unisono.probing.emitted import read_results, write_program
from unisono.probing.measuring import MpiMeasurer, Simulated, serve
from unisono.probing.probes import MessageSets, Probe, check_rounds, probe_sets

__all__ = ["ROUNDS", "emit_probe", "probe"]

#: The default number of times that each set is measured.
ROUNDS = 3


def probe(
    machine: MachineLike,
    *,
    bytes: SupportsIndex | str | None = None,
    rounds: int = ROUNDS,
    simulate: bool = False,
    slow: Mapping[str, float] | None = None,
    results: str | os.PathLike[str] | None = None,
) -> Probe:
    """Returns the slow cables of a network.

    The result lists slow cables in ``accused``, each with ``cables`` (one of these is slow), ``rate`` and ``expected``
    in Gb/s, and ``confidence``; ``report()`` returns the result for JSON, and :func:`unisono.view` draws the network
    from a file with that JSON. All ranks of ``mpiexec`` call this function, rank k on accelerator k, and get the same
    result. With ``simulate`` the packet simulator sends the messages, and ``slow`` gives the fraction of its rate that
    a cable has, such as ``{"3-8": 0.2}``. With ``results`` the times are those of the program that :func:`emit_probe`
    writes. ``bytes`` is the size of a message, by default one that suits the machine's rates and latencies. ``rounds``
    is the number of times that each set is sent.

    Raises:
        InputError: the machine is not a network, does not have that number of ranks, or the results are damaged.

    """
    on = named(machine)
    size = _size(bytes)
    if slow and not simulate:
        raise InputError("slow is for simulate=True, which has no cables of its own; drop it")
    if results is not None:
        if simulate or size is not None:
            raise InputError("results have their own messages; drop simulate and bytes")
        sets, recorded = read_results(results, on)
        return probe_sets(sets, recorded, recorded.first_rounds)
    if simulate:
        sets = MessageSets(on, bytes=size)
        return probe_sets(sets, Simulated(sets.links, slow), rounds)
    mpi = import_mpi(measures=True)
    world = mpi.COMM_WORLD
    check_alike(world, {"bytes": size, "rounds": rounds, "the machine": on.name}, "give all ranks the same values")

    def made() -> MessageSets | None:
        check_several(world, "a probe", "probe --machine cluster.toml")
        check_rounds(rounds)
        # Ranks of a lab share cores, so one rank makes the sets.
        return MessageSets(on, world.size, size) if world.rank == 0 else None

    found = None
    if (sets_of_first := together(world, made)) is None:
        serve(mpi)
    else:
        measurer = MpiMeasurer(mpi)
        found = probe_sets(sets_of_first, measurer, rounds)
        measurer.end()
    answer: Probe = world.bcast(found)
    return answer


def emit_probe(
    machine: MachineLike,
    folder: str | os.PathLike[str],
    *,
    ranks: SupportsIndex | None = None,
    bytes: SupportsIndex | str | None = None,
    rounds: int = ROUNDS,
) -> list[str]:
    """Writes the messages of a probe and a program in C that sends them, for clusters without Unisono.

    Returns the paths of both files. The program needs MPI alone; ``probe(machine, results=FILE)`` reads its output.
    ``ranks`` is the number of ranks that will run the program, by default all accelerators.

    Raises:
        InputError: as :func:`probe`; the folder cannot be made.

    """
    count = None if ranks is None else whole("ranks", ranks)
    return write_program(MessageSets(named(machine), count, _size(bytes)), rounds, folder)


def _size(bytes: SupportsIndex | str | None) -> int | None:
    return None if bytes is None else parse_bytes(bytes) if isinstance(bytes, str) else whole("bytes", bytes)
