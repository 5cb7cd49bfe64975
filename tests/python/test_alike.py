"""Ranks of one measurement that are started differently all refuse, and name the first difference."""

import threading
from typing import Any

import pytest
from unisono import InputError
from unisono.mpi.library import check_alike

from .test_mpi import PATIENCE


class World:
    """A replacement of a communicator among threads, with the methods that the check needs."""

    def __init__(self, rank: int, size: int, board: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._board, self._barrier = rank, size, board, barrier

    def allgather(self, value: Any) -> list[Any]:
        self._board[self.rank] = value
        self._barrier.wait(PATIENCE)
        found = list(self._board)
        self._barrier.wait(PATIENCE)
        return found

    def bcast(self, value: Any) -> Any:
        return self.allgather(value)[0]


def ends(said: list[dict[str, object]]) -> list[str]:
    """Returns for each rank the error message of the check, "exit" with the code, or an empty text."""
    board, barrier = [None] * len(said), threading.Barrier(len(said))
    ended = [""] * len(said)

    def one(rank: int) -> None:
        try:
            check_alike(World(rank, len(said), board, barrier), said[rank], "cure")
        except InputError as error:
            ended[rank] = str(error)
        except SystemExit as left:
            ended[rank] = f"exit {left.code}"

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(said))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended


@pytest.mark.parametrize("odd", [1, 2, 3])
@pytest.mark.parametrize("name", ["the command", "--rounds", "--sizes"])
def test_one_rank_that_differs_ends_all(name: str, odd: int) -> None:
    common: dict[str, object] = {"the command": "tune", "--rounds": 2, "--sizes": "8"}
    said = [common | {name: "other"} if rank == odd else common for rank in range(4)]
    ended = ends(said)
    assert ended[odd] == f"{name} is 'other' on rank {odd}, and {common[name]!r} on rank 0; cure"
    assert [end for rank, end in enumerate(ended) if rank != odd] == ["exit 2"] * 3


def test_alike_ranks_go_on() -> None:
    assert ends([{"--rounds": 2}] * 3) == [""] * 3
