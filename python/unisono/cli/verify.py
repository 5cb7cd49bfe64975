"""`unisono verify`: proves a schedule, from a file or planned."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from unisono import InputError, Proof, Schedule, certificate_checker, check_bound
from unisono.base import file_types
from unisono.base.files import check_writable, is_file, read_text, write
from unisono.base.reports import Diagnostic, MscclProof, ProofReport
from unisono.cli._bits import bits_text, check_contributors, contributors_option, print_verdict, verdict
from unisono.cli._failures import NO
from unisono.cli._gpu_plans import check_file, place_of_step, verify_plan
from unisono.cli._jobs import cores_option
from unisono.cli._options import json_option, limit_options, machine_of, maybe_file_or_plan_options, schedule_of
from unisono.cli._output import counted, duration, print_fields, print_json, print_lines, working
from unisono.cli._plan_files import verify_plan_file
from unisono.cli._sources import (
    BOUND_CERTIFICATE,
    CERTIFICATE,
    EXACT,
    GPU_PLAN,
    MSCCL,
    MSCCL_ON_NO_MACHINE,
    NO_FILE_FOR_GPUS,
    NOT_A_GPU_PLAN,
    PLAN_FILE,
    note_unused,
    refuse_unused,
)
from unisono.planning.bits import BITS
from unisono.planning.contents import contents
from unisono.planning.emission import check_registers
from unisono.planning.plan_files import is_plan_file

__all__ = ["verify"]

_SHOWN = 20
_NOT_CLAIMED = "the certificate does not claim it"
#: The largest number of failed parts or accelerators in a line.
_LISTED = 16


@click.command()
@maybe_file_or_plan_options
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "fingerprint"]),
    default="auto",
    show_default=True,
    help="Prove exactly by intervals, or by fingerprint; auto proves exactly up to a limit of intervals.",
)
@click.option(
    "--seed",
    metavar="HEX",
    help="The seed that a proof printed, to repeat the proof [drawn from the operating system].",
)
@click.option(
    "--certificate",
    metavar="OUT",
    help="Write the certificate of the proof to this file; without FILE, check this certificate of a bound.",
)
@click.option(
    "--check",
    metavar="CERTIFICATE",
    help="Check this certificate of FILE with the independent checker, and prove nothing.",
)
@click.option(
    "--require",
    type=click.Choice(BITS),
    help="Fail unless results have the same bits on all ranks (ranks), also at each place of a vector (place), also at "
    "each size (size; of a .plan or a plan for GPUs), or also on each number of ranks (ranks-count; of a .plan).",
)
@contributors_option
@click.option(
    "--trust-relaxed",
    is_flag=True,
    help="For a plan for GPUs: assume that relaxed signals also order writes [only reads].",
)
@click.option(
    "--processors",
    type=click.IntRange(1, 4096),
    help="For a plan for GPUs: the number of processors of a GPU; each runs one thread block [108, an A100].",
)
@json_option
@cores_option
@limit_options
def verify(
    file_or_collective: str | None,
    machine: str | None,
    method: str,
    seed: str | None,
    certificate: str | None,
    check: str | None,
    require: str | None,
    contributors: int | None,
    trust_relaxed: bool,
    processors: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Proves the schedule in FILE, or the one planned for COLLECTIVE: complete, free of deadlock and races.

    FILE may be a plan for GPUs (MSCCL++ JSON), whose faults are shown with the shortest run that leads to them, or a
    .plan for MPI programs, all of whose schedules are proved as they are stored.

    Without FILE and COLLECTIVE, --certificate with --machine checks the certificate of a lower bound on time.
    """
    check_contributors("--require", require, contributors)
    if file_or_collective is not None and file_types.is_gpu_plan(file_or_collective):
        refuse_unused(GPU_PLAN)
        checks: dict[str, Any] = {"trust_relaxed": trust_relaxed, "processors": processors}
        return verify_plan(file_or_collective, method, require, as_json, **checks)
    refuse_unused(NOT_A_GPU_PLAN)
    if file_or_collective is None or not file_or_collective.endswith(".xml"):
        refuse_unused(NO_FILE_FOR_GPUS)
    if file_or_collective is not None and is_plan_file(file_or_collective):
        refuse_unused(PLAN_FILE)
        return verify_plan_file(file_or_collective, require, contributors, as_json)
    if file_or_collective is None:
        return _check_bound(certificate, machine, options, as_json)
    if check is not None:
        if certificate is not None:
            raise InputError("--certificate writes a certificate and --check reads one; give one of them")
        refuse_unused(CERTIFICATE)
        return _check(file_or_collective, check, require, as_json)
    if certificate is not None:
        _check_target(file_or_collective, certificate)
    if file_or_collective.endswith(".registers") and _refused(file_or_collective, as_json):
        return NO
    refuse_unused(EXACT if method == "exact" else ())
    found = None
    if file_or_collective.endswith(".xml"):
        refuse_unused(MSCCL, MSCCL_ON_NO_MACHINE if machine is None else ())
        with working("checking"):
            schedule, found = check_file(file_or_collective, method, processors)
        if machine is not None:
            schedule = schedule.on(machine_of(machine, options))
        note_unused(schedule.collective)
        for note in found["notes"]:
            click.echo(f"note: {note}", err=True)
    else:
        schedule = schedule_of(file_or_collective, machine, options, "verify")
    with working("verifying"):
        proof = schedule.verify(method, seed)
    if seed is not None and proof.seed is None:
        click.echo("note: the proof is exact and draws no numbers; --seed is not used", err=True)
    if not proof.holds and found is not None and not found["diagnostics"]:
        # The check of the file does not read the machine. If the schedule has a fault on its machine, the result of
        # this check is therefore not used.
        found = None
    held = (proof.bits, proof.unlike_elements) if found is None else (found["bits"], found["unlike_elements"])
    required = verdict(require, held[0], _lacking(require, *held))
    holds = proof.holds and (found is None or not found["diagnostics"]) and (required is None or required["holds"])
    written = certificate if holds else None
    if written is not None:
        with working("writing the certificate"):
            text = read_text(file_or_collective, as_stored=True) if Path(file_or_collective).is_file() else None
            made = schedule.certificate(proof, text)
            # The second line of a certificate has the digest of the schedule.
            if (
                is_file(written)
                and file_types.form_of(written) == file_types.CERTIFICATE
                and read_text(written, as_stored=True).split("\n")[1:2] != made.split("\n")[1:2]
            ):
                click.echo(f"note: '{written}' was the certificate of another schedule, and is replaced", err=True)
            write(written, made)
    if as_json:
        report = proof.report() if certificate is None else {**proof.report(), "certificate": written}
        report = report if found is None else {**report, **found}
        print_json(report if required is None else {**report, "required": required})
    else:
        _print(proof, schedule, found)
        if written is not None:
            print_lines(f"wrote {written}")
        if proof.holds:
            print_verdict(required)
    return 0 if holds else NO


