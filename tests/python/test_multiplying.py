"""`unisono.planning.multiplying` from Python: the search, the language of stages, and errors of wrong input."""

import pytest
import unisono as un
from unisono.planning import multiplying
from unisono.reproduce.multiplying_dissemination import repairable


def test_the_best_of_each_kind() -> None:
    assert multiplying.best(8, 4, 1) == ("a8", 11)
    assert multiplying.best(127, 4, 1, kind="factored") == ("a127", 130)
    kinds = [multiplying.best(127, 4, 1, kind=kind) for kind in ("any", "merge", "split")]
    assert [found.cost for found in kinds if found] == [26, 26, 31]
    assert multiplying.best(4, 4, 1, kind="merge") is None
    assert multiplying.best(1, 4, 1) == ("", 0)


def test_bytes_make_messages_dearer() -> None:
    assert multiplying.cost("a4,a2", 8, 4, 1) == 12
    assert multiplying.cost("a4,a2", 8, 4, 1, bytes=10, beta=0.5, gamma=0.25) == 8 + 4 * (1 + 5 + 2.5)
    found = multiplying.best(8, 4, 1, bytes=1e6, beta=1)
    assert found is not None
    assert found.schedule == "a2,a2,a2"


def test_what_there_is() -> None:
    assert multiplying.count(7) == {"factored": 1, "split": 13, "merge": 3}
    everything = multiplying.schedules(7)
    assert len(set(everything)) == 17
    assert {"a7", "c6m2,a2,a2,e6m2", "m1g2a3,n1g3a2", "m3g2a2,n3g2a2"} <= set(everything)
    assert multiplying.fan_out(4) == pytest.approx(3.971, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: multiplying.best(0, 1, 1), ["0", "1 to 4194304"]),
        (lambda: multiplying.best(8, -1, 1), ["-1"]),
        (lambda: multiplying.best(8, 1, float("nan")), ["NaN"]),
        (lambda: multiplying.best(8, 1, 1, kind="odd"), ["odd", "merge"]),
        (lambda: multiplying.cost("a4,a4", 8, 1, 1), ["a4,a4", "16", "8"]),
        (lambda: multiplying.schedules(4096), ["4096", "1048576"]),
        (lambda: multiplying.fan_out(-1), ["-1"]),
    ],
)
def test_wrong_input(call: object, words: list[str]) -> None:
    assert callable(call)
    with pytest.raises(un.InputError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), caught.value


def test_dissemination_is_repaired_where_sums_make_the_operands() -> None:
    assert all(repairable((ways + 1) ** rounds, ways) for ways in (1, 2, 3) for rounds in (1, 2, 3))
    # After two rounds of one way, a rank has the sums of {0}, {1} and {2, 3}; its peer, of {4}, {5} and {6, 0}.
    assert repairable(7, 1)
    assert not repairable(13, 1)
    assert repairable(13, 2)
