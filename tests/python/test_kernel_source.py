"""Kernels that only rebind the name of a view, or return or drop a result, are refused; others are accepted."""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, all_, one_to_one

Kernel = Callable[..., Any]


def submit(kernel: Kernel, *, reduces: bool = False, run: bool = False) -> np.ndarray[Any, np.dtype[Any]] | None:
    """Submits a task that reads `a` and updates or reduces `b`; returns `b` after a run."""
    program = Program()
    a, b = program.array(6, init=np.arange(6.0), name="a"), program.array(6, init=np.ones(6), name="b")
    program.task(
        kernel,
        range=6,
        reads=[a[one_to_one]],
        updates=[] if reduces else [b[one_to_one]],
        reduces=[b[all_]] if reduces else [],
        name="t",
    )
    if not run:
        return None
    program.run()
    return program.fetch(b)


def rebinds(a: Any, b: Any) -> None:
    b = a * b


def rebinds_after_a_fact(a: Any, b: Any) -> None:
    n = b.shape[0]
    b = np.sqrt(b) + a[:n]


def rebinds_and_writes_to_the_new_one(a: Any, b: Any) -> None:
    b = a + b
    b[0] = 5


def returns(a: Any, b: Any) -> Any:
    total = b + a
    return total - b


def returns_early(a: Any, b: Any) -> Any:
    if len(b) > 3:
        return a + b[1:].size
    return -b


def returns_without_the_view(a: Any, b: Any) -> Any:
    return a * 2


def returns_a_new_name(a: Any, b: Any) -> Any:
    out = np.dot(a, 2)
    return out, len(out)


def drops(a: Any, b: Any) -> None:
    np.sqrt(a)


def drops_in_a_loop(a: Any, b: Any) -> None:
    for k in range(len(b)):
        if a[k] > 0:
            b[k] + a[k]


def sets_a_new_name(a: Any, b: Any) -> None:
    _out = a * 2


class Method:
    def kernel(self, a: Any, b: Any) -> None:
        b = abs(b) * a


@pytest.mark.parametrize(
    ("kernel", "how"),
    [
        (rebinds, "assigns to the name b, which makes a new array"),
        (rebinds_after_a_fact, "assigns to the name b"),
        (rebinds_and_writes_to_the_new_one, "assigns to the name b"),
        (returns, "returns a result, which is dropped"),
        (returns_early, "returns a result, which is dropped"),
        (lambda a, b: a * b, "returns a result, which is dropped"),
        (lambda a, b: np.sqrt(a), "returns a result, which is dropped"),
        (returns_without_the_view, "returns a result, which is dropped"),
        (returns_a_new_name, "returns a result, which is dropped"),
        (drops, "drops its results"),
        (drops_in_a_loop, "drops its results"),
        (sets_a_new_name, "drops its results"),
        (Method().kernel, "assigns to the name b"),
    ],
)
def test_a_kernel_that_cannot_write_is_refused(kernel: Kernel, how: str) -> None:
    for reduces in (False, True):
        with pytest.raises(un.InputError, match="task 't': its kernel ") as refused:
            submit(kernel, reduces=reduces)
        assert how in str(refused.value)
        assert "never writes to 'b', which the task changes; accepted are writes to the view, such as b[...]" in str(
            refused.value
        )


def in_place(a: Any, b: Any) -> None:
    b *= a


def by_index(a: Any, b: Any) -> None:
    b[:] = a + b


def by_another_name(a: Any, b: Any) -> None:
    b = b[1:]
    b[:] = a[1:]


def by_the_same_name(a: Any, b: Any) -> None:
    b = b
    b[:] = a


def by_shape(a: Any, b: Any) -> None:
    b = b.reshape(2, 3)
    b += a.reshape(2, 3)


def by_out(a: Any, b: Any) -> None:
    np.add(a, b, out=b)


def by_third_argument(a: Any, b: Any) -> None:
    np.add(a, b, b)


def by_a_call(a: Any, b: Any) -> None:
    np.copyto(b, a)


def before_it_rebinds(a: Any, b: Any) -> float:
    b[:] = a
    b = a * 2
    return float(b.sum())


def if_it_may(a: Any, b: Any) -> None:
    if len(a) == 6:
        b[:] = a
    else:
        b = a * 2


