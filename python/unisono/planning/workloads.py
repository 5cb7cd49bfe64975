"""Training workloads: one iteration of compute and communication on a network."""

import os

from unisono import _core
from unisono._core import InputError, Machine, workload_presets
from unisono.base.files import MOST_DESCRIPTION_BYTES, exists, file_name, is_file, read_text, title
from unisono.base.inputs import named
from unisono.base.reports import WorkloadReport
from unisono.machines.descriptions import machine as machine_of

__all__ = ["workload"]


def workload(
    name: str | os.PathLike[str],
    machine: Machine | str | os.PathLike[str],
    *,
    level: str = "model",
    overlap: bool = True,
) -> WorkloadReport:
    """One iteration of the workload of that name, or of that TOML file, on a network.

    Holds ``seconds``, ``compute_seconds``, ``communication_seconds``, ``exposed_seconds`` (communication that no
    compute hides) and ``phases``, each with its ``communication``. By ``level`` "model" a communication takes what the
    model of plans on networks says, all groups sharing the links; by "packet" every packet of the iteration is
    simulated. Without ``overlap`` each step waits for all communication before it.

    Raises:
        InputError: no such workload, a damaged file, a machine that is no network or too small.
        UnsupportedError: a named algorithm does not make the collective.
        SimulationError: the packets stop.

    """
    text = file_name(name)
    presets = [preset["name"] for preset in workload_presets()]
    read = None
    if text not in presets and (text.endswith(".toml") or os.sep in text or is_file(text)):
        if not exists(text):
            raise InputError(
                f"the workload file '{title(text)}' does not exist; the workloads are {', '.join(presets)}"
            )
        read = read_text(text, MOST_DESCRIPTION_BYTES)
    where = machine if isinstance(machine, Machine) else machine_of(machine)
    return _core.workload(title(text), read, where, named("level", level), overlap)
