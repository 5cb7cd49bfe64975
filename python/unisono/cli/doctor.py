"""`unisono doctor`: reports the installed parts, and the commands that install missing parts."""

import click

from unisono.cli._options import json_option
from unisono.cli._output import print_json, print_table, working
from unisono.mpi.doctor import diagnose

__all__ = ["doctor"]


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Reports the installed parts, tests MPI, and prints the commands that install missing parts.

    The exit code is 1 if a part is missing that the main work needs; MPI and packages of single commands do not count.
    """
    with working("looking around, and starting two ranks"):
        checks = diagnose()
    if as_json:
        print_json({"checks": [check.report() for check in checks]})
    else:
        states = {(True, True): "ok", (True, False): "ok", (False, True): "MISSING", (False, False): "absent"}
        rows = [[check.name, states[check.ok, check.needed], check.found, check.mend] for check in checks]
        print_table(["", "", "found", "to fix it"], rows)
    return 0 if all(check.ok or not check.needed for check in checks) else 1
