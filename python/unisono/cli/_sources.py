"""The sources of a command's input, and the options without effect on each source.

A command reads its input from a file, plans it, or takes it from another tool. An option without effect on this input
is an error with the reason, because the user of the option expects an effect.
"""

from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from unisono.base.facts import has_root, reduces


@dataclass(frozen=True)
class UnusedOptions:
    """Options without effect on a source of input."""

    #: The names of the command's parameters for these options.
    options: tuple[str, ...]
    #: The rest of the error message, which begins with the option.
    reason: str


#: The key of a context's entry that is True once the command has printed its notes.
_NOTED = "unisono.noted"

_PLANNED = ("elements", "bytes", "dtype", "op", "root", "algorithm", "param", "target")
_PART = ("shape", "ranks", "nodes", "subset")
_LOGGOPS = (*(f"loggops_{name}" for name in ("L", "o", "g", "G", "O", "S")), "zero_byte")
_OF_PROGRAMS = ("ranks", "rounds", "strict", "tflops", "memory_gb_per_second", "what_if", "executor", "resume", "shard")
_OF_WAFERS = ("queue_depth", "noop_probability", "calibrated")

_GOES_WITH_GOAL = UnusedOptions(_LOGGOPS, "goes with --goal; a machine file states the parameters of a machine")