def _lacking(require: str | None, bits: Sequence[str], unlike: str | None) -> str | None:
    """Returns the reason why a schedule does not have the required property, if the reason is known."""
    if unlike is None and "place" in bits:
        how = f"--bits {require}{' --contributors N' if require == 'ranks-count' else ''}"
        return f"a schedule is of one size; '{require}' is proved of a .plan ('unisono plan {how} -o FILE.plan')"
    return unlike


def _check_bound(certificate: str | None, machine: str | None, options: dict[str, Any], as_json: bool) -> int:
    """Checks the certificate of a bound on the part of the machine that the options name, without failed parts."""
    if certificate is not None and machine is None:
        raise InputError("--machine is missing: the machine of the bound whose certificate is checked")
    if certificate is None or machine is None:
        raise InputError("name a file or a collective to prove, or --certificate FILE and --machine to check a bound")
    refuse_unused(BOUND_CERTIFICATE)
    with working("checking"):
        found = check_bound(certificate, machine_of(machine, options))
    if as_json:
        print_json(found)
        return 0 if found["holds"] else NO
    claim = (
        f"{found['collective']} of {found['bytes']} bytes on {counted(found['ranks'], 'rank')} of {found['machine']}"
    )
    if found["seconds"] is not None:
        print_lines(f"accepted: {claim} takes at least {duration(found['seconds'])}")
    else:
        print_lines(f"refused: {claim}: {found['reason']}")
    print_fields(
        [
            ("boxes", "" if found["nodes"] is None else str(found["nodes"])),
            ("failed", _some(found["failed"])),
            ("root", "" if found["root"] is None else f"rank {found['root']}"),
            ("places", _places(found["places"])),
            ("bound", found["bound"]),
        ]
    )
    return 0 if found["holds"] else NO


def _places(places: list[int]) -> str:
    """Formats the accelerators of ranks: ``0 to 7`` if consecutive, else the first :data:`_LISTED`."""
    first, last = places[0], places[-1]
    if len(places) > 1 and places == list(range(first, last + 1)):
        return f"{first} to {last}"
    return _some(places)


def _some(items: Sequence[object]) -> str:
    """Formats the first items, and the number of further items."""
    shown = ", ".join(map(str, items[:_LISTED]))
    return shown if len(items) <= _LISTED else f"{shown} and {len(items) - _LISTED} more"


