"""`unisono verify FILE.plan`: the proofs of all schedules of a plan for MPI programs."""

from unisono.base.reports import PlanBits, PlanRow
from unisono.cli._bits import print_verdict, verdict
from unisono.cli._failures import NO
from unisono.cli._output import counted, params_text, print_json, print_lines, print_table, working
from unisono.planning.bits import BITS
from unisono.planning.plan_files import check_plan_file


def verify_plan_file(path: str, require: str | None, contributors: int | None, as_json: bool) -> int:
    """Proves the schedules of the file as they are stored, and prints a row for each of its rows.

    With ``require``, each collective must have this property of the bits on each number of ranks, for all calls that
    the rows serve.
    """
    with working("verifying"):
        rows, refused, found = check_plan_file(path, contributors)
    bits = [name for name in BITS if all(name in one["bits"] for one in found)] if refused is None else []
    lacking = next((one for one in found if require is not None and require not in one["bits"]), None)
    required = verdict(require, bits, refused if lacking is None else _reason(lacking), _left(found))
    code = 0 if refused is None and (required is None or required["holds"]) else NO
    if as_json:
        report = {"holds": refused is None, "reason": refused, "rows": rows, "bits": bits, "tables": found}
        print_json(report if required is None else {**report, "required": required})
        return code
    if refused is not None:
        print_lines(f"refused: {path}: {refused}")
        return NO
    schedules = sum(row["algorithm"] is not None for row in rows)
    of = f"{counted(schedules, 'schedule')} in {counted(len(rows), 'row')}"
    print_lines(f"proved: {of} of {path}: complete, deadlock-free, race-free")
    columns = ["collective", "ranks", "bytes", "algorithm", "repeatable"]
    print_table(columns, [_texts(row) for row in rows], ["ranks"])
    print_lines("repeatable: all ranks get the same bits")
    for one in found:
        print_lines(f"bits of {_name(one)}: {', '.join(one['bits']) or 'none'}")
        if (why := one["unlike_elements"] or one["unlike_contributors"]) is not None:
            print_lines(f"  {why}")
        if one["left_to_library"]:
            print_lines(f"  left to the library, with its bits: {'; '.join(one['left_to_library'])}")
    print_verdict(required)
    return code


def _name(table: PlanBits) -> str:
    return f"{table['collective']} on {counted(table['ranks'], 'rank')}"


def _reason(table: PlanBits) -> str:
    """Returns the reason why a table lacks the required property."""
    why = table["unlike_elements"] or table["unlike_contributors"] or "ranks have different expressions"
    return f"{_name(table)}: {why}"


def _left(tables: list[PlanBits]) -> list[str]:
    """Returns the calls that all tables leave to the MPI library."""
    return [f"{_name(table)}, {left}" for table in tables for left in table["left_to_library"]]


def _texts(row: PlanRow) -> list[str]:
    last = "any" if row["last_bytes"] is None else str(row["last_bytes"])
    size = str(row["first_bytes"]) if last == str(row["first_bytes"]) else f"{row['first_bytes']}-{last}"
    name = "the library" if row["algorithm"] is None else f"{row['algorithm']} {params_text(row['params'])}".strip()
    bits = {True: "yes", False: "no", None: ""}[row["repeatable"]]
    return [row["collective"], str(row["ranks"]), size, name, bits]
