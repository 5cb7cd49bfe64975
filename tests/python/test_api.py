"""The Python module: plans, proofs, files, algorithms of users, and interpretation with data."""

import copy
import pickle
import threading
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.base.reports import in_cycles
from unisono.tasks import Program, all_


def inputs(ranks: int, elements: int, dtype: type = np.float32) -> list[np.ndarray]:
    """Returns the inputs of ranks: random whole numbers, so that any order of a sum gives the same bits."""
    random = np.random.default_rng(ranks * 1000 + elements)
    return [random.integers(-50, 50, elements).astype(dtype) for _ in range(ranks)]


def exchange(elements: int = 8) -> un.Schedule:
    """Returns an allreduce of two ranks: each sends its input to the other, and both add."""
    b = un.ScheduleBuilder(ranks=2, elements=elements, name="exchange")
    streams = [b.stream(0, 1), b.stream(1, 0)]
    for me in (0, 1):
        b.combine(me, [b.input(me)], [streams[me]])
        b.combine(me, [streams[1 - me], b.input(me)], [b.output(me)])
    return b.build()


def test_plan_from_machine_or_name() -> None:
    machine = un.machine("wse2", shape=(4, 4))
    plan = un.plan("allreduce", machine, elements=256)
    assert plan.report() == un.plan("allreduce", "wse2", shape="4x4", bytes="1KiB").report()
    assert plan.algorithm == plan.candidates[0]["algorithm"]
    assert in_cycles(plan.bound) <= in_cycles(plan.predicted)
    assert plan.ratio == pytest.approx(in_cycles(plan.predicted) / in_cycles(plan.bound))


def test_machine_shapes() -> None:
    assert un.machine("wse2", shape=512).shape == (512,)
    assert un.machine("wse2", shape="3x4").shape == (3, 4)
    assert un.machine("wse2", shape=[3, 4]).shape == (3, 4)
    assert un.machine("wse2").shape is None


def test_machine_file_reads_back(tmp_path: Path) -> None:
    preset = un.machine("wse2", shape=(3, 4))
    file = tmp_path / "copy.toml"
    file.write_text(preset.to_toml())
    assert un.machine(file).describe() == preset.describe()
    assert un.machine(str(file), shape=7).shape == (7,)


def test_own_algorithm_is_verified_and_runs() -> None:
    schedule = exchange()
    proof = schedule.verify()
    assert proof
    assert proof.holds
    assert proof.complete
    assert proof.deadlock_free
    assert proof.race_free
    assert proof.repeatable
    assert proof.diagnostics == []
    given = inputs(2, 8)
    for result in schedule.interpret(given):
        np.testing.assert_array_equal(result, given[0] + given[1])


def test_own_algorithm_that_forgets_an_addition_is_refused() -> None:
    b = un.ScheduleBuilder(ranks=2, elements=8)
    streams = [b.stream(0, 1), b.stream(1, 0)]
    for me in (0, 1):
        b.combine(me, [b.input(me)], [streams[me]])
        b.combine(me, [streams[1 - me]], [b.output(me)])
    proof = b.build().verify()
    assert not proof
    assert not proof.complete
    assert proof.diagnostics[0]["message"]


def test_own_algorithm_that_waits_in_a_circle_is_refused() -> None:
    b = un.ScheduleBuilder(ranks=2, elements=8)
    streams = [b.stream(0, 1), b.stream(1, 0)]
    for me in (0, 1):
        b.combine(me, [streams[1 - me], b.input(me)], [b.output(me)])
        b.combine(me, [b.input(me)], [streams[me]])
    proof = b.build().verify()
    assert not proof.deadlock_free


def test_halves_with_slices_and_scratch() -> None:
    """In a ring of two, each rank reduces one half and sends the result back."""
    b = un.ScheduleBuilder(ranks=2, elements=8)
    for me, other in ((0, 1), (1, 0)):
        mine, theirs = (slice(0, 4), slice(4, 8)) if me == 0 else (slice(4, 8), slice(0, 4))
        out, back = b.stream(me, other), b.stream(other, me)
        kept = b.scratch(other, 4)
        assert len(kept) == 4
        b.combine(me, [b.input(me)[theirs]], [out], lane=0)
        b.combine(other, [out, b.input(other)[theirs]], [kept, back, b.output(other)[theirs]], lane=1)
        b.combine(me, [back], [b.output(me)[theirs]], lane=2)
        assert (b.input(me)[mine].start, b.input(me)[mine].stop) == (mine.start, mine.stop)
    schedule = b.build()
    proof = schedule.verify()
    assert proof, proof.diagnostics
    assert proof.scratch_bytes_max == 16
    given = inputs(2, 8)
    for result in schedule.interpret(given):
        np.testing.assert_array_equal(result, given[0] + given[1])


@pytest.mark.parametrize("name", ["a.sched", "a.json"])
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce"])
def test_save_and_load(name: str, collective: str, tmp_path: Path) -> None:
    schedule = un.plan(collective, "wse2", shape=(3, 3), elements=10).schedule
    un.save(schedule, tmp_path / name)
    again = un.load(tmp_path / name)
    assert again == schedule
    assert again.to_text() == schedule.to_text()
    assert again.machine is not None
    assert again.machine.shape == (3, 3)
    assert again.predict() == schedule.predict()


