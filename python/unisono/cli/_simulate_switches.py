"""What `unisono simulate` does on switches that reduce: it runs registers, from a file or as planned."""

from typing import Any

from unisono import EngineRun, InputError, Registers
from unisono._files import load_registers
from unisono._inputs import DTYPE_BYTES
from unisono.cli._failures import NO, say
from unisono.cli._options import Request, asked_machine
from unisono.cli._output import number, print_fields, print_json, print_lines, working

#: The most ranks whose times JSON lists.
_LISTED = 4096


def registers_of(what: str, machine: str | None, options: dict[str, Any]) -> Registers | None:
    """The registers in the file of that name, or those planned; None where the machine's switches do not reduce.

    Raises:
        InputError: the plan runs on the cores of such a machine.

    """
    if what.endswith(".registers"):
        return load_registers(what)
    if machine is None or asked_machine(machine, options).kind != "in-network" or what.endswith((".sched", ".json")):
        return None
    plan = Request(collective=what, machine=machine, **options).plan()
    if plan.registers is None:
        raise InputError(
            f"{plan.algorithm} runs on the cores of {machine}, where only plans have times; in-network can be simulated"
        )
    return plan.registers


def run(registers: Registers, as_json: bool) -> int:
    """Runs registers, prints what they did and returns the exit code."""
    with working("simulating"):
        ran = EngineRun(registers)
    machine = registers.machine
    size = registers.elements * DTYPE_BYTES[registers.dtype]
    report = {
        "collective": registers.collective,
        "machine": machine.name,
        "nodes": machine.describe()["node_dims"],
        "ranks": registers.ranks,
        "elements": registers.elements,
        "dtype": registers.dtype,
        "sim": "collective-engine",
        "embeddings": registers.embeddings,
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
        "finish": ran.finish_ns / 1e9 if registers.ranks <= _LISTED else None,
    }
    if as_json:
        print_json(report)
    else:
        what = f"{registers.collective} of {registers.elements} {registers.dtype} ({size} bytes)"
        print_lines(f"{what} on {registers.ranks} cores of {machine.name}")
        whole = ran.elements_flowed == registers.elements
        flowed = "" if whole else f" (the first {ran.elements_flowed} elements)"
        loads = ", ".join(f"{count} with {load + 1}" for load, count in enumerate(ran.link_loads) if count)
        print_fields(
            [
                ("simulated", f"{number(ran.nanoseconds / 1e3, 3)} µs ({registers.embeddings} embeddings)"),
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
