"""Bounds against the exact linear programs, against simulated times, and beyond the sizes of schedules."""

import itertools
import math
import random
from typing import Any

import pytest
import unisono as un
from unisono.base.reports import in_cycles

from .conftest import SOAK, call, json_of, refusal, written

BASE = {
    "name": "m", "kind": "network", "planes": 1, "link_gbps": 100, "link_latency_ns": 0, "input_latency_ns": 0,
    "output_latency_ns": 0, "packet_bytes": 4096, "buffer_bytes": 1 << 25,
}  # fmt: skip
FAMILIES: dict[str, list[dict[str, Any]]] = {
    "fattree": [
        {"accelerators": n, "levels": levels, "down": down, "up": up}
        for n, levels, (down, up) in itertools.product([4, 8, 9, 12, 18], [2, 3], [(4, 1), (8, 2), (6, 4)])
    ],
    "dragonfly": [
        {"p": p, "a": a, "h": h, "g": g}
        for p, a, h, g in itertools.product([1, 2, 3], [1, 2, 3], [1, 2], [1, 2, 3, 5])
        if g - 1 <= a * h and p * a * g > 1
    ],
    "hyperx": [
        {"dims": dims, "terminals": t, "cables": [k] * len(dims), "terminal_gbps": gbps}
        for dims, t, k, gbps in itertools.product([[2], [3], [5], [2, 3], [3, 3]], [1, 3], [1, 2], [50, 100])
    ],
    "hxmesh": [
        {"board": board, "boards": boards}
        for board, boards in itertools.product([[1, 1], [1, 2], [2, 2], [3, 1]], [[1, 2], [2, 2], [1, 3], [3, 2]])
    ],
    "torus": [{"dims": dims} for dims in ([3], [5], [3, 3], [4, 3], [5, 4], [3, 3, 3])],
    "mesh": [{"dims": dims} for dims in ([2], [3], [5], [2, 3], [5, 2], [3, 3], [2, 4], [2, 2, 3])],
    "hypercube": [{"dimensions": d} for d in (1, 2, 3, 4)],
}


def machine(topology: dict[str, Any], **keys: Any) -> un.Machine:
    return un.machine({**BASE, **keys, "topology": topology})


@pytest.mark.parametrize("family", FAMILIES)
def test_no_closed_form_exceeds_the_linear_program(family: str) -> None:
    """`flow` and `cut` are optima of linear programs, so a larger bound would exclude a schedule that exists."""
    exact = {"alltoall": "flow", "allgather": "cut", "reduce-scatter": "cut", "broadcast": "cut", "reduce": "cut"}
    exact |= {"gather": "cut", "scatter": "cut"}
    for sizes in FAMILIES[family]:
        on = machine({"name": family, **sizes})
        for collective, optimum in exact.items():
            found = {bound["name"]: bound["seconds"] for bound in un.bounds(collective, on, bytes=1 << 20)}
            for name in found.keys() - {"latency"}:
                assert found[name] <= found[optimum] * (1 + 1e-6), (sizes, collective, name)


def test_a_partly_filled_leaf_is_no_bottleneck() -> None:
    """Eight accelerators on one leaf exchange through it; its upward cables are not used."""
    on = machine({"name": "fattree", "accelerators": 8, "levels": 2, "down": 8, "up": 2})
    plan = un.plan("alltoall", on, bytes="64KiB")
    assert plan.bound["seconds"] <= un.simulate(plan.schedule, on).seconds
    assert on.topology is not None
    assert on.topology["bisection_share"] == 1.0


def drawn(draw: random.Random) -> un.Machine:
    """Returns 3 to 6 accelerators and up to 2 switches, with random links whose times are not whole picoseconds."""
    accelerators, switches = draw.randint(3, 6), draw.randint(0, 2)
    nodes = accelerators + switches
    edges = {(draw.randrange(at), at) for at in range(1, nodes)}
    edges |= {tuple(sorted(draw.sample(range(nodes), 2))) for _ in range(draw.randint(0, nodes))}  # type: ignore[misc]
    lines = [f"{a} {b} gbps={draw.choice([17.3, 100, 900, 1e6])}" for a, b in sorted(edges)]
    switch = draw.choice([[], [{"multicast": True, "operators": ["sum"]}]]) if switches else []
    topology = {"name": "graph", "accelerators": accelerators, "edges": "\n".join(lines), "routing": "up-down"}
    keys = {"planes": draw.choice([1, 3, 18]), "link_latency_ns": draw.choice([0, 0.0004, 1.00049])}
    return machine(topology, **keys, **({"switches": switch} if switch else {}))


