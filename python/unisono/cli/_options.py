"""The common options of commands, and the requests made from them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import unisono
from unisono import InputError, Machine, Plan, Schedule, parse_shape
from unisono.base.file_types import is_gpu_plan
from unisono.base.files import exists, is_file
from unisono.base.inputs import element_count
from unisono.base.limits import default_steps
from unisono.cli._completion import MODELS, of_names, parameters
from unisono.cli._output import EXPLAIN, print_notes, working
from unisono.cli._sources import (
    COLLECTIVE,
    MODEL_OF_FILE,
    OF_NO_MACHINE,
    PLACED_FILE,
    PLACED_GPU_FILE,
    note_unused,
    refuse_unused,
)
from unisono.cli._types import (
    ALGORITHM,
    DATATYPE,
    FILE_OR_COLLECTIVE,
    FORMAT,
    INT,
    MACHINE,
    OPERATOR,
    Nodes,
    Param,
    Root,
    Shard,
    Share,
)

if TYPE_CHECKING:
    from pathlib import Path

_Decorated = Callable[..., Any]

#: The largest number of ranks: a rank's index has 32 bits.
MOST_RANKS = 2**32 - 1


@dataclass(frozen=True)
class Request:
    """A request for one collective on one machine, from the options."""

    collective: str
    machine: str
    shape: str | None
    ranks: int | None
    elements: int | None
    bytes: str | None
    dtype: str
    op: str
    root: int | tuple[int, int]
    algorithm: str | None = None
    param: tuple[tuple[str, str], ...] = ()
    model: str | None = None
    nodes: int | None = None
    subset: list[int] | None = None
    fail: tuple[str, ...] = ()
    target: str | None = None
    behaves_as: str | None = None
    bits: str | None = None
    contributors: int | None = None

    def count(self) -> int:
        """Returns the requested number of elements."""
        return element_count(self.elements, self.bytes, self.dtype, self.collective)

    def sized_machine(self) -> Machine:
        """Returns the machine in the requested shape."""
        shape = asked_shape(self.shape, self.ranks)
        return unisono.machine(self.machine, shape, nodes=self.nodes, subset=self.subset, failed=self.fail)

    def plan(self) -> Plan:
        """Returns the best schedule of the request."""
        count, machine = self.count(), self.sized_machine()
        note_unused(self.collective)
        with working(f"planning {self.collective}"):
            return unisono.plan(
                self.collective,
                machine,
                elements=count,
                dtype=self.dtype,
                op=self.op,
                root=self.root,
                algorithm=self.algorithm,
                params=parameters_of(self.param),
                model=self.model,
                target=self.target,
                library=library_of(self.target),
                as_library=self.behaves_as,
                bits=self.bits,
                contributors=self.contributors,
            )


def parameters_of(given: Iterable[tuple[str, str]]) -> dict[str, str] | None:
    """Returns the values that ``--param`` gives, by parameter; None if there are none.

    Raises:
        UsageError: a parameter has two values.

    """
    found: dict[str, str] = {}
    for name, value in given:
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"--param {name} is given as {found[name]} and as {value}; give one value")
    return found or None


def library_of(target: str | None) -> "Path | None":
    """Returns the file of the installed MPI library that a format of tuning files needs; None for other formats."""
    if target != "mpich-json":
        return None
    # Imported late, because only this format needs it.
    from unisono.mpi.installations import mpich_image

    found = mpich_image()
    if found is None:
        raise InputError("mpich-json names the algorithms of an installed MPICH, and none was found")
    return found


def schedule_of(
    what: str,
    machine: str | None,
    options: dict[str, Any],
    verb: str,
    *,
    runs: bool = False,
    target: str | None = None,
) -> Schedule:
    """Reads the schedule of the file ``what``, or plans one for the collective ``what``.

    If the command ``runs`` the schedule of a file, the option of a model is accepted. Other options without effect on a
    file are an error. A plan is made for ``target``, a format of emitted code; by default, the target of ``options``.
    """
    options = {**options, "target": target or options.get("target")}
    # A barrier has no size, so only the option for a machine distinguishes it from a file of that name.
    barrier = what == "barrier" and machine is not None
    sized = options["elements"] is not None or options["bytes"] is not None
    # A name with a dot or a slash cannot be the name of a collective.
    is_path = any(sign in what for sign in "./")
    if (barrier or sized) and not is_path and not is_file(what):
        if machine is None:
            raise InputError(f"to {verb} a {what} as planned, --machine must name the machine")
        refuse_unused(COLLECTIVE)
        return Request(collective=what, machine=machine, **options).plan().schedule
    if not exists(what):
        raise InputError(
            f"there is no file '{what}'; for a collective as planned, give --machine and --elements or --bytes too"
        )
    # A plan for GPUs serves many sizes, so the size options select the schedule.
    of_gpus = what.endswith(".xml") or is_gpu_plan(what)
    refuse_unused(
        PLACED_GPU_FILE if of_gpus else PLACED_FILE,
        OF_NO_MACHINE if machine is None else (),
        () if runs else MODEL_OF_FILE,
    )
    size: dict[str, Any] = {}
    if of_gpus:
        # Imported late, because only plans for GPUs need it.
        from unisono.cli._gpu_plans import stated_values

        stated = stated_values(what, "msccl-xml" if what.endswith(".xml") else "mscclpp", verb)
        size = {"elements": stated["elements"], "dtype": stated["dtype"]}
    schedule = unisono.load(what, **size)
    if not runs:
        # The notes are not printed for simulations, whose reports already contain them.
        print_notes(schedule.notes, err=True)
    if machine is None:
        return _degraded(schedule, options["fail"])
    return schedule.on(machine_of(machine, options))


def machine_of(machine: str, options: dict[str, Any]) -> Machine:
    """Returns the machine with the part, size and failures that the options name."""
    shape = asked_shape(options["shape"], options["ranks"])
    return unisono.machine(machine, shape, nodes=options["nodes"], subset=options["subset"], failed=options["fail"])


def _degraded(schedule: Schedule, fail: tuple[str, ...]) -> Schedule:
    """Returns the schedule on its machine, without the failed links and nodes."""
    if not fail:
        return schedule
    if schedule.machine is None:
        raise InputError("--fail names failed parts of a machine, and the file has none; give --machine too")
    return schedule.on(schedule.machine.asked(failed=list(fail)))


def asked_shape(shape: str | None, ranks: int | None) -> tuple[int, ...] | None:
    """Returns the shape that ``--shape`` or ``--ranks`` (a row of PEs on a wafer) requests; None without either.

    Raises:
        InputError: both are given, or no such shape exists.

    """
    if ranks is None:
        return None if shape is None else parse_shape(shape)
    if shape is not None:
        raise InputError(f"--shape {shape} and --ranks {ranks} both choose the part of the machine to use; give one")
    if not 1 <= ranks <= MOST_RANKS:
        raise InputError(f"--ranks is {ranks}; accepted is a whole number from 1 to {MOST_RANKS}")
    return (ranks,)


def _stack(*options: Callable[[_Decorated], _Decorated]) -> Callable[[_Decorated], _Decorated]:
    def apply(command: _Decorated) -> _Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


#: Options of the level of detail at which the time of a program's step is computed.
level_options = _stack(
    click.option(
        "--level",
        type=click.Choice(["model", "flow", "packet"]),
        default="model",
        show_default=True,
        help="The time of communication: by the model of plans, by flows on links, or packet by packet.",
    ),
    click.option("--no-overlap", is_flag=True, help="Each computation waits for all earlier communication."),
)
#: Options of the rates of the accelerator, if the machine does not state them.
rate_options = _stack(
    click.option(
        "--tflops",
        type=float,
        metavar="N",
        help="For programs of other tools: the rate of an accelerator, in 10^12 operations a second.",
    ),
    click.option(
        "--memory-gb-per-second",
        type=float,
        metavar="N",
        help="For programs of other tools: the memory bandwidth of an accelerator, in 10^9 bytes a second.",
    ),
)

fill_option = click.option(
    "--fill",
    is_flag=True,
    help="Fill the network with copies of the trained model; all copies reduce their gradients together.",
)


def _explain(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[EXPLAIN] = value


#: Without this option each note is cut to one line. The value is not passed to the command's function.
explain_option = click.option(
    "--explain",
    is_flag=True,
    expose_value=False,
    callback=_explain,
    help="Print whole notes instead of one line of each.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")

_MEMORY, _NO_LIMIT = "unisono.limit_memory", "unisono.no_limit"


def _apply_limits(context: click.Context) -> None:
    """Sets the limits of the process from the options read so far."""
    memory, lifted = context.meta.get(_MEMORY), context.meta.get(_NO_LIMIT, False)
    if memory is not None and lifted:
        raise click.UsageError("--limit-memory sets a limit and --no-limit lifts all; give one")
    unisono.limits(memory=None if lifted else memory or "free", steps=None if lifted else default_steps())


def _limit_memory(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_MEMORY] = value
    _apply_limits(context)


def _no_limit(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_NO_LIMIT] = value
    _apply_limits(context)


#: Options of every command that computes. Their values are not passed to the command's function.
limit_options = _stack(
    click.option(
        "--limit-memory",
        metavar="SIZE",
        expose_value=False,
        callback=_limit_memory,
        help="Refuse work that needs more memory than SIZE, as in 2GiB [80 % of the free memory].",
    ),
    click.option(
        "--no-limit",
        is_flag=True,
        expose_value=False,
        callback=_no_limit,
        help="Lift the limits on memory and on steps.",
    ),
)

#: The option ``--shard`` of studies whose shards are files of points, which `unisono merge` joins.
shard_option = click.option(
    "--shard",
    type=Shard(),
    help="Compute only every Nth point, from the Ith on, and store these points in the FILE of --resume; 'unisono "
    "merge' joins the files of all shards.",
)

machine_option = click.option(
    "--machine",
    type=MACHINE,
    metavar="NAME|FILE",
    required=True,
    help="A preset (see 'unisono machines') or a TOML file.",
)

shape_option = click.option(
    "--shape", metavar="N|MxN", help="The part of the machine: a row of N PEs or ranks, or M rows x N columns."
)

fail_option = click.option(
    "--fail",
    multiple=True,
    metavar="A-B|N|NAME",
    help="Remove from a network the cables between nodes A and B (A-B:1 for one of them), node N, a part by its name, "
    "one cable of each class whose loss cuts off no accelerator (one-link), or one of several planes (plane K); "
    "repeatable.",
)


def log_ranks_option(least: int) -> Callable[[_Decorated], _Decorated]:
    """Returns the option ``--ranks`` of commands that read logs."""
    text = "Number of ranks, for logs that do not state it, such as those of OSU."
    return click.option("--ranks", type=click.IntRange(least), metavar="P", help=text)


def tolerance_option(default: float) -> Callable[[_Decorated], _Decorated]:
    """Returns the option ``--tolerance`` of commands that compare times."""
    text = "Relative difference up to which two times count as equal."
    return click.option("--tolerance", type=float, default=default, show_default=True, callback=_tolerance, help=text)


def _tolerance(_: click.Context, __: click.Parameter, tolerance: float) -> float:
    if not 0 <= tolerance < 10:
        raise InputError(f"--tolerance is {tolerance}; accepted is 0 or more, and less than 10")
    return tolerance


def slow_option(of: str) -> Callable[[_Decorated], _Decorated]:
    """Returns the option for slow cables.

    Its help text begins with ``of``, the condition under which the option is used.
    """
    return click.option(
        "--slow",
        type=Share(),
        multiple=True,
        metavar="A-B=SHARE",
        help=f"{of}: the cable between nodes A and B has this share of its rate; repeatable.",
    )


nodes_option = click.option(
    "--nodes",
    type=INT,
    metavar="N",
    help="Number of nodes of a machine of kind in-network, or of boxes of a network.",
)

#: Options of a machine other than its shape.
site_options = _stack(
    nodes_option,
    click.option(
        "--subset",
        type=Nodes(),
        metavar="LIST",
        help="The nodes that take part, where switches reduce, as in 0,2,5..7 [all].",
    ),
    fail_option,
)

shape_options = _stack(
    shape_option,
    click.option(
        "--ranks",
        type=INT,
        metavar="P",
        help="In place of --shape: the number of ranks (on a wafer, of PEs in a row).",
    ),
    site_options,
)

size_options = _stack(
    click.option("--elements", type=INT, metavar="N", help="Size of the vector or block in elements."),
    click.option(
        "--bytes", metavar="SIZE", help="Size of the vector or block in bytes, as in 4096, 64KiB, 64K or 1.5MB."
    ),
)


def _one_of(names: Iterable[str]) -> str:
    return f"One of {', '.join(names)}."


data_options = _stack(
    click.option(
        "--dtype", type=DATATYPE, default="f32", show_default=True, metavar="NAME", help=_one_of(unisono.dtypes())
    ),
    click.option(
        "--op", type=OPERATOR, default="sum", show_default=True, metavar="NAME", help=_one_of(unisono.operators())
    ),
)

root_option = click.option(
    "--root",
    type=Root(),
    default="0",
    show_default=True,
    help="The root rank: an index (row-major on a grid) or row,col.",
)

_MODELS_OF_RANKS = (
    "on machines of kind endpoint: hockney, postal, pipelining-postal, logp, loggp, logfp or loggops [the machine's]; "
    "on a network: links (the default), packets (simulates the best candidates) or data-sheet (links, without measured "
    "rates); on machines of kind in-network: alpha-beta."
)
model_option = click.option(
    "--model",
    metavar="NAME",
    shell_complete=of_names(MODELS),
    help="On a wafer: paper (Eq. 1 of the wafer paper; the default in a row) or links (largest link load; the default "
    f"on a grid); {_MODELS_OF_RANKS}",
)
#: The option of a model for bounds; on a wafer the bounds of all models are listed.
bound_model_option = click.option(
    "--model",
    metavar="NAME",
    shell_complete=of_names(MODELS),
    help=f"{_MODELS_OF_RANKS.capitalize()} Not for a wafer: there the bounds of all models are listed.",
)

algorithm_options = _stack(
    click.option(
        "--algorithm",
        type=ALGORITHM,
        metavar="NAME",
        help="Plan only this algorithm (see 'unisono algorithms'), with its best parameters.",
    ),
    click.option(
        "--param",
        type=Param(),
        multiple=True,
        shell_complete=parameters,
        help="A parameter of the algorithm, as in group=8; without --algorithm, of all candidates; repeatable.",
    ),
    model_option,
)


target_option = click.option(
    "--for",
    "target",
    type=FORMAT,
    metavar="FORMAT",
    help="Plan only schedules that this format can express: a format of 'unisono emit', such as csl; a format of "
    "'unisono export', or openmpi, mpich, ucc, nccl or ncclx; or preload, a .plan for MPI programs.",
)

plan_options = _stack(
    machine_option,
    shape_options,
    size_options,
    data_options,
    root_option,
    algorithm_options,
    target_option,
    json_option,
)
_machine_and_plan_options = (
    click.option(
        "--machine",
        type=MACHINE,
        metavar="NAME|FILE",
        help="The machine to plan for, or to place the schedule of FILE on.",
    ),
    shape_options,
    size_options,
    data_options,
    root_option,
    algorithm_options,
)
#: The argument and options of a command that takes a file, or a collective to plan; see :func:`schedule_of`.
file_or_plan_options = _stack(
    click.argument("file_or_collective", type=FILE_OR_COLLECTIVE, metavar="FILE|COLLECTIVE"), *_machine_and_plan_options
)
#: The same argument and options for a command with another possible input, or another output than a schedule.
maybe_file_or_plan_options = _stack(
    click.argument("file_or_collective", type=FILE_OR_COLLECTIVE, metavar="[FILE|COLLECTIVE]", required=False),
    *_machine_and_plan_options,
    target_option,
)