#: A collective to plan.
COLLECTIVE = (_GOES_WITH_GOAL,)
#: A file with a schedule, which is placed on the machine that an option names.
_HAS_ITS_OWN = "is for a collective that is planned, and the schedule of a file has its own; drop it"
PLACED_FILE = (UnusedOptions(_PLANNED, _HAS_ITS_OWN), _GOES_WITH_GOAL)
#: A plan for GPUs, which has a schedule for each size, on the machine that an option names.
PLACED_GPU_FILE = (UnusedOptions(_PLANNED[3:], _HAS_ITS_OWN), _GOES_WITH_GOAL)
#: A file with a schedule, or a plan for GPUs, without a machine.
OF_NO_MACHINE = (UnusedOptions(_PART, "names a part of a machine; name the machine too, with --machine"),)
FILE = (*PLACED_FILE, *OF_NO_MACHINE)
#: Options that a file with a schedule does not use, if the command does not run the file.
MODEL_OF_FILE = (
    UnusedOptions(("model",), "is for a plan or a run, and the schedule of a file is neither here; drop it"),
)
#: Options without effect on a file with a schedule that runs on a machine whose simulator has no models.
MODEL_OF_RUN = (
    UnusedOptions(
        ("model",),
        "chooses how a plan is timed, and the schedule of a file is simulated as it is; drop it, or give data-sheet "
        "for a network without what was measured",
    ),
)
#: A file that `unisono view` draws unchanged.
VIEWED_FILE = (
    *FILE,
    *MODEL_OF_FILE,
    UnusedOptions(("fail",), "names failed parts of a machine; name it, with --machine"),
)
#: A program of another tool, alone and on a machine.
GOAL = (
    UnusedOptions(
        (*_PLANNED, "model"), "is for a collective that is planned, and --goal brings its own program; drop it"
    ),
    UnusedOptions(_PART, "names a part of a machine, and a program of --goal numbers its own ranks; drop it"),
)
GOAL_ON_MACHINE = (
    *GOAL,
    UnusedOptions(_LOGGOPS, "is of LogGOPS; a machine has its own prices, so it is for a run without one"),
)
#: A certificate of a schedule.
CERTIFICATE = (
    UnusedOptions(
        ("machine", *_PART, "fail", *_PLANNED, "model", "method", "seed"),
        "is for a proof, and --check reads one that is finished; drop it",
    ),
)
#: A certificate of a bound, which states the collective.
BOUND_CERTIFICATE = (
    UnusedOptions(
        ("subset", *_PLANNED, "model", "method", "seed", "check", "require", "contributors"),
        "is for a proof of a schedule, and the certificate of a bound states what it proves; drop it",
    ),
)
#: A plan for GPUs.
GPU_PLAN = (
    UnusedOptions(
        ("machine", *_PART, "fail", *_PLANNED[3:], "model", "seed", "certificate", "check"),
        "is for a schedule, and the file is a plan for GPUs; drop it, or import the plan first (`unisono import`)",
    ),
    UnusedOptions(
        ("contributors",),
        "is for a .plan file (`unisono plan --bits ranks-count`), and this is a plan for GPUs; drop it",
    ),
)
#: A file of MSCCL, which is checked for its own sizes or for the size that options state.
MSCCL = (
    UnusedOptions(_PLANNED[5:], "is for a collective that is planned, and the file has its own schedule; drop it"),
    UnusedOptions(("model",), "is for a plan or a run, and the schedule of a file is neither here; drop it"),
    UnusedOptions(
        ("certificate", "contributors"),
        "is for the text form of a schedule; import the file first (`unisono import`)",
    ),
)
MSCCL_ON_NO_MACHINE = (
    UnusedOptions((*_PART, "fail"), "names a part of a machine; name the machine too, with --machine"),
)
NOT_A_GPU_PLAN = (UnusedOptions(("trust_relaxed",), "is for plans for GPUs with relaxed signals; drop it"),)
NO_FILE_FOR_GPUS = (UnusedOptions(("processors",), "is for plans for GPUs; drop it"),)
#: A plan for MPI programs, which stores compiled schedules.
PLAN_FILE = (
    UnusedOptions(
        ("machine", *_PART, "fail", *_PLANNED, "model", "method", "seed", "certificate", "check"),
        "is for one schedule, and a .plan is proved as it is stored; drop it",
    ),
)
#: Emitted code for targets other than GPUs.
NOT_FOR_GPUS = (
    UnusedOptions(("in_place", "gpus_per_box", "thread_blocks"), "is for plans for GPUs (--format mscclpp); drop it"),
)
#: A subset of the nodes of a machine.
SUBSET = (
    UnusedOptions(("shapes", "ranks"), "names parts of a machine, and --subset names one already; drop one of them"),
)
#: No input: the command lists the inputs that it accepts by name.
LIST = (
    UnusedOptions(
        (
            "machine",
            "shape",
            "level",
            "no_overlap",
            "fail",
            "nodes",
            "minibatch",
            "algorithm",
            "model",
            "plot",
            "fill",
            *_OF_PROGRAMS,
        ),
        "is about one of the list; name it",
    ),
)
#: A workload, by its name or its TOML file.
NAMED_WORKLOAD = (UnusedOptions(_OF_PROGRAMS, "is for a program of another tool; name its file with --from"),)
PROGRAM = (UnusedOptions(("minibatch",), "is for vgg16 on switches that reduce; drop it"),)
#: A program of tasks without a machine, and without a picture.
NO_MACHINE = (UnusedOptions(("model", "simulate"), "is for a prediction on a machine; name it with --machine"),)
NO_DISCOVERED_MACHINE = (UnusedOptions(("model",), "is for a prediction on a machine; name it with --machine"),)
NO_DEVICES = (
    UnusedOptions(("rank", "device_machine"), "is for processes with devices; give their number with --devices"),
)
NOT_A_SCRIPT = (UnusedOptions(("rounds",), "is for a program in Python; other files have none"),)
NO_GRAPH = (UnusedOptions(("graph_kind",), "is for a picture; name its file with --graph"),)