@pytest.mark.parametrize("seed", range(3))
def test_no_time_on_a_network_is_below_a_bound(seed: int) -> None:
    draw = random.Random(seed)
    for collective in (
        "allreduce",
        "allgather",
        "alltoall",
        "broadcast",
        "reduce-scatter",
        "gather",
        "scatter",
        "scan",
    ):
        on, size = drawn(draw), draw.choice([64, 4096, 1 << 17])
        plan = un.plan(collective, on, bytes=size)
        assert all((c["ratio"] or 1) >= 1 - 1e-9 for c in plan.candidates), (on.describe(), collective, size)
        ran = un.simulate(plan.schedule, on).seconds
        for bound in un.bounds(collective, on, bytes=size):
            assert ran >= bound["seconds"] * (1 - 1e-9), (on.describe(), collective, bound["name"])


#: The collectives that a collective contains, for every root.
CONTAINED = {
    "allgather": ["broadcast", "gather"],
    "allreduce": ["barrier", "broadcast", "reduce"],
    "alltoall": ["allgather", "broadcast", "gather", "scatter"],
    "barrier": ["broadcast"],
    "reduce-scatter": ["reduce", "scatter"],
    "scan": ["broadcast", "reduce"],
}
ROOTED = ("broadcast", "gather", "reduce", "scatter")


def any_machine(draw: random.Random) -> tuple[un.Machine, int, dict[str, Any]]:
    """Returns a machine of any kind, its number of ranks, and the options of its part."""
    kind = draw.choice(["endpoint", "network", "network", "in-network", "wafer"])
    if kind == "endpoint":
        ranks = draw.randint(2, 20)
        keys = {key: 10 ** draw.uniform(1, 4) for key in ("L_ns", "o_ns", "g_ns")}
        rates = {key: 10 ** draw.uniform(-3, 0) for key in ("G_ns_per_byte", "gamma_ns_per_byte", "O_ns_per_byte")}
        cluster = {"name": "m", "kind": kind, "model": "loggops", "S_bytes": 4096, **keys, **rates}
        return un.machine(cluster), ranks, {"ranks": ranks}
    if kind == "in-network":
        ranks = draw.randint(2, 128)
        latencies = {key: draw.choice([1, 10, 300]) for key in ("core_latency_ns", "socket_latency_ns")}
        return un.machine(un.machine("piuma").describe() | latencies), ranks, {"ranks": ranks}
    if kind == "wafer":
        shape = draw.choice([(draw.randint(2, 70),), (draw.randint(1, 9), draw.randint(2, 9))])
        return un.machine("wse2"), math.prod(shape), {"shape": shape}
    on = drawn(draw)
    assert on.topology is not None
    return on, on.topology["accelerators"], {}


@pytest.mark.parametrize("seed", range(400 if SOAK else 40))
def test_a_bound_is_no_less_than_those_of_contained_collectives(seed: int) -> None:
    draw, compared = random.Random(seed), 0
    on, ranks, part = any_machine(draw)
    size = draw.choice([1, 8, 1000, 1 << 16])

    def least(collective: str, root: int, elements: int) -> float | None:
        try:
            found = un.bounds(collective, on, elements=elements, root=root, **part)
        except un.UnsupportedError:
            return None
        return max((bound["seconds"] for bound in found if bound["standing"] == "bound"), default=None)

    for collective, parts in CONTAINED.items():
        elements = 1 if collective == "barrier" else size
        whole = least(collective, 0, elements)
        # A scan on switches chooses the cores of its ranks, so the distances of its roots are unknown.
        if whole is None or (collective == "scan" and on.kind == "in-network"):
            continue
        for contained in parts:
            roots = set(draw.choices(range(ranks), k=4)) if contained in ROOTED else {0}
            if collective == "scan":
                roots = {0 if contained == "broadcast" else ranks - 1}
            for root in roots:
                own = least(contained, root, elements)
                compared += own is not None
                assert whole >= (own or 0) * (1 - 1e-9), (on.describe(), part, collective, contained, root, elements)
    assert compared


