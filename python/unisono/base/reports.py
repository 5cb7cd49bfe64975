"""The types of reports: dictionaries with the same keys on every kind of machine, and None for missing values.

``tests/python/test_reports.py`` compares them with the reports of every kind of machine.
"""

from typing import Any, NotRequired, TypedDict

__all__ = [
    "AllocationCounts",
    "AllocationReport",
    "BitsPrice",
    "BitsTableReport",
    "BitsTableRow",
    "Bound",
    "BoundProof",
    "Candidate",
    "ChunkTree",
    "Communication",
    "DeviceOperation",
    "DeviceReport",
    "Diagnostic",
    "DiscoveryReport",
    "ForestTrees",
    "Forward",
    "Front",
    "FrontPoint",
    "GpuPlanFinding",
    "GpuPlanProof",
    "Job",
    "LibraryBits",
    "LibraryChoice",
    "LibraryLoss",
    "LibraryReport",
    "LibrarySettings",
    "MessageCounts",
    "MetricReport",
    "Phase",
    "PlanBits",
    "PlanReport",
    "PlanRow",
    "PlannedRow",
    "PredictedReports",
    "PredictedTime",
    "PredictionReport",
    "PricedOperation",
    "ProofReport",
    "RequiredBits",
    "SampledJobs",
    "SecondOpinion",
    "SimulationReport",
    "StepCollective",
    "StepReport",
    "SweepPoint",
    "TaskTime",
    "Terms",
    "TrafficReport",
    "WhatIf",
    "WorkloadPhase",
    "WorkloadReport",
    "in_cycles",
]


class Terms(TypedDict):
    """The cost terms of a schedule; on a grid, of its slowest row or column."""

    energy: float
    distance: float
    depth: float
    contention: float
    links: float
    max_link_load: float
    datapath: float


class Phase(TypedDict):
    """One phase of a schedule on a wafer."""

    name: str
    cycles: float
    terms: Terms
    note: str | None


class PredictedTime(TypedDict):
    """The time of a schedule by a model; ``source`` names the model or the measurement."""

    cycles: float | None
    seconds: float
    source: str
    terms: Terms | None
    phases: list[Phase] | None


class Bound(TypedDict):
    """One lower bound."""

    name: str
    cycles: float | None
    seconds: float
    reference: str
    source: str
    assumes: str | None
    #: ``bound`` holds for every schedule on the machine, ``of-model`` only by a model; ``model-optimum``, also by a
    #: model, is reached by a candidate of the plan.
    standing: str


class BoundProof(TypedDict):
    """The result of the check of a certificate of a bound."""

    holds: bool
    method: str
    error_probability: float
    #: The reason why the bound is not proved; None if it is proved.
    reason: str | None
    collective: str
    #: The bytes of each rank's block, or of the vector if the collective has one.
    bytes: int
    #: The root, or None for a collective without a root.
    root: int | None
    ranks: int
    machine: str
    #: The number of boxes, if the machine consists of boxes.
    nodes: int | None
    #: The failed links and nodes of the machine.
    failed: list[str]
    #: The accelerator of each rank.
    places: list[int]
    #: The name of the bound.
    bound: str
    #: The proved bound in seconds; None if the certificate does not hold.
    seconds: float | None


def in_cycles(time: PredictedTime | Bound) -> float:
    """Returns the cycles of a time on a machine that has cycles."""
    cycles = time["cycles"]
    assert cycles is not None, "a wafer has cycles"
    return cycles


class Candidate(TypedDict):
    """One algorithm with its parameters, as a plan ranks it."""

    algorithm: str
    params: dict[str, str]
    cycles: float | None
    seconds: float
    ratio: float | None
    source: str
    #: True if the target of emitted code can express the candidate; None without a target, or if this was not tested.
    expressible: bool | None
    #: The reason why the target cannot express the candidate.
    refused: str | None


class MemoryReport(TypedDict):
    """The bytes of input, output and scratch memory of the PE that needs the most, and the memory of a PE."""

    needed_bytes: int
    pe_bytes: int


