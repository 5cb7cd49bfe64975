"""The same bits at any place and size: proofs, plans and tables."""

from pathlib import Path

import pytest
import unisono as un
from unisono import certificate_checker as checker

from .conftest import call

#: A machine on which the best schedules for short and for long vectors differ, and the longest vectors of tables.
MACHINE, MOST = "paper-sim", 1 << 20

#: A reduce of two elements, of which the second has its operands the other way round.
TURNED = """unisono-schedule 1
collective reduce ranks=2 elements=2 root=0 operator={operator} dtype=f32
phases fold
stream s0: 1 -> 0
node 0:
  i0: s0 + in[0..1] -> out[0..1]
  i1: in[1..2] + s0 -> out[1..2]
node 1:
  i2: in[0..2] -> s0
"""
#: A sum of three ranks: in the second element ranks 1 and 2 come first.
GROUPED = """unisono-schedule 1
collective reduce ranks=3 elements=2 root=0 operator=sum dtype=f32
phases fold
stream s0: 1 -> 0
stream s1: 2 -> 0
node 0: tmp=1
  i0: in[0..1] + s0 + s1 -> out[0..1]
  i1: s0 + s1 -> tmp[0..1]
  i2: in[1..2] + tmp[0..1] -> out[1..2]
node 1:
  i3: in[0..2] -> s0
node 2:
  i4: in[0..2] -> s1
"""


@pytest.mark.parametrize(("text", "place"), [(TURNED.format(operator="sum"), True), (GROUPED, False)])
def test_elements_with_other_expressions_are_named(text: str, place: bool) -> None:
    schedule = un.Schedule.parse(text)
    proof = schedule.verify()
    assert proof.holds
    assert proof.repeatable
    assert proof.bits == (["ranks", "place"] if place else ["ranks"])
    assert (proof.element_class is None, proof.unlike_elements is None) == (not place, place)
    assert schedule.verify("fingerprint").element_class == proof.element_class
    if not place:
        assert proof.unlike_elements == (
            "element 0 of rank 0 is ((0 + 1) + 2), and element 1 of rank 0 is (0 + (1 + 2))"
        )
        claimed = schedule.certificate(text=text).replace(" repeatable", " repeatable place")
        with pytest.raises(checker.Refused, match="different expressions: not place"):
            checker.check(text, claimed)


def test_the_order_of_operands_of_a_float_minimum_counts() -> None:
    proof = un.Schedule.parse(TURNED.format(operator="min")).verify()
    assert proof.bits == ["ranks"]
    assert proof.unlike_elements == "element 0 of rank 0 is (1 + 0), and element 1 of rank 0 is (0 + 1)"


@pytest.mark.parametrize(
    ("collective", "algorithm", "place"),
    [
        ("allreduce", "recursive-doubling", True),
        ("allreduce", "rabenseifner", True),
        ("allreduce", "ring", False),
        ("reduce", "pipelined-chain", True),
        ("reduce-scatter", "ring", False),
        ("reduce-scatter", "recursive-halving", True),
        ("scan", "recursive-doubling", True),
        ("allgather", "ring", True),
        ("broadcast", "scatter-allgather", True),
    ],
)
def test_algorithms_have_the_property_or_not(collective: str, algorithm: str, place: bool) -> None:
    proof = un.plan(collective, "archer", shape=8, elements=64, algorithm=algorithm).schedule.verify()
    assert ("place" in proof.bits) is place, proof.unlike_elements


def test_expressions_are_compared_without_lengths_and_collectives() -> None:
    classes = {
        un.plan(name, "archer", shape=8, elements=elements, algorithm=algorithm).schedule.verify().element_class
        for name, algorithm, elements in [
            ("allreduce", "recursive-doubling", 8),
            ("allreduce", "recursive-doubling", 1000),
            ("allreduce", "rabenseifner", 64),
            ("reduce", "binomial", 17),
        ]
    }
    assert len(classes) == 1
    assert None not in classes


def test_verify_requires_the_bits(tmp_path: Path) -> None:
    options = ["allreduce", "--machine", "archer", "--ranks", "4", "--elements", "8", "--algorithm"]
    ring = call("verify", *options, "ring", "--require", "place")
    assert ring.code == 1
    assert "refused: --require place: element 0 of rank 0 is (" in ring.out
    assert call("verify", *options, "ring", "--require", "ranks").code == 0
    assert call("verify", *options, "recursive-doubling", "--require", "place").code == 0
    size = call("verify", *options, "recursive-doubling", "--require", "size")
    assert (size.code, "'size' is proved of a .plan" in size.out) == (1, True)
    shown = call("verify", *options, "ring", "--json").json
    assert shown["bits"] == ["ranks"]


