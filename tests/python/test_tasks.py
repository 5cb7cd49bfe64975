"""Programs of tasks over arrays, on one rank: views of kernels, refusals, and predicted communication."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, all_, fixed, halo, mapper, one_to_one, project, row, shift, slice_, transposed

from .conftest import call, json_of, written

N_BODY = """
import numpy as np
from unisono.tasks import Program, all_, one_to_one

N, DT = 64, 1e-3
positions = np.random.default_rng(1).normal(size=(N, 3))

def step(p, v):
    i = v.offset[0]
    d = p[None, :, :] - p[i : i + len(v), None, :]
    r = np.sqrt((d * d).sum(axis=2)) + 1e-9
    v += DT * (d / r[..., None] ** 3).sum(axis=1)

def move(v, p):
    p += DT * v

program = Program()
P, V = program.array((N, 3), init=positions, name="P"), program.zeros((N, 3), name="V")
for _ in range(4):
    program.task(step, range=N, reads=[P[all_]], updates=[V[one_to_one]])
    program.task(move, range=N, reads=[V[one_to_one]], updates=[P[one_to_one]])
program.run()
print("done")
"""


def test_n_body_is_plain_numpy(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(N_BODY, names)
    program, p, v = names["program"], names["P"], names["V"]
    assert isinstance(program, Program)
    x = np.random.default_rng(1).normal(size=(64, 3))
    u = np.zeros((64, 3))
    for _ in range(4):
        d = x[None, :, :] - x[:, None, :]
        r = np.sqrt((d * d).sum(axis=2)) + 1e-9
        u += 1e-3 * (d / r[..., None] ** 3).sum(axis=1)
        x += 1e-3 * u
    explained = program.explain(nodes=64)
    assert [f["collective"] for f in explained.forwards] == ["allgather"] * 3
    assert np.array_equal(program.fetch(p), x)  # type: ignore[arg-type]
    assert np.array_equal(program.fetch(v), u)  # type: ignore[arg-type]
    # A fetch is a forward to every rank.
    fetched = program.explain(nodes=64).forwards[3:]
    found = [(f["before_task"], f["collective"]) for f in fetched]
    assert found == [("fetch of P", "allgather"), ("fetch of V", "allgather")]
    assert (explained.messages["p2p"], explained.messages["collective"]) == (0, 3)
    assert explained.messages["collective_bytes"] == 3 * 63 * 64 * 24
    assert "move -> step: P allgather" in str(explained)

    file = written(tmp_path / "n-body.py", N_BODY)
    report = json_of("discover", str(file), "--nodes", "64")
    assert (report["forwards"], report["messages"]) == (explained.forwards, explained.messages)


def test_views_have_places_and_reads_are_read_only() -> None:
    p = Program()
    a, b = p.array((6, 4), init=np.arange(24).reshape(6, 4)), p.array((6, 4), dtype=int)
    seen: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = []

    def look(*views: View) -> None:
        seen.extend((view.offset, view.shape, view.flags.writeable) for view in views)

    reads = [a[row(2)], a[fixed((1, 1), (2, 2))], a[shift(1, 0)], a[slice_(1)], a[halo(1, 1)]]
    p.task(look, range=(2, 2), reads=reads, writes=[b[one_to_one]], offset=(2, 1))
    p.run()
    assert seen == [
        ((2, 0), (1, 4), False),
        ((1, 1), (2, 2), False),
        ((3, 1), (2, 2), False),
        ((2, 0), (2, 4), False),
        ((1, 0), (4, 4), False),
        ((2, 1), (2, 2), True),
    ]

    def wrong(a: View) -> None:
        a += 1

    p.task(wrong, range=6, reads=[a[one_to_one]])
    with pytest.raises(ValueError, match="read-only"):
        p.run()
    with pytest.raises(un.InputError, match="task 'wrong' has failed"):
        p.run()


def test_reductions_and_functions() -> None:
    p = Program()
    matrix, x = p.array((4, 4), init=np.arange(16.0).reshape(4, 4)), p.array(4, init=np.ones(4))
    y, top = p.array(4), p.zeros(1)

    def multiply(m: View, x: View, y: View) -> None:
        y[...] = m @ x

    def largest(y: View, top: View) -> None:
        np.maximum(top, y.max(), out=top)

    p.task(multiply, range=(4, 4), reads=[matrix[one_to_one], x[all_]], writes=[y[project(0)]])
    p.task(largest, range=4, reads=[y[one_to_one]], reduces=[top[all_]], op="max")
    p.task(lambda top: None, range=4, reads=[top[all_]], name="use")
    assert p.fetch(top).tolist() == [54]
    # Each rank reads the elements that it wrote, so the first forward needs no message.
    explained = p.explain(4)
    assert [f["collective"] for f in explained.forwards] == [None, "allreduce"]
    assert (explained.messages["p2p"], explained.messages["collective"]) == (0, 1)

    turned = mapper(lambda low, high, shape: [((low[1], low[0]), (high[1], high[0]))])
    for how in (transposed(), turned):
        q = Program()
        a, b = q.array((4, 6), init=np.arange(24).reshape(4, 6)), q.array((6, 4), dtype=int)
        q.task(lambda a, b: np.copyto(b, a.T), range=(6, 4), reads=[a[how]], writes=[b[one_to_one]])
        assert np.array_equal(q.fetch(b), np.arange(24).reshape(4, 6).T)


def test_a_task_that_is_submitted_again_is_the_same_task() -> None:
    """A task submitted again has the same number, also by unhashable arguments; kernels may keep or change views."""
    kept: list[View] = []

    def add(a: View, b: View) -> None:
        kept.append(a)
        assert (a.shape, a.offset, a.flags.writeable, b.flags.writeable) == ((8,), (0,), False, True)
        b += a
        a.shape, a.offset, b.shape = (4, 2), (7,), (2, 4)

    p, q = Program(), Program()
    a, b = p.array(8, init=np.arange(8.0), name="a"), p.zeros(8, name="b")
    c, d = q.array(8, init=np.arange(8.0), name="a"), q.zeros(8, name="b")
    assert a[halo(1)] is a[halo(1)]
    for _ in range(600):
        p.task(add, range=8, reads=[a[all_]], updates=[b[one_to_one]])
        # A list has no hash, so this task is checked each time.
        q.task(add, range=[8], reads=[c[all_]], updates=[d[one_to_one]])
    assert p._discovery.chain == q._discovery.chain
    assert p._discovery.task_name(599) == "add"
    for made, array in ((p, b), (q, d)):
        assert np.array_equal(made.fetch(array), 600 * np.arange(8.0))
    assert len({id(view) for view in kept}) == 1200
    assert p.explain(4).messages == q.explain(4).messages
    with pytest.raises(un.InputError, match="there is no task 700"):
        p._discovery.again(700)

    # A reduction starts from neutral elements each time; with another kernel, range or array it is another task.
    total = p.zeros(1, name="total")
    for k in range(3):
        p.task(lambda a, total: total.__iadd__(a.sum()), range=8, reads=[a[one_to_one]], reduces=[total[all_]])
        p.task(add, range=8, reads=[a[all_]], updates=[b[one_to_one]], name=f"add {k % 2}")
    assert p.fetch(total).tolist() == [28]
    assert np.array_equal(p.fetch(b), 603 * np.arange(8.0))
    # Measurements run kernels on copies, and change no array of the program.
    p.scaling("paper-sim", [1, 2])
    assert np.array_equal(p.fetch(b), 603 * np.arange(8.0))


def test_what_lies_between_boxes_stays() -> None:
    """If a function maps to both ends of an array, a reduction starts from neutral elements only there."""
    ends = mapper(lambda low, high, shape: [((0,), (1,)), ((shape[0] - 1,), shape)])
    p = Program()
    a, b = p.array(6, init=np.arange(6)), p.array(4, init=[1, 2, 3, 4])

    def add(b: View, a: View) -> None:
        a[0] += b.sum()
        a[-1] -= b.sum()

    p.task(add, range=4, reads=[b[one_to_one]], reduces=[a[ends]])
    assert p.fetch(a).tolist() == [10, 1, 2, 3, 4, -10]


def test_what_is_refused() -> None:
    p, q = Program(), Program()
    a, other = p.array(8), q.zeros(8)
    with pytest.raises(un.InputError, match=r"task 't', buffer 'a0', rank 0: it reads .* nothing has written"):
        p.task(print, range=8, reads=[a[one_to_one]], name="t")
    with pytest.raises(un.InputError, match=r"task 'fetch of a0', buffer 'a0', rank 0: it reads \[0, 8\)"):
        p.fetch(a)
    with pytest.raises(un.InputError, match="overlapping writes"):
        p.task(print, range=8, writes=[a[all_]])
    with pytest.raises(un.InputError, match="of this program"):
        p.task(print, range=8, reads=[other[all_]])
    with pytest.raises(un.InputError, match="indexed with 3; accepted are mappers"):
        a[3]  # type: ignore[index]
    square = q.zeros((8, 8))
    for wrong in (other[halo(1, 2)], other[shift(0, 2)], square[halo(1, 2)], square[shift(1, 2)]):
        with pytest.raises(un.InputError, match=r"of 2 in dimension 1; accepted are 1 dimension, those of the range"):
            q.task(print, range=8, reads=[wrong])
    with pytest.raises(un.InputError, match=r"a halo of 3 in dimension 2; accepted are 2 dimensions"):
        q.task(print, range=(8, 8), reads=[square[halo(1, 2, 3)]])
    with pytest.raises(un.InputError, match="'xor' is not an operator; accepted are sum"):
        p.task(print, range=8, reduces=[a[all_]], op="xor")
    with pytest.raises(un.InputError, match="its contents have"):
        p.array((2, 2), init=np.zeros(3))
    with pytest.raises(un.InputError, match=r"task 'print': range is 2.5; accepted are whole numbers"):
        p.task(print, range=2.5, writes=[a[one_to_one]])  # type: ignore[arg-type]
    with pytest.raises(un.InputError, match="'nonsense' is neither a machine preset"):
        Program(machine="nonsense")
    with pytest.raises(un.InputError, match="both were given"):
        Program(machine="archer", plan="t.plan")
    with pytest.raises(FileNotFoundError):
        Program(plan="missing.plan")
    with pytest.raises(un.InputError, match="dtypes of fixed size"):
        p.array(2, dtype=object)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("1 / 0", 1, "ZeroDivisionError"),
        ("x = 1", 2, "makes no program with tasks; accepted is one"),
        ("raise SystemExit(3)", 1, "ended with 3"),
    ],
)
def test_files_without_a_program(tmp_path: Path, text: str, code: int, said: str) -> None:
    file = written(tmp_path / "program.py", text)
    ran = call("discover", str(file), "--nodes", "4")
    assert ran.code == code
    assert said in ran.err
    missing = call("discover", str(tmp_path / "missing.py"), "--nodes", "4", "--json")
    assert missing.code == 2


def test_json_is_all_on_standard_output(tmp_path: Path) -> None:
    file = written(tmp_path / "n-body.py", N_BODY)
    ran = call("discover", str(file), "--nodes", "2", "--json")
    assert json.loads(ran.out)["nodes"] == 2
    assert "done" in ran.err


CONVERGES = """
import sys
from unisono.tasks import Program, all_, one_to_one
from helper import LIMIT

