"""Levels of a machine, found from the nodes and sockets of its ranks."""

from pathlib import Path

import pytest
from unisono import InputError
from unisono.tuning.levels import Level, Place, here, levels, ranks_in_order


def cpus(folder: Path, packages: list[int]) -> Path:
    """Writes a folder like Linux's description of cores, with the socket of each core."""
    for cpu, package in enumerate(packages):
        at = folder / f"cpu{cpu}" / "topology"
        at.mkdir(parents=True)
        (at / "physical_package_id").write_text(f"{package}\n")
    return folder


def test_a_rank_has_a_socket_if_it_runs_on_one(tmp_path: Path) -> None:
    folder = cpus(tmp_path, [0, 0, 1, 1])
    assert here(folder, [2, 3]) == 1
    assert here(folder, [0]) == 0
    assert here(folder, [1, 2]) is None
    # The system does not describe core 9.
    assert here(folder, [0, 9]) is None


def test_two_nodes_of_two_sockets_have_three_levels() -> None:
    found = [Place(node, socket) for node in "ab" for socket in (0, 1) for _ in range(3)]
    assert levels(found) == [
        Level("socket", 3, (0, 1, 2)),
        Level("node", 2, (0, 3)),
        Level("network", 2, (0, 6)),
    ]
    assert ranks_in_order(found) == "block"


def test_sizes_multiply_to_the_ranks() -> None:
    """The size of a level counts groups of the next smaller level."""
    for nodes, sockets, ranks in [(1, 1, 4), (3, 1, 2), (2, 2, 1), (1, 2, 2), (4, 1, 1), (2, 4, 3)]:
        found = [Place(str(n), s) for n in range(nodes) for s in range(sockets) for _ in range(ranks)]
        product = 1
        for level in levels(found):
            assert level.size == len(level.members) > 1
            assert level.members[0] == 0
            product *= level.size
        assert product == nodes * sockets * ranks


def test_ranks_that_are_not_bound_have_no_sockets() -> None:
    found = [Place(node) for node in "ab" for _ in range(4)]
    assert [level.name for level in levels(found)] == ["node", "network"]
    # Sockets with different numbers of ranks are no level either.
    uneven = [Place("a", 0), Place("a", 0), Place("a", 1), Place("b", 0), Place("b", 0), Place("b", 1)]
    assert [level.name for level in levels(uneven)] == ["node", "network"]


def test_consecutive_ranks_may_lie_on_consecutive_nodes() -> None:
    found = [Place(node) for _ in range(3) for node in "ab"]
    assert ranks_in_order(found) == "cyclic"
    assert levels(found) == [Level("node", 3, (0, 2, 4)), Level("network", 2, (0, 1))]


def test_irregular_machines_are_refused() -> None:
    with pytest.raises(InputError, match="the nodes have 1 to 2 ranks; --levels takes equal numbers on all nodes"):
        levels([Place("a"), Place("a"), Place("b")])
    with pytest.raises(InputError, match="in no regular order"):
        ranks_in_order([Place("a"), Place("b"), Place("b"), Place("a")])
