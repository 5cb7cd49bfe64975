"""The types of reports match the values that the program returns, on every kind of machine."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pytest
import unisono as un
from unisono.base import reports
from unisono.tasks import Program, all_, one_to_one

from .conftest import ROOT, json_of, other_kinds

#: A machine of each kind, as options of commands.
MACHINES = {
    "wafer": ("wse2", "--shape", "4x3"),
    "endpoint": ("archer", "--ranks", "12"),
    "network": ("hx2mesh-small", "--shape", "4x3"),
    "in-network": ("piuma", "--nodes", "1"),
}
MACHINES |= {kind: (name, "--shape", "12") for kind, name in other_kinds(*(m[0] for m in MACHINES.values())).items()}
ON_EVERY_KIND = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))


def differences(value: Any, kind: Any, place: str = "it") -> list[str]:
    """Returns the paths at which a value does not have a type: other keys of a dictionary, or another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return []
    if origin in (Required, NotRequired):
        return differences(value, arguments[0], place)
    if origin in (Union, UnionType):
        found = [differences(value, one, place) for one in arguments if one is not NoneType or value is None]
        return min(found, key=len)
    if is_typeddict(kind):
        if not isinstance(value, dict):
            return [f"{place} is {value!r}"]
        missing = [f"{place} lacks {key}" for key in sorted(kind.__required_keys__ - set(value))]
        hints = get_type_hints(kind)
        unknown = [f"{place} has {key}" for key in sorted(set(value) - set(hints))]
        return (
            missing
            + unknown
            + [line for key in value if key in hints for line in differences(value[key], hints[key], f"{place}.{key}")]
        )
    if origin is list:
        if not isinstance(value, list | tuple):
            return [f"{place} is {value!r}"]
        return [line for at, one in enumerate(value) for line in differences(one, arguments[0], f"{place}[{at}]")]
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, arguments[0]) for key in value):
            return [f"{place} is {value!r}"]
        return [line for key, one in value.items() for line in differences(one, arguments[1], f"{place}.{key}")]
    if kind is float:
        return [] if isinstance(value, int | float) and not isinstance(value, bool) else [f"{place} is {value!r}"]
    same = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    return [] if same else [f"{place} is {value!r}"]


def check(value: Any, name: str) -> None:
    assert not differences(value, getattr(reports, name)), name


@ON_EVERY_KIND
def test_reports_are_of_their_types(machine: tuple[str, ...]) -> None:
    request = ["allreduce", "--machine", *machine, "--elements", "60"]
    check(json_of("plan", *request), "PlanReport")
    check(json_of("verify", *request), "ProofReport")
    check(json_of("simulate", *request), "SimulationReport")
    for bound in json_of("bound", *request)["bounds"]:
        check(bound, "Bound")
    shape = machine[2] if machine[1] == "--shape" else "12"
    sizes = ["--shapes", shape, "--elements", "1,100"]
    for point in json_of("sweep", "allreduce", "--machine", machine[0], *sizes)["points"]:
        check(point, "SweepPoint")


def test_predictions_of_schedules_are_of_their_type() -> None:
    for name in ("wse2", "archer", "hx2mesh-small"):
        check(un.plan("allreduce", name, shape=6, elements=60).schedule.predict(), "PredictedTime")


def test_findings_of_a_proof_are_of_their_type() -> None:
    text = un.plan("reduce", "wse2", shape=3, elements=4).schedule.to_text()
    proof = un.Schedule.parse(text.replace("reduce", "allreduce", 1)).verify()
    assert proof.diagnostics
    check(proof.report(), "ProofReport")


def test_reports_on_networks_are_of_their_types(tmp_path: Path) -> None:
    small = tmp_path / "torus.toml"
    small.write_text((ROOT / "machines" / "torus2d-small.toml").read_text().replace("[32, 32]", "[8, 8]"))
    for pattern in ("alltoall", "allreduce", "permutation"):
        check(un.traffic(pattern, small, bytes="4KiB", level="flow").report(), "TrafficReport")
    check(un.traffic("allreduce", small, bytes=64, level="packet").report(), "TrafficReport")
    check(un.workload("dlrm", "hx2mesh-small"), "WorkloadReport")
    check(un.allocate("hx2mesh-small", samples=10, fail=3), "AllocationReport")
    check(un.allocate("fattree-small", samples=10, fail=3, board=4, aligned=True), "AllocationReport")


def test_rows_of_a_plan_file_are_of_their_type(tmp_path: Path) -> None:
    plan = un.plan("allreduce", "archer", shape=8, elements=16)
    un.save_plans([(plan, 0, 4095), (("allreduce", 8), 4096, None)], tmp_path / "t.plan")
    for row in un.load_plans(tmp_path / "t.plan"):
        check(row, "PlanRow")


@pytest.mark.parametrize("simulate", [False, True])
def test_discoveries_are_of_their_type(simulate: bool) -> None:
    program = Program()
    one, other = program.array((64, 3), init=np.zeros((64, 3))), program.zeros((64, 3))
    program.task(lambda *_: None, range=64, reads=[one[all_]], updates=[other[one_to_one]], name="step")
    program.task(lambda *_: None, range=64, reads=[other[one_to_one]], updates=[one[one_to_one]], name="move")
    program.task(lambda *_: None, range=64, reads=[one[all_]], updates=[other[one_to_one]], name="step")
    check(program.explain(nodes=4).report(), "DiscoveryReport")
    check(program.explain(nodes=4, machine="archer", simulate=simulate).report(), "DiscoveryReport")


def test_differences_are_found() -> None:
    job = {"rows": [1], "columns": [2], "positions": [[1], [2]], "boards": 1}
    assert differences({**job, "boards": True}, reports.Job) == ["it.boards is True"]
    del job["boards"], job["columns"]
    assert differences({**job, "more": 1}, reports.Job) == ["it lacks boards", "it lacks columns", "it has more"]
    assert differences({"task": "a", "seconds": None}, reports.TaskTime) == ["it.seconds is None"]
