"""The types of reports: dictionaries with the same keys on every kind of machine, and None for missing values.

The types of reports that the extension module returns are written by the build from structs in Rust, into
``_reported.py``. ``tests/python/test_reports.py`` compares all of them with the reports of every kind of machine.
"""

from typing import Any, NotRequired, TypedDict

from unisono.base import _reported
from unisono.base._reported import *

__all__ = [
    "AllocationCounts",
    "BitsPrice",
    "BitsTableReport",
    "BitsTableRow",
    "ComparisonRow",
    "DeviceReport",
    "DiscoveryReport",
    "Expectation",
    "ExpectationChoice",
    "ExpectationRow",
    "Expected",
    "MetricReport",
    "PlannedRow",
    "PredictedReports",
    "PredictionReport",
    "ProofReport",
    "RequiredBits",
    "SimulationReport",
    "StepReport",
    "TrafficReport",
    "WhatIf",
    "WorkloadReport",
    "in_cycles",
]
__all__ += _reported.__all__


def in_cycles(time: PredictedTime | Bound | Candidate) -> float:
    """Returns the cycles of a time on a machine that has cycles."""
    cycles = time["cycles"]
    assert cycles is not None, "a wafer has cycles"
    return cycles


class BitsPrice(TypedDict):
    """The predicted times of a plan with a property of the bits, and of the fastest plan, at one size."""

    bytes: int
    seconds: float
    fastest_seconds: float


class BitsTableRow(TypedDict):
    """The range of sizes in bytes that one plan of a table serves.

    ``predicted_seconds`` is the time at the size for which the plan was made, the largest planned size in the range.
    """

    first_bytes: int
    last_bytes: int | None
    algorithm: str
    params: dict[str, str]
    predicted_seconds: float


class PlannedRow(TypedDict):
    """A row of a file that `unisono plan --serve` writes: the algorithm for a range of sizes in bytes.

    ``bytes`` is the size for which the plan was made; its time and its ratio are valid for this size. These three
    values are None for the algorithms of a library.
    """

    collective: str
    ranks: int
    first_bytes: int
    last_bytes: int | None
    algorithm: str
    params: dict[str, str]
    bytes: int | None
    predicted_seconds: float | None
    ratio: float | None


class BitsTableReport(TypedDict):
    """A table of plans with a property of the bits: ``PlanTable.report()``."""

    bits: str
    #: The cost of the property. For each size of ``prices``, the time of the table is divided by the time of the
    #: fastest plan; ``cost`` is the maximum over the sizes, and ``mean_cost`` the geometric mean.
    cost: float
    mean_cost: float
    #: The number of distinct expressions from which a table could be made.
    expressions: int
    rows: list[BitsTableRow]
    prices: list[BitsPrice]


class Expected(TypedDict):
    """The same quantity for the bound (``ceiling``), the library's choice and the plan; None for missing values."""

    ceiling: float | None
    library: float | None
    plan: float | None


class ExpectationChoice(TypedDict):
    """A library's choice for a size."""

    algorithm: str
    protocol: str | None
    channels: int | None


class ExpectationRow(Expected):
    """The expected times of a collective at one size, in seconds, and its bus bandwidths in GB/s."""

    bytes: int
    elements: int
    busbw: Expected
    #: The name of the bound.
    bound: str | None
    choice: ExpectationChoice | None
    #: The algorithm of the plan.
    algorithm: str
    params: dict[str, str]
    #: The source of the plan's time, as in :class:`PredictedTime`.
    source: str


class Expectation(TypedDict):
    """``unisono.expect`` and ``unisono expect --json``; rows are sorted by bytes."""

    collective: str
    machine: str
    shape: list[int]
    ranks: int
    dtype: str
    operator: str
    root: int
    model: str
    rates: str | None
    library: str | None
    failed: list[str]
    rows: list[ExpectationRow]
    notes: list[str]


class RequiredBits(TypedDict):
    """The verdict on a property of the bits that was required, with the reason if it does not hold."""

    bits: str
    holds: bool
    reason: str | None
    #: The calls that a ``.plan`` leaves to the MPI library, for which the property is unknown.
    left_to_library: list[str]


class ProofReport(Proof):
    """``Proof.report()`` and ``unisono verify --json``; keys that were not proved are None."""

    #: The verdict on the required property; absent if no property was required.
    required: NotRequired[RequiredBits]


class MetricReport(TypedDict):
    """A metric of a run in JSON; the value is null for an array that is too long to list."""

    value: Any
    unit: str


class SimulationReport(TypedDict):
    """``unisono simulate --json``."""

    collective: str | None
    machine: str | None
    shape: list[int] | None
    nodes: list[int] | None
    ranks: int | None
    elements: int | None
    dtype: str | None
    bytes: int | None
    sim: str
    model: str | None
    rates: str | None
    queue_depth: int | None
    cycles: int | None
    seconds: float | None
    nanoseconds: float | None
    bytes_per_second: float | None
    #: Bandwidths in GB/s, as nccl-tests define ``algbw`` and ``busbw``.
    algbw: float | None
    busbw: float | None
    finish: list[int] | list[float] | None
    finish_ns: list[float] | None
    events: int | None
    stalls: int | None
    metrics: dict[str, MetricReport] | None
    wall_seconds: float | None
    result_correct: bool | None
    elements_checked: int | None
    mismatch: str | None
    predicted_cycles: dict[str, float | None] | None
    lower_bound: Bound | None
    goal: str | None
    parameters: dict[str, int] | None
    deadlock: list[str]
    calibrated: dict[str, Any] | None
    beside: list[dict[str, Any]] | None
    #: Sentences on costs that the time omits, and on assumptions.
    notes: list[str]
    files: list[str]


class TrafficReport(TypedDict):
    """``Traffic.report()``, a point of ``unisono traffic --json``."""

    pattern: str
    machine: str
    accelerators: int
    planes: int
    bytes: int
    level: str
    algorithm: str | None
    params: dict[str, str]
    seconds: float
    share_of_injection: float
    share_of_peak: float
    injection_bytes_per_second: float
    bytes_per_second_min: float
    bytes_per_second_mean: float
    bytes_per_second_max: float
    packets: int | None
    hops: int | None
    events: int | None
    wall_seconds: float


class WorkloadReport(TypedDict):
    """``unisono.workload`` and ``unisono workload --json``: one training iteration."""

    workload: str
    machine: str
    #: The source of a network's rates, "measured" or "data-sheet"; bounds always use the data sheet.
    rates: str | None
    accelerators: int
    reference: str
    level: str
    overlap: bool
    minibatch: int | None
    algorithm: str | None
    seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_seconds: float
    hidden_seconds: float
    waiting_seconds: float
    phases: list[WorkloadPhase]
    notes: list[str]
    #: Three values: the used fraction of the network's accelerators, the number of copies of the model (None if the
    #: workload has no dimension of copies), and the used part of the price in dollars.
    utilization: float | None
    copies: int | None
    used_cost_usd: float | None
    packets: int | None
    events: int | None


class WhatIf(TypedDict):
    """The times of a step on a changed machine, and the price of the machine's network."""

    changes: dict[str, str]
    machine: str
    seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_seconds: float
    waiting_seconds: float
    cost_usd: float | None
    time_x_cost: float | None
    speed_up: float


class StepReport(GraphReport):
    """``unisono.step`` and ``unisono workload --from --json``: one step of a program, and all keys of a workload."""

    rates: str | None
    utilization: float | None
    copies: int | None
    used_cost_usd: float | None
    cost_usd: float | None
    time_x_cost: float | None
    what_if: list[WhatIf]


class ComparisonRow(TypedDict):
    """A workload on a machine, in ``unisono.compare``; times are None if it does not fit, for the ``reason`` given."""

    workload: str
    machine: str
    failed: list[str]
    accelerators: int | None
    machine_accelerators: int | None
    utilization: float | None
    copies: int | None
    seconds: float | None
    compute_seconds: float | None
    exposed_seconds: float | None
    cost_usd: float | None
    time_x_cost: float | None
    used_cost_usd: float | None
    #: The names among ``seconds`` and ``time_x_used_cost`` whose value is the least of all machines in the comparison.
    best: list[str]
    reason: str | None
    #: Sentences on the placement of the ranks and the assumptions of the program's reader.
    notes: list[str]


#: The sums over the jobs of one sample. The first three are placed jobs, refused jobs, and boards that placed jobs
#: requested. The last two are the fractions of alltoall and of allreduce traffic on the upper level, each multiplied by
#: the boards of its job.
AllocationCounts = tuple[int, int, int, float, float]


class PredictionReport(ProgramTime):
    """The communication of a program on a machine.

    ``ratio`` is the time by messages alone, divided by the time with collectives.
    """

    ratio: NotRequired[float | None]


class PredictedReports(TypedDict, total=False):
    """The keys that a machine adds to the report of a discovery."""

    machine: str
    predicted: PredictionReport
    point_to_point: PredictionReport


class DeviceReport(DeviceCopies):
    """The copies between the memories of a process with devices, with their times if a machine is given."""

    machine: NotRequired[str]
    predicted: NotRequired[PredictionReport]


class DiscoveryReport(Discovered, PredictedReports):
    """``unisono.discover`` and ``unisono discover --json``, with a prediction if a machine is given."""

    devices: NotRequired[DeviceReport]