def test_file_keeps_its_link_and_permissions(tmp_path: Path) -> None:
    schedule = exchange()
    un.save(schedule, tmp_path / "real.sched")
    (tmp_path / "link.sched").symlink_to("real.sched")
    un.save(un.plan("reduce", "wse2", shape=3, elements=2).schedule, tmp_path / "link.sched")
    assert (tmp_path / "link.sched").is_symlink()
    assert un.load(tmp_path / "real.sched").collective == "reduce"
    plain = tmp_path / "plain"
    plain.write_text("")
    assert (tmp_path / "real.sched").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("algorithm", ["star", "chain", "tree", "two-phase", "auto-gen"])
@pytest.mark.parametrize("root", [0, 4, 8])
def test_reduce_gives_the_sum_at_the_root(algorithm: str, root: int) -> None:
    schedule = un.plan("reduce", "wse2", shape=9, elements=10, root=root, algorithm=algorithm).schedule
    given = inputs(9, 10)
    assert schedule.verify()
    for chunk in (None, 1, 3):
        result = schedule.interpret(given, chunk=chunk, seed=7)[root]
        np.testing.assert_array_equal(result, np.sum(given, axis=0))


@pytest.mark.parametrize(
    ("op", "reference"), [("sum", np.add), ("prod", np.multiply), ("min", np.minimum), ("max", np.maximum)]
)
@pytest.mark.parametrize(
    ("dtype", "kind"), [("f32", np.float32), ("f64", np.float64), ("i32", np.int32), ("i64", np.int64)]
)
def test_operators(op: str, reference: np.ufunc, dtype: str, kind: type) -> None:
    schedule = un.plan("allreduce", "wse2", shape=5, elements=7, op=op, dtype=dtype, algorithm="chain").schedule
    given = [np.clip(vector, -3, 3) for vector in inputs(5, 7, kind)]
    expected = reference.reduce(np.stack(given))
    for result in schedule.interpret(given):
        assert result.dtype == kind
        np.testing.assert_array_equal(result, expected.astype(kind))


@pytest.mark.parametrize(("op", "reference"), [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)])
def test_bitwise_operators(op: str, reference: np.ufunc) -> None:
    schedule = un.plan("allreduce", "wse2", shape=5, elements=7, op=op, dtype="i32").schedule
    given = inputs(5, 7, np.int32)
    for result in schedule.interpret(given):
        np.testing.assert_array_equal(result, reference.reduce(np.stack(given)))


def test_interpret_refuses_other_data() -> None:
    schedule = exchange()
    with pytest.raises(un.InputError):
        schedule.interpret(inputs(1, 8))
    with pytest.raises(un.InputError):
        schedule.interpret(inputs(2, 9))
    with pytest.raises(un.InputError):
        schedule.interpret(inputs(2, 8, np.float64))


def test_place_an_own_schedule_on_a_machine() -> None:
    placed = exchange().on(un.machine("wse2", shape=2))
    assert placed.machine is not None
    assert in_cycles(placed.predict()) > 0
    with pytest.raises(un.InputError):
        exchange().on(un.machine("wse2", shape=3))


def test_numbers_of_numpy() -> None:
    machine = un.machine("wse2", shape=(np.int64(3), np.uint8(4)))
    assert machine.shape == (3, 4)
    assert un.machine("wse2", shape=np.array([3, 4])).shape == (3, 4)
    assert un.machine("wse2", shape=np.int32(4)).shape == (4,)
    plain = un.plan("reduce", machine, elements=8, root=7).report()
    assert un.plan("reduce", machine, elements=np.int64(8), root=np.int16(7)).report() == plain
    assert un.plan("reduce", machine, bytes=np.int64(32), root=np.array([1, 3])).report() == plain
    assert un.plan("reduce", machine, bytes=np.array(32), root=[1, 3]).report() == plain
    assert len(un.sweep("reduce", "wse2", shapes=np.array([4, 8]), elements=np.array([1, 2]))) == 4
    b = un.ScheduleBuilder(ranks=np.int64(3), elements=8)
    assert b.stream(0, np.array([1, 2])).id == 0
    cut = b.input(np.int64(0))[np.int64(-4) : np.int64(8)]
    assert (cut.start, cut.stop) == (4, 8)


def test_a_collective_over_nothing_can_be_built() -> None:
    assert exchange(0).verify()


def test_sweep_takes_an_operator() -> None:
    options: dict[str, Any] = {"shapes": [(3, 4)], "elements": [1000], "model": "links", "dtype": "i64"}
    assert "snake" in un.sweep("reduce", "wse2", **options)[0]["seconds_by_algorithm"]
    # A snake combines every second row backwards.
    assert "snake" not in un.sweep("reduce", "wse2", op="ordered", **options)[0]["seconds_by_algorithm"]


