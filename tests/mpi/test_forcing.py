"""Algorithms of Open MPI and MPICH that their control variables force."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono._core import UnsupportedError
from unisono.mpi.exports import row_of, says
from unisono.mpi.forcing import algorithms_in, variables_of

from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import launch

#: Numbers in Open MPI of three allreduce algorithms with different orders of addition, and the vector's elements.
ALGORITHMS = (3, 4, 6)
ELEMENTS = 6001
#: A program that forces each algorithm by variables in one process, and prints checksums of its sums on all ranks.
FORCED = f"""
import json
from unisono.mpi.library import import_mpi
mpi = import_mpi(measures=True)
from unisono.mpi.collectives import Collectives
from unisono.mpi.forcing import forced
from unisono.tuning.measuring import contest
world = mpi.COMM_WORLD
lanes = [{{{ELEMENTS}: {{"coll_tuned_allreduce_algorithm": number}}}} for number in {ALGORITHMS}]
with forced(mpi, world, lanes) as own:
    of = contest(mpi, world, [Collectives(mpi, world), *own], "allreduce", {ELEMENTS}, 2, 0.001).timings
    bits = world.gather([timing.bits for timing in of])
    assert [timing.served == timing.calls for timing in of] == [False, True, True, True]
if world.rank == 0:
    print(json.dumps(bits))
"""
#: By Open MPI's documentation: collective, algorithm, parameters, variable, its number, and the bytes of a segment.
KNOWN = [
    ("broadcast", "binomial", {}, "coll_tuned_bcast_algorithm", 6, None),
    ("broadcast", "binomial", {"radix": "4"}, "coll_tuned_bcast_algorithm", 7, None),
    ("broadcast", "binary-tree", {"order": "levels", "segment": "8192"}, "coll_tuned_bcast_algorithm", 5, 8192),
    ("broadcast", "pipelined-chain", {"segment": "1024"}, "coll_tuned_bcast_algorithm", 3, 1024),
    ("reduce", "reduce-scatter-gather", {}, "coll_tuned_reduce_algorithm", 7, None),
    ("reduce-scatter", "recursive-halving", {}, "coll_tuned_reduce_scatter_block_algorithm", 3, None),
    ("allgather", "bruck", {}, "coll_tuned_allgather_algorithm", 2, None),
    ("alltoall", "pairwise", {}, "coll_tuned_alltoall_algorithm", 2, None),
]


@pytest.mark.parametrize(("collective", "algorithm", "params", "variable", "number", "segment"), KNOWN)
def test_variables_name_the_algorithm_of_the_rules_file(
    collective: str, algorithm: str, params: dict[str, str], variable: str, number: int, segment: int | None
) -> None:
    plan = un.plan(collective, "archer", shape=8, bytes="64KiB", algorithm=algorithm, params=params)
    found = variables_of(row_of(plan, 65536, 65536))
    assert found == {variable: number} | ({} if segment is None else {f"{variable}_segmentsize": segment})


def test_variables_exist_for_all_rows_of_a_rules_file() -> None:
    rng, of = random.Random(5), says("openmpi-rules")
    stated = 0
    for _ in range(60):
        collective = rng.choice(["allreduce", "reduce", "broadcast", "allgather", "reduce-scatter", "alltoall"])
        size = 4 << rng.randrange(0, 20)
        row: dict[str, Any] = {"collective": collective, "ranks": rng.randrange(2, 40), "per_node": None, "class": None}
        row |= {"first_bytes": size, "last_bytes": size}
        row |= {"algorithm": rng.choice(un.algorithms(collective))["name"], "params": {}}
        if of(row) is not None:
            variables = variables_of(row)
            names = sorted(variables)
            assert names[1:] in ([], [f"{names[0]}_segmentsize"])
            assert all(isinstance(value, int) and value > 0 for value in variables.values())
            stated += 1
        else:
            with pytest.raises(UnsupportedError):
                variables_of(row)
    assert stated > 9


def test_an_algorithm_forced_in_a_process_is_the_one_that_a_user_forces() -> None:
    """The bits of the sums, which show the order of additions, are the same in both cases."""
    done = launch(OPEN_MPI, 3, "-c", FORCED)
    assert done.returncode == 0, done.stderr
    bits = json.loads(done.stdout)
    alone = {}
    for number in ALGORITHMS:
        settings = {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_allreduce_algorithm": str(number),
        }
        alone[number] = json.loads(launch(OPEN_MPI, 3, "-c", FORCED, **settings).stdout)
    for at, number in enumerate(ALGORITHMS, start=1):
        # Contestant 0 is the library's own choice, which the user's environment forces.
        assert [of[at] for of in bits] == [of[0] for of in alone[number]]
    assert len({bits[0][at] for at in range(1, 4)}) > 1


def test_rules_that_come_first_are_refused(tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text("0 # collectives\n")
    settings = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(rules)}
    words = ["tune", "allreduce", "--machine", "archer", "--for", "openmpi-rules", "-o", str(tmp_path / "t.plan")]
    done = launch(OPEN_MPI, 2, "-m", "unisono", *words, **settings)
    assert done.returncode == 2
    assert "whose rules come before them; start without that file" in done.stderr
    assert not (tmp_path / "t.plan").exists()


def row(collective: str, ranks: int, size: int, algorithm: str, **params: str) -> dict[str, Any]:
    of: dict[str, Any] = {"collective": collective, "ranks": ranks, "per_node": None, "class": None}
    return of | {"first_bytes": size, "last_bytes": None, "algorithm": algorithm, "params": params}


#: Rows for MPICH on 4 ranks, with the name of the algorithm and its numbers, by docs/export.md.
KNOWN_OF_MPICH: list[tuple[str, str, dict[str, str], str, dict[str, int]]] = [
    ("broadcast", "binomial", {}, "binomial", {}),
    ("broadcast", "scatter-allgather", {}, "scatter_ring_allgather", {}),
    ("allreduce", "rabenseifner", {}, "reduce_scatter_allgather", {}),
    (
        "allreduce",
        "recursive-multiplying",
        {"schedule": "a2,a2"},
        "recursive_multiplying",
        {"RECURSIVE_MULTIPLYING_KVAL": 2},
    ),
    (
        "allgather",
        "recursive-exchange",
        {"radix": "4", "order": "halving"},
        "recexch_halving",
        {"RECEXCH_KVAL": 4, "RECEXCH_SINGLE_PHASE_RECV": 0},
    ),
    ("alltoall", "linear", {}, "scattered", {}),
    ("reduce", "reduce-scatter-gather", {}, "reduce_scatter_gather", {}),
    ("reduce-scatter", "recursive-halving", {}, "recursive_halving", {}),
]


@pytest.mark.parametrize(("collective", "algorithm", "params", "name", "numbers"), KNOWN_OF_MPICH)
def test_variables_of_mpich_name_the_algorithm_of_its_file(
    collective: str, algorithm: str, params: dict[str, str], name: str, numbers: dict[str, int]
) -> None:
    found = variables_of(row(collective, 4, 65536, algorithm, **params), "mpich-json", MPICH / "lib" / "libmpi.so.12")
    stem = {"broadcast": "BCAST", "reduce-scatter": "REDUCE_SCATTER_BLOCK"}.get(collective, collective.upper())
    stem = f"MPIR_CVAR_{stem}"
    assert found == {f"{stem}_INTRA_ALGORITHM": name, f"{stem}_DEVICE_COLLECTIVE": 0} | {
        f"{stem}_{key}": value for key, value in numbers.items()
    }


def test_fewer_elements_than_the_algorithm_needs_force_what_the_file_chooses_then() -> None:
    """On 7 ranks the algorithm needs 4 elements; the file repeats the library's own choice for fewer."""
    names = [
        variables_of(row("allreduce", 7, size, "rabenseifner"), "mpich-json", MPICH / "lib" / "libmpi.so.12")[
            "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"
        ]
        for size in (12, 16)
    ]
    assert names == ["recursive_doubling", "reduce_scatter_allgather"]


def test_algorithms_are_the_words_before_sentences() -> None:
    description = (
        "Variable to select - among others - an algorithm\nauto - Internal (with X - Y)\nring   - Force ring\n"
    )
    assert algorithms_in(description) == ["auto", "ring"]
    # MPICH 4.0.2 has no ends of lines there.
    assert algorithms_in(description.replace("\n", "")) == []


#: A program that forces algorithms of MPICH's allreduce in one process, and prints checksums on all ranks.
FORCED_BY_CALL = f"""
import json, sys
from unisono.mpi.library import import_mpi
mpi = import_mpi(measures=True)
from unisono.mpi.forcing import forced
from unisono.tuning.measuring import contest
world = mpi.COMM_WORLD
lanes = [{{{ELEMENTS}: of}} for of in json.loads(sys.argv[1])]
with forced(mpi, world, lanes) as own:
    of = contest(mpi, world, own, "allreduce", {ELEMENTS}, 2, 0.001).timings
    again = contest(mpi, world, own[:1], "allreduce", {ELEMENTS}, 2, 0.001).timings
    bits = world.gather([timing.bits for timing in (*of, *again)])
    assert all(timing.served == timing.calls for timing in of)
if world.rank == 0:
    print(json.dumps(bits))
"""


def test_algorithms_of_mpich_are_forced_call_by_call() -> None:
    library = MPICH / "lib" / "libmpi.so.12"
    rows = [("recursive-multiplying", {"schedule": "a3"}), ("ring", {})]
    forced = [
        variables_of(row("allreduce", 3, 4 * ELEMENTS, name, **params), "mpich-json", library) for name, params in rows
    ]
    done = launch(MPICH, 3, "-c", FORCED_BY_CALL, json.dumps([{}, *forced]))
    assert done.returncode == 0, done.stderr
    bits = json.loads(done.stdout)
    for at, variables in enumerate(forced, start=1):
        named = {name: str(value) for name, value in variables.items()}
        alone = launch(MPICH, 3, "-c", FORCED_BY_CALL, "[{}]", **named)
        assert alone.returncode == 0, alone.stderr
        assert [of[at] for of in bits] == [of[0] for of in json.loads(alone.stdout)], variables
    # The library makes its own choice again after the last contestant, whose order of additions differs.
    before, other, ring, after = bits[0]
    assert before == after != ring
    assert ring != other


def test_an_algorithm_that_the_library_lacks_is_refused_by_name() -> None:
    wrong = json.dumps([{}, {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "telepathy"}])
    done = launch(MPICH, 2, "-c", FORCED_BY_CALL, wrong)
    assert done.returncode != 0
    assert "no algorithm 'telepathy' of 'MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM'; it has auto, nb, smp," in done.stderr
