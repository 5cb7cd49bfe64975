"""Parameters that a plan does not list gain little over its choice, on random machines."""

import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import SOAK, network_text, written

SEEDS = range(60 if SOAK else 6)


def network(seed: int, folder: Path) -> Path:
    """Writes a random connected network of 4 to 8 accelerators and up to three switches, with unlike cables."""
    draw = random.Random(seed)
    accelerators = draw.randint(4, 8)
    nodes = accelerators + draw.randint(0, 3)
    order = draw.sample(range(nodes), nodes)
    pairs = {(order[at], order[draw.randrange(at)]) for at in range(1, nodes)}
    pairs |= {(a, b) for a, b in (draw.sample(range(nodes), 2) for _ in range(nodes)) if (b, a) not in pairs}
    cables = "\n".join(f"{a} {b} gbps={draw.choice([50, 200, 900])}" for a, b in sorted(pairs))
    topology = f"name = \"graph\"\naccelerators = {accelerators}\nedges = '''\n{cables}\n'''\n"
    times = (40, 20, 20)
    return written(
        folder / "net.toml", network_text(topology, "net", gbps=100, ns=times, packet_bytes=8192, buffer_bytes=1 << 25)
    )


def seconds(plan: un.Plan) -> float:
    found = plan.predicted["seconds"]
    assert found is not None
    return found


@pytest.mark.parametrize("collective", ["scatter", "gather"])
@pytest.mark.parametrize("seed", SEEDS)
def test_more_chunks_gain_little(seed: int, collective: str, tmp_path: Path) -> None:
    request: dict[str, Any] = {"machine": network(seed, tmp_path), "bytes": "16MiB", "root": seed % 4}
    best = un.plan(collective, **request)
    for chunks in (2, 8, 32, 128, 512):
        params = {"chunks": str(chunks), "batch": "1"}
        other = un.plan(collective, **request, algorithm="concurrent-flow", params=params)
        # Times rise and fall with the number of chunks, by how these divide among trees.
        assert seconds(best) <= 1.1 * seconds(other), params


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("seed", SEEDS)
def test_deeper_trees_gain_little(seed: int, collective: str, tmp_path: Path) -> None:
    request: dict[str, Any] = {"machine": network(seed, tmp_path), "bytes": "16MiB", "root": seed % 4}
    best = un.plan(collective, **request)
    for depth in range(1, best.schedule.ranks):
        try:
            other = un.plan(collective, **request, algorithm="forest", params={"depth": str(depth)})
        except un.UnsupportedError as refused:
            if "messages away from a root" not in str(refused):
                raise
            continue
        assert seconds(best) <= 1.05 * seconds(other), other.params


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 12, 20, 40])
@pytest.mark.parametrize("machine", ["archer", "paper-sim", "dgx-h100-x8"])
def test_no_other_number_of_messages_ends_a_barrier_sooner(machine: str, ranks: int) -> None:
    best = un.plan("barrier", machine, ranks=ranks)
    for ways in range(1, ranks):
        other = un.plan("barrier", machine, ranks=ranks, algorithm="dissemination", params={"ways": str(ways)})
        assert seconds(best) <= seconds(other) * (1 + 1e-9), ways


MODELS = ["hockney", "postal", "pipelining-postal", "logp", "loggp", "logfp", "loggops"]
NUMBERED = [
    *(("binomial", kind, "radix") for kind in ("broadcast", "reduce", "gather", "scatter", "reduce-scatter")),
    ("circulant", "broadcast", "blocks"),
    ("circulant", "reduce", "blocks"),
    ("recursive-exchange", "allgather", "radix"),
    ("bruck", "allgather", "radix"),
    ("bruck", "alltoall", "radix"),
    ("dissemination", "allreduce", "ways"),
]


def endpoint(draw: random.Random, model: str, folder: Path) -> Path:
    """Writes a machine with random parameters, every second one under Hockney's model with a protocol."""

    def ns() -> str:
        return f"{10 ** draw.uniform(1, 4):.1f}"

    def per_byte() -> str:
        return f"{draw.choice([0, 10 ** draw.uniform(-2, 0.5)]):.4f}"

    simple = model in ("hockney", "postal")
    fixed = ["alpha_ns"] if simple else ["alpha_p_ns", "alpha_r_ns"] if "postal" in model else ["L_ns", "o_ns", "g_ns"]
    bytewise = ["beta_ns_per_byte"] if "postal" in model or simple else ["G_ns_per_byte", "O_ns_per_byte"]
    lines = [f"{key} = {ns()}" for key in fixed] + [f"{key} = {per_byte()}" for key in [*bytewise, "gamma_ns_per_byte"]]
    lines += [f"S_bytes = {draw.choice([0, 256, 65536])}"] if model == "loggops" else []
    lines += [f"f_messages = {draw.choice([1, 2, 8])}"] if model == "logfp" else []
    if model == "hockney" and draw.random() < 0.5:
        lines += ["[[protocols]]", f"from_bytes = {draw.choice([256, 4096, 65536])}"]
        lines += [f"alpha_ns = {ns()}", f"beta_ns_per_byte = {per_byte()}"]
    text = "\n".join(lines)
    return written(folder / "ranks.toml", f'name = "ranks"\nkind = "endpoint"\nmodel = "{model}"\n{text}\n')


@pytest.mark.parametrize(("algorithm", "collective", "key"), NUMBERED)
@pytest.mark.parametrize("model", MODELS)
def test_no_other_number_gains_much(model: str, algorithm: str, collective: str, key: str, tmp_path: Path) -> None:
    draw = random.Random(f"{model} {algorithm} {collective}")
    for _ in range(40 if SOAK else 1):
        ranks = draw.randint(2, 64)
        machine = un.machine(endpoint(draw, model, tmp_path), shape=ranks)
        elements = draw.choice([1, 2, 8, 64, 500, 2000])
        most = {"radix": ranks, "ways": ranks - 1, "blocks": min(elements, 24)}[key]
        values = draw.sample(range(2, most + 1), min(most - 1, 8)) + [most]
        request: dict[str, Any] = {"machine": machine, "elements": elements}
        plans = [un.plan(collective, **request), un.plan(collective, **request, algorithm=algorithm)]
        for value in values:
            params = {key: str(value)}
            other = un.plan(collective, **request, algorithm=algorithm, params=params)
            # Bruck alone leaves out radices whose exchanges other algorithms make without rotating blocks.
            for plan in plans[:1] if algorithm == "bruck" else plans:
                assert seconds(plan) <= 1.05 * seconds(other), (machine.to_toml(), ranks, elements, params)


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
@pytest.mark.parametrize("model", MODELS)
def test_one_rank_more_saves_little(model: str, collective: str, tmp_path: Path) -> None:
    draw = random.Random(f"{model} {collective}")
    for _ in range(40 if SOAK else 2):
        file, ranks = endpoint(draw, model, tmp_path), draw.randint(2, 64)
        elements = draw.choice([1, 2, 8, 64, 500, 2000])
        time, more = (
            seconds(un.plan(collective, un.machine(file, shape=count), elements=elements))
            for count in (ranks, ranks + 1)
        )
        assert time <= 1.05 * more, (file.read_text(), ranks, elements)
