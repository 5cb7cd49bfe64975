"""Forces algorithms of Open MPI and MPICH by their control variables (MPI_T), so that one process times several.

Open MPI's ``coll/tuned`` reads these variables when a communicator is made, so each algorithm has a communicator. MPICH
reads them in every call, so they are set before the calls of a contestant (a timed algorithm), unless the same
contestant also made the previous calls. Variables of MPICH that name an algorithm are numbers; the variable's
description lists the names in their order.

Sources: Open MPI, ``ompi/mca/coll/tuned/coll_tuned_module.c``, and observations of 5.0.11; MPICH,
``src/mpi/coll/mpir_coll.c`` and ``coll_algorithms.txt``, and observations of 5.0.2.
"""

import ctypes
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from unisono._core import InputError, UnsupportedError
from unisono.mpi.collectives import Array, Collectives, elements_of, loaded_library
from unisono.mpi.exports import export_rows

__all__ = ["Forced", "Variables", "algorithms_in", "can_force", "forced", "variables_of"]

#: The values of control variables; a text is the name of an algorithm.
Variables = Mapping[str, int | str]
#: The variable that makes ``coll/tuned`` read its other variables.
_ALWAYS = {"coll_tuned_use_dynamic_rules": 1}
#: The variable that is set to 0 because on several nodes ``coll/han`` comes before ``coll/tuned``. Releases before 4.1
#: lack it.
_HAN = "coll_han_priority"
#: The formats of tuning files whose rows name algorithms of ``coll/tuned``, and of MPICH.
_OF_TUNED, _OF_MPICH = ("openmpi-rules", "openmpi-json"), "mpich-json"
#: The variable with the file of rules, which override forced algorithms.
_FILE = "coll_tuned_dynamic_rules_filename"
#: The names of collectives in variables, if they differ from the names in rules.
_NAMES = {"reducescatterblock": "reduce_scatter_block"}
#: The beginning of the names of MPICH's variables, and the variable whose existence shows that the library has these
#: variables.
_MPICH = "MPIR_CVAR_"
_KNOWN = f"{_MPICH}ALLREDUCE_INTRA_ALGORITHM"
#: The names of collectives in MPICH, if they differ.
_OF_COLLECTIVES = {"broadcast": "bcast", "reduce-scatter": "reduce_scatter_block"}
#: The names of MPICH's variables for the parameter ``k`` of algorithms, by the beginning of their names.
_FACTORS = {"recexch": "RECEXCH_KVAL", "recursive_multiplying": "RECURSIVE_MULTIPLYING_KVAL"}


def can_force(mpi: Any, target: str) -> bool:
    """Returns whether this process's MPI library can be forced to use the algorithms of a format without a file.

    Raises:
        InputError: the library has read a file of rules, which override forced algorithms.

    """
    library = mpi.Get_library_version()
    if target == _OF_MPICH:
        # The descriptions in MPICH 4.0 have no line ends, so the names in them cannot be found.
        return bool(library.startswith("MPICH")) and _exists(_KNOWN) and _algorithms(_KNOWN)[:1] == ["auto"]
    if target not in _OF_TUNED or not library.startswith("Open MPI"):
        return False
    if read := _text(_FILE):
        raise InputError(
            f"--for {target} times algorithms by themselves, and '{_FILE}' is '{read}', whose rules come before them; "
            "start without that file"
        )
    return True


def variables_of(
    row: dict[str, Any], target: str = "openmpi-rules", library: str | os.PathLike[str] | None = None
) -> dict[str, int | str]:
    """Returns the variables that force the algorithm that a tuning file would choose for a row of a decision table.

    ``library`` is the ``libmpi.so`` of MPICH, as for :func:`unisono.mpi.exports.export_table`.

    Raises:
        UnsupportedError: the file cannot state the row, or its table has conditions that are not known here.

    """
    return _of_mpich(row, library) if target == _OF_MPICH else _of_tuned(row)


