"""Sums with the same bits at any position and size: proofs, plans and tables."""

from pathlib import Path

import pytest
import unisono as un
from unisono import certificate_checker as checker

from .conftest import call, text_of

#: A machine whose best schedules for short and long vectors differ, and the bytes of the longest vectors of tables.
MACHINE, MOST = "paper-sim", 1 << 20

#: A reduce of two elements that adds the operands of the second one in reverse order.
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
        assert proof.unlike_elements == ("element 0 of rank 0 is (0 + 1 + 2), and element 1 of rank 0 is (0 + (1 + 2))")
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
        un.plan(name, "archer", shape=8, elements=elements, algorithm=algorithm, params={})
        .schedule.verify()
        .element_class
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
    assert "same bits for any size: as fast as the fastest" in shown
    torus = ("allreduce", "--machine", "torus2d-small", "--shape", "4x4", "--bytes", "1MiB", "--bits", "size")
    assert "same bits for any size: +" in call("plan", *torus).out
    assert call("plan", *options, "-o", str(path), "--unlike-bits").code == 2
    assert call("plan", *options, "--serve", "all", "--algorithm", "recursive-doubling", "-o", str(path)).code == 2


def test_a_class_that_changes_with_the_size_is_found(tmp_path: Path) -> None:
    """A forest has one tree for one element, and several trees with different expressions for longer vectors."""
    table = un.plan_table("reduce-scatter", "dgx-h100", shape=8, last_bytes=256)
    table.save(tmp_path / "t.plan")
    assert {plan.schedule.verify().bits[-1] for plan, _, _ in table.rows} == {"place"}
    ring = un.plan("allreduce", "archer", shape=4, elements=64, algorithm="ring")
    with pytest.raises(un.Error, match="lack 'size': in the blocks of the row"):
        un.PlanTable("size", [(ring, 0, None)], [], 1).save(tmp_path / "t.plan")


def test_a_requirement_that_fails_gives_its_reason_and_no_certificate(tmp_path: Path) -> None:
    options = ["allreduce", "--machine", "archer", "--ranks", "4", "--elements", "8", "--algorithm", "ring"]
    call("plan", *options, "-o", str(tmp_path / "r.sched"))
    made = tmp_path / "r.cert"
    ran = call("verify", str(tmp_path / "r.sched"), "--require", "place", "--certificate", str(made), "--json")
    required = ran.json["required"]
    assert (ran.code, required["bits"], required["holds"]) == (1, "place", False)
    assert required["reason"].startswith("element 0 of rank 0 is (")
    assert not made.exists()
    assert call("verify", str(tmp_path / "r.sched"), "--require", "ranks", "--certificate", str(made)).code == 0
    checked = call("verify", str(tmp_path / "r.sched"), "--check", str(made), "--require", "place", "--json")
    assert (checked.code, checked.json["required"]["reason"]) == (1, "the certificate does not claim it")


def test_calls_of_the_library_are_stated_with_a_property_that_holds(tmp_path: Path) -> None:
    plan = un.plan("allreduce", "archer", shape=4, elements=64, algorithm="recursive-doubling")
    path = tmp_path / "t.plan"
    un.save_plans([(plan, 64, 127), (plan, 256, None)], path)
    ran = text_of("verify", str(path), "--require", "size")
    assert "holds for the calls that the rows serve, and not for those of the library: allreduce on 4" in ran
    left = call("verify", str(path), "--require", "size", "--json").json["required"]["left_to_library"]
    assert left == [f"allreduce on 4 ranks, {sizes} bytes" for sizes in ("0 to 63", "128 to 255")]


def test_a_barrier_has_every_property(tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    barrier = un.plan("barrier", "archer", shape=16)
    un.save_plans([(barrier, 0, None)], path)
    assert call("verify", str(path), "--require", "size").code == 0
    assert call("verify", str(path), "--require", "ranks-count", "--contributors", "64").code == 0
    un.save(barrier.schedule, tmp_path / "b.sched")
    text = (tmp_path / "b.sched").read_text()
    proof = barrier.schedule.verify()
    assert proof.bits == ["ranks", "place"]
    assert checker.check(text, barrier.schedule.certificate(proof, text))[3] == ["repeatable", "place"]


def grouped(numbers: list[str]) -> str:
    """Returns the sum of numbers as an expression, grouped by the definition of the tree of contributors."""
    if len(numbers) == 1:
        return numbers[0]
    size = next(n for n in range(2, len(numbers) + 1) if len(numbers) % n == 0)
    groups = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    for group in groups:
        while len(group) > 1:
            pairs = [group[at : at + 2] for at in range(0, len(group), 2)]
            group[:] = [pair[0] if len(pair) == 1 else f"({pair[0]}+{pair[1]})" for pair in pairs]
    return grouped([group[0] for group in groups])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 9, 12, 15, 16, 30])
