"""Random programs of tasks.

The value of an element depends on its index and on the elements read, not on the division of the range among ranks.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from unisono.tasks import (
    Access,
    Array,
    Program,
    View,
    all_,
    even_split,
    fixed,
    halo,
    mapper,
    one_to_one,
    project,
    row,
    shift,
    slice_,
    transposed,
)

#: All written values are smaller than this number, so that their sums are exact.
PRIME = 100_003
OPERATORS = ("sum", "max", "min")

Box = tuple[tuple[int, ...], tuple[int, ...]]
Point = tuple[int, ...]


def digest(*arrays: Any) -> str:
    """Returns a short hash of the contents of arrays."""
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.ascontiguousarray(array).tobytes())
    return text.hexdigest()[:16]


def _mirror(low: Point, high: Point, shape: Point) -> list[Box]:
    """Returns the mirror image of a box in a 1D array."""
    return [((max(shape[0] - high[0], 0),), (max(shape[0] - low[0], 0),))]


def _behind(low: Point, high: Point, _shape: Point) -> list[Box]:
    """Returns the part of the range, extended by the two elements before it."""
    return [((low[0] - 2,), (high[0],))]


def _ends(low: Point, high: Point, shape: Point) -> list[Box]:
    """Returns three boxes: the array's first element, the part, and the last element."""
    return [((0,), (1,)), ((low[0],), (high[0],)), ((shape[0] - 1,), (shape[0],))]


# Each mapper is made once: two calls of `mapper` return unequal mappers, even for the same function.
MIRROR, BEHIND, ENDS = mapper(_mirror), mapper(_behind), mapper(_ends)


def _places(view: View) -> npt.NDArray[Any]:
    return np.arange(view.offset[0], view.offset[0] + len(view))


