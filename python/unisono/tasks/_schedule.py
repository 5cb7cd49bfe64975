"""The order in which a rank carries out its commands.

Exchanges begin in the order of commands, which is one order for all ranks, and kernels run in it. An exchange does not
wait for kernels that it does not depend on: it begins as soon as what it sends is there, and goes on while they run.
So nothing can wait in a circle: the first command that is not done is under way, or can begin, on every rank, and
whatever it needs of others was begun by them before.

While a kernel runs, its command is open, and everything that would write what it touches, or read what it writes, waits
for it, at once or by way of what waits for it (`Waits` of the commands). So whatever else begins, ends and is put in
its place meanwhile touches other memory, and may do so in another thread.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from unisono.tasks._exchange import Exchanges
from unisono.tasks._held import Held, Pending
from unisono.tasks._progress import Attendant
from unisono.tasks._regions import Boxes, volume
from unisono.tasks._trace import Recorder

#: The fields of a command of `Discovery.commands`; its tuple begins with kind, number, task and what it waits for.
Command = tuple[Any, ...]


class Schedule:
    """The commands of a rank that are open, and those that are under way."""

    def __init__(
        self, commands: Sequence[Command], held: Sequence[Held], exchanges: Exchanges, trace: Recorder | None = None
    ) -> None:
        """All ranks make it together."""
        self._kernels = deque(command for command in commands if command[0] == "execute")
        self._others = deque(command for command in commands if command[0] != "execute")
        self._open = {command[1] for command in commands}
        self._lowest = min(self._open, default=0)
        self._under_way: dict[int, tuple[Pending, Command, Any]] = {}
        self._running = False
        #: Arrays that one exchange has for itself.
        self._taken: set[int] = set()
        self._held, self._exchanges, self._trace = held, exchanges, trace
        self._routes = exchanges.prepare(commands, held)

    @property
    def open(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._open)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way. Then nothing can begin either before the next kernel has ended."""
        return not self._under_way and not self._exchanges.sending

    def advance(self) -> bool:
        """Ends what is over and begins what may begin, of exchanges; whether there was any. Nothing waits here."""
        moved = False
        if self._exchanges.sending:
            self._exchanges.carry_sends()
        if self._under_way:
            over = [number for number, row in self._under_way.items() if row[0].poll()]
            for number in over:
                pending, command, begun = self._under_way.pop(number)
                pending.finish()
                self._held[command[4]].host_wrote(_received(command))
                if self._trace:
                    self._trace.end(begun, command, pending.served, self._bytes(command), self._name(command))
                self._taken.discard(command[4])
                self._close(number)
                moved = True
        while self._others and self._ready(command := self._others[0]) and self._begin(command):
            self._others.popleft()
            moved = True
        return moved

    def take_kernel(self) -> Command | None:
        """The next kernel, if it may run."""
        self._running = bool(self._kernels) and self._ready(self._kernels[0])
        return self._kernels.popleft() if self._running else None

    def done(self, kernel: Command) -> None:
        """A kernel ran."""
        self._running = False
        self._close(kernel[1])

    def _ready(self, command: Command) -> bool:
        on, until = command[3]
        return (until is None or until < self._lowest) and self._open.isdisjoint(on)

    def _close(self, number: int) -> None:
        self._open.discard(number)
        if number == self._lowest:
            while self._open and self._lowest not in self._open:
                self._lowest += 1

    def _begin(self, command: Command) -> bool:
        """Unless it would wait. Of a push nothing then is under way, since its data is copied."""
        kind, number, array = command[0], command[1], self._held[command[4]]
        route = self._routes.get(number)
        if command[4] in self._taken or (route is not None and not self._exchanges.can_begin(route)):
            return False
        begun = self._trace.begin(command) if self._trace else None
        array.to_host(_given(command))
        if kind == "push":
            self._exchanges.push(array, command[5], command[6])
            if self._trace and begun:
                self._trace.end(begun, command, "messages", self._bytes(command), self._name(command))
            self._close(number)
            return True
        if route is None:
            pending = self._exchanges.receive(array, command[5])
        else:
            in_place = route.in_place and self._is_alone(command)
            if in_place:
                self._taken.add(command[4])
            pending = route.begin_in_place(array) if in_place else route.begin(array)
        self._under_way[number] = (pending, command, begun)
        return True

    def _is_alone(self, command: Command) -> bool:
        """Whether no kernel runs before the exchange is over, and none of the array is under way."""
        if self._running or not self._kernels or command[1] not in self._kernels[0][3][0]:
            return False
        return all(other[4] != command[4] for _, other, _ in self._under_way.values())

    def _name(self, command: Command) -> str | None:
        """The name of the schedule by messages that it executes a part of."""
        if command[0] == "collective":
            return self._routes[command[1]].schedule
        name: str | None = command[-1]
        return name

    def _bytes(self, command: Command) -> int:
        """The bytes that move, of a collective among all ranks."""
        if command[0] == "collective":
            return self._routes[command[1]].bytes
        regions = [command[6]] if command[0] == "push" else [region for _, region in command[5]]
        return sum(map(volume, regions)) * self._held[command[4]].data.itemsize


def carry_out(schedule: Schedule, execute: Callable[[Command], None], attendant: Attendant) -> None:
    """All of a rank's commands; ``execute`` runs a kernel."""
    with attendant.of(schedule):
        while schedule.open:
            moved = schedule.advance()
            kernel = schedule.take_kernel()
            if kernel is not None:
                with attendant:
                    execute(kernel)
                schedule.done(kernel)
            elif not moved:
                # Ranks that share a core get their turn.
                os.sched_yield()


def _given(command: Command) -> Boxes:
    """The region of the array that an exchange reads."""
    at = {"push": 6, "collective": 7}.get(command[0])
    given: Boxes = () if at is None else command[at]
    return given


def _received(command: Command) -> Boxes:
    """The region of the array that an exchange writes."""
    if command[0] == "await":
        return tuple(box for _, region in command[5] for box in region)
    received: Boxes = command[8]
    return received