def test_contributors_are_added_in_their_tree(count: int) -> None:
    numbers = [str(n) for n in range(count)]
    tree = un.add_contributors(numbers, lambda a, b: f"({a}+{b})")
    assert tree == grouped(numbers)
    if count > 1:
        prime = next(n for n in range(2, count + 1) if count % n == 0)
        shares = [numbers[at : at + prime] for at in range(0, count, prime)]
        local = [un.add_contributors(share, lambda a, b: f"({a}+{b})") for share in shares]
        assert un.add_contributors(local, lambda a, b: f"({a}+{b})") == tree


def test_contributors_without_their_property_are_refused() -> None:
    with pytest.raises(un.InputError, match="give both or none"):
        un.plan("allreduce", "archer", shape=4, bytes=64, contributors=4)
    for count in (0, -4):
        with pytest.raises(un.InputError, match="accepted are multiples"):
            un.plan_table("allreduce", "archer", shape=4, last_bytes=64, bits="ranks-count", contributors=count)


def test_only_trees_of_contributors_have_ranks_count(tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    for ranks, algorithm, params, contributors, holds in [
        (4, "recursive-doubling", {}, 4, True),
        (4, "recursive-doubling", {}, 8, True),
        (4, "rabenseifner", {}, 16, True),
        (4, "recursive-doubling", {}, 12, False),
        (4, "recursive-doubling", {}, 6, False),
        (6, "reduce-broadcast", {"reduce": "binomial", "broadcast": "binomial"}, 6, True),
        (6, "reduce-broadcast", {"reduce": "binomial", "broadcast": "binomial"}, 12, True),
        (4, "recursive-multiplying", {"schedule": "a4"}, 4, False),
        (4, "dissemination", {"ways": "3"}, 4, False),
    ]:
        plan = un.plan("allreduce", "archer", shape=ranks, elements=64, algorithm=algorithm, params=params)
        un.save_plans([(plan, 0, None)], path)
        asked = ("--require", "ranks-count", "--contributors", str(contributors))
        ran = call("verify", str(path), *asked, "--json")
        assert (ran.code == 0) is holds, (ranks, algorithm, contributors, ran.json["required"])
        assert (ran.json["required"]["reason"] is None) is holds
    assert call("verify", str(path), "--require", "ranks-count").code == 2
    assert call("verify", str(path), "--require", "size", "--contributors", "4").code == 2
    scan = un.plan("scan", "archer", shape=4, elements=64)
    un.save_plans([(scan, 0, None)], path)
    ran = call("verify", str(path), "--require", "ranks-count", "--contributors", "4")
    assert (ran.code, "another result on each rank" in ran.out) == (1, True)
    with pytest.raises(un.InputError, match="give both or none"):
        un.plan_table("allreduce", "archer", shape=4, bits="ranks-count")
    with pytest.raises(un.InputError, match="none is given"):
        un.plan("allreduce", "archer", shape=4, elements=4, bits="ranks-count")


@pytest.mark.parametrize(("order", "bits"), [("ranks", "size"), ("tree", "ranks-count")])
def test_forests_of_depth_1_add_all_elements_in_one_order(order: str, bits: str, tmp_path: Path) -> None:
    """All lengths and numbers of chunks have the same expression, also if the chunks are unequal."""
    rows, first = [], 0
    for elements, chunks in [(1, 1), (100, 3), (4097, 16), (5000, 7)]:
        params = {"order": order, "chunks": str(chunks)}
        plan = un.plan("allreduce", "dgx-h100", shape=8, elements=elements, algorithm="forest", params=params)
        assert plan.schedule.verify().bits == ["ranks", "place"]
        rows.append((plan, first, 4 * elements))
        first = 4 * elements + 1
    path = tmp_path / "t.plan"
    un.save_plans(rows, path)
    asked = ("--require", bits, *(("--contributors", "16") if bits == "ranks-count" else ()))
    assert call("verify", str(path), *asked).code == 0
    arrival = un.plan(
        "allreduce", "dgx-h100", shape=8, elements=4096, algorithm="forest", params={"depth": "1", "chunks": "4"}
    )
    assert arrival.schedule.verify().bits == ["ranks"]
    with pytest.raises(un.UnsupportedError, match="in one order at depth 1, and depth is 2"):
        un.plan(
            "allreduce", "dgx-h100", shape=8, elements=64, algorithm="forest", params={"order": order, "depth": "2"}
        )


def test_the_price_of_a_size_is_beside_what_a_plan_file_can_hold() -> None:
    """Sums in switches are faster, and no .plan holds them."""
    plan = un.plan("allreduce", "dgx-h100", shape=8, bytes="16MiB", bits="size")
    fastest = un.plan("allreduce", "dgx-h100", shape=8, bytes="16MiB", target="preload")
    assert un.plan("allreduce", "dgx-h100", shape=8, bytes="16MiB").algorithm == "in-network"
    assert plan.report()["bits_cost"] == pytest.approx(plan.predicted["seconds"] / fastest.predicted["seconds"])
    shown = call("plan", "allreduce", "--machine", "archer", "--ranks", "16", "--bytes", "1MiB", "--bits", "size").out
    assert "same bits for any size: as fast as the fastest that a .plan can hold" in shown


@pytest.mark.parametrize("target", ["mscclpp", "msccl-xml"])
def test_files_for_gpus_keep_the_bits(target: str, tmp_path: Path) -> None:
    suffix = {"mscclpp": "json", "msccl-xml": "xml"}[target]
    for algorithm, place in [("recursive-doubling", True), ("rabenseifner", True), ("ring", False)]:
        options = ["allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "1KiB", "--algorithm", algorithm]
        file = tmp_path / f"{algorithm}.{suffix}"
        assert call("emit", *options, "--format", target, "-o", str(file)).code == 0
        ran = call("verify", str(file), "--require", "place", "--json")
        assert (ran.code == 0) is place, ran.json
        assert ran.json["required"]["holds"] is place
        assert ("place" in ran.json["bits"]) is place
        assert call("verify", str(file), "--require", "ranks").code == 0
    plan = un.plan("allreduce", "archer", shape=4, bytes="1KiB", target=target, bits="place")
    assert {one["algorithm"] for one in plan.candidates}.isdisjoint({"ring", "swing"})


def test_sums_of_switches_have_no_known_order(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    options = ["allreduce", "--machine", "dgx-h100", "--bytes", "64KiB", "--algorithm", "in-network"]
    assert call("emit", *options, "--format", "mscclpp", "-o", str(file)).code == 0
    ran = call("verify", str(file), "--require", "place")
    assert (ran.code, "a switch adds, in an order that it does not state" in ran.out) == (1, True)


def test_settings_of_nccl_give_or_lose_the_bits() -> None:
    def found(
        collective: str, ranks: int, bits: str, contributors: int | None = None
    ) -> tuple[dict[str, list[str]], set[str]]:
        plan = un.plan(
            collective,
            "dgx-h100",
            shape=ranks,
            bytes="1MiB",
            as_library="nccl",
            bits=bits,
            contributors=contributors,
        )
        report = plan.report()["library"]["bits"]
        gives = {one["algorithm"]: one["settings"] for one in report["gives"]}
        return gives, {one["algorithm"] for one in report["loses"]}

    gives, loses = found("allreduce", 8, "size")
    assert (set(gives), loses) == ({"tree"}, {"ring", "nvls"})
    assert gives["tree"][2:] == ["NCCL_MIN_NCHANNELS=1", "NCCL_MAX_NCHANNELS=1"]
    assert gives["tree"][0] == "NCCL_ALGO=allreduce:tree"
    assert found("allreduce", 2, "size")[0].keys() == {"tree", "ring"}
    assert found("reduce", 8, "size")[0].keys() == {"ring"}
    assert found("allgather", 8, "size")[1] == set()
    assert found("allreduce", 8, "ranks")[0].keys() == {"tree", "ring"}
    assert found("allreduce", 8, "ranks-count", contributors=16)[0] == {}