def _of_tuned(row: dict[str, Any]) -> dict[str, int | str]:
    text = export_rows([row], "openmpi-rules")["text"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    key = lines[1].partition("# ")[2]
    # A rule has a size, an algorithm, a number of children and a segment size; algorithm 0 leaves the choice to the
    # library.
    numbers = [line.partition("#")[0].split() for line in lines]
    _, algorithm, _, segment = next(map(int, rule) for rule in numbers if len(rule) == 4 and rule[1] != "0")
    stem = f"coll_tuned_{_NAMES.get(key, key)}_algorithm"
    found: dict[str, int | str] = {stem: algorithm}
    return found | ({f"{stem}_segmentsize": segment} if segment else {})


def _of_mpich(row: dict[str, Any], library: str | os.PathLike[str] | None) -> dict[str, int | str]:
    """Returns the variables with the effect of the file on a call of the row's first size, of sums of float32."""
    size, collective = row["first_bytes"], row["collective"]
    collective = _OF_COLLECTIVES.get(collective, collective)
    table = json.loads(export_rows([{**row, "last_bytes": size}], _OF_MPICH, library)["text"])
    of_call = {
        "comm_type": "intra",
        "comm_size": row["ranks"],
        "avg_msg_size": size,
        "total_msg_size": size * row["ranks"],
        "count": max(size // 4, 1),
        "is_commutative": "yes",
        "is_op_built_in": "yes",
        "is_sendbuf_inplace": "no",
        "is_block_regular": "yes",
        "comm_hierarchy": "parent",
    }
    name, settings = _chosen(table[f"collective={collective}"], of_call)
    stem = f"{_MPICH}{collective.upper()}"
    # The device collective is switched off, because MPICH would prefer it to the algorithm from the fifth call on.
    variables: dict[str, int | str] = {f"{stem}_INTRA_ALGORITHM": name, f"{stem}_DEVICE_COLLECTIVE": 0}
    for setting, value in (text.split("=") for text in settings):
        factor = next((of for beginning, of in _FACTORS.items() if name.startswith(beginning)), None)
        if setting == "single_phase_recv":
            variables[f"{stem}_RECEXCH_SINGLE_PHASE_RECV"] = int(value)
        elif setting == "k" and factor is not None:
            variables[f"{stem}_{factor}"] = int(value)
    return variables


def _chosen(table: dict[str, Any], of_call: Mapping[str, int | str]) -> tuple[str, list[str]]:
    """Returns the algorithm that a table of MPICH chooses for a call, without its beginning, and its settings."""
    while True:
        fits = ((key, inner) for key, inner in table.items() if _holds(key, of_call))
        condition, inner = next(fits, ("", {}))
        if not condition:
            raise UnsupportedError(f"the library's table has no choice among {', '.join(map(repr, table))}")
        kind, _, value = condition.partition("=")
        if kind == "algorithm":
            return value.partition("_intra_")[2], list(inner)
        table = inner


def _holds(condition: str, of_call: Mapping[str, int | str]) -> bool:
    for sign in ("<=", "<", "="):
        name, found, value = condition.partition(sign)
        if not found:
            continue
        own, ranks = of_call.get(name), int(of_call["comm_size"])
        if value == "any" or name == "algorithm":
            return True
        if own is None:
            return False
        if value == "pow2":
            # In a condition on elements, `pow2` stands for the largest power of two up to the number of ranks.
            least = 1 << (ranks.bit_length() - 1)
            return ranks == least if sign == "=" else int(own) < least
        if sign == "=":
            return str(own) == value
        return int(own) <= int(value) if sign == "<=" else int(own) < int(value)
    return False


class Forced:
    """The library's own collectives, with the algorithm that is forced for each number of elements."""

    def __init__(self, of: Mapping[int, tuple[Collectives, Callable[[], None]]]) -> None:
        """Stores ``of``, which is given for each number of elements.

        It has the collectives, and a function that runs before each group of calls.
        """
        self._of = of
        #: The number of calls with a forced algorithm.
        self.served = 0

    def caller(self, collective: str, send: Array, recv: Array, *, apart: bool = False) -> Callable[[int], None]:
        """Returns a function as :meth:`Collectives.caller` does."""
        any_of, _ = next(iter(self._of.values()))
        own, begin = self._of[elements_of(collective, send, recv, any_of.ranks)]
        inner = own.caller(collective, send, recv, apart=apart)

        def call(calls: int) -> None:
            begin()
            inner(calls)
            self.served += calls

        return call

    def turns(self) -> Callable[[int], None]:
        """Returns a function as :meth:`Collectives.turns` does."""
        return next(iter(self._of.values()))[0].turns()


@contextmanager
def forced(mpi: Any, comm: Any, lanes: Sequence[Mapping[int, Variables]]) -> Iterator[list[Forced]]:
    """Yields a `Forced` for each of ``lanes``; all ranks of ``comm`` call this.

    A lane has the variables to set, by number of elements. Without variables, the library makes its own choice. Under
    MPICH, the library's own choice must also be one of the lanes, because variables stay set until another contestant
    makes calls.

    Raises:
        InputError: this MPI library lacks a variable or an algorithm, or does not permit setting it.

    """
    by = _forced_by_call if mpi.Get_library_version().startswith("MPICH") else _forced_by_communicator
    with by(mpi, comm, lanes) as found:
        yield found


@contextmanager
def _forced_by_communicator(mpi: Any, comm: Any, lanes: Sequence[Mapping[int, Variables]]) -> Iterator[list[Forced]]:
    library, always = Collectives(mpi, comm), _ALWAYS | ({_HAN: 0} if _exists(_HAN) else {})
    made: dict[tuple[tuple[str, int | str], ...], Any] = {}
    try:
        for variables in (each for lane in lanes for each in lane.values() if each):
            key = tuple(sorted(variables.items()))
            if key not in made:
                with _set(always | dict(variables)):
                    made[key] = comm.Dup()
        copies = {key: library.on(copy) for key, copy in made.items()} | {(): library}
        yield [
            Forced({count: (copies[tuple(sorted(of.items()))], lambda: None) for count, of in lane.items()})
            for lane in lanes
        ]
    finally:
        for copy in made.values():
            copy.Free()


@contextmanager
def _forced_by_call(mpi: Any, comm: Any, lanes: Sequence[Mapping[int, Variables]]) -> Iterator[list[Forced]]:
    library = Collectives(mpi, comm)
    numbers = [
        {count: {name: _number(name, value) for name, value in of.items()} for count, of in lane.items()}
        for lane in lanes
    ]
    own = {name: _read(name) for lane in numbers for of in lane.values() for name in of}
    current = dict(own)

    def use(wanted: Mapping[str, int]) -> None:
        for name, value in (own | dict(wanted)).items():
            if current[name] != value:
                _write(name, value)
                current[name] = value

    def user(wanted: Mapping[str, int]) -> Callable[[], None]:
        return lambda: use(wanted)

    try:
        yield [Forced({count: (library, user(of)) for count, of in lane.items()}) for lane in numbers]
    finally:
        use({})


@contextmanager
def _set(variables: Variables) -> Iterator[None]:
    """Sets variables, and restores their values at the end."""
    before = {name: _read(name) for name in variables}
    try:
        for name, value in variables.items():
            _write(name, _number(name, value))
        yield
    finally:
        for name, value in before.items():
            _write(name, value)


#: The maximum number of bytes of the name of a variable, and of its description, that are read.
_MOST_TEXT = 1 << 14


def _number(name: str, value: int | str) -> int:
    """Returns the number of an algorithm: its place among those that the variable's description lists.

    Raises:
        InputError: the library has no such variable, or no such algorithm.

    """
    if isinstance(value, int):
        return value
    known = _algorithms(name)
    if value not in known:
        raise InputError(f"this MPI library has no algorithm '{value}' of '{name}'; it has {', '.join(known)}")
    return known.index(value)


def _algorithms(name: str) -> list[str]:
    """Returns the names of the algorithms that the description of a variable lists, in the order of their numbers."""
    library, index = _index(name)
    texts = [ctypes.create_string_buffer(_MOST_TEXT) for _ in range(2)]
    lengths = [ctypes.c_int(_MOST_TEXT) for _ in range(2)]
    unread = [ctypes.byref(ctypes.c_int()) for _ in range(3)]
    kind, members = ctypes.c_void_p(), ctypes.c_void_p()
    library.MPI_T_cvar_get_info(
        index, texts[0], ctypes.byref(lengths[0]), unread[0], ctypes.byref(kind), ctypes.byref(members),
        texts[1], ctypes.byref(lengths[1]), unread[1], unread[2],
    )  # fmt: skip
    return algorithms_in(texts[1].value.decode(errors="replace"))


def algorithms_in(description: str) -> list[str]:
    """Returns the names of algorithms in the description of a variable of MPICH: lines ``name - sentence``."""
    pairs = (line.partition(" - ") for line in description.splitlines())
    return [name.strip() for name, dash, _ in pairs if dash and " " not in name.strip()]


def _index(name: str) -> tuple[ctypes.CDLL, ctypes.c_int]:
    library, provided, index = ctypes.CDLL(loaded_library()), ctypes.c_int(), ctypes.c_int()
    library.MPI_T_init_thread(0, ctypes.byref(provided))
    if library.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)) != 0:
        raise InputError(f"this MPI library has no control variable '{name}'")
    return library, index


@contextmanager
def _handle(name: str) -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p, int]]:
    """Yields the loaded library, the handle of a control variable, and the variable's number of elements."""
    library, index = _index(name)
    handle, count = ctypes.c_void_p(), ctypes.c_int()
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