class PlanReport(TypedDict):
    """``Plan.report()`` and ``unisono plan --json``; candidates are sorted, best first."""

    collective: str
    machine: str
    shape: list[int]
    ranks: int
    elements: int
    bytes: int
    dtype: str
    operator: str
    root: int
    algorithm: str
    params: dict[str, str]
    #: The performance guideline that the algorithm fulfils, such as "broadcast <= scatter + allgather".
    guideline: str | None
    model: str
    #: The source of a network's rates, "measured" or "data-sheet"; bounds always use the data sheet.
    rates: str | None
    #: The target of emitted code that the plan is made for.
    target: str | None
    fits_sram: bool | None
    memory: MemoryReport | None
    predicted: PredictedTime
    lower_bound: Bound | None
    #: The least time by the model of all schedules that its bound covers, if a candidate reaches it.
    model_optimum: Bound | None
    ratio: float | None
    #: Bandwidths of the predicted time in GB/s, as nccl-tests define ``algbw`` and ``busbw``; None for a barrier and a
    #: scan.
    algbw: float | None
    busbw: float | None
    #: Costs that the times omit, assumptions, and sources.
    notes: list[str]
    candidates: list[Candidate]
    #: The choice of a library by its own model, if it was requested.
    library: NotRequired["LibraryReport"]
    #: The properties of the bits that all candidates have, if they were requested.
    bits: NotRequired[list[str]]
    #: The predicted time divided by the time of the fastest candidate without these properties; for ``size``, of the
    #: fastest candidate that a ``.plan`` can hold.
    bits_cost: NotRequired[float]


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

    ``bytes`` is the size for which the plan is the best, and for which its time and ratio are; all three are None for
    the algorithms of a library.
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
    #: The largest value, and in ``mean_cost`` the geometric mean, over the sizes of ``prices``, of the table's time
    #: divided by the time of the fastest plan.
    cost: float
    mean_cost: float
    #: The number of distinct expressions from which a table could be made.
    expressions: int
    rows: list[BitsTableRow]
    prices: list[BitsPrice]


class LibraryChoice(TypedDict):
    """An algorithm and a protocol that a library enables."""

    algorithm: str
    protocol: str
    channels: int | None
    channel_gb_per_second: float | None
    #: The data rate in GB/s, and the latency in microseconds, by the library's own model.
    gb_per_second: float
    latency_us: float
    #: The library's own estimate, and in ``seconds`` the predicted time, which equals the estimate if there is no
    #: other.
    cost_seconds: float
    seconds: float
    calibrated: bool
    #: The terms of the cost of a call, and in ``prices`` the library's own cost of one unit of each; ``unisono
    #: calibrate --from`` fits them. Both are None for RCCL.
    work: dict[str, float] | None
    prices: dict[str, float] | None


class LibrarySettings(TypedDict):
    """Settings of a library that give a property of the bits."""

    algorithm: str
    protocol: str
    #: Environment variables, as ``NAME=VALUE``.
    settings: list[str]
    #: The time with these settings by the library's own model, which is not measured.
    seconds: float


class LibraryLoss(TypedDict):
    """An algorithm of a library without a property of the bits."""

    algorithm: str
    reason: str


class LibraryBits(TypedDict):
    """The settings of a library that give a property of the bits, fastest first, and the algorithms that lose it."""

    bits: str
    gives: list[LibrarySettings]
    loses: list[LibraryLoss]
    notes: list[str]


class LibraryReport(TypedDict):
    """A library's own choice: ``unisono plan --as``."""

    name: str
    #: The source of the rules or of the model.
    version: str
    #: The name of the algorithm in the library. MPI libraries choose by rules, so ``protocol`` and ``channels`` are
    #: None.
    algorithm: str
    protocol: str | None
    channels: int | None
    channel_gb_per_second: float | None
    #: The predicted time of the choice, None if Unisono has no equal algorithm; ``cost_seconds`` is the library's own
    #: estimate, by which it chooses.
    seconds: float | None
    cost_seconds: float | None
    algbw: float | None
    busbw: float | None
    #: True if the cost parameters of the time were fitted to measurements of the machine.
    calibrated: bool
    #: Sentences on the source of the choice and its time.
    notes: list[str]
    #: All algorithms and protocols that the library's model compares, cheapest first; empty for rules.
    choices: list[LibraryChoice]
    #: The settings with a property of the bits, if one was requested.
    bits: NotRequired[LibraryBits]


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


