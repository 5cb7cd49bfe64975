"""`unisono verify FILE.plan`: the proofs of all schedules of a plan for MPI programs."""

from unisono.base.reports import PlanRow
from unisono.cli._failures import NO
from unisono.cli._output import counted, params_text, print_json, print_lines, print_table, working
from unisono.planning.plan_files import check_plan_file

__all__ = ["verify_plan_file"]


def verify_plan_file(path: str, as_json: bool) -> int:
    """Proves the schedules of the file as they are stored, and prints a row for each of its rows."""
    with working("verifying"):
        rows, refused = check_plan_file(path)
    if as_json:
        print_json({"holds": refused is None, "reason": refused, "rows": rows})
        return 0 if refused is None else NO
    if refused is not None:
        print_lines(f"refused: {path}: {refused}")
        return NO
    schedules = sum(row["algorithm"] is not None for row in rows)
    of = f"{counted(schedules, 'schedule')} in {counted(len(rows), 'row')}"
    print_lines(f"proved: {of} of {path}: complete, deadlock-free, race-free")
    columns = ["collective", "ranks", "bytes", "algorithm", "repeatable"]
    print_table(columns, [_texts(row) for row in rows], ["ranks"])
    print_lines("repeatable: all ranks get the same bits")
    return 0


def _texts(row: PlanRow) -> list[str]:
    last = "any" if row["last_bytes"] is None else str(row["last_bytes"])
    size = str(row["first_bytes"]) if last == str(row["first_bytes"]) else f"{row['first_bytes']}-{last}"
    name = "the library" if row["algorithm"] is None else f"{row['algorithm']} {params_text(row['params'])}".strip()
    bits = {True: "yes", False: "no", None: ""}[row["repeatable"]]
    return [row["collective"], str(row["ranks"]), size, name, bits]
