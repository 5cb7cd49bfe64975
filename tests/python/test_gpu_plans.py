"""Plans for GPUs on the command line and in Python: proofs, findings with a trace, simulation, damaged files."""

import json
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.planning.emission import FORMATS, TARGETS

from .conftest import call, json_of, refusal, written

#: Formats that are not for libraries of GPUs, and one that needs a library's table.
NOT_OF_LIBRARIES = {*FORMATS} - {"msccl-xml", "mscclpp"} | {"mpich-json"}
NOP: dict[str, Any] = {"name": "nop"}


def meeting(*names: str) -> list[dict[str, Any]]:
    """Returns operations on the only channel, with a barrier of the threads before and after each."""
    ops = [NOP]
    for name in names:
        ops += [{"name": name, "channel_ids": [0], "channel_type": "memory"}, NOP]
    return ops


def allgather(*last: str) -> dict[str, Any]:
    """Returns an allgather in which each of two GPUs puts its chunk, followed by the operations ``last``."""
    gpus = []
    for gpu in range(2):
        own = {"type": "o", "index": gpu, "size": 1}
        there = {"buffer_id": 0, "index": gpu, "size": 1}
        put = {"name": "put", "src_buff": [own], "dst_buff": [there], "channel_ids": [0], "channel_type": "memory"}
        block = {
            "id": 0,
            "ops": [*meeting("rlxsignal", "rlxwait"), put, *meeting(*last)],
            "channels": [{"channel_type": "memory", "channel_ids": [0]}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
        }
        remote = {"rank": 1 - gpu, "type": "o", "access_channel_types": ["memory"]}
        chunks = {"input_chunks": 1, "output_chunks": 2, "scratch_chunks": 0}
        channels = [{"channel_type": "memory", "connected_to": [1 - gpu]}]
        gpus.append({"id": gpu, **chunks, "threadblocks": [block], "channels": channels, "remote_buffers": [remote]})
    return {"name": "pair", "collective": "allgather", "protocol": "Simple", "inplace": True, "gpus": gpus}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return written(tmp_path / "pair.json", json.dumps(allgather("signal", "wait")))


def test_a_plan_is_proved_and_converted(plan: Path, tmp_path: Path) -> None:
    found = json_of("verify", str(plan))
    assert (found["complete"], found["deadlock_free"], found["race_free"]) == (True, True, True)
    assert found["diagnostics"] == []
    assert (found["relaunch"], found["keeps_input"], found["sizes"]) == (True, None, "all")
    ran = call("verify", str(plan), "--bytes", "1MiB", "--processors", "1")
    assert "proved: the plan of" in ran.out
    assert (
        "safe to launch again  yes\nkeeps its input       in place\nsizes                 the one asked for\n"
        in ran.out
    )
    back = json_of("import", str(plan), "--format", "mscclpp", "-o", str(tmp_path / "a.sched"), "--elements", "96")
    assert (back["collective"], back["elements"], back["nodes"]) == ("allgather", 96, 2)
    assert any("keeps no thread blocks" in note for note in back["notes"])
    assert un.load(plan).verify().holds
    assert json_of("verify", str(tmp_path / "a.sched"))["complete"]


def test_a_plan_is_simulated_like_its_schedule(plan: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "a.sched")
    call("import", str(plan), "--format", "mscclpp", "-o", out)
    of_plan, of_schedule = (json_of("simulate", file, "--machine", "archer") for file in (str(plan), out))
    assert of_plan["seconds"] == of_schedule["seconds"] > 0


@pytest.mark.parametrize("target", ["mscclpp", "msccl-xml"])
@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reduce-scatter", "broadcast"])
def test_a_plan_runs_at_the_size_that_it_states_or_that_is_asked_for(
    collective: str, target: str, tmp_path: Path
) -> None:
    on = ["--machine", "dgx-h100", "--nodes", "1", "--ranks", "4"]
    folder = tmp_path / "plan"
    sized = ["--bytes", "48KiB", "--algorithm", "forest" if collective != "broadcast" else "binomial"]
    report = json_of("emit", collective, *on, *sized, "--format", target, "-o", str(folder))
    (name,) = report["files"]
    file = str(folder / Path(name).name)
    assert un.load(file).elements == 12288
    assert un.load(file, elements=24576).elements == 24576
    place = ["--machine", "dgx-h100", "--ranks", "4"]
    own, same, twice = (json_of("simulate", file, *place, *size) for size in ([], sized[:2], ["--bytes", "96KiB"]))
    assert (own["bytes"], own["seconds"]) == (same["bytes"], same["seconds"]) == (49152, own["seconds"])
    assert twice["bytes"] == 2 * own["bytes"]
    assert twice["seconds"] > own["seconds"]
    assert json_of("simulate", file, *place, *sized[:2], "--dtype", "f64")["elements"] == 6144
    assert "--op is for a collective that is planned" in refusal("simulate", file, *place, "--op", "max")


def test_a_schedule_has_one_size(plan: Path, tmp_path: Path) -> None:
    un.save(un.load(plan), tmp_path / "own.sched")
    with pytest.raises(un.InputError, match="is a schedule of one size"):
        un.load(tmp_path / "own.sched", elements=8)
    assert call("simulate", str(tmp_path / "own.sched"), "--bytes", "8", "--machine", "dgx-h100").code == 2


@pytest.mark.parametrize(
    ("last", "code", "place"),
    [
        (("wait", "signal"), "deadlock", (0, 0, 7)),
        ((), "race", (1, 0, 5)),
        (("signal",), "unmatched", (0, 0, 7)),
        (("rlxsignal", "rlxwait"), "race", (1, 0, 5)),
    ],
)
def test_faults_are_shown_with_a_trace(
    last: tuple[str, ...], code: str, place: tuple[int, int, int], tmp_path: Path
) -> None:
    path = written(tmp_path / "wrong.json", json.dumps(allgather(*last)))
    first = un.check_gpu_plan(path)["diagnostics"][0]
    assert first["code"] == code
    assert (first["rank"], first["threadblock"], first["instruction"]) == place
    ran = call("verify", str(path))
    assert ran.code == 1
    assert f"{code}: gpu {place[0]}, thread block {place[1]}, operation {place[2]}: " in ran.out
    assert f"  1. {first['trace'][0]}\n" in ran.out
    trusted = un.check_gpu_plan(path, trust_relaxed=True)
    assert bool(trusted["diagnostics"]) == (last != ("rlxsignal", "rlxwait"))


def test_a_plan_of_packets_is_launched_again(tmp_path: Path) -> None:
    path = tmp_path / "packets.json"
    made = allgather()
    made["protocol"] = "LL"
    for gpu, plan in enumerate(made["gpus"]):
        plan["scratch_chunks"] = 1
        plan["remote_buffers"][0]["type"] = "s"
        own, there = {"type": "o", "index": gpu, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}
        theirs = {"type": "o", "index": 1 - gpu, "size": 1}
        put = {"name": "ppkt", "src_buff": [own], "dst_buff": [there], "channel_type": "memory"}
        read = {"name": "upkt", "src_buff": [{"type": "s", "index": 0, "size": 1}], "dst_buff": [theirs]}
        plan["threadblocks"][0]["ops"] = [put, read]
    for double in (True, False):
        made["use_double_scratch_buffer"] = double
        path.write_text(json.dumps(made))
        found = un.check_gpu_plan(path)
        assert (found["complete"], found["race_free"], found["relaunch"]) == (True, True, double)
        assert {one["code"] for one in found["diagnostics"]} == (set() if double else {"relaunch"})
    ran = call("verify", str(path))
    assert (ran.code, "safe to launch again  no\n" in ran.out) == (1, True)
    assert "(ppkt) of launch 2 writes packets of gpu 0 over those that " in ran.out


def test_damaged_plans_are_refused_with_the_path(plan: Path) -> None:
    damaged = allgather("signal", "wait")
    damaged["gpus"][1]["threadblocks"][0]["ops"][3]["channel_ids"] = [9]
    plan.write_text(json.dumps(damaged))
    ran = call("verify", str(plan))
    assert (ran.code, ran.err) == (
        2,
        f"error: {plan}: gpus[1].threadblocks[0].ops[3]: rlxwait uses channel 9 of its thread block, "
        "which has 1 of that type\n",
    )
    plan.write_text(json.dumps(damaged)[:-9])
    assert call("verify", str(plan)).err.startswith(f"error: {plan}: ")
    with pytest.raises(un.InputError, match="not a regular file"):
        un.check_gpu_plan("/dev/zero")


@pytest.mark.parametrize(("size", "protocol"), [("8KiB", "LL"), ("1MiB", "Simple")])
def test_a_schedule_is_written_as_a_plan(size: str, protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "ring.json"
    words = ("allreduce", "--machine", "archer", "--ranks", "4", "--bytes", size, "--algorithm", "recursive-doubling")
    written = json_of("emit", *words, "--format", "mscclpp", "-o", str(file))
    assert written["files"] == [str(file)]
    assert [("begins with +0" in note) for note in written["notes"]] == [True] * (protocol == "LL")
    made = json.loads(file.read_text())
    assert made["protocol"] == protocol
    assert made["inplace"] is True
    assert made["min_message_size"] == made["max_message_size"] == {"8KiB": 8192, "1MiB": 1 << 20}[size]
    assert json_of("verify", str(file))["diagnostics"] == []
    plan = un.plan("allreduce", un.machine("archer", 4), elements=made["max_message_size"] // 4, algorithm=words[-1])
    elements = plan.schedule.elements
    found = un.check_gpu_plan(file, elements)
    # A sum of packets starts from +0; otherwise the plan adds the same operands in the same order.
    stated = plan.schedule.verify().expression_class
    assert (found["expression_class"] == stated) == (protocol == "Simple")
    assert un.import_schedule(file, "mscclpp", elements).verify().expression_class == stated
    ran = call("emit", *words, "--op", "max", "--format", "mscclpp", "-o", str(file))
    assert ran.code == 1
    assert "mscclpp cannot express this schedule: the runtime adds, and the operator is max" in ran.err


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall", "broadcast", "reduce", "reduce-scatter"])
def test_plans_are_in_place_or_not(collective: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("emit", collective, "--machine", "archer", "--ranks", "4", "--bytes", "1KiB", "--format", "mscclpp", "-o")
    for option, expected in (("", collective in ("allreduce", "broadcast", "reduce")), ("--not-in-place", False)):
        assert call(*words, str(file), *filter(None, [option])).code == 0
        assert json.loads(file.read_text())["inplace"] is expected
    assert call(*words, str(file), "--in-place").code == 0
    made = json.loads(file.read_text())
    assert made["inplace"] is True
    found = json_of("verify", str(file))
    assert (found["complete"], found["keeps_input"], found["diagnostics"]) == (True, None, [])
    # If the library may use the plan for calls with two buffers, the input must be kept.
    file.write_text(json.dumps({**made, "inplace": False}))
    assert json_of("verify", str(file))["keeps_input"] is True


def test_boxes_have_port_channels_between_them(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("allreduce", "--bytes", "64KiB", "--algorithm", "rabenseifner", "--format", "mscclpp", "-o", str(file))

    def peers() -> set[tuple[int, int]]:
        rows = [(gpu["id"], row) for gpu in json.loads(file.read_text())["gpus"] for row in gpu["channels"]]
        return {(gpu, to) for gpu, row in rows if row["channel_type"] == "port" for to in row["connected_to"]}

    call("emit", *words, "--machine", "dgx-a100-x2")
    assert peers() == {(gpu, (gpu + 8) % 16) for gpu in range(16)}
    assert json_of("verify", str(file), "--bytes", "64KiB")["diagnostics"] == []
    call("emit", *words, "--machine", "archer", "--ranks", "4", "--gpus-per-box", "2")
    assert peers() == {(gpu, (gpu + 2) % 4) for gpu in range(4)}
    ran = call("emit", *words, "--machine", "archer", "--ranks", "4", "--gpus-per-box", "3")
    assert (ran.code, "4 GPUs do not fill boxes of 3; use a number that divides 4" in ran.err) == (1, True)


def test_forests_over_boxes_have_plans(tmp_path: Path) -> None:
    """A GPU sends its input and what arrived to several GPUs, by puts of one buffer each."""
    file = tmp_path / "plan.json"
    words = ("--machine", "dgx-a100-x2", "--bytes", "1KiB", "--algorithm", "forest", "--param", "chunks=1")
    call("emit", "allgather", *words, "--format", "mscclpp", "-o", str(file))
    assert json_of("verify", str(file))["diagnostics"] == []


@pytest.mark.soak
def test_each_algorithm_is_tried_beside_large_schedules() -> None:
    words = ("reduce-scatter", "--machine", "gb200-nvl72", "--bytes", "1MiB", "--for", "mscclpp")
    least = min(json_of("plan", *words, "--algorithm", name)["predicted"]["seconds"] for name in ("circulant", "ring"))
    assert json_of("plan", *words)["predicted"]["seconds"] <= least


def test_packets_are_ordered_by_ranges(tmp_path: Path) -> None:
    """The memory to order packets does not grow with the size of a call."""
    file = tmp_path / "plan.json"
    words = ("--machine", "archer", "--ranks", "4", "--bytes", "8KiB", "--thread-blocks", "2", "--format", "mscclpp")
    call("emit", "allreduce", *words, "--algorithm", "recursive-doubling", "-o", str(file))
    plan = json.loads(file.read_text())
    assert plan["protocol"] == "LL"
    del plan["min_message_size"], plan["max_message_size"]
    file.write_text(json.dumps(plan))
    for size in ("8KiB", "64KiB", "64MiB"):
        ran = call("verify", str(file), "--bytes", size, "--limit-memory", "10MB")
        assert (ran.code, ran.err) == (0, ""), size


def test_thread_blocks_share_the_work_of_a_gpu(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "1MiB", "--format", "mscclpp")

    def shares() -> set[tuple[int, int]]:
        blocks = [block for gpu in json.loads(file.read_text())["gpus"] for block in gpu["threadblocks"]]
        moves = [op for block in blocks for op in block["ops"] if op["name"] == "put"]
        assert moves
        groups = [op.get("tbg_info", {"tb_id": 0, "tbg_size": 1}) for op in moves]
        return {(group["tb_id"], group["tbg_size"]) for group in groups}

    for algorithm, by_default in {"ring": 8, "rabenseifner": 8, "recursive-doubling": 16}.items():
        for options, count in (((), by_default), (("--thread-blocks", "3"), 3)):
            call("emit", *words, "--algorithm", algorithm, *options, "-o", str(file))
            assert shares() == {(n, count) for n in range(count)}, algorithm
            found = json_of("verify", str(file), "--bytes", "1MiB")
            assert (found["complete"], found["race_free"], found["diagnostics"]) == (True, True, [])
            # This plan is wrong: one thread block puts the share of another block.
            plan = json.loads(file.read_text())
            moved = next(op for op in plan["gpus"][0]["threadblocks"][0]["ops"] if op["name"] == "put")
            moved["tbg_info"]["tb_id"] = 1
            file.write_text(json.dumps(plan))
            ran = call("verify", str(file), "--bytes", "1MiB", "--json")
            assert ran.code == 1
            assert ran.json["diagnostics"]


def test_one_gpu_asks_for_sums_where_the_runtime_lacks_channels_for_more(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("allreduce", "--machine", "dgx-h100", "--bytes", "1MiB", "--algorithm", "in-network", "--param")
    call("emit", *words, "chunks=4", "--format", "mscclpp", "-o", str(file))
    gpus = json.loads(file.read_text())["gpus"]
    asking = [gpu["id"] for gpu in gpus for b in gpu["threadblocks"] for op in b["ops"] if op["name"] == "glres"]
    # One GPU each requests the four sums from the switch, divided among its thread blocks.
    assert len(set(asking)) == 4
    found = json_of("verify", str(file), "--bytes", "1MiB")
    assert (found["complete"], found["race_free"], found["diagnostics"]) == (True, True, [])


@pytest.mark.parametrize("collective", ["allreduce", "broadcast", "reduce"])
def test_switches_that_reduce_are_asked_for_shares(collective: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = (collective, "--machine", "dgx-h100", "--bytes", "1MiB", "--algorithm", "in-network", "--param", "chunks=1")
    call("emit", *words, "--format", "mscclpp", "-o", str(file))
    plan = json.loads(file.read_text())
    name = "gstore" if collective == "broadcast" else "glres"
    asked = [
        (gpu["id"], op["tbg_info"]["tb_id"], op["tbg_info"]["tbg_size"])
        for gpu in plan["gpus"]
        for block in gpu["threadblocks"]
        for op in block["ops"]
        if op["name"] == name
    ]
    # The fastest number of thread blocks share the vector, in an allreduce on all eight GPUs.
    leaders = 8 if collective == "allreduce" else 1
    size = asked[0][2]
    assert size > leaders
    first = 0 if leaders == 8 else asked[0][0]
    assert {gpu for gpu, *_ in asked} == set(range(first, first + leaders))
    shares = [(first + n // (size // leaders), n, size) for n in range(size)]
    assert sorted(asked) == sorted(shares)
    found = json_of("verify", str(file), "--bytes", "1MiB")
    assert (found["complete"], found["race_free"], found["diagnostics"]) == (True, True, [])
    # Only the broadcast compares all algorithms, which takes long.
    alone = () if collective == "broadcast" else ("--algorithm", "in-network")
    ran = call("plan", collective, "--machine", "dgx-h100", "--bytes", "64KiB", "--for", "mscclpp", *alone)
    assert "in-network" in ran.out
    assert "cannot express this schedule: it has switches" not in ran.out


def test_findings_about_files_of_msccl_name_the_step(tmp_path: Path) -> None:
    file = tmp_path / "ring.xml"
    words = ("emit", "allgather", "--machine", "archer", "--ranks", "3", "--bytes", "64", "--algorithm", "ring")
    call(*words, "--format", "msccl-xml", "-o", str(file))
    lines = file.read_text().splitlines()
    own = [n for n, line in enumerate(lines) if 'type="cpy"' in line]
    # GPU 2 now copies from an unwritten output, in place of its own input.
    lines[own[2]] = lines[own[2]].replace('srcbuf="i" srcoff="0"', 'srcbuf="o" srcoff="1"')
    gpu, block, step = 2, 0, 1
    file.write_text("\n".join(lines) + "\n")
    found = call("verify", str(file), "--json").json["diagnostics"]
    named = [one for one in found if one["step"] is not None]
    assert (named[0]["rank"], named[0]["threadblock"], named[0]["step"]) == (gpu, block, step), found
    ran = call("verify", str(file))
    assert ran.code == 1
    assert f"{named[0]['code']}: gpu {gpu}, thread block {block}, step {step}: {named[0]['message']}\n" in ran.out


@pytest.mark.parametrize("target", sorted({*TARGETS} - NOT_OF_LIBRARIES))
@pytest.mark.parametrize("machine", ["wse2", "piuma"])
def test_files_of_libraries_are_refused_on_machines_that_run_none(target: str, machine: str) -> None:
    """Files for libraries of GPUs and MPI are refused for wafers and for cores whose switches reduce."""
    with pytest.raises(un.NotExpressibleError, match=f"{target} .*{machine} "):
        un.plan("allreduce", machine, elements=8, target=target, shape=4)
    if target in FORMATS:
        schedule = un.plan("allreduce", machine, elements=8, shape=4).schedule
        with pytest.raises(un.NotExpressibleError, match=f"it is for GPUs, and {machine} is "):
            un.emit_files(schedule, target)


def test_channels_that_are_waited_for_twice_keep_their_thread() -> None:
    """An instruction of this forest receives several messages from one GPU and one from another."""
    params = {"chunks": "16", "depth": "6"}
    plan = un.plan("reduce", "mi250", elements=1024, algorithm="forest", params=params)
    assert un.emit_files(plan.schedule, "mscclpp")


@pytest.mark.parametrize("collective", ["allreduce", "allgather"])
def test_a_type_that_makes_a_call_of_other_bytes_is_noted(collective: str, tmp_path: Path) -> None:
    """A file that is written for one size is for as many bytes, so its elements of another type are another call."""
    file = tmp_path / "a.xml"
    where = ("--machine", "dgx-a100", "--bytes", "64KiB")
    assert call("emit", collective, *where, "--format", "msccl-xml", "-o", str(file)).code == 0
    for dtype in un.dtypes():
        ran = call("verify", str(file), "--dtype", dtype)
        assert ran.code == 0, ran.err
        assert ("the executor does not run a call of" in ran.err) == (dtype not in ("f32", "i32")), (dtype, ran.err)
