"""The order in which a rank carries out its commands.

Exchanges begin in the order of commands, which is one order for all ranks, and kernels run in it. An exchange does not
wait for kernels that it does not depend on: it begins as soon as what it sends is there, and goes on while they run.
So nothing can wait in a circle: the first command that is not done is under way, or can begin, on every rank, and
whatever it needs of others was begun by them before.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from unisono.tasks._exchange import Exchanges, Held, Pending
from unisono.tasks._regions import Boxes

#: What `Discovery.commands` says of a command; its tuple begins with kind, number, task and what it waits for.
Command = tuple[Any, ...]


def carry_out(
    commands: Sequence[Command], execute: Callable[[int], None], held: Sequence[Held], exchanges: Exchanges
) -> None:
    """All of a rank's commands; ``execute`` runs the kernel of a task."""
    kernels = deque(command for command in commands if command[0] == "execute")
    others = deque(command for command in commands if command[0] != "execute")
    open_ = {command[1] for command in commands}
    under_way: dict[int, tuple[Pending, Command]] = {}
    lowest = min(open_, default=0)

    def ready(command: Command) -> bool:
        on, until = command[3]
        return (until is None or until < lowest) and open_.isdisjoint(on)

    while open_:
        while lowest not in open_:
            lowest += 1
        for number, (pending, command) in list(under_way.items()):
            if pending.poll():
                pending.finish()
                held[command[4]].host_wrote(_received(command))
                del under_way[number]
                open_.discard(number)
        if others and ready(others[0]):
            command = others.popleft()
            if pending_or_none := _begin(command, held, exchanges):
                under_way[command[1]] = pending_or_none, command
            else:
                open_.discard(command[1])
        elif kernels and ready(kernels[0]):
            command = kernels.popleft()
            execute(command[2])
            open_.discard(command[1])
        else:
            # Ranks that share a core get their turn.
            os.sched_yield()


def _begin(command: Command, held: Sequence[Held], exchanges: Exchanges) -> Pending | None:
    """What then is under way; nothing of a push, whose data is copied."""
    kind, array, rest = command[0], held[command[4]], command[5:]
    array.to_host(_given(command))
    if kind == "push":
        exchanges.push(array, *rest)
        return None
    if kind == "await":
        return exchanges.receive(array, rest[0])
    return exchanges.collective(array, rest[1])


def _given(command: Command) -> Boxes:
    """What an exchange takes of the array."""
    at = {"push": 6, "collective": 7}.get(command[0])
    given: Boxes = () if at is None else command[at]
    return given


def _received(command: Command) -> Boxes:
    """What an exchange puts into the array."""
    if command[0] == "await":
        return tuple(box for _, region in command[5] for box in region)
    received: Boxes = command[8]
    return received
