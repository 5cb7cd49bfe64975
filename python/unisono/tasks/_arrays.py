"""The arrays of a program, and the views of arrays that kernels receive."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import InputError, Mapper
from unisono.base.messages import shown

#: The largest number of accesses that an array caches.
_KEPT = 1024


class View(np.ndarray[Any, np.dtype[Any]]):
    """A kernel's part of an array: an ordinary NumPy array, with the index of its first element."""

    #: The index in the whole array of the element ``[0, 0, ...]``.
    offset: tuple[int, ...]

    @classmethod
    def of(cls, data: npt.NDArray[Any], offset: tuple[int, ...], *, writable: bool) -> "View":
        """Returns a view of ``data``."""
        view = data.view(cls)
        view.offset = offset
        if not writable:
            view.setflags(write=False)
        return view

    def __array_finalize__(self, source: object) -> None:
        """Copies the offset to arrays that NumPy derives; a slice keeps the offset of its source."""
        self.offset = getattr(source, "offset", ())


@dataclass(frozen=True, eq=False)
class Array:
    """An array of a program; ``array[mapper]`` is a task's access to it."""

    program: object
    number: int
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Accesses by mapper: equal expressions in a loop give the same object.
    _accesses: dict[Mapper, "Access"] = field(default_factory=dict, repr=False)

    #: Without this, Python would iterate over an array by __getitem__.
    __iter__ = None

    def __getitem__(self, mapper: Mapper) -> "Access":
        if not isinstance(mapper, Mapper):
            raise InputError(f"array '{self.name}' is indexed with {mapper!r}; accepted are mappers, such as all_")
        found = self._accesses.get(mapper)
        if found is None:
            if len(self._accesses) >= _KEPT:
                self._accesses.clear()
            found = self._accesses[mapper] = Access(self, mapper)
        return found

    def __array__(self, *_: object, **__: object) -> npt.NDArray[Any]:
        raise InputError(f"array '{self.name}' is spread over the ranks; program.fetch(array) gives its contents")

    def __repr__(self) -> str:
        return f"<array '{self.name}' of shape {self.shape}, {self.dtype}>"


def sizes_of(what: str, given: int | Sequence[int], hint: str = "") -> tuple[int, ...]:
    """Returns one or several numbers as a tuple; ``hint`` ends the error message.

    Raises:
        InputError: ``given`` has something other than whole numbers.

    """
    if type(given) is int:
        return (given,)
    sizes = (given,) if not isinstance(given, Iterable) else tuple(given)
    for size in sizes:
        if not isinstance(size, int | np.integer):
            raise InputError(f"{what} is {shown(given)}; accepted are whole numbers{hint}")
    return tuple(map(int, sizes))


@dataclass(frozen=True, eq=False)
class Access:
    """A part of an array, as a task accesses it."""

    array: Array
    mapper: Mapper
