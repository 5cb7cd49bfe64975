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

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    from unisono.tasks._arrays import Access as Access
    from unisono.tasks._arrays import Array as Array
    from unisono.tasks._arrays import View as View
    from unisono.tasks._explanation import Explanation as Explanation
    from unisono.tasks._mappers import all_ as all_
    from unisono.tasks._mappers import even_split as even_split
    from unisono.tasks._mappers import fixed as fixed
    from unisono.tasks._mappers import halo as halo
    from unisono.tasks._mappers import mapper as mapper
    from unisono.tasks._mappers import neighborhood as neighborhood
    from unisono.tasks._mappers import one_to_one as one_to_one
    from unisono.tasks._mappers import project as project
    from unisono.tasks._mappers import row as row
    from unisono.tasks._mappers import row_chunk as row_chunk
    from unisono.tasks._mappers import shift as shift
    from unisono.tasks._mappers import slice_ as slice_
    from unisono.tasks._mappers import transposed as transposed
    from unisono.tasks._program import Program as Program
    from unisono.tasks._scaling import Scaling as Scaling

__all__, __getattr__ = lazy(__name__, globals())