program = Program()
x, change = program.zeros(64, name="x"), program.zeros(1, name="change")
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else None

def step(x): x += 1
def worst(x, change): change[:] = max(change[0], x.max())

while True:
    program.task(step, range=64, updates=[x[one_to_one]])
    program.task(worst, range=64, reads=[x[one_to_one]], reduces=[change[all_]], op="max")
    if program.fetch(change)[0] >= LIMIT or len(program.tasks) // 2 == rounds:
        break
"""


@pytest.fixture
def converging(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("LIMIT = 10\n")
    return written(tmp_path / "converges.py", CONVERGES)


def test_a_loop_that_waits_for_contents_is_recorded_for_some_rounds(converging: Path) -> None:
    ran = call("discover", str(converging), "--nodes", "8", "--rounds", "7", "--json")
    assert ran.code == 0, ran.err
    assert "line 16 of converges.py fetched 'change' 7 times" in ran.err
    assert ran.json["notes"] == [ran.err.removeprefix("note: ").strip()]
    # The allreduce of the loop's condition is reported for every round.
    assert [f["collective"] for f in ran.json["forwards"] if f["buffer"] == "change"] == ["allreduce"] * 7
    priced = json_of("discover", str(converging), "--nodes", "8", "--rounds", "7", "--machine", "archer")
    assert priced["predicted"]["seconds"] > 0


def test_arguments_and_neighbors_of_a_file_are_found(converging: Path) -> None:
    ran = call("discover", str(converging), "--nodes", "8", "--json", "--", "3")
    assert ran.code == 0, ran.err
    assert len([f for f in ran.json["forwards"] if f["buffer"] == "change"]) == 3
    assert "zeros here" in ran.err
    assert call("discover", "program.json", "--nodes", "2", "--", "3").code == 2


def test_options_of_a_program_stand_after_two_dashes(converging: Path) -> None:
    ran = call("discover", str(converging), "--nodes", "8", "--n", "50")
    assert (ran.code, "options of the program itself stand after --" in ran.err) == (2, True)
    assert "stand after --" not in call("machines", "--n", "50").err


def test_programs_without_communication_have_no_empty_table(tmp_path: Path) -> None:
    file = tmp_path / "alone.py"
    file.write_text(
        "from unisono.tasks import Program, one_to_one\nprogram = Program()\na = program.zeros(8, name='a')\n"
        "program.task(lambda a: a.fill(1), range=8, writes=[a[one_to_one]])\n"
    )
    said = "4 nodes: no communication (0 collectives, 0 messages)\n"
    assert call("discover", str(file), "--nodes", "4").out == said
    assert call("discover", str(file), "--nodes", "4", "--machine", "archer").out.endswith(said)


def test_fetches_are_in_graphs(converging: Path, tmp_path: Path) -> None:
    for kind in ("tasks", "commands"):
        graph = tmp_path / f"{kind}.dot"
        ran = call("discover", str(converging), "--nodes", "2", "--graph", str(graph), "--graph-kind", kind, "--", "2")
        assert ran.code == 0, ran.err
        assert "fetch of change" in graph.read_text()


def smooth(old: View, new: View) -> None:
    """Computes means of three neighbors element by element, so reading written elements would give wrong means."""
    left = new.offset[0] - old.offset[0]
    wide = np.pad(old, (1 - left, 1 - (len(old) - left - len(new))), mode="edge")
    for i in range(len(new)):
        new[i] = wide[i : i + 3].mean()


def count(total: View, a: View, more: View) -> None:
    more += a.sum() + total[0] * len(a) / 50


@pytest.mark.parametrize("change", ["writes", "updates"])
def test_a_task_that_changes_what_it_reads_gets_old_contents(change: str) -> None:
    p = Program()
    start = np.linspace(0, 1, 50) ** 2
    a, total = p.array(50, init=start, name="a"), p.array(1, init=[3.0], name="total")
    expected, counted = start, 3.0
    for _ in range(5):
        p.task(smooth, range=50, reads=[a[halo(1)]], **{change: [a[one_to_one]]})  # type: ignore[arg-type]
        p.task(count, range=50, reads=[total[all_], a[one_to_one]], reduces=[total[all_]])
        wide = np.pad(expected, 1, mode="edge")
        expected = np.mean([wide[:-2], wide[1:-1], wide[2:]], axis=0)
        counted += expected.sum()
    assert np.allclose(p.fetch(a), expected, rtol=1e-14)
    assert p.fetch(total)[0] == pytest.approx(counted, rel=1e-14)


def test_a_kernel_of_other_parameters_is_named() -> None:
    p = Program()
    a, b = p.zeros(8, name="a"), p.zeros(8, name="b")

    def copy(a: View, b: View) -> None:
        b[...] = a

    p.task(copy, range=8, writes=[b[one_to_one]])
    said = r"task 'copy': its kernel gets 1 view, .* its parameters are \(a: .*, b: .*\).* \(missing .* 'b'\); give as"
    with pytest.raises(un.InputError, match=said):
        p.run()
    q = Program()
    a = q.zeros(8, name="a")
    q.task(copy, range=8, updates=[a[one_to_one], a[one_to_one]], offsets=True)
    with pytest.raises(un.InputError, match=r"gets 2 views and the offsets, .*too many"):
        q.run()


def test_mistakes_with_arrays_are_named() -> None:
    program = Program()
    a = program.zeros(8, name="a")

    def nothing(*_: object) -> None: ...

    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: np.asarray(a), r"program.fetch\(array\) gives its contents"),
        (lambda: program.array(np.arange(8.0)), r"contents are given as init="),  # type: ignore[arg-type]
        (lambda: program.zeros(4, name="a"), "there is an array 'a' already"),
        (lambda: program.task(nothing, range=9, reads=[a[one_to_one]]), "its range ends at 9 in dimension 0"),
        (lambda: program.task(nothing, range=4, offset=5, reads=[a[one_to_one]]), "its range ends at 9 in dimension 0"),
        (lambda: program.task(nothing, range=8, reads=a[one_to_one]), r"write \[array\[mapper\]\]"),  # type: ignore[arg-type]
    ]
    for mistake, reason in mistakes:
        with pytest.raises(un.InputError, match=reason):
            mistake()
    assert not program.tasks


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_operators_combine_a_dtype_as_numpy_or_refuse_it(op: str) -> None:
    """A dtype is refused when the task is submitted, with the kinds of dtypes that the operator combines."""
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    taken = set()
    for code in np.typecodes["All"].replace("O", "").replace("S", "").replace("U", "").replace("V", ""):
        program = Program()
        values = np.array([3, 1, 2]).astype("m8[s]" if code == "m" else "M8[s]" if code == "M" else code)
        given, total = program.array(3, values), program.array(1, dtype=values.dtype)

        def reduce(given: View, total: View) -> None:
            for at in range(3):
                combine(total, given[at], out=total)

        try:
            program.task(reduce, range=1, reads=[given[all_]], reduces=[total[all_]], op=op)
        except un.InputError as refused:
            assert f"of dtype {values.dtype} by {op}, which accepts dtypes of kind" in str(refused)  # noqa: PT017
            continue
        taken.add(code)
        assert program.fetch(total)[0] == combine(combine(values[0], values[1]), values[2])
    assert taken >= set("bhilqBHILQefdg" + ("FDG?m" if op == "sum" else "FDG?" if op == "prod" else ""))
    assert not taken & set("M" if op in ("sum", "prod") else "FDG")