def test_rows_of_one_expression_have_the_same_bits_at_any_size(tmp_path: Path) -> None:
    def row(algorithm: str, first: int, last: int | None) -> tuple[un.Plan, int, int | None]:
        return un.plan("allreduce", "archer", shape=8, elements=1024, algorithm=algorithm), first, last

    path = tmp_path / "t.plan"
    for rows, size, why in [
        ([row("recursive-doubling", 0, 4095), row("rabenseifner", 4096, None)], True, ""),
        ([row("recursive-doubling", 0, 4095), row("ring", 4096, None)], False, "in the blocks of the row"),
        ([row("recursive-doubling", 0, 99), row("elimination", 100, None)], True, ""),
    ]:
        un.save_plans(rows, path)
        ran = call("verify", str(path), "--require", "size", "--json")
        assert (ran.code, "size" in ran.json["bits"]) == (0 if size else 1, size)
        [found] = ran.json["tables"]
        assert (found["left_to_library"], found["unlike_elements"] is None) == ([], size)
        assert why in (found["unlike_elements"] or "")
    flat = un.plan("allreduce", "archer", shape=8, elements=64, algorithm="dissemination", params={"ways": "7"})
    un.save_plans([row("recursive-doubling", 64, 4095), (flat, 5000, None)], path)
    found = call("verify", str(path), "--json").json["tables"][0]
    assert found["bits"] == ["ranks", "place"]
    assert found["unlike_elements"].startswith("the elements of 64 bytes have another expression than those of 5000")
    assert found["left_to_library"] == ["0 to 63 bytes", "4096 to 4999 bytes"]


def test_plans_have_only_candidates_with_the_bits() -> None:
    fastest = un.plan("allreduce", "archer", shape=8, bytes="1MiB")
    for bits, held in [("ranks", ["ranks"]), ("place", ["ranks", "place"]), ("size", ["ranks", "place", "size"])]:
        plan = un.plan("allreduce", "archer", shape=8, bytes="1MiB", bits=bits)
        report = plan.report()
        assert report["bits"] == held
        assert report["bits_cost"] == plan.predicted["seconds"] / fastest.predicted["seconds"] >= 1
        assert set(held) - {"size"} <= set(plan.schedule.verify().bits)
        assert plan.size_class() is not None or bits == "ranks"
    names = {one["algorithm"] for one in plan.candidates}
    assert {"recursive-doubling", "rabenseifner"} <= names
    assert not {"ring", "swing", "bidirectional-ring"} & names
    with pytest.raises(un.NotExpressibleError, match="of ring : element 0 of rank 0 is"):
        un.plan("allreduce", "archer", shape=8, bytes="1MiB", algorithm="ring", bits="size")
    with pytest.raises(un.InputError, match="'lengths' names no bits"):
        un.plan("allreduce", "archer", shape=8, bytes="1MiB", bits="lengths")


def test_one_table_serves_all_sizes_by_several_schedules(tmp_path: Path) -> None:
    table = un.plan_table("allreduce", MACHINE, shape=8, last_bytes=MOST)
    names = {plan.algorithm for plan, _, _ in table.rows}
    assert len(names) > 1
    assert len({plan.size_class() for plan, _, _ in table.rows}) == 1
    assert (table.rows[0][1], table.rows[-1][2]) == (0, MOST)
    ends = [last + 1 for _, _, last in table.rows if last is not None]
    assert ends == [*(first for _, first, _ in table.rows[1:]), MOST + 1]
    assert 1 <= table.mean_cost <= table.cost
    weaker = [un.plan_table("allreduce", MACHINE, shape=8, bits=bits, last_bytes=MOST) for bits in ("ranks", "place")]
    assert 1 <= weaker[0].mean_cost <= weaker[1].mean_cost <= table.mean_cost
    path = tmp_path / "t.plan"
    options = ["allreduce", "--machine", MACHINE, "--ranks", "8", "--bytes", "1MiB", "--bits", "size"]
    ran = call("plan", *options, "--serve", f"0-{MOST}", "-o", str(path), "--json")
    assert ran.code == 0
    assert [row["algorithm"] for row in ran.json["table"]["rows"]] == [plan.algorithm for plan, _, _ in table.rows]
    assert call("verify", str(path), "--require", "size").code == 0
    shown = call("plan", *options, "-o", str(path)).out
    assert "same bits for any size: +" in shown
    assert call("plan", *options, "-o", str(path), "--unlike-bits").code == 2
    assert call("plan", *options, "--serve", "all", "--algorithm", "recursive-doubling", "-o", str(path)).code == 2


def test_a_class_that_changes_with_the_size_is_found(tmp_path: Path) -> None:
    """A forest has one tree for a vector of one element, and several with unlike expressions for longer ones."""
    table = un.plan_table("reduce-scatter", "dgx-h100", shape=8, last_bytes=256)
    table.save(tmp_path / "t.plan")
    assert {plan.schedule.verify().bits[-1] for plan, _, _ in table.rows} == {"place"}
    ring = un.plan("allreduce", "archer", shape=4, elements=64, algorithm="ring")
    with pytest.raises(un.Error, match="lack 'size': in the blocks of the row"):
        un.PlanTable("size", [(ring, 0, None)], [], 1).save(tmp_path / "t.plan")
