"""Lines for NCCL's tuner plugin, loaded through the plugin's interface by a host in C; no GPU is needed.

`UNISONO_NCCL_TUNER` may name NCCL's own example plugin, which the host then calls too.
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, json_of, written

SOURCES = ROOT / "tests" / "nccl"
NAMES = {
    "allgather": "allgather",
    "allreduce": "allreduce",
    "broadcast": "broadcast",
    "reduce-scatter": "reducescatter",
}
ALGORITHMS = {
    "allgather": ["ring"],
    "allreduce": ["ring", "in-network"],
    "broadcast": ["pipelined-chain"],
    "reduce-scatter": ["ring"],
}
TOPOLOGIES = [(4, 1), (8, 1), (8, 2), (16, 2)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Returns the compiled host program, and the plugins that it calls."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the host of the plugin is compiled with cc, which is not here")
    folder = tmp_path_factory.mktemp("nccl")
    warn = [
        compiler,
        "-std=c11",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wall",
        "-Wextra",
        "-Wno-unused-const-variable",
        "-Werror",
    ]
    host, plugin = folder / "host", folder / "plugin.so"
    subprocess.run([*warn, str(SOURCES / "host.c"), "-o", str(host), "-ldl"], check=True)
    subprocess.run([*warn, "-shared", "-fPIC", str(SOURCES / "plugin.c"), "-o", str(plugin)], check=True)
    own = os.environ.get("UNISONO_NCCL_TUNER")
    return host, [plugin, *([Path(own)] if own else [])]


def ask(
    host: Path, plugin: Path, file: Path, ranks: int, nodes: int, calls: list[tuple[str, int, int, int]]
) -> tuple[int, list[str]]:
    text = "".join(" ".join(map(str, call)) + "\n" for call in calls)
    environment = os.environ | {"NCCL_TUNER_CONFIG_FILE": str(file)}
    command = [str(host), str(plugin), str(ranks), str(nodes)]
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def some_rows(some: random.Random) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for collective, algorithms in ALGORITHMS.items():
        for ranks, nodes in TOPOLOGIES:
            at = 0
            for _ in range(some.randint(0, 3)):
                first = at + some.choice([0, 1, 1000])
                last = first + some.choice([0, 7, 4096, 2**33])
                algorithm = some.choice(algorithms)
                params = {"protocol": some.choice(["ll", "ll128", "simple"])} if algorithm == "ring" else {}
                for name, values in (("channels", "1 2 32"), ("pipe-ops", "1 2"), ("registered", "0 1")):
                    if some.random() < 0.4:
                        params[name] = some.choice(values.split())
                row = {"collective": collective, "ranks": ranks, "per_node": ranks // nodes, "algorithm": algorithm}
                rows.append(row | {"first_bytes": first, "last_bytes": last, "params": params})
                at = last + 1
    return rows


def needs_a_reducing_network(row: dict[str, object]) -> bool:
    """Returns whether NCCL runs a row only if the network reduces, which a table does not state."""
    return row["algorithm"] == "in-network" and row.get("per_node") not in (None, row["ranks"])


def meant(rows: list[dict[str, object]], call: tuple[str, int, int, int], ranks: int, nodes: int) -> str:
    """Returns the choice of a table for a call; the table's sizes are of one rank, its ranks and nodes exact."""
    name, size, calls, registered = call
    theirs = {"ring": "ring", "in-network": "nvls", "pipelined-chain": "ring"}
    for row in rows:
        params = row["params"]
        assert isinstance(params, dict)
        scale = ranks if row["collective"] in ("allgather", "reduce-scatter") else 1
        first, last = int(str(row["first_bytes"])) * scale, int(str(row["last_bytes"])) * scale
        same = NAMES[str(row["collective"])] == name and (row["ranks"], row["per_node"]) == (ranks, ranks // nodes)
        narrowed = params.get("pipe-ops", str(calls)) == str(calls)
        narrowed = narrowed and params.get("registered", str(registered)) == str(registered)
        if same and narrowed and first <= size <= last:
            return f"{theirs[str(row['algorithm'])]} {params.get('protocol', 'simple')} {params.get('channels', 0)}"
    return "- - 1"


def test_the_plugin_chooses_what_the_table_says(built: tuple[Path, list[Path]], tmp_path: Path) -> None:
    host, plugins = built
    some, chosen, narrowed = random.Random(7), 0, 0
    for case in range(8):
        rows = some_rows(some)
        table, file = tmp_path / "table.json", tmp_path / "tuner.conf"
        table.write_text(json.dumps({"unisono_table": 1, "rows": rows}))
        made = json_of("export", str(table), "--format", "nccl-tuner-csv", "-o", str(file), "--no-check")
        kept = [row for row in rows if not needs_a_reducing_network(row)]
        assert (made["rows"], len(made["left"])) == (len(kept), len(rows) - len(kept)), case
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        narrowed += sum(line.count(",") > 7 for line in lines)
        for ranks, nodes in TOPOLOGIES:
            ends = {
                int(str(row[key])) * scale + near
                for row in rows
                for key in ("first_bytes", "last_bytes")
                for scale in (1, ranks)
                for near in (-1, 0, 1)
            }
            sizes = some.sample(sorted(size for size in ends if size >= 0), 20)
            calls = [(n, s, c, r) for n in NAMES.values() for s in sizes for c in (1, 2) for r in (0, 1)]
            expected = [meant(kept, call, ranks, nodes) for call in calls]
            chosen += sum(line != "- - 1" for line in expected)
            for plugin in plugins:
                assert ask(host, plugin, file, ranks, nodes, calls) == (0, expected), (case, ranks, nodes)
    assert chosen > 300
    assert narrowed > 30


@pytest.mark.parametrize(
    "line",
    [
        "allreduce,0,9,ring,simple,0,1",
        "allreduce,0,9,ring,simple,0,1,4,1,1,1",
        "alltoall,0,9,ring,simple,0,1,4",
        "allreduce,0,9,rings,simple,0,1,4",
        "allreduce,0,9,ring,ll64,0,1,4",
        "allreduce,9,0,ring,simple,0,1,4",
        "allreduce,0,9B,ring,simple,0,1,4",
        "allreduce,0,18446744073709551616,ring,simple,0,1,4",
        "allreduce,0,9,ring,simple,,1,4",
        "#" * 300,
    ],
)
def test_the_checking_plugin_refuses_wrong_files(built: tuple[Path, list[Path]], tmp_path: Path, line: str) -> None:
    host, (plugin, *_) = built
    file = written(tmp_path / "tuner.conf", f"allreduce,0,9,ring,simple,0,1,4\n{line}\n")
    assert ask(host, plugin, file, 4, 1, []) == (3, [])
    assert ask(host, plugin, tmp_path / "missing", 4, 1, []) == (3, [])
