"""Rules for the tuner of NCCLX, applied by a reader of its grammar."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import SOAK, json_of
from .test_nccl import NAMES, TOPOLOGIES, needs_a_reducing_network

ALGORITHMS = {
    "allgather": ["ring"],
    "allreduce": ["ring", "in-network"],
    "broadcast": ["pipelined-chain"],
    "reduce-scatter": ["ring"],
}
THEIRS = {"ring": "ring", "in-network": "nvls", "pipelined-chain": "ring"}
OF_ALL = ("allgather", "reducescatter")


def fields(line: str) -> list[str]:
    """Returns the fields of a line, separated by commas outside of brackets."""
    found, depth = [""], 0
    for character in line:
        depth += (character in "[(") - (character in ")]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [field.strip() for field in found]


def within(text: str, number: int) -> bool:
    if text == "*":
        return True
    if text[0] not in "[(":
        return int(text) == number
    low, high = text[1:-1].split(",")
    assert text[-1] in "])"
    above = not low or (number >= int(low) if text[0] == "[" else number > int(low))
    below = not high or (number <= int(high) if text[-1] == "]" else number < int(high))
    assert not (low and high) or int(low) <= int(high), text
    return above and below


@dataclass(frozen=True)
class Tuner:
    """The tuner of a communicator with its rules; a wrong file raises an error."""

    rules: list[list[str]]
    ranks: int
    nodes: int

    @classmethod
    def read(cls, text: str, ranks: int, nodes: int) -> "Tuner":
        lines = [line.strip() for line in text.splitlines()]
        rules = [fields(line) for line in lines if line and not line.startswith("#")]
        for rule in rules:
            if len(rule) not in (7, 8):
                raise ValueError(rule)
            if rule[0] not in ("allreduce", "broadcast", "reduce", "allgather", "reducescatter"):
                raise ValueError(rule)
            if rule[2] not in ("ring", "nvls") or rule[3] not in ("ll", "ll128", "simple"):
                raise ValueError(rule)
            for field in (rule[1], rule[5], rule[6]):
                within(field, 0)
            [int(field) for field in (rule[4], *rule[7:])]
        return cls(rules, ranks, nodes)

    def choose(self, collective: str, total: int) -> str:
        """Returns the choice of the first rule that matches a call of ``total`` bytes, as NCCL counts them."""
        local = self.ranks // self.nodes
        per_rank = total // (self.nodes * local)
        for name, size, algorithm, protocol, channels, nodes, of_node, *chunk in self.rules:
            same = name == collective and within(nodes, self.nodes) and within(of_node, local)
            if same and within(size, per_rank):
                return " ".join((algorithm, protocol, channels, *chunk))
        return "-"


def some_rows(some: random.Random) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for collective, algorithms in ALGORITHMS.items():
        for ranks in (4, 8, 16):
            anywhere = some.random() < 0.4
            for per_node in [None] if anywhere else [ranks // n for r, n in TOPOLOGIES if r == ranks]:
                at = 0
                for _ in range(some.randint(0, 3)):
                    first = at + some.choice([0, ranks, 1000 * ranks])
                    last = first + some.choice([ranks, 4096 * ranks, 2**33]) - 1
                    algorithm = some.choice(algorithms)
                    params = {"protocol": some.choice(["ll", "ll128", "simple"])} if algorithm == "ring" else {}
                    for name, values in (("channels", "1 2 32"), ("chunk-size", "4096 131072")):
                        if some.random() < 0.4:
                            params[name] = some.choice(values.split())
                    row: dict[str, object] = {"collective": collective, "ranks": ranks, "algorithm": algorithm}
                    row |= {"params": params} if per_node is None else {"params": params, "per_node": per_node}
                    rows.append(row | {"first_bytes": first, "last_bytes": last})
                    at = last + 1
    return rows


def meant(rows: list[dict[str, object]], collective: str, size: int, ranks: int, nodes: int) -> str:
    """Returns the choice of a table for a call of ``size`` bytes, as the table counts them."""
    for row in rows:
        params = row["params"]
        assert isinstance(params, dict)
        same = (NAMES[str(row["collective"])], row["ranks"]) == (collective, ranks)
        same = same and row.get("per_node", ranks // nodes) == ranks // nodes
        if same and int(str(row["first_bytes"])) <= size <= int(str(row["last_bytes"])):
            chosen = (THEIRS[str(row["algorithm"])], params.get("protocol", "simple"), params.get("channels", "-1"))
            return " ".join((*chosen, *([params["chunk-size"]] if "chunk-size" in params else [])))
    return "-"


def test_the_rules_choose_what_the_table_says(tmp_path: Path) -> None:
    some, chosen, chunked = random.Random(11), 0, 0
    for case in range(48 if SOAK else 6):
        rows = some_rows(some)
        table, file = tmp_path / "table.json", tmp_path / "rules.csv"
        table.write_text(json.dumps({"unisono_table": 1, "rows": rows}))
        made = json_of("export", str(table), "--format", "ncclx-csv", "-o", str(file), "--no-check")
        kept = [row for row in rows if not needs_a_reducing_network(row)]
        assert (made["rows"], len(made["left"])) == (len(kept), len(rows) - len(kept)), case
        assert made["load"] == [f"NCCLX_TUNER_CONFIG_FILE={file}"]
        for ranks, nodes in TOPOLOGIES:
            tuner = Tuner.read(file.read_text(), ranks, nodes)
            ends = {int(str(row[key])) for row in rows for key in ("first_bytes", "last_bytes")}
            for collective in NAMES.values():
                for end in sorted({end + near for end in ends for near in (-1, 0, 1) if end + near >= 0}):
                    total = end * ranks if collective in OF_ALL else end
                    expected = meant(kept, collective, end, ranks, nodes)
                    assert tuner.choose(collective, total) == expected, (case, collective, end, ranks, nodes)
                    chosen += expected != "-"
                    chunked += expected.count(" ") == 3
    assert chosen > 250
    assert chunked > 50


WRONG = ("collective,bytesPerRank,algorithm,protocol,channels,nNodes,nLocalRanks", "allreduce,*,ring,ll,-1,1")


@pytest.mark.parametrize("line", WRONG)
def test_the_reader_refuses_wrong_lines(line: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Tuner.read(f"allreduce,*,ring,ll,-1,1,4\n{line}\n", 4, 1)
