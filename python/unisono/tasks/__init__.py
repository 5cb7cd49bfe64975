"""Programs of data-parallel tasks on arrays, whose communication is derived from the tasks' accesses.

>>> import numpy as np
>>> from unisono.tasks import Program, all_, one_to_one
>>> p = Program()
>>> a, total = p.array((8,), init=np.arange(8.0)), p.zeros((1,))
>>> def add(a, total):
...     total += a.sum()
>>> p.task(add, range=8, reads=[a[one_to_one]], reduces=[total[all_]])
>>> p.run()
>>> p.fetch(total)
array([28.])
"""

from unisono.tasks._arrays import Access, Array, View
from unisono.tasks._explanation import Explanation
from unisono.tasks._mappers import (
    all_,
    even_split,
    fixed,
    halo,
    mapper,
    neighborhood,
    one_to_one,
    project,
    row,
    row_chunk,
    shift,
    slice_,
    transposed,
)
from unisono.tasks._program import Program
from unisono.tasks._scaling import Scaling

__all__ = [
    "Access",
    "Array",
    "Explanation",
    "Program",
    "Scaling",
    "View",
    "all_",
    "even_split",
    "fixed",
    "halo",
    "mapper",
    "neighborhood",
    "one_to_one",
    "project",
    "row",
    "row_chunk",
    "shift",
    "slice_",
    "transposed",
]
