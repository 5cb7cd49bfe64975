"""Forces algorithms of Open MPI by its control variables (MPI_T), separately for each communicator.

Open MPI's ``coll/tuned`` reads these variables when a communicator is made, so one process can time several algorithms
alternately. Source: ``ompi/mca/coll/tuned/coll_tuned_module.c``, and observations of 5.0.11.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from unisono._core import InputError
from unisono.mpi.collectives import Array, Collectives, elements_of, loaded_library
from unisono.mpi.exports import export_rows

__all__ = ["Forced", "can_force", "forced", "variables_of"]

#: The variable without which ``coll/tuned`` reads no other one.
_ALWAYS = {"coll_tuned_use_dynamic_rules": 1}
#: The variable that is set to 0 because on several nodes ``coll/han`` comes before ``coll/tuned``. Releases before 4.1
#: lack it.
_HAN = "coll_han_priority"
#: The formats of tuning files whose rows name algorithms of ``coll/tuned``.
_FORMATS = ("openmpi-rules", "openmpi-json")
#: The variable with the file of rules, which override forced algorithms.
_FILE = "coll_tuned_dynamic_rules_filename"
#: The names of collectives in variables, if they differ from the names in rules.
_NAMES = {"reducescatterblock": "reduce_scatter_block"}


def can_force(mpi: Any, target: str) -> bool:
    """Returns whether this process's MPI library can be forced to use the algorithms of a format without a file.

    Raises:
        InputError: the library has read a file of rules, which override forced algorithms.

    """
    if target not in _FORMATS or not mpi.Get_library_version().startswith("Open MPI"):
        return False
    if read := _text(_FILE):
        raise InputError(
            f"--for {target} times algorithms by themselves, and '{_FILE}' is '{read}', whose rules come before them; "
            "start without that file"
        )
    return True


def variables_of(row: dict[str, Any]) -> dict[str, int]:
    """Returns the variables that force the algorithm that a rules file would state for a row of a decision table.

    Raises:
        UnsupportedError: the rules file cannot state the row.

    """
    text = export_rows([row], "openmpi-rules")["text"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    key = lines[1].partition("# ")[2]
    # A rule has a size, an algorithm, a number of children and a segment size; algorithm 0 leaves the choice to the
    # library.
    numbers = [line.partition("#")[0].split() for line in lines]
    _, algorithm, _, segment = next(map(int, rule) for rule in numbers if len(rule) == 4 and rule[1] != "0")
    stem = f"coll_tuned_{_NAMES.get(key, key)}_algorithm"
    return {stem: algorithm} | ({f"{stem}_segmentsize": segment} if segment else {})


class Forced:
    """The library's own collectives, with the algorithm that is forced for each number of elements."""

    def __init__(self, of: Mapping[int, Collectives]) -> None:
        self._of = of
        #: The number of calls with a forced algorithm.
        self.served = 0

    def caller(self, collective: str, send: Array, recv: Array, *, apart: bool = False) -> Callable[[int], None]:
        """Returns a function as :meth:`Collectives.caller` does."""
        own = next(iter(self._of.values()))
        own = self._of[elements_of(collective, send, recv, own.ranks)]
        inner = own.caller(collective, send, recv, apart=apart)

        def call(calls: int) -> None:
            inner(calls)
            self.served += calls

        return call

    def turns(self) -> Callable[[int], None]:
        """Returns a function as :meth:`Collectives.turns` does."""
        return next(iter(self._of.values())).turns()


@contextmanager
def forced(mpi: Any, comm: Any, lanes: Sequence[Mapping[int, Mapping[str, int]]]) -> Iterator[list[Forced]]:
    """Yields a `Forced` for each of ``lanes``: variables by number of elements. All ranks of ``comm`` call this.

    Raises:
        InputError: this MPI library lacks a variable, or does not permit setting it.

    """
    library, always = Collectives(mpi, comm), _ALWAYS | ({_HAN: 0} if _exists(_HAN) else {})
    made: dict[tuple[tuple[str, int], ...], Any] = {}
    try:
        for variables in (each for lane in lanes for each in lane.values()):
            key = tuple(sorted(variables.items()))
            if key not in made:
                with _set(always | dict(variables)):
                    made[key] = comm.Dup()
        copies = {key: library.on(copy) for key, copy in made.items()}
        yield [Forced({count: copies[tuple(sorted(of.items()))] for count, of in lane.items()}) for lane in lanes]
    finally:
        for copy in made.values():
            copy.Free()


@contextmanager
def _set(variables: Mapping[str, int]) -> Iterator[None]:
    """Sets variables, and restores their values at the end."""
    before = {name: _read(name) for name in variables}
    try:
        for name, value in variables.items():
            _write(name, value)
        yield
    finally:
        for name, value in before.items():
            _write(name, value)


@contextmanager
def _handle(name: str) -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p, int]]:
    """Yields the loaded library, the handle of a control variable, and the variable's number of elements."""
    library, provided = ctypes.CDLL(loaded_library()), ctypes.c_int()
    library.MPI_T_init_thread(0, ctypes.byref(provided))
    index, handle, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    if library.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)) != 0:
        raise InputError(f"this MPI library has no control variable '{name}'")
    if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)) != 0:
        raise InputError(f"this MPI library gives no handle of its control variable '{name}'")
    try:
        yield library, handle, count.value
    finally:
        library.MPI_T_cvar_handle_free(ctypes.byref(handle))


def _exists(name: str) -> bool:
    try:
        with _handle(name):
            return True
    except InputError:
        return False


def _read(name: str) -> int:
    value = ctypes.c_int()
    with _handle(name) as (library, handle, _):
        library.MPI_T_cvar_read(handle, ctypes.byref(value))
    return value.value


def _text(name: str) -> str:
    """Returns the text of a control variable; empty if there is no such variable."""
    try:
        with _handle(name) as (library, handle, count):
            text = ctypes.create_string_buffer(max(count, 1))
            library.MPI_T_cvar_read(handle, text)
            return text.value.decode(errors="replace")
    except InputError:
        return ""


def _write(name: str, value: int) -> None:
    with _handle(name) as (library, handle, _):
        failed = library.MPI_T_cvar_write(handle, ctypes.byref(ctypes.c_int(value))) != 0
    if failed or _read(name) != value:
        raise InputError(f"this MPI library does not set its control variable '{name}' to {value}")
