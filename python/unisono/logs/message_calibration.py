"""Fits an endpoint machine to logs of MPI programs: collectives, ping-pongs and streams of messages.

A collective has the time of the algorithm that an MPI library chooses by its rules. A ping-pong is one message, and a
stream is :data:`WINDOW` messages of one rank and an empty answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from unisono._core import InputError, Machine, UnsupportedError
from unisono.base.files import read_text, title
from unisono.base.messages import counted
from unisono.logs.benchmarks import is_of_mpi, read_log_text
from unisono.logs.collectives import Measured
from unisono.logs.library_calibration import ONE_BLOCK, Residual, chosen_points
from unisono.logs.links import read_links
from unisono.logs.message_prices import BETA, GAMMA, MODELS, Fit, Form, Times, apart, fit, is_better, slopes
from unisono.logs.rows import MESSAGE, MOST_BYTES, MOST_RANKS, STREAM, WINDOW, StatedRanks
from unisono.machines.descriptions import machine as described
from unisono.machines.descriptions import with_shape
from unisono.planning.libraries import library_choice
from unisono.planning.plans import plan

__all__ = ["OF_MPI", "POOR", "MessageFit", "calibrated_messages", "has_logs_of_mpi", "model_of", "read_messages"]

#: The libraries whose rules are known.
OF_MPI = ("mpich", "openmpi")
#: The models that are compared if no machine names one.
_TRIED = ("hockney", "pipelining-postal")
#: A price is determined by the times only if the other prices leave at least this part of its contribution unexplained.
_APART = 0.01
#: The relative standard error above which a price is uncertain.
_UNCERTAIN = 0.5
#: The median relative error above which a machine does not describe the times.
POOR = 0.5
#: If one prediction of all times takes more than `_LONG` seconds, a sentence announces that the fit takes long. A fit
#: usually needs `_PREDICTIONS` predictions.
_LONG, _PREDICTIONS = 1.0, 150
_ELEMENT = 4
#: The logs to add for a price that times do not determine.
_SHORT = "add times of short messages, as of osu_latency"
_ADD = {
    "alpha_ns": _SHORT,
    "alpha_p_ns": _SHORT,
    "alpha_r_ns": "add a test whose ranks send several messages at once, as osu_bw or osu_alltoall",
    BETA: "add times of long messages, as of osu_latency to 4 MiB",
    GAMMA: "add osu_allreduce or osu_reduce, and a test without reductions, as osu_latency",
}


@dataclass(frozen=True)
class MessageFit:
    """A machine that is fitted to times, and how well it predicts them."""

    machine: Machine
    residuals: list[Residual]
    #: The median relative error.
    error: float
    notes: list[str]


def has_logs_of_mpi(paths: Sequence[str | Path]) -> bool:
    """Returns whether one of the files is the output of a benchmark of MPI."""
    return any(is_of_mpi(read_text(path, MOST_BYTES)) for path in paths)


def read_messages(
    paths: Sequence[str | Path], ranks: Sequence[int], per_node: Sequence[int]
) -> tuple[list[Measured], int, list[str]]:
    """Returns the times of logs of MPI, the ranks of a node, and sentences on rows that are left out.

    ``ranks`` and ``per_node`` have one number for all files or one for each. Without ``per_node``, all messages have
    the same costs.

    Raises:
        InputError: a file is no log of MPI, lacks its number of ranks, or differs from the others in memory or nodes.

    """
    points, notes, sizes, kinds, used = list[Measured](), list[str](), dict[int, str](), dict[str, str](), False
    for at, path in enumerate(paths):
        text, origin = read_text(path, MOST_BYTES), title(str(path))
        given = StatedRanks(_of(ranks, at, paths, "--ranks"), per_node=_of(per_node, at, paths, "--per-node"))
        log = None if read_links(text, origin) is not None else read_log_text(text, origin, given, messages=True)
        if log is None or log.of_gpus:
            raise InputError(f"{origin} is a log of GPUs, and others are of MPI; calibrate a machine for each")
        used = used or given.is_used
        kinds[log.memory] = origin
        points += log.points
        notes += [*log.left_out, *(f"{origin}: {one.words}; {one.advice}" for one in log.remarks)]
        for point in log.points:
            if point.ranks > point.nodes > 1:
                sizes[given.per_node or -(-point.ranks // point.nodes)] = origin
    if ranks and not used:
        raise InputError(
            f"--ranks {','.join(map(str, ranks))}: each of these files states its ranks or has two by its test; drop it"
        )
    if len(kinds) > 1:
        (_, first), (kind, other), *_ = sorted(kinds.items())
        raise InputError(
            f"{other} is of messages in the memory of GPUs ({kind}), and {first} in that of hosts; calibrate a machine "
            "for each"
        )
    if len(sizes) > 1:
        (one, first), (two, other), *_ = sizes.items()
        raise InputError(f"{first} has {one} ranks on a node, and {other} has {two}; calibrate a machine for each")
    return points, next(iter(sizes), max(per_node, default=1)), list(dict.fromkeys(notes))


def _of(values: Sequence[int], at: int, paths: Sequence[str | Path], option: str) -> int | None:
    if len(values) not in (0, 1, len(paths)):
        raise InputError(f"{option} has {len(values)} numbers for {len(paths)} logs; give one for all, or one for each")
    for value in values:
        if not 0 < value <= MOST_RANKS:
            raise InputError(f"{option} has {value}; accepted are 1 to {MOST_RANKS}")
    return values[at % len(values)] if values else None


def calibrated_messages(
    points: Sequence[Measured],
    size: int,
    library: str | None,
    base: Machine | None = None,
    count: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> MessageFit:
    """Fits a machine to times of an MPI library, on nodes of ``size`` ranks.

    Prices that the times do not determine are those of ``base``, or 0. With ``count``, the machine is fitted to this
    number of sizes of each collective on each number of ranks. ``tell`` receives a sentence if the fit will take
    minutes.

    Raises:
        InputError: the library of collectives is not named, or the times do not determine a machine.

    """
    model = model_of(base)
    kept, algorithms, notes = _kept([point for point in points if point.ranks > 1], library)
    fitted = chosen_points([point for point in kept if not point.is_mean] or kept, count)
    if any(point.is_mean for point in kept):
        means = " and ".join(sorted({point.collective for point in kept if point.is_mean}))
        notes.append(
            f"times of {means} are means over the ranks, most of which finish early, and are not fitted if there are "
            "others; the option -f of the OSU benchmarks adds the time of the slowest rank"
        )
    sizes = {point.bytes for point in fitted if point.collective != "barrier"}
    if len(sizes) < 2:
        raise InputError(
            f"all times are of {counted(next(iter(sizes), 0), 'byte')}, which does not determine the price of a byte; "
            "give logs of at least two sizes, best from 8 B to 1 MiB"
        )
    times, measured = _times(fitted, size, library or ""), [point.seconds for point in fitted]
    begin = perf_counter()
    times(Form(model or _TRIED[0]).machine([1000.0] * len(Form(model or _TRIED[0]).prices())))
    if (took := perf_counter() - begin) >= _LONG:
        tell(
            f"one prediction of these {len(fitted)} times takes {took:.1f} s, and the fit makes about {_PREDICTIONS}: "
            f"{took * _PREDICTIONS / 60:.0f} minutes; --points fits fewer sizes of each collective"
        )
    inside = any(point.nodes < point.ranks for point in fitted)
    has_nodes = inside and any(point.nodes > 1 for point in fitted)
    if has_nodes and (wanting := _undetermined(times, measured, Form(model or _TRIED[0], has_nodes=True), -1)):
        has_nodes = False
        notes.append(
            f"messages within and between nodes have the same prices, because the times do not tell {wanting[0]} of "
            "both apart; add osu_latency of two ranks of one node, with its own --per-node 2"
        )
    best: Fit | None = None
    for tried in (model,) if model else _TRIED:
        wanting = _undetermined(times, measured, Form(tried, has_nodes=has_nodes), 0)
        if "alpha_r_ns" in wanting and not model:
            continue
        held = {key: float(_price(base, key) or 0.0) for key in wanting}
        found = fit(times, measured, tried, has_nodes=has_nodes, held=held)
        if best is None or is_better(found, best):
            best, of_best = found, held
    if best is None:
        raise RuntimeError("one model needs no alpha_r")
    _check(best)
    notes += [
        f"{key} is {value:g}, {'as before' if _price(base, key) is not None else 'as nothing else is known'}: the "
        f"times do not determine it; {_ADD[key]}"
        for key, value in of_best.items()
    ]
    notes += _uncertain(best, of_best)
    seconds = _times(kept, size, library or "")(best.machine())
    chosen = set(map(id, fitted))
    residuals = [
        Residual(point, algorithm, "", predicted, id(point) in chosen)
        for point, algorithm, predicted in zip(kept, algorithms, seconds, strict=True)
    ]
    error = median(abs(one.error) for one in [of for of in residuals if not of.point.is_mean] or residuals)
    if error > POOR:
        notes.append(
            f"poor fit: half of the times differ from their predictions by more than {error:.0%}; check --as, --ranks "
            "and --per-node, and measure on quiet hosts"
        )
    return MessageFit(_machine(best, size, fitted, library, error), residuals, error, list(dict.fromkeys(notes)))


def model_of(base: Machine | None) -> str | None:
    """Returns the model of the base, or None without a base.

    Raises:
        InputError: no prices are fitted to the model.

    """
    if base is None:
        return None
    if base.kind != "endpoint":
        raise InputError(
            f"{base.name} is of kind {base.kind}, and logs of MPI give prices of kind endpoint; drop --machine, or "
            f"measure that network: mpiexec -n P unisono calibrate --machine {base.name} -o M.toml"
        )
    model = str(base.describe()["model"])
    if model not in MODELS:
        raise InputError(f"{base.name} has the model {model}; fitted are {', '.join(MODELS)}")
    return model


def _price(base: Machine | None, key: str) -> float | None:
    return None if base is None else base.describe().get(key)


def _kept(points: Sequence[Measured], library: str | None) -> tuple[list[Measured], list[str], list[str]]:
    """Returns the points with a known algorithm, these algorithms, and sentences.

    The sentences describe all other points and the library.
    """
    kept, algorithms, notes = [], [], list[str]()
    any_machine = described(Form("hockney").machine([1000.0, 1.0, 0.0]))
    for point in points:
        name = ""
        if point.collective not in (MESSAGE, STREAM):
            if library is None:
                raise InputError(
                    f"the logs have times of {point.collective}, whose algorithm depends on the library; name it with "
                    "--as openmpi or --as mpich"
                )
            try:
                found = library_choice(
                    point.collective, with_shape(any_machine, point.ranks), _elements(point), library=library
                )
            except UnsupportedError as refused:
                notes.append(f"times of {point.collective} are left out: {refused}")
                continue
            if found["seconds"] is None:
                notes.append(f"times of {point.collective} are left out: {found['notes'][-1]}")
                continue
            name = found["algorithm"]
            notes.append(found["notes"][1])
        kept.append(point)
        algorithms.append(name)
    if not kept:
        raise InputError(f"no time can be fitted: {notes[-1] if notes else 'all are of one rank'}")
    return kept, algorithms, notes


def _elements(point: Measured) -> int:
    blocks = 1 if point.collective in (*ONE_BLOCK, MESSAGE, STREAM) else point.ranks
    return 0 if point.collective == "barrier" else max(1, point.bytes // (_ELEMENT * blocks))


def _times(points: Sequence[Measured], size: int, library: str) -> Times:
    """Returns the function from the description of a machine to the seconds of the points."""

    def seconds(description: dict[str, Any]) -> list[float]:
        @cache
        def at(ranks: int, nodes: int, of_node: int) -> Machine:
            """Returns the machine with ``ranks`` ranks.

            If each rank has its own node, the machine has no level of nodes.
            """
            levels = [{**level, "size": of_node} for level in description.get("levels", ()) if nodes < ranks]
            return with_shape(described({**description, "levels": levels}), ranks)

        def sends(nodes: int, count: int, elements: int) -> float:
            """Returns the time of messages from one rank to another, each message to a different rank."""
            machine = at(count + 1, 1 if nodes == 1 else count + 1, count + 1)
            params = {"radix": str(count + 1)}
            found = plan("broadcast", machine, elements=elements, algorithm="binomial", params=params)
            return float(found.predicted["seconds"])

        found = []
        for point in points:
            if point.collective == MESSAGE:
                found.append(sends(point.nodes, 1, _elements(point)))
            elif point.collective == STREAM:
                found.append(sends(point.nodes, WINDOW, _elements(point)) + sends(point.nodes, 1, 1))
            else:
                machine = at(point.ranks, point.nodes, size if point.nodes > 1 else point.ranks)
                choice = library_choice(point.collective, machine, _elements(point), library=library)
                found.append(choice["seconds"] or 0.0)
        return found

    return seconds


def _undetermined(times: Times, measured: Sequence[float], form: Form, place: int) -> list[str]:
    """Returns the prices that the times do not determine.

    These are the prices within a node (``place`` -1), or gamma and alpha_r.
    """
    own, norms = apart(slopes(times, measured, form))
    latency = MODELS[form.model][0]
    return [
        key
        for (at, key), mine, all_ in zip(form.prices(), own, norms, strict=True)
        if at == place and (at < 0 or key not in (latency, BETA)) and mine <= _APART * all_
    ]


def _check(found: Fit) -> None:
    """Raises an error if messages, or the bytes of messages, would cost nothing on the machine."""
    machine = found.machine()
    last = [machine, *machine.get("protocols", ())][-1]
    latency = MODELS[found.form.model][0]
    for key, value in ((latency, machine[latency] + machine.get("alpha_r_ns", 0.0)), (BETA, last[BETA])):
        if value == 0:
            raise InputError(f"no file is written, because {key} would be 0 by these times; {_ADD[key]}")


def _uncertain(found: Fit, held: Mapping[str, float]) -> list[str]:
    """Returns a sentence on prices with a large standard error."""
    own, _ = apart(found.rows)
    off = np.abs(found.rows @ found.values - 1)
    deviation = 1.4826 * float(np.median(off))
    named, advice = [], list[str]()
    for (at, key), value, mine in zip(found.form.prices(), found.values, own, strict=True):
        if not (at == 0 and key in held) and deviation > _UNCERTAIN * value * mine:
            of = "within nodes" if at < 0 else f"from {found.form.limits[at - 1]} bytes" if at else ""
            named.append(f"{key} {of}".rstrip())
            advice += [_ADD[key]] if at == 0 else []
    more = "".join(f"; {one}" for one in dict.fromkeys(advice))
    return [f"uncertain by more than {_UNCERTAIN:.0%}: {', '.join(named)}{more}"] if named else []


def _machine(found: Fit, size: int, points: Sequence[Measured], library: str | None, error: float) -> Machine:
    """Returns the fitted machine with its name, its nodes and the table ``fit``."""
    table: dict[str, Any] = found.machine()
    for of in (table, *table.get("protocols", ()), *table.get("levels", ())):
        if "alpha_p_ns" in of:
            # This price is added so that the machine file also works with ``--model hockney``.
            of["alpha_ns"] = float(f"{of['alpha_p_ns'] + of.get('alpha_r_ns', table['alpha_r_ns']):.6g}")
    for level in table.get("levels", ()):
        level["size"] = size
    of_library = f", as {library}" if library else ""
    kinds, ranks = sorted({point.collective for point in points}), sorted({point.ranks for point in points})
    values = {"median_error": float(f"{error:.3g}"), "poor": ["messages"] if error > POOR else []}
    summary = f"fitted to {len(points)} times of {', '.join(kinds)} on {', '.join(map(str, ranks))} ranks{of_library}"
    return described({**table, "name": "calibrated", "summary": summary, "fit": values})