@pytest.mark.parametrize("seed", range(4))
def test_no_time_in_switches_is_below_a_bound(seed: int) -> None:
    """Some cases are limited by the port of the memory, or have links of less than a picosecond."""
    draw = random.Random(seed)
    latencies = ("core_latency_ns", "socket_latency_ns", "node_latency_ns")
    rates = ("core_gbps", "socket_gbps", "node_gbps", "memory_gbps", "memory_port_gbps")
    changed = {key: draw.choice([0, 0.0006, 1.00049, 25]) for key in latencies}
    changed |= {key: draw.choice([0.01, 17.3, 64, 1e6]) for key in rates}
    machine = un.machine("piuma").describe() | changed | {"host": {"round_ns": 0, "traversals": 1}}
    on = un.machine(machine)
    for collective, elements in (("allreduce", 1), ("allreduce", 300), ("broadcast", 64), ("barrier", 1)):
        plan = un.plan(collective, on, elements=elements)
        assert all((c["ratio"] or 1) >= 1 - 1e-9 for c in plan.candidates), (changed, collective)
        schedule = un.plan(collective, on, elements=elements, algorithm="in-network").schedule
        ran = un.simulate(schedule, on).seconds
        for bound in un.bounds(collective, on, elements=elements):
            assert bound["standing"] != "bound" or ran >= bound["seconds"] * (1 - 1e-9), (changed, bound["name"])


@pytest.mark.parametrize(
    ("collective", "elements"), [("reduce", 1), ("reduce", 8), ("allreduce", 4), ("broadcast", 16)]
)
def test_no_simulated_time_on_a_wafer_is_below_a_bound(collective: str, elements: int) -> None:
    """Eq. 1 adds terms that the fabric overlaps, so its optimum is no bound: 28 against 21 cycles on 16 PEs."""
    for shape in ((5,), (16,), (3, 4)):
        last = un.plan(collective, "wse2", shape=shape, elements=elements)
        for candidate in last.candidates[:4]:
            name, params = candidate["algorithm"], candidate["params"]
            plan = un.plan(collective, "wse2", shape=shape, elements=elements, algorithm=name, params=params)
            ran = un.simulate(plan.schedule).cycles or 0
            bounds = un.bounds(collective, "wse2", shape=shape, elements=elements)
            assert all(ran >= in_cycles(b) for b in bounds if b["standing"] == "bound"), (shape, name, params)
            assert plan.bound["standing"] == "bound"


