"""Every command that prints times notes the costs that a machine omits."""

from pathlib import Path

import pytest
import unisono as un

from .conftest import call, json_of

CABLES = "0 4 gbps=100\n1 4 gbps=100\n2 4 gbps=100\n3 4 gbps=100\n"
WORKLOAD = """
name = "pairs"
[[dimensions]]
name = "all"
size = 4
[[steps]]
name = "only"
compute_us = 1
[[steps.communication]]
collective = "allreduce"
elements = 65536
"""
#: Machines, with texts that their notes must have.
MACHINES = {
    "archer": ["a byte costs nothing on this machine"],
    "paper-sim": [],
    "dgx-h100": ["rates and starts as measured; bounds by the data sheet"],
    "dgx2": ["rates of the data sheet; nothing measured", "launch_ns, signal_ns and host_overhead_ns of dgx2 are 0"],
    "hx2mesh-small": [],
    "mine": ["host_overhead_ns of cables are 0", "gamma_ns_per_byte = 0.0025 (sums of 400 GB/s)"],
}
SIZE = ["--bytes", "64KiB"]
#: Commands that print times, by the kinds of machines that they are for.
COMMANDS: dict[str, list[str]] = {
    "plan": ["plan", "allreduce", "--ranks", "4", *SIZE, "--algorithm", "ring", "--machine"],
    "simulate": ["simulate", "allreduce", "--ranks", "4", *SIZE, "--algorithm", "ring", "--machine"],
    "bound": ["bound", "allreduce", "--ranks", "4", *SIZE, "--machine"],
    "expect": ["expect", "allreduce", "--ranks", "4", "--sizes", "64KiB", "--algorithm", "ring", "--machine"],
    "sweep": ["sweep", "allreduce", "--ranks", "4", "--elements", "16384", "--jobs", "1", "--algorithms", "ring"]
    + ["--baseline", "ring", "--machine"],
    "traffic": ["traffic", "alltoall", "--bytes", "4KiB", "--level", "flow", "--machine"],
    "workload": ["workload", "pairs.toml", "--machine"],
    "compare": ["compare", "pairs.toml", "--machines"],
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_its_times_leave_out(
    command: str, machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.toml").write_text(WORKLOAD)
    Path("cables.txt").write_text(CABLES)
    imported = call("machines", "import", "cables.txt", "--accelerators", "4", "-o", "mine.toml")
    assert imported.out.count("gamma_ns_per_byte") == 1
    name = "mine.toml" if machine == "mine" else machine
    if command in ("traffic", "workload", "compare") and un.machine(name).kind != "network":
        pytest.skip("for networks")
    if command == "traffic" and machine == "hx2mesh-small":
        pytest.skip("a thousand accelerators; the note does not depend on them")
    found = json_of(*COMMANDS[command], name)["notes"]
    assert len(found) == len(MACHINES[machine])
    assert all(any(words in note for note in found) for words in MACHINES[machine])
    text = " ".join(call(*COMMANDS[command], name).out.split())
    for words in MACHINES[machine]:
        assert text.count(words) == 1, text


def test_short_vectors_need_no_price_of_a_byte_and_models_price_it_or_not() -> None:
    assert un.machine("archer").notes(1024) == []
    assert len(un.machine("archer").notes(1025)) == 1
    # In this machine the postal model has a price of bytes, and LogP has none.
    priced = un.machine({**un.machine("paper-sim").describe(), "L_ns": 1, "o_ns": 1, "g_ns": 1})
    assert priced.notes() == []
    assert len(priced.notes(model="logp")) == 1


def test_notes_of_a_program_are_those_of_its_machine(tmp_path: Path) -> None:
    (tmp_path / "one.hlo").write_text(
        "HloModule m, num_partitions=4\n\n%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\nENTRY %main (x: f32[1024]) -> f32[1024] {\n"
        "  %x = f32[1024] parameter(0)\n  ROOT %r = f32[1024] all-reduce(%x), channel_id=1, "
        "replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%sum\n}\n"
    )
    report = json_of("workload", "--from", str(tmp_path / "one.hlo"), "--machine", "dgx2")
    assert any("host_overhead_ns of dgx2 are 0" in note for note in report["notes"])


@pytest.mark.parametrize(("depth", "slower"), [(1, 2), (2, 1), (4, 1)])
def test_short_queues_of_a_wafer_have_a_note(depth: int, slower: int) -> None:
    on = un.machine(un.machine("wse2").describe() | {"queue_depth": depth})
    plan = un.plan("broadcast", on, shape=9, elements=300, model="paper")
    ran = un.simulate(plan.schedule)
    assert ran.seconds == pytest.approx(slower * plan.predicted["seconds"], rel=0.05)
    noted = [note for note in plan.report()["notes"] if "(queue_depth)" in note]
    assert ["halve" in note for note in noted] == {1: [True], 2: [False], 4: []}[depth]


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({}, None),
        ({"send_machines": 1}, "send_machines"),
        ({"buffer_bytes": 8192, "link_latency_ns": 1000}, "buffer_bytes"),
    ],
)
def test_what_closed_forms_of_large_networks_leave_out_has_a_note(changed: dict[str, int], key: str | None) -> None:
    """A note names costs that closed forms omit; an allreduce of 4 MiB can take 2.5 times its prediction."""
    on = un.machine(un.machine("torus2d-small").describe() | changed)
    plan = un.plan("allreduce", on, shape=(32, 32), bytes="4MiB", algorithm="bucket")
    assert plan.candidates[0]["source"] == "exchanges"
    noted = [note for note in plan.report()["notes"] if "closed forms leave out" in note]
    assert ["(" + str(key) + ")" in note for note in noted] == [True] * (key is not None)


def test_long_notes_are_one_line_unless_they_are_explained() -> None:
    asked = ["plan", "allreduce", "--machine", "archer", "--ranks", "16", "--bytes", "1MiB"]
    whole = json_of(*asked)["notes"]
    assert [len(note) > 130 for note in whole] == [True]
    short = [line for line in call(*asked).out.splitlines() if line.startswith("note")]
    assert [line.split(maxsplit=1)[1] for line in short] == [
        "a byte costs nothing on this machine (no beta, no G), so the length of the vector has no part in these times "
        "... (--explain)"
    ]
    explained = [line for line in call(*asked, "--explain").out.splitlines() if line.startswith("note")]
    assert [line.split(maxsplit=1)[1] for line in explained] == whole
    assert json_of(*asked, "--explain")["notes"] == whole
    # Commands without `--explain` print whole notes.
    assert whole[0] in call("bound", *asked[1:]).out
