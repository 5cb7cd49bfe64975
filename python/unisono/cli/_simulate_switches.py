"""`unisono simulate` on switches that reduce."""

import unisono
from unisono import EngineRun, Schedule
from unisono._inputs import DTYPE_BYTES
from unisono.cli._failures import NO, say
from unisono.cli._output import number, print_fields, print_json, print_lines, working

#: The most ranks whose times JSON lists.
_LISTED = 4096


def run(schedule: Schedule, as_json: bool) -> int:
    """Runs a schedule, prints the result and returns the exit code."""
    with working("simulating"):
        ran = unisono.simulate(schedule)
    machine = schedule.machine
    assert isinstance(ran, EngineRun), "the machine's switches reduce"
    assert machine is not None, "it was simulated on one"
    size = schedule.elements * DTYPE_BYTES[schedule.dtype]
    report = {
        "collective": schedule.collective,
        "machine": machine.name,
        "nodes": machine.describe()["node_dims"],
        "ranks": schedule.ranks,
        "elements": schedule.elements,
        "dtype": schedule.dtype,
        "sim": "collective-engine",
        "embeddings": ran.embeddings,
        "seconds": ran.nanoseconds / 1e9,
        "nanoseconds": ran.nanoseconds,
        "latency_seconds": ran.latency_ns / 1e9,
        "bytes_per_second": size / ran.nanoseconds * 1e9 if ran.nanoseconds else None,
        "packets": ran.packets,
        "events": ran.events,
        "events_computed": ran.computed,
        "link_loads": ran.link_loads,
        "stalls": None,
        "result_correct": ran.result_correct,
        "mismatch": ran.mismatch,
        "elements_flowed": ran.elements_flowed,
        "digest": ran.digest,
        "wall_seconds": ran.wall_seconds,
        "finish": ran.finish_ns / 1e9 if schedule.ranks <= _LISTED else None,
    }
    if as_json:
        print_json(report)
    else:
        what = f"{schedule.collective} of {schedule.elements} {schedule.dtype} ({size} bytes)"
        print_lines(f"{what} on {schedule.ranks} cores of {machine.name}")
        whole = ran.elements_flowed == schedule.elements
        flowed = "" if whole else f" (the first {ran.elements_flowed} elements)"
        loads = ", ".join(f"{count} with {load + 1}" for load, count in enumerate(ran.link_loads) if count)
        print_fields(
            [
                ("simulated", f"{number(ran.nanoseconds / 1e3, 3)} µs ({ran.embeddings} embeddings)"),
                ("latency", f"{number(ran.latency_ns, 1)} ns until the first element is everywhere"),
                ("bandwidth", f"{number(size * 8 / ran.nanoseconds, 2)} Gbit/s" if ran.nanoseconds else ""),
                ("links", f"{loads} logical edges" if loads else ""),
                ("result", ("correct" if ran.result_correct else "WRONG") + flowed),
                ("work", f"{ran.events} events, {ran.computed} one by one, in {ran.wall_seconds:.2f} s"),
            ]
        )
    if ran.result_correct:
        return 0
    return say(f"the result is wrong: {ran.mismatch}", NO)