@pytest.mark.parametrize("seed", range(3))
def test_an_optimum_of_a_model_is_reached_and_not_undercut(seed: int) -> None:
    """A stated optimum equals the least candidate; only reduces by the model `paper` have one."""
    draw, reached = random.Random(seed), 0
    for _ in range(25):
        kind, pes = draw.choice(["reduce", "allreduce"]), draw.choice([2, 4, 5, 8, 12, 16, 33, 64])
        root = draw.choice([0, 0, pes // 2, pes - 1]) if kind == "reduce" else 0
        elements, model = draw.choice([1, 7, 16, 64, 100, 1000]), draw.choice(["paper", "paper", "links"])
        report = un.plan(kind, "wse2", shape=pes, elements=elements, root=root, model=model).report()
        optimum, least = report["model_optimum"], min(c["cycles"] or 0 for c in report["candidates"])
        if optimum is not None:
            reached += 1
            assert (kind, model, optimum["standing"]) == ("reduce", "paper", "model-optimum")
            assert in_cycles(optimum) == pytest.approx(least, rel=1e-9), (pes, root, elements)
    assert reached


def test_the_optimum_of_a_model_is_named_as_such() -> None:
    options = ["reduce", "--machine", "wse2", "--shape", "8", "--elements", "100"]
    report = json_of("plan", *options)
    assert (report["lower_bound"]["name"], report["lower_bound"]["cycles"]) == ("physical-1d", 112)
    assert (report["model_optimum"]["name"], report["model_optimum"]["cycles"]) == ("tight-1d", 142)
    shown = call("plan", *options).out
    assert (
        "\nmodel optimum  142 cycles, 0.167 µs (tight-1d: Eq. 1, not its improved form for star; messages go" in shown
    )
    assert "\nassumes" not in shown
    network = call("plan", "allreduce", "--machine", "dgx-h100", "--ranks", "2", "--bytes", "1MiB")
    assert "\nassumes    bytes neither compressed nor sent twice\n" in network.out
    listed = {bound["name"]: bound["standing"] for bound in json_of("bound", *options)["bounds"]}
    assert listed == {"paper-1d": "of-model", "physical-1d": "bound", "tight-1d": "of-model"}
    piuma = json_of("bound", "allreduce", "--machine", "piuma", "--nodes", "2", "--elements", "64")["bounds"]
    assert {b["name"] for b in piuma if b["standing"] == "of-model"} == {"eq-2"}


def test_a_ring_by_the_lemma_has_a_note() -> None:
    plan = un.plan("allreduce", "wse2", shape=8, elements=3000, algorithm="ring", model="paper")
    assert "on the fabric the ring may take twice as long" in " ".join(plan.report()["notes"])
    assert 1.5 * in_cycles(plan.predicted) < (un.simulate(plan.schedule).cycles or 0)


@pytest.mark.parametrize("pes", [3, 5, 8])
def test_the_choice_on_a_row_is_as_simulated(pes: int) -> None:
    """Lemma 6.1 halves the time of a ring, so only the model `paper` follows it."""

    def simulated(plan: un.Plan) -> int:
        return un.simulate(plan.schedule).cycles or 0

    plan = un.plan("allreduce", "wse2", shape=pes, elements=300)
    assert simulated(plan) == pytest.approx(in_cycles(plan.predicted), rel=0.1)
    for other in plan.candidates[1:6]:
        named, params = other["algorithm"], other["params"]
        again = un.plan("allreduce", "wse2", shape=pes, elements=300, algorithm=named, params=params)
        assert simulated(again) > 0.95 * simulated(plan)


def test_plans_and_bounds_count_beyond_32_bits() -> None:
    """Vectors too long for a schedule are planned in units of several elements, with times in proportion."""
    ranks = {"name": "e", "kind": "endpoint", "model": "hockney", "alpha_ns": 10, "beta_ns_per_byte": 0.1, "ranks": 8}
    for collective, at, size in (
        ("allgather", un.machine("dgx-a100", nodes=2), 1 << 30),
        ("allreduce", un.machine("dgx-h100"), 1 << 34),
        ("alltoall", un.machine("torus2d-small"), 1 << 30),
        ("allreduce", un.machine(ranks), 1 << 34),
    ):
        large, small = (un.bounds(collective, at, bytes=n) for n in (size, size // 1024))
        for bound, part in zip(large, small, strict=True):
            # The bound of a contained collective has the latency of a path beside the bytes.
            rel = 0.02 if " of " in bound["name"] else 1e-3
            if bound["name"] not in ("latency", "fan-out"):
                assert bound["seconds"] == pytest.approx(1024 * part["seconds"], rel=rel), (collective, bound["name"])
    bits = {dtype: un.bounds("allreduce", "dgx-h100", bytes=1 << 35, dtype=dtype) for dtype in ("f16", "f32", "f64")}
    assert (
        [b["seconds"] for b in bits["f16"]]
        == [b["seconds"] for b in bits["f32"]]
        == [b["seconds"] for b in bits["f64"]]
    )


def test_a_plan_without_a_schedule_says_so(tmp_path: Any) -> None:
    options = ["allreduce", "--machine", "dgx-h100", "--ranks", "4", "--algorithm", "ring", "--bytes", "16GiB"]
    report = json_of("plan", *options)
    half = json_of("plan", *options[:-1], "8GiB")
    assert (report["elements"], report["bytes"], report["algorithm"]) == (1 << 32, 1 << 34, half["algorithm"])
    assert report["predicted"]["seconds"] == pytest.approx(2 * half["predicted"]["seconds"], rel=1e-2)
    for ran in (
        call("plan", *options, "-o", str(tmp_path / "a.sched")),
        call("schedule", *options, "-o", str(tmp_path / "a.sched")),
    ):
        assert ran.code == 2
        assert "allreduce of 4294967296 elements has a time and no schedule" in ran.err
        assert "plan at most 4294967295 elements" in ran.err
    refused = refusal("plan", *options[:-2], "--elements", str((1 << 32) + 1))
    assert "is planned in units of 2 elements; choose a multiple of 2" in refused


TOPOLOGY = """<system version="1">
<cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
{}</cpu></system>"""
GPU = """<pci busid="0000:0{0}:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
<gpu dev="{0}" sm="{1}" rank="{0}"><nvlink target="0000:ff:00.0" count="12" tclass="0x068000"/></gpu></pci>
"""


@pytest.mark.parametrize(("sm", "says"), [(80, False), (90, True), (100, True)])
def test_a_bound_names_what_an_imported_machine_may_lack(sm: int, says: bool, tmp_path: Any) -> None:
    file = written(tmp_path / "topo.xml", TOPOLOGY.format("".join(GPU.format(n, sm) for n in range(4))))
    on = un.import_machine(file)
    bound = un.plan("allreduce", on, bytes="1MiB").bound
    assert ("NVLink SHARP" in (bound["assumes"] or "")) is says
    assert un.machine(on.describe()).describe() == on.describe()


def test_bounds_take_the_operator_of_a_plan() -> None:
    request: dict[str, Any] = {"shape": 8, "elements": 64}
    assert un.bounds("allreduce", "archer", **request, op="max") == un.bounds("allreduce", "archer", **request)
    with pytest.raises(un.InputError, match="nope"):
        un.bounds("allreduce", "archer", **request, op="nope")


def test_the_fan_out_is_that_of_logp() -> None:
    """The bound is that of Culler et al., "LogP: towards a realistic model", Fig. 3: L=6, o=2, g=4, P=8, time 24."""
    machine = {"name": "m", "kind": "endpoint", "model": "logp", "L_ns": 6, "o_ns": 2, "g_ns": 4}
    found = un.bounds("broadcast", machine, shape=8, elements=1)
    assert {bound["name"]: bound["seconds"] for bound in found}["fan-out"] == pytest.approx(24e-9)


MODELS: dict[str, dict[str, tuple[float, ...]]] = {
    "hockney": {"alpha_ns": (500, 3000), "beta_ns_per_byte": (0.02, 0.2)},
    "postal": {"alpha_ns": (500, 3000), "beta_ns_per_byte": (0.02, 0.2)},
    "pipelining-postal": {"alpha_p_ns": (800, 3000), "alpha_r_ns": (200, 400), "beta_ns_per_byte": (0.02, 0.2)},
    "loggp": {"L_ns": (800, 3000), "o_ns": (100, 400), "g_ns": (100, 600), "G_ns_per_byte": (0.02, 0.2)},
}


def cluster(draw: random.Random) -> tuple[un.Machine, int]:
    """Returns a random cluster with levels, whose last node may have fewer ranks, and the number of ranks."""
    model = draw.choice(sorted(MODELS))
    prices = {key: draw.choice(values) for key, values in MODELS[model].items()}
    sizes = [draw.randint(2, 6) for _ in range(draw.choice((1, 1, 2)))]
    levels = [
        {"name": f"l{at}", "size": size, **{key: value * draw.choice((0.1, 0.4, 1)) for key, value in prices.items()}}
        for at, size in enumerate(sizes)
    ]
    placed = {"placement": draw.choice(("block", "cyclic"))} if len(sizes) == 1 else {}
    machine = {"name": "c", "kind": "endpoint", "model": model, **prices, **placed, "levels": levels}
    ranks = draw.randint(2, 5) * math.prod(sizes) - draw.choice((0, 0, 1))
    return un.machine({**machine, "gamma_ns_per_byte": draw.choice((0, 0.1)), "ranks": ranks}), ranks


@pytest.mark.parametrize("seed", range(240 if SOAK else 24))
def test_no_candidate_is_faster_than_the_bounds_on_a_cluster_with_levels(seed: int) -> None:
    draw = random.Random(seed)
    machine, ranks = cluster(draw)
    for collective in draw.sample(sorted(set(un.collectives()) - {"message"}), 4):
        size: dict[str, Any] = {} if collective == "barrier" else {"bytes": 4 * draw.choice((1, 300, 40_000, 900_000))}
        if collective in ("broadcast", "reduce", "gather", "scatter"):
            size["root"] = draw.randrange(ranks)
        bounds = un.bounds(collective, machine, **size)
        for candidate in un.plan(collective, machine, **size).candidates:
            for bound in bounds:
                text = f"{machine.describe()}, {collective}, {size}: {bound}"
                assert bound["seconds"] <= candidate["seconds"] * (1 + 1e-9), text


def test_bounds_count_bytes_between_nodes_at_their_price() -> None:
    """Two nodes of two ranks: a byte costs 1 ns between nodes and 0.1 ns within them; latencies are 0."""
    node = {"name": "node", "size": 2, "beta_ns_per_byte": 0.1}
    prices = {"model": "hockney", "alpha_ns": 0, "beta_ns_per_byte": 1}
    on = un.machine({"name": "m", "kind": "endpoint", **prices, "levels": [node], "ranks": 4})
    # Nanoseconds for 1,000 bytes: a rank's mean bytes between nodes at 1 ns, and its other bytes at 0.1 ns.
    for collective, ns in {
        "alltoall": 2000 + 100,
        "allgather": (4 * 1000 + 8 * 100) / 4,
        "reduce-scatter": (4 * 1000 + 8 * 100) / 4,
        "allreduce": (2 * 1000 + 4 * 100) / 4,
        "gather": 1000,
        "scatter": 1000,
    }.items():
        found = {bound["name"]: bound["seconds"] for bound in un.bounds(collective, on, bytes=1000)}
        assert found["bandwidth"] == pytest.approx(ns * 1e-9, rel=1e-9), collective