def _check_target(what: str, certificate: str) -> None:
    """Refuses to write a certificate to an invalid path, or to replace the certificate of a bound.

    Raises:
        InputError: the schedule has no text form, or the file cannot be written or is the certificate of a bound.

    """
    if what.endswith((".json", ".registers")):
        raise InputError(f"a certificate is of the text form of a schedule (.sched), and '{what}' is another form")
    check_writable(certificate)
    if is_file(certificate) and file_types.form_of(certificate) == file_types.BOUND:
        raise InputError(
            f"'{certificate}' is the certificate of a bound, which --certificate would replace; name another file"
        )


def _check(path: str, certificate: str, require: str | None, as_json: bool) -> int:
    """Checks a certificate of a schedule. The checker does not share code with the proof."""
    schedule = read_text(path, as_stored=True)
    if is_file(certificate) and file_types.form_of(certificate) == file_types.BOUND:
        stated = contents(certificate).facts
        raise InputError(
            f"'{certificate}' certifies a bound: {stated.get('collective')} of {stated.get('bytes')} bytes "
            f"on {stated.get('machine')}; check it with --certificate and --machine, without a schedule"
        )
    try:
        with working("checking"):
            found = certificate_checker.check(schedule, read_text(certificate, as_stored=True))
    except certificate_checker.WrongInput as wrong:
        raise InputError(f"'{path}': {wrong}") from None
    except certificate_checker.Refused as refused:
        if as_json:
            print_json({"holds": False, "reason": str(refused), "method": "certificate"})
        else:
            print_lines(f"refused: {refused}")
        return NO
    instructions, facts, expressions, claims = found
    bits = [{"repeatable": "ranks"}.get(claim, claim) for claim in claims]
    required = verdict(require, bits, _lacking(require, bits, None if "place" in bits else _NOT_CLAIMED))
    if as_json:
        counts = {"instructions": instructions, "facts": facts, "expressions": expressions}
        exact = {"method": "certificate", "error_probability": 0.0}
        report = {"holds": True, "reason": None, **exact, "repeatable": bool(bits), "bits": bits, **counts}
        print_json(report if required is None else {**report, "required": required})
    else:
        print_lines(f"accepted: {', '.join(['complete', 'deadlock-free', 'race-free', *claims])}")
        print_fields([("instructions", str(instructions)), ("facts", str(facts)), ("expressions", str(expressions))])
        print_verdict(required)
    return 0 if required is None or required["holds"] else NO


def _print(proof: Proof, schedule: Schedule, found: MscclProof | None) -> None:
    said = {True: "yes", False: "no"}
    properties: Any = proof if found is None else SimpleNamespace(**found)
    faults = properties.diagnostics
    print_lines(
        f"{'refused' if faults else 'proved'}: {schedule.collective} of {schedule.elements} {schedule.dtype} on "
        f"{counted(schedule.ranks, 'rank')}, {counted(schedule.instructions, 'instruction')}"
    )
    print_fields(
        [
            ("complete", said[properties.complete]),
            ("deadlock-free", said[properties.deadlock_free]),
            ("race-free", said[properties.race_free]),
            ("repeatable", said[properties.repeatable]),
            ("same bits", bits_text(properties.bits, properties.unlike_elements)),
            *([] if found is None else [("buffers", " and ".join(found["buffers"])), ("sizes", found["sizes"])]),
            ("method", proof.method),
            *_chance(proof),
            ("scratch", f"{proof.scratch_bytes_max} bytes at most on a node"),
        ]
    )
    for fault in faults[:_SHOWN]:
        where = _place(fault, schedule) if found is None else place_of_step(fault)
        print_lines(": ".join(filter(None, [fault["code"], where, fault["message"]])))
    if len(faults) > _SHOWN:
        print_lines(f"and {len(faults) - _SHOWN} more: --json lists all")


def _place(fault: Diagnostic, schedule: Schedule) -> str:
    """Formats the rank or node and the instruction of a finding, as far as known."""
    node, instruction = fault["rank"], fault["instruction"]
    place = [] if node is None else [f"{'rank' if node < schedule.ranks else 'node'} {node}"]
    place += [] if instruction is None else [f"instruction {instruction}"]
    return ", ".join(place)


def _chance(proof: Proof) -> list[tuple[str, str]]:
    """Returns fields with the error probability and the seed of a proof; none for an exact proof."""
    if proof.error_probability is None or proof.seed is None:
        return []
    return [("error probability", f"{proof.error_probability:.1e}"), ("seed", proof.seed)]


def _refused(path: str, as_json: bool) -> bool:
    """Checks that the registers of switches agree, prints the faults, and returns whether there are any.

    A schedule can only be derived from registers that agree.
    """
    with working("checking"):
        found = check_registers(path)
    if found and as_json:
        print_json({**dict.fromkeys(ProofReport.__annotations__), "method": "registers", "diagnostics": found})
    elif found:
        print_lines(f"refused: the registers of {path}", *(f"{one['code']}: {one['message']}" for one in found))
    return bool(found)