class RandomProgram:
    """A random program of up to ``most`` tasks, determined by a seed."""

    def __init__(self, seed: int, most: int = 22, make: type[Program] = Program) -> None:
        """Submits the tasks, and runs the program at random points between them."""
        self._draw = np.random.default_rng(seed)
        self.program = program = make()
        self._n = n = self._number(5, 14)
        self.flat = [program.array(n, init=self._draw.integers(0, 100, n), name=f"f{k}") for k in range(3)]
        self.square = [program.array((n, n), init=self._draw.integers(0, 100, (n, n)), name=f"s{k}") for k in range(2)]
        self.total = program.array(2, init=[1, 2], dtype=np.int64, name="total")
        #: An array whose parts tasks reduce by several operators.
        self.sums = program.array(n, init=self._draw.integers(0, 100, n), name="sums")
        kinds: list[Callable[[str], None]] = [
            self._write,
            self._write,
            self._write_and_reduce,
            self._use_total,
            self._turn,
            self._columns,
            self._rows,
            self._mirrored,
            self._even_parts,
            self._reduce_part,
            self._scatter_sums,
            self._use_sums,
            self._use_sums,
            self._once,
        ]
        for t in range(self._number(4, most)):
            self._op, self._salt = OPERATORS[self._number(0, 3)], self._number(1, 50)
            kinds[self._number(0, len(kinds))](f"t{t}")
            if self._number(0, 6) == 0:
                program.run()

    def results(self) -> list[npt.NDArray[Any]]:
        """Returns the final contents of all arrays, which a last task copies to one array, and of one random array.

        A fetch of each array would take seven exchanges, one after the other.
        """
        arrays = [*self.flat, *self.square, self.total, self.sums]
        every = self.program.zeros(sum(math.prod(a.shape) for a in arrays), dtype=np.int64, name="every")

        def copy(*views: View) -> None:
            *read, out = views
            out[...] = np.concatenate([np.ravel(view) for view in read])

        self.program.task(copy, range=1, reads=[a[all_] for a in arrays], writes=[every[all_]], name="copy")
        return [self.program.fetch(every), self.program.fetch(arrays[self._number(0, len(arrays))])]

    def _number(self, low: int, high: int) -> int:
        return int(self._draw.integers(low, high))

    def _two(self, arrays: list[Array]) -> tuple[Array, Array]:
        a, b = self._draw.choice(len(arrays), 2, replace=False)
        return arrays[a], arrays[b]

    def _source(self, array: Array) -> tuple[Access, Callable[[View, View], Any]]:
        """Returns a random read access to a 1D array, and a function from the read view to the output's values."""
        n, salt = self._n, self._salt

        def near(widths: range) -> Callable[[View, View], Any]:
            def value(read: View, out: View) -> Any:
                first = read.offset[0]
                return [sum(int(read[i + k - first]) for k in widths if 0 <= i + k < n) for i in _places(out)]

            return value

        def window(read: View, _: View) -> Any:
            return int((np.asarray(read) * (_places(read) + salt)).sum()) % 1009

        def ends(read: View, out: View) -> Any:
            # This rank may not read elements between the boxes.
            first = read.offset[0]
            return [int(read[0] * 3 + read[i - first] + read[-1] * 5) for i in _places(out)]

        low = self._number(0, n)
        extent = self._number(1, n + 1 - low)
        listed: list[tuple[Any, Callable[[View, View], Any]]] = [
            (all_, window),
            (fixed(low, extent), window),
            (one_to_one, lambda read, _: np.asarray(read)),
            (halo(1), near(range(-1, 2))),
            (halo(2), near(range(-2, 3))),
            (BEHIND, near(range(-2, 1))),
            (MIRROR, lambda read, _: np.asarray(read)[::-1]),
            (ENDS, ends),
            (shift(1), lambda read, out: np.resize(np.append(np.asarray(read), np.zeros(len(out), int)), len(out))),
        ]
        access, value = listed[self._number(0, len(listed))]
        return array[access], value

    def _write(self, name: str) -> None:
        a, b = self._two(self.flat)
        source, value = self._source(a)
        salt = self._salt

        def run(read: View, out: View) -> None:
            out[...] = (_places(out) * salt + value(read, out)) % PRIME

        granularity = self._number(1, 4)
        self.program.task(
            run, range=self._n, reads=[source], writes=[b[one_to_one]], granularity=granularity, name=name
        )

    def _write_and_reduce(self, name: str) -> None:
        a, b = self._two(self.flat)
        source, value = self._source(a)
        salt, op = self._salt, self._op

        def run(read: View, out: View, total: View) -> None:
            out[...] = (_places(out) * salt + value(read, out)) % PRIME
            _put(total, slice(None), np.asarray(out), op)

        self.program.task(
            run, range=self._n, reads=[source], writes=[b[one_to_one]], reduces=[self.total[all_]], op=op, name=name
        )

    def _use_total(self, name: str) -> None:
        def run(total: View, out: View) -> None:
            out[...] = (np.asarray(out) + total.sum()) % PRIME

        width = 1 if self._number(0, 3) == 0 else self._n
        array = self.flat[self._number(0, 3)]
        self.program.task(run, range=width, reads=[self.total[all_]], updates=[array[one_to_one]], name=name)

    def _turn(self, name: str) -> None:
        def run(x: View, y: View) -> None:
            y[...] = np.asarray(x).T + 1

        c, d = self._two(self.square)
        split = ("1d", "2d")[self._number(0, 2)]
        self.program.task(
            run, range=(self._n,) * 2, reads=[c[transposed()]], writes=[d[one_to_one]], split=split, name=name
        )

    def _columns(self, name: str) -> None:
        def run(x: View, rows: View, line: View, z: View) -> None:
            z[...] = (np.asarray(z) + np.asarray(x).sum() + np.asarray(rows) + np.asarray(line)) % PRIME

        c, d = self._two(self.square)
        reads = [c[all_], c[slice_(1)], c[row(self._number(0, self._n))]]
        self.program.task(run, range=(self._n,) * 2, reads=reads, updates=[d[one_to_one]], name=name)

    def _rows(self, name: str) -> None:
        """Submits a matrix-vector product on a 2D range: vectors are projections of the range to one dimension."""

        def run(m: View, x: View, every: View, y: View) -> None:
            y[...] = (np.asarray(m) @ np.asarray(every) + np.asarray(x)) % PRIME

        a, b = self._two(self.flat)
        reads = [self.square[self._number(0, 2)][one_to_one], a[project(0)], a[project(1)]]
        self.program.task(run, range=(self._n,) * 2, reads=reads, writes=[b[project(0)]], name=name)

    def _mirrored(self, name: str) -> None:
        """Submits a task whose written part is mapped by a function."""

        def run(read: View, out: View) -> None:
            out[...] = (np.asarray(read)[::-1] + _places(out)) % PRIME

        a, b = self._two(self.flat)
        self.program.task(run, range=self._n, reads=[a[one_to_one]], writes=[b[MIRROR]], name=name)

    def _even_parts(self, name: str) -> None:
        def run(x: View, z: View) -> None:
            z[...] = (np.asarray(z) + 2 * np.asarray(x)) % PRIME

        a, b = self._two(self.flat)
        parts = even_split(self._number(1, 4))
        width = self._number(1, self._n + 1)
        self.program.task(run, range=width, reads=[a[parts]], updates=[b[parts]], name=name)

    def _reduce_part(self, name: str) -> None:
        """Submits a task in which every part of the range contributes to all of a fixed part of the array."""
        low = self._number(0, self._n)
        extent, op, salt = self._number(1, self._n + 1 - low), self._op, self._salt

        def run(read: View, sums: View) -> None:
            for k in range(len(sums)):
                _put(sums, k, (np.asarray(read) * (k + salt)) % PRIME, op)

        source = self.flat[self._number(0, 3)][one_to_one]
        target = self.sums[fixed(low, extent)]
        self.program.task(run, range=self._n, reads=[source], reduces=[target], op=op, name=name)

    def _scatter_sums(self, name: str) -> None:
        """Submits a task in which every element contributes to its neighbors."""
        n, op = self._n, self._op

        def run(read: View, sums: View) -> None:
            for i, value in zip(_places(read), np.asarray(read), strict=True):
                for k in (i - 1, i, i + 1):
                    if 0 <= k < n:
                        _put(sums, k - sums.offset[0], value + k - i, op)

        source = self.flat[self._number(0, 3)][one_to_one]
        self.program.task(run, range=n, reads=[source], reduces=[self.sums[halo(1)]], op=op, name=name)

    def _use_sums(self, name: str) -> None:
        source, value = self._source(self.sums)
        width = 1 if self._number(0, 4) == 0 else self._n

        def run(read: View, out: View) -> None:
            out[...] = (np.asarray(out) + value(read, out)) % PRIME

        array = self.flat[self._number(0, 3)]
        self.program.task(run, range=width, reads=[source], updates=[array[one_to_one]], name=name)

    def _once(self, name: str) -> None:
        """Submits a task that runs on one rank, with all elements of two arrays."""

        def run(a: View, b: View) -> None:
            b[...] = (np.asarray(b) + np.asarray(a)[::-1]) % PRIME

        a, b = self._two(self.flat)
        self.program.task(run, range=1, reads=[a[all_]], updates=[b[all_]], name=name)


def _put(view: View, at: Any, values: Any, op: str) -> None:
    """Combines values into a partial result by an operator."""
    match op:
        case "sum":
            view[at] += np.sum(values)
        case "max":
            view[at] = np.maximum(view[at], np.max(values))
        case _:
            view[at] = np.minimum(view[at], np.min(values))