class ChunkTree(TypedDict):
    """A tree that ``chunks`` chunks share; each of its ``messages``, from the root outwards, lists its nodes."""

    chunks: int
    messages: list[list[int]]


class ForestTrees(TypedDict):
    """``Plan.forest()``: the trees of one root, over the nodes of a plane; ``links`` are ``(from, to, Gb/s)``.

    ``places`` are the nodes of the ranks. Messages that reduce go in the opposite direction of the trees.
    """

    root: int
    depth: int
    chunks: int
    places: list[int]
    links: list[tuple[int, int, float]]
    trees: list[ChunkTree]


class FrontPoint(TypedDict):
    """Forests up to a depth: the time with chunks of any size, without latency, and (chunks, predicted seconds)."""

    depth: int
    fluid_seconds: float | None
    forests: list[tuple[int, float]]


class Front(TypedDict):
    """``Plan.front()``: the time of forests by their depth; ``fluid_seconds`` is the time at unlimited depth.

    ``fluid_seconds`` is None if all ranks have equal positions in the network, because no forest then needs more than
    the least depth.
    """

    fluid_seconds: float | None
    points: list[FrontPoint]


class SweepPoint(TypedDict):
    """One point of a sweep; ``baseline_ratio`` is the baseline's time divided by the best algorithm's time."""

    shape: list[int]
    elements: int
    model: str
    best: str
    params: dict[str, str]
    cycles: float | None
    seconds: float
    #: The sources of times, as in :class:`PredictedTime`: only the best candidates may be simulated.
    source: str
    baseline: str | None
    baseline_cycles: float | None
    baseline_seconds: float | None
    baseline_source: str
    baseline_ratio: float | None
    cycles_by_algorithm: dict[str, float] | None
    seconds_by_algorithm: dict[str, float]
    source_by_algorithm: dict[str, str]


class Diagnostic(TypedDict):
    """One finding of a proof."""

    code: str
    rank: int | None
    instruction: int | None
    message: str


class RequiredBits(TypedDict):
    """The verdict on a property of the bits that was required, with the reason if it does not hold."""

    bits: str
    holds: bool
    reason: str | None
    #: The calls that a ``.plan`` leaves to the MPI library, for which the property is unknown.
    left_to_library: list[str]


class ProofReport(TypedDict):
    """``Proof.report()`` and ``unisono verify --json``; keys that were not proved are None."""

    complete: bool | None
    deadlock_free: bool | None
    race_free: bool | None
    repeatable: bool | None
    method: str
    error_probability: float | None
    seed: str | None
    scratch_bytes_max: int | None
    expression_class: str | None
    #: The properties ``ranks`` and ``place`` that hold.
    bits: list[str]
    #: A digest of the expression of all elements; None without ``place``.
    element_class: str | None
    #: A sentence that names two elements with different expressions.
    unlike_elements: str | None
    diagnostics: list[Diagnostic]
    #: The property that was required, if one was.
    required: NotRequired[RequiredBits]


class GpuPlanFinding(Diagnostic):
    """One finding about a plan for GPUs: ``rank`` is the GPU and ``instruction`` the index of the operation."""

    threadblock: int | None
    trace: list[str]