def test_a_phase_notes_what_was_searched() -> None:
    plan = un.plan("allreduce", "wse2", shape=(4, 64), elements=64, algorithm="two-phase-searched")
    notes = {phase["name"]: phase["note"] for phase in plan.predicted["phases"] or ()}
    assert str(notes["row-reduce"]).startswith("groups of ")
    assert notes["broadcast"] is None


def test_a_placement_beyond_its_machine_is_refused() -> None:
    text = un.plan("reduce", "wse2", shape=5, elements=4).schedule.to_text()
    assert un.Schedule.parse(text).verify()
    proof = un.Schedule.parse(text.replace("| max_shape = [996, 757]", "| max_shape = [2, 2]")).verify()
    assert [found["code"] for found in proof.diagnostics] == ["placement-machine"]
    assert "2 rows and 2 columns" in proof.diagnostics[0]["message"]


def test_sweep_reports_progress() -> None:
    seen: list[tuple[int, int]] = []
    points = un.sweep(
        "reduce", "wse2", shapes=[4, (2, 3)], elements=[1, 8], progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [point["shape"] for point in points] == [[4], [4], [2, 3], [2, 3]]
    for point in points:
        assert point["cycles_by_algorithm"] is not None
        assert point["cycles"] == min(point["cycles_by_algorithm"].values())


def test_python_goes_on_while_rust_works() -> None:
    schedule = un.plan("reduce", "wse2", shape=(512, 512), elements=256, algorithm="chain").schedule
    done = threading.Event()

    def work() -> None:
        schedule.verify()
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    # If the proof kept the GIL, this thread would not run before the proof has ended.
    ran_meanwhile = not done.wait(0.001)
    worker.join()
    assert ran_meanwhile


def test_algorithms_are_listed_by_collective() -> None:
    everything = un.algorithms()
    for collective in ("broadcast", "reduce", "allreduce"):
        expected = [a for a in everything if collective in a["collectives"]]
        assert un.algorithms(collective) == expected


def test_objects_print_what_they_are() -> None:
    machine = un.machine("wse2", shape=4)
    plan = un.plan("reduce", machine, elements=4)
    for thing in (machine, plan, plan.schedule, plan.schedule.verify()):
        assert type(thing).__name__ in repr(thing)


def test_reprs_are_one_short_line_that_says_what_a_thing_is() -> None:
    builder = un.ScheduleBuilder(ranks=4, elements=1024)
    buffer, stream = builder.input(2), builder.stream(0, 1)
    program = Program()
    program.array((8, 3))
    traffic = un.traffic("permutation", "hx2mesh-small", bytes=65536, level="flow")
    for thing, words in [
        (builder, "allreduce of 1024 f32 on 4 ranks"),
        (buffer, "input of node 2: 1024 elements"),
        (buffer[4:8], "4:8 of the input of node 2"),
        (stream, "0"),
        (program, "of 1 arrays"),
        (traffic, "permutation of 65536 bytes on 1024 accelerators of hx2mesh-small"),
    ]:
        assert type(thing).__name__ in repr(thing)
        assert words in repr(thing)
        assert len(repr(thing)) < 120
        assert "\n" not in repr(thing)


@pytest.mark.parametrize("spelling", ["sum", "SUM", "Add", "MPI_SUM"])
def test_tasks_take_operators_as_plans_do(spelling: str) -> None:
    program = Program()
    total = program.zeros(1, name="total")
    program.task(lambda view: view.fill(1), range=4, reduces=[total[all_]], op=spelling)
    assert program.tasks[0].operator == "sum"
    with pytest.raises(un.InputError, match=r"'median' is not an operator.*accepted are sum, prod, max, min$"):
        program.task(lambda view: view.fill(1), range=4, reduces=[total[all_]], op="median")


def test_parameters_are_any_mapping() -> None:
    typed: dict[str, int] = {"group": 2}
    plans = [
        un.plan("reduce", "wse2", shape=8, elements=16, algorithm="two-phase", params=params)
        for params in (typed, MappingProxyType(typed), {"group": "2"})
    ]
    assert len({(plan.predicted["seconds"], str(plan.params)) for plan in plans}) == 1


@pytest.mark.parametrize(
    ("machine", "part"), [("torus2d-small", (2, 3)), ("archer", 6), ("wse2", (2, 3)), ("piuma", 6)]
)
def test_schedules_are_pickled_and_other_results_say_what_to_send(machine: str, part: Any) -> None:
    where = {"ranks": part} if isinstance(part, int) else {"shape": part}
    plan = un.plan("allreduce", machine, elements=24, **where)
    schedule = plan.schedule
    proof, run = schedule.verify(), un.simulate(schedule)
    back = pickle.loads(pickle.dumps(schedule))
    assert (back, back.to_text(), back.origin) == (schedule, schedule.to_text(), schedule.origin)
    assert copy.deepcopy(schedule) is schedule
    assert un.simulate(back).seconds == run.seconds
    for one in (plan, proof, run.simulation):
        assert copy.copy(one) is one
        assert copy.deepcopy(one) is one
    assert copy.deepcopy(run).seconds == run.seconds
    for result in (plan, proof, run):
        with pytest.raises(TypeError, match="not pickled: send "):
            pickle.dumps(result)
