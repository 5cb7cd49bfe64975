"""Every option without effect on the input of a command is refused by name."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import unisono as un
from click.core import Option
from unisono.cli import command

from .conftest import ROOT, call, refusal

#: Words that give each option a valid value.
VALUES: Mapping[str, tuple[str, ...]] = {
    "--machine": ("--machine", "archer"),
    "--shape": ("--shape", "4"),
    "--shapes": ("--shapes", "4"),
    "--ranks": ("--ranks", "4"),
    "--rounds": ("--rounds", "7"),
    "--levels": ("--levels",),
    "--per-node": ("--per-node", "2"),
    "--points": ("--points", "2"),
    "--name": ("--name", "made"),
    "--as": ("--as", "mpich"),
    "--contributors": ("--contributors", "4"),
    "--shard": ("--shard", "1/2"),
    "--nodes": ("--nodes", "1"),
    "--subset": ("--subset", "0"),
    "--fail": ("--fail", "0-1"),
    "--from": ("--from", "edges"),
    "--boxes": ("--boxes", "2"),
    "--accelerators": ("--accelerators", "2"),
    "--elements": ("--elements", "16"),
    "--bytes": ("--bytes", "64"),
    "--dtype": ("--dtype", "f32"),
    "--op": ("--op", "sum"),
    "--root": ("--root", "0"),
    "--algorithm": ("--algorithm", "ring"),
    "--param": ("--param", "a=1"),
    "--model": ("--model", "hockney"),
    "--for": ("--for", "goal"),
    "--method": ("--method", "exact"),
    "--seed": ("--seed", "5"),
    "--certificate": ("--certificate", "made.cert"),
    "--check": ("--check", "made.cert"),
    "--processors": ("--processors", "132"),
    "--trust-relaxed": ("--trust-relaxed",),
    "--in-place": ("--in-place",),
    "--gpus-per-box": ("--gpus-per-box", "2"),
    "--thread-blocks": ("--thread-blocks", "2"),
    "--jobs": ("--jobs", "2"),
    "--sim": ("--sim", "endpoint"),
    "--queue-depth": ("--queue-depth", "2"),
    "--noop-probability": ("--noop-probability", "0.5"),
    "--calibrated": ("--calibrated",),
    "--goal": ("--goal", "made.goal"),
    **{f"--{name}": (f"--{name}", "1") for name in ("L", "o", "g", "G", "O", "S")},
    "--zero-byte": ("--zero-byte", "sane"),
    "--noise": ("--noise", "uniform:1"),
    "--late": ("--late", "0,0,0,0"),
    "--timeline": ("--timeline", "made.svg"),
    "--trace": ("--trace", "made.json"),
    "--trace-pes": ("--trace-pes", "all"),
    "--format": ("--format", "goal"),
    "-o": ("-o", "made.goal"),
    "--level": ("--level", "model"),
    "--no-overlap": ("--no-overlap",),
    "--fill": ("--fill",),
    "--minibatch": ("--minibatch", "8"),
    "--plot": ("--plot", "made.png"),
    "--strict": ("--strict",),
    "--tflops": ("--tflops", "1"),
    "--memory-gb-per-second": ("--memory-gb-per-second", "1"),
    "--what-if": ("--what-if", "planes=2"),
    "--rules": ("--rules", "full"),
    "--require": ("--require", "ranks"),
    "--executor": ("--executor", "nowhere"),
    "--resume": ("--resume", "made.points"),
    "--simulate": ("--simulate",),
    "--beside": ("--beside", "switches.sched"),
    "--devices": ("--devices", "2"),
    "--rank": ("--rank", "1"),
    "--device-machine": ("--device-machine", "archer"),
    "--graph": ("--graph", "made.dot"),
    "--graph-kind": ("--graph-kind", "tasks"),
}
#: Options that every command accepts: for output and limits.
ALWAYS = {"--json", "--explain", "--limit-memory", "--no-limit", "--help"}
#: The options that have an effect on MSCCL files.
_OF_MSCCL = {
    "--require",
    "--elements",
    "--bytes",
    "--dtype",
    "--op",
    "--root",
    "--method",
    "--processors",
    "--seed",
    "--check",
}
_PART = {"--shape", "--ranks", "--nodes", "--subset", "--fail"}
_PLANNED = {"--elements", "--bytes", "--dtype", "--op", "--root", "--algorithm", "--param", "--for"}
#: Options for VGG-16, which the command refuses itself on machines without switches that reduce.
_OF_VGG = {"--nodes", "--minibatch", "--algorithm"}
_GOAL = {"--L", "--o", "--g", "--G", "--O", "--S", "--zero-byte"}
_OF_WAFER = {"--queue-depth", "--noop-probability", "--calibrated"}
_OF_RANKS = {"--late", "--noise", "--timeline"}
_STUDY = {"--executor", "--resume", "--shard"}
_RUN = {"--sim", "--trace", "--trace-pes"}

#: The words of the refusal, for options whose name the refusal lacks.
RECORDS = {
    "--timeline": ("have no timeline",),
    "--trace": ("are not traced",),
    "--trace-pes": ("--trace is not given",),
}

_RATES = ("--tflops", "1", "--memory-gb-per-second", "1000")
#: Named inputs of commands: the words of the command line, and the options that have an effect.
INPUTS: Mapping[str, tuple[tuple[str, ...], set[str]]] = {
    "verify a file": (
        ("verify", "ranks.sched"),
        {"--require", "--machine", "--fail", "--method", "--seed", "--certificate", "--check"},
    ),
    "verify a placed file": (
        ("verify", "ranks.sched", "--machine", "archer"),
        {"--require", *_PART, "--method", "--seed", "--certificate", "--check"},
    ),
    "verify a plan for GPUs": (
        ("verify", "pair.json"),
        {"--require", "--elements", "--bytes", "--dtype", "--method", "--trust-relaxed", "--processors"},
    ),
    "verify a file exactly": (
        ("verify", "ranks.sched", "--method", "exact"),
        {"--require", "--machine", "--fail", "--certificate", "--check"},
    ),
    "verify a file of MSCCL": (
        ("verify", "ranks.xml"),
        {*_OF_MSCCL, "--machine"},
    ),
    "verify a placed file of MSCCL": (
        ("verify", "ranks.xml", "--machine", "archer"),
        {*_OF_MSCCL, *_PART},
    ),
    "check a certificate": (("verify", "ranks.sched", "--check", "ranks.cert"), {"--require"}),
    "emit a file": (
        ("emit", "ranks.sched", "--format", "goal", "-o", "out.goal"),
        {"--machine", "--fail"},
    ),
    "emit a placed file": (("emit", "ranks.sched", "--machine", "archer", "--format", "goal", "-o", "out.goal"), _PART),
    "simulate a file of ranks": (
        ("simulate", "ranks.sched"),
        {"--machine", "--fail", "--model", "--goal", *_RUN, *_OF_RANKS},
    ),
    "simulate a file of a wafer": (("simulate", "wafer.sched"), {"--machine", "--fail", "--goal", *_RUN, *_OF_WAFER}),
    "simulate a file of a network": (
        ("simulate", "network.sched"),
        {"--machine", "--fail", "--goal", *_RUN, *_OF_RANKS},
    ),
    "simulate a file of switches": (
        ("simulate", "switches.sched"),
        {"--machine", "--fail", "--goal", "--sim", "--beside"},
    ),
    "simulate a placed file": (
        ("simulate", "ranks.sched", "--machine", "archer"),
        {*_PART, "--model", "--goal", *_RUN, *_OF_RANKS},
    ),
    "simulate a plan": (
        ("simulate", "allreduce", "--machine", "archer", "--ranks", "4", "--elements", "16"),
        {*_PART, *_PLANNED, "--model", "--goal", *_RUN, *_OF_RANKS},
    ),
    "simulate a plan on a wafer": (
        ("simulate", "allreduce", "--machine", "wse2", "--shape", "4", "--elements", "16"),
        {*_PART, *_PLANNED, "--model", "--goal", *_RUN, *_OF_WAFER},
    ),
    "simulate a program": (("simulate", "--goal", "ranks.goal"), {"--machine", *_GOAL, *_RUN, *_OF_RANKS}),
    "simulate a program on a network": (
        ("simulate", "--goal", "ranks.goal", "--machine", "torus2d-small"),
        {"--fail", *_RUN, *_OF_RANKS},
    ),
    "simulate noise": (
        ("simulate", "ranks.sched", "--noise", "uniform:1"),
        {"--machine", "--fail", "--model", "--goal", "--seed", *_RUN, *_OF_RANKS},
    ),
    "traffic that is not drawn": (
        ("traffic", "alltoall", "--machine", "ring.toml", "--bytes", "4KiB", "--level", "flow"),
        {"--nodes", "--fail", "--algorithm", "--param", "--plot"},
    ),
    "sweep a subset": (
        ("sweep", "allreduce", "--machine", "piuma", "--nodes", "4", "--subset", "1,3", "--elements", "16"),
        {
            "--resume",
            "--executor",
            *_PLANNED,
            "--fail",
            "--model",
            "--algorithms",
            "--baseline",
            "--jobs",
            "--plot",
            "-o",
        },
    ),
    # `--from` names an input itself.
    "list workloads": (("workload",), {"--from"}),
    "a workload": (
        ("workload", "dlrm", "--machine", "hx2mesh-small"),
        {"--fail", "--fill", "--from", "--level", "--model", "--no-overlap", "--plot", *_OF_VGG},
    ),
    "a program": (
        ("workload", "--from", "small.hlo", "--machine", "hx2mesh-small"),
        {
            "--fail",
            "--level",
            "--model",
            "--nodes",
            "--no-overlap",
            "--strict",
            "--tflops",
            "--memory-gb-per-second",
            "--what-if",
            "--plot",
            *_STUDY,
        },
    ),
    "a program of tasks": (
        ("workload", "--from", "program.json", "--ranks", "2", "--machine", "hx2mesh-small", *_RATES),
        {"--fail", "--level", "--model", "--nodes", "--no-overlap", "--strict", "--what-if", "--plot", *_STUDY},
    ),
    "list machines": (("machines",), set()),
    "calibrate from a ping-pong": (
        ("calibrate", "--from", "latency.log", "-o", "out.toml"),
        {"--machine", "--name", "--points", "--as", "--per-node"},
    ),
    "discover": (("discover", "program.json", "--nodes", "2"), {"--machine", "--rules", "--graph", "--devices"}),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name, machine in (("ranks", "archer"), ("wafer", "wse2"), ("network", "hx2mesh-small")):
        un.save(un.plan("allreduce", machine, shape=4, elements=16).schedule, folder / f"{name}.sched")
    switches = un.plan("allreduce", un.machine("piuma", nodes=1), elements=16, algorithm="in-network").schedule
    un.save(switches, folder / "switches.sched")
    ranks = un.load(folder / "ranks.sched")
    un.emit(ranks, "goal", folder / "ranks.goal")
    un.emit(ranks, "msccl-xml", folder / "ranks.xml")
    (folder / "ring.txt").write_text("0 1\n1 2\n2 0\n")
    (folder / "ring.toml").write_text(un.import_machine(folder / "ring.txt").to_toml())
    (folder / "ranks.cert").write_text(ranks.certificate())
    module = "HloModule m\n\nENTRY %e (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n"
    shutil.copy(ROOT / "crates/fuzz/corpus/gpu-plan/allgather.json", folder / "pair.json")
    (folder / "small.hlo").write_text(module)
    (folder / "latency.log").write_text("# OSU MPI Latency Test v7.4\n# Size Latency (us)\n8 1.00\n65536 9.00\n")
    (folder / "program.json").write_text('{"buffers": [], "tasks": []}')
    return folder


def option_of(option: Option) -> str:
    return option.opts[-1] if option.opts[-1] in VALUES or option.opts[-1] in ALWAYS else option.opts[0]


@pytest.mark.parametrize("name", INPUTS)
def test_options_without_a_use_are_refused(name: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    words, used = INPUTS[name]
    # `--jobs` has no effect on results.
    given = [option for option in command(words[0]).params if option.name != "jobs" or option.expose_value]
    options = {option_of(option) for option in given if isinstance(option, Option)}
    accepted = []
    for option in sorted(options - used - ALWAYS - set(words)):
        ran = call(*words, *VALUES[option])
        named = any(word in ran.err for word in (option, *RECORDS.get(option, ())))
        if ran.code != 2 or not named or ran.err.count("\n") != 1:
            accepted.append((option, ran.code, ran.err))
    assert not accepted


def test_the_inputs_themselves_are_accepted(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    for name, (words, _) in INPUTS.items():
        ran = call(*words)
        assert ran.code == 0, (name, ran.err)


def test_a_network_is_named_where_its_simulator_is(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    ran = call("simulate", "--goal", "ranks.goal", "--sim", "network")
    assert (ran.code, ran.err) == (
        2,
        "error: --sim network runs a program of --goal on a machine; name it with --machine\n",
    )


@pytest.mark.parametrize("operator", ["nonsense", ""])
def test_a_bound_takes_operators_only(operator: str) -> None:
    refused = refusal("bound", "reduce", "--machine", "archer", "--ranks", "4", "--elements", "4", "--op", operator)
    assert f"'{operator}' is not an operator" in refused