class GpuPlanProof(TypedDict):
    """``unisono verify --json`` of a plan for GPUs: the keys of a proof, and findings with thread block and trace.

    ``relaunch`` is true if a launch may follow the previous launch immediately; ``keeps_input`` is null in place;
    ``sizes`` is ``all``, ``tried`` or ``one``.
    """

    complete: bool | None
    deadlock_free: bool | None
    race_free: bool | None
    repeatable: bool | None
    relaunch: bool | None
    keeps_input: bool | None
    sizes: str | None
    method: str
    error_probability: float | None
    seed: str | None
    scratch_bytes_max: int | None
    expression_class: str | None
    #: The properties ``ranks``, ``place`` and ``size`` that hold, in the order in which the runtime adds.
    bits: list[str]
    #: The reason why a property does not hold, in words.
    unlike_elements: str | None
    diagnostics: list[GpuPlanFinding]


class MscclFinding(Diagnostic):
    """One finding about a file of MSCCL: ``rank`` is the GPU and ``instruction`` the index in the schedule."""

    threadblock: int | None
    step: int | None


class MscclProof(TypedDict):
    """The result of the check of a file of MSCCL: properties that hold for all buffers and sizes that the file states.

    ``buffers`` lists ``two buffers`` and ``in place``; ``sizes`` is a sentence; ``notes`` are sentences about other
    executors.
    """

    complete: bool
    deadlock_free: bool
    race_free: bool
    repeatable: bool
    expression_class: str | None
    #: The properties ``ranks`` and ``place`` that hold, in the order in which the executor adds.
    bits: list[str]
    #: The reason why a property does not hold, in words.
    unlike_elements: str | None
    buffers: list[str]
    sizes: str
    notes: list[str]
    diagnostics: list[MscclFinding]


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


class Communication(TypedDict):
    """One communication of a phase; times are seconds from the beginning of the iteration."""

    collective: str
    bytes: int
    ranks: int
    blocking: bool
    algorithm: str | None
    params: dict[str, str]
    begin: float
    end: float


class WorkloadPhase(TypedDict):
    """One phase of an iteration."""

    name: str
    begin: float
    compute_seconds: float
    communication_seconds: float
    waited_seconds: float
    bytes: int
    forward_flops: float | None
    communication: list[Communication]


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


class StepCollective(TypedDict):
    """One distinct collective of a program: its groups of ranks, its time, and its part of a step's time."""

    kind: str
    group: int
    groups: int
    bytes: int
    count: int
    algorithm: str
    params: dict[str, str]
    seconds: float
    slowest_seconds: float
    total_seconds: float
    exposed_seconds: float
    share: float
    bound: float | None
    lower_bound: Bound | None
    ratio: float | None


class SecondOpinion(TypedDict):
    """A communication of a program, and the cheaper collective that ``suffices`` in its place, or ``nothing``."""

    name: str
    kind: str
    suffices: str
    reason: str
    group: int
    count: int
    bytes: int
    suffices_bytes: int
    seconds: float
    suffices_seconds: float
    saved_seconds: float
    saved_bytes: int


class WhatIf(TypedDict):
    """The times of a step after changes of the machine, and the price of its network."""

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


class StepReport(WorkloadReport):
    """``unisono.step`` and ``unisono workload --from --json``: one step of a program of another tool."""

    format: str
    classes: int
    rank: int
    model: str
    collectives: list[StepCollective]
    second_opinion: list[SecondOpinion]
    unknown: dict[str, int]
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


class Job(TypedDict):
    """One job of a sample: the positions of its boards along each dimension, None if the job was refused.

    The boards are at the crossings of the positions. In two dimensions, ``rows`` and ``columns`` repeat the positions.
    """

    boards: int
    rows: list[int] | None
    columns: list[int] | None
    positions: list[list[int]] | None


class SampledJobs(TypedDict):
    """One sample: the positions of the boards that failed, such as (row, column), and the jobs that were placed."""

    failed: list[list[int]]
    jobs: list[Job]


#: The sums over the jobs of one sample: placed jobs, refused jobs, and boards that placed jobs requested; then their
#: fractions of alltoall and of allreduce traffic on the upper level, each times its job's boards.
AllocationCounts = tuple[int, int, int, float, float]