#: A simulation without random numbers.
NOT_DRAWN = (
    UnusedOptions(("seed",), "draws idle cycles (--noop-probability) or noise (--noise); give one of them too"),
)
NO_PERMUTATION = (UnusedOptions(("seed",), "draws a permutation, and this is another pattern; drop it"),)
#: A proof without random numbers.
EXACT = (UnusedOptions(("seed",), "is for a proof by fingerprint, and --method exact draws no numbers; drop it"),)
#: Traffic that is simulated in one thread: by flows, or by a schedule.
IN_ONE_THREAD = (UnusedOptions(("jobs",), "is for packets of an alltoall or a permutation; drop it"),)
#: Published measurements, which `unisono tune --from` judges.
JUDGED = (
    UnusedOptions(
        ("ranks", "per_node", "sizes", "candidates", "rounds", "target", "library"),
        "is for ranks that are measured, and --from judges measurements that are there; drop it",
    ),
)
#: A reproduction of papers without figures.
QUICK = (UnusedOptions(("output",), "is where figures go, and --quick draws none; drop it"),)
#: A calibration from logs.
OF_LOGS = (
    UnusedOptions(
        ("rounds", "levels"), "is for ranks that are measured, and --from reads measurements that are there; drop it"
    ),
)
#: Ranks that are measured, in place of logs.
MEASURED_RANKS = (
    UnusedOptions(
        ("points", "behaves_as", "ranks", "per_node"), "goes with --from LOG; without it this machine is measured"
    ),
)
#: A program without a plan.
NOT_PLANNED = (
    UnusedOptions(
        ("check", "safe_ops", "nonblocking", "unlike_bits", "anywhere"),
        "is for calls that a plan serves; name it with --plan, or as UNISONO_PLAN",
    ),
)
#: A program whose calls all go to the MPI library, so that there is no report.
NOT_OBSERVED = (
    UnusedOptions(
        ("report", "check", "safe_ops", "nonblocking", "unlike_bits", "anywhere"),
        "is for calls that a plan serves, and --off leaves all calls to MPI; drop one of them",
    ),
)

_ON_RANKS = (
    UnusedOptions(_OF_WAFERS, "has no effect here: queues and idle PEs are a wafer's; among ranks see --late, --noise"),
)
_NOT_OF_RANKS = UnusedOptions(
    ("late", "noise"), "is for ranks that exchange messages, on machines of kind endpoint or network"
)
_ALONE = UnusedOptions(("beside",), "is for switches that reduce; other machines run one schedule at a time")
#: The options without effect on a simulator, by the nodes that it traces.
BY_RECORDS = {
    "pes": (_NOT_OF_RANKS, _ALONE),
    "ranks": (*_ON_RANKS, _ALONE),
    "nothing": (UnusedOptions(_OF_WAFERS, "is for the PEs of a wafer"), _NOT_OF_RANKS),
}


def refuse_unused(*sources: tuple[UnusedOptions, ...]) -> None:
    """Refuses given options without effect on the sources of the command's input.

    Raises:
        UsageError: such an option is given.

    """
    given = _given()
    for unused in (one for source in sources for one in source):
        for name in unused.options:
            if name in given:
                raise click.UsageError(f"{given[name]} {unused.reason}")


def note_unused(collective: str) -> None:
    """Prints, once a command, a note for each option without effect on this collective whose value is not the default.

    These options are not refused, because scripts pass the same options for all collectives.
    """
    context = click.get_current_context()
    if context.meta.setdefault(_NOTED, False):
        return
    context.meta[_NOTED] = True
    data = ("elements", "bytes", "dtype", "op") if collective == "barrier" else ()
    without = [
        *((name, "data") for name in data),
        *(() if has_root(collective) else (("root", "root"),)),
        *(() if data or reduces(collective) else (("op", "operator"),)),
    ]
    given = _given()
    defaults = {parameter.name: parameter.default for parameter in context.command.params}
    for name, what in without:
        if name in given and str(context.params.get(name)) != str(defaults[name]):
            click.echo(f"note: a collective of kind {collective} has no {what}; {given[name]} is not used", err=True)


def given_values(*names: str) -> dict[str, Any]:
    """Returns the values of these parameters by name; None for one that is not given on the command line."""
    context, given = click.get_current_context(), _given()
    return {name: context.params[name] if name in given else None for name in names}


def _given() -> dict[str, str]:
    """Returns the options given on the command line, by the names of their parameters."""
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name is not None and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }
