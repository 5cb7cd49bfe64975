"""Algorithms of Open MPI that its control variables force."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono._core import UnsupportedError
from unisono.mpi.exports import row_of, says
from unisono.mpi.forcing import variables_of

from ..python.test_mpi import OPEN_MPI
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
            assert min(variables.values()) > 0
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