class AllocationReport(TypedDict):
    """``unisono.allocate`` and ``unisono allocate --json``."""

    machine: str
    boards: list[int]
    board: list[int]
    leaf: list[int]
    heuristic: str
    rule: str
    fail: int
    failed: list[list[int]]
    seed: int
    samples: int
    utilization_mean: float
    utilization_p1: float
    placed: float
    refused: float
    upper_level: dict[str, float]
    first: SampledJobs


class Forward(TypedDict):
    """Data that a task (``before_task``) needs from an earlier task (``after_task``)."""

    after_task: str
    before_task: str
    after_index: int
    before_index: int
    buffer: str
    region: list[Any]
    collective: str | None
    group: int | None


class MessageCounts(TypedDict):
    """The messages of all ranks."""

    p2p: int
    collective: int
    p2p_bytes: int
    collective_bytes: int


class TaskTime(TypedDict):
    """The time of the communication for one task."""

    task: str
    seconds: float


class PricedOperation(TypedDict):
    """One distinct operation of a program on a machine, which occurs ``count`` times."""

    task: str
    task_index: int
    buffer: str
    count: int
    pattern: str
    ranks: int
    participants: list[list[int]]
    root: int | None
    gives: list[int]
    gets: list[int]
    bytes: int
    messages: int | None
    schedule: str | None
    counts: str
    part_bytes: int
    places: str
    algorithm: str
    params: dict[str, str]
    seconds: float
    simulated_seconds: NotRequired[float]
    total_seconds: float
    lower_bound: Bound | None
    ratio: float | None


class PredictionReport(TypedDict):
    """The communication of a program on a machine; ``ratio``: time by messages alone / time with collectives."""

    seconds: float
    simulated_seconds: NotRequired[float]
    model: str
    tasks: list[TaskTime]
    operations: list[PricedOperation]
    #: Sentences on costs that the time omits, and on assumptions.
    notes: list[str]
    ratio: NotRequired[float | None]


class PredictedReports(TypedDict, total=False):
    """The keys that a machine adds to the report of a discovery."""

    machine: str
    predicted: PredictionReport
    point_to_point: PredictionReport


class DeviceOperation(TypedDict):
    """One distinct operation among the memories of a process, which occurs ``count`` times."""

    moment: str
    task: str
    task_index: int
    buffer: str
    kind: str
    count: int
    bytes: int
    messages: list[list[int]]
    copies: int
    updates: int


class DeviceReport(TypedDict):
    """The copies between the memories of a process with devices, with their times if a machine is given."""

    count: int
    rank: int
    operations: list[DeviceOperation]
    copies: int
    updates: int
    broadcasts: int
    bytes: int
    machine: NotRequired[str]
    predicted: NotRequired[PredictionReport]


class DiscoveryReport(PredictedReports):
    """``unisono.discover`` and ``unisono discover --json``, with a prediction if a machine is given."""

    nodes: int
    forwards: list[Forward]
    messages: MessageCounts
    devices: NotRequired[DeviceReport]


class PlanBits(TypedDict):
    """The properties of the bits of one collective on one number of ranks, over all rows of a ``.plan`` file."""

    collective: str
    ranks: int
    #: The properties ``ranks``, ``place``, ``size`` and ``ranks-count`` that hold.
    bits: list[str]
    #: A sentence that names two elements or sizes with different expressions.
    unlike_elements: str | None
    #: The reason why ``ranks-count`` does not hold, if a number of contributors was given.
    unlike_contributors: str | None
    #: Sentences that name the calls left to the MPI library.
    left_to_library: list[str]


class PlanRow(TypedDict):
    """A row of a ``.plan`` file; the values of a schedule are None if the row leaves its calls to the MPI library."""

    collective: str
    ranks: int
    per_node: int | None
    operators: str
    first_bytes: int
    last_bytes: int | None
    algorithm: str | None
    params: dict[str, str]
    #: The conditions under which the row was measured: library, version, `spin` or `yield`, `own` or `shared` cores.
    tuned: str | None
    blocks: int | None
    any_count: bool | None
    in_place: bool | None
    repeatable: bool | None
    expression_class: str | None
