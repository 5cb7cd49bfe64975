"""`unisono verify FILE.plan`: the proofs of all schedules of a plan for MPI programs."""

from unisono.base.reports import PlanRow
from unisono.cli._failures import NO
from unisono.cli._output import counted, params_text, print_json, print_lines, print_table, working
from unisono.planning.bits import BITS
from unisono.planning.plan_files import check_plan_file

__all__ = ["SAME_BITS", "verify_plan_file"]

#: The properties of the bits of results, in words.
SAME_BITS = {
    "ranks": "same bits on all ranks",
    "place": "same bits at any place",
    "size": "same bits for any size",
}


def verify_plan_file(path: str, require: str | None, as_json: bool) -> int:
    """Proves the schedules of the file as they are stored, and prints a row for each of its rows.

    With ``require`` each collective must have this property of the bits on each number of ranks.
    """
    with working("verifying"):
        rows, refused, found = check_plan_file(path)
    # A barrier has no results.
    tables = [one for one in found if one["collective"] != "barrier"]
    bits = [name for name in BITS if all(name in one["bits"] for one in tables)] if refused is None else []
    code = 0 if refused is None and (require is None or require in bits) else NO
    if as_json:
        print_json({"holds": refused is None, "reason": refused, "rows": rows, "bits": bits, "tables": found})
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
        of = f"{one['collective']} on {counted(one['ranks'], 'rank')}"
        print_lines(f"bits of {of}: {', '.join(one['bits']) or 'none'}")
        if one["unlike_elements"] is not None:
            print_lines(f"  {one['unlike_elements']}")
        if one["left_to_library"]:
            print_lines(f"  left to the library, with its bits: {'; '.join(one['left_to_library'])}")
    if require is not None and code != 0:
        print_lines(f"refused: --require {require}: {path} does not have it")
    return code


def _texts(row: PlanRow) -> list[str]:
    last = "any" if row["last_bytes"] is None else str(row["last_bytes"])
    size = str(row["first_bytes"]) if last == str(row["first_bytes"]) else f"{row['first_bytes']}-{last}"
    name = "the library" if row["algorithm"] is None else f"{row['algorithm']} {params_text(row['params'])}".strip()
    bits = {True: "yes", False: "no", None: ""}[row["repeatable"]]
    return [row["collective"], str(row["ranks"]), size, name, bits]