def in_a_loop(a: Any, b: Any) -> None:
    for place in [b[k : k + 1] for k in range(len(b))]:
        place[:] = 7


def inside(a: Any, b: Any) -> None:
    def write() -> None:
        b[:] = a

    write()


def by_an_inner_result(a: Any, b: Any) -> Any:
    def view() -> Any:
        return b

    view()[:] = a
    return a * 2


def by_a_later_name(a: Any, b: Any) -> Any:
    other = b
    other += a
    return a * 2


add = np.add


def by_a_shadowed_name(a: Any, b: Any) -> Any:
    add = np.ndarray.__iadd__
    add(b, a)
    return a * 2


def by_text(a: Any, b: Any) -> Any:
    locals()["b"][:] = a
    return a * 2


def in_rows(a: Any, b: Any) -> Any:
    for row in b.reshape(3, 2):
        row[:] = 7
    return a * 2


def from_a_tuple(a: Any, b: Any) -> None:
    views = (b, a)
    b = 0
    views[0][:] = a


def conditional(a: Any, b: Any) -> None:
    other = b if len(a) else a
    b = a * 2
    other[:] = a


def extended(a: Any, b: Any) -> None:
    rows: list[Any] = []
    rows += [b]
    rows[0][:] = a


WRITES = [
    in_place, by_index, by_another_name, by_the_same_name, by_shape, by_out, by_third_argument, by_a_call,
    before_it_rebinds, if_it_may, in_a_loop, inside, from_a_tuple, conditional, extended, by_an_inner_result,
    by_a_later_name, by_text, by_a_shadowed_name, in_rows,
    lambda a, b: np.copyto(b, a), lambda a, b: b.__iadd__(a), lambda a, b: np.add(a, b, out=b),
]  # fmt: skip


@pytest.mark.parametrize("kernel", WRITES)
def test_a_kernel_that_writes_is_accepted_and_writes(kernel: Kernel) -> None:
    found = submit(kernel, run=True)
    assert found is not None
    assert not np.array_equal(found, np.ones(6))


def nothing(a: Any, b: Any) -> None:
    """Changes nothing."""


def sleeps(a: Any, b: Any) -> None:
    time.sleep(0)


def raises(a: Any, b: Any) -> None:
    if len(a) > 9:
        raise ValueError


def stars(*views: Any) -> Any:
    return views[0] * 2


def wrapped(kernel: Kernel) -> Kernel:
    @functools.wraps(kernel)
    def call(*views: Any) -> None:
        views[1][:] = kernel(*views)

    return call


def test_what_cannot_be_judged_is_accepted() -> None:
    made: dict[str, Any] = {}
    exec("def kernel(a, b):\n    b = a * 2\n", made)
    pair = [lambda a, b: a * b, lambda a, b: np.copyto(b, a)]
    for kernel in (
        nothing,
        sleeps,
        raises,
        lambda a, b: time.sleep(0),
        stars,
        wrapped(returns),
        functools.partial(rebinds),
        made["kernel"],
        np.add,
        *pair,
    ):
        submit(kernel)
    # A wrapper is accepted, since it writes the kernel's result.
    assert np.array_equal(submit(wrapped(returns), run=True), np.arange(6.0))  # type: ignore[arg-type]


def test_a_second_view_is_judged_by_its_own_name() -> None:
    def half(a: Any, b: Any, c: Any) -> None:
        b[:] = a
        c = a * c

    program = Program()
    a, b, c = (program.zeros(4, name=name) for name in "abc")
    with pytest.raises(un.InputError, match=r"assigns to the name c.* never writes to 'c'"):
        program.task(half, range=4, reads=[a[one_to_one]], writes=[b[one_to_one], c[one_to_one]])
    # The name of a view that is only read may be rebound.
    program.task(rebinds, range=4, reads=[a[one_to_one], c[one_to_one]])


def test_a_loop_of_lambdas_is_judged_once() -> None:
    from unisono.tasks import _kernel_source

    before = len(_kernel_source._found)
    program = Program()
    b = program.zeros(4, name="b")
    for factor in itertools.islice(itertools.count(), 20):
        program.task(lambda b, factor=factor: b.__iadd__(factor), range=4, updates=[b[one_to_one]])
    assert len(_kernel_source._found) <= before + 1
    program.run()
    assert np.array_equal(program.fetch(b), [190.0] * 4)
