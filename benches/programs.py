"""Steps of programs on large machines: 3D-parallel training by the model and by flows.

The program is made here as HLO text: transformer layers on data x pipeline x tensor ranks. The figures are CPU
seconds and the step.
"""

import argparse
import time
from collections.abc import Iterator

import unisono as un
from common.figures import Figures, Of, parsed

#: The width of a layer's matrix products, and the tokens of a sequence on a rank.
WIDTH, TOKENS = 12288, 2048
RATES = (494e12, 3350e9)
#: The CPU seconds that may be spent on a step, by level.
REQUIRED_S = {"model": 2, "flow": 60}


def program(data: int, pipeline: int, tensor: int, layers: int) -> str:
    """Returns HLO text of one step: layers with sums over tensor ranks, messages to the next stage, and gradients."""
    ranks = data * pipeline * tensor
    tensors = f"[{data * pipeline},{tensor}]<=[{ranks}]"
    replicas = f"[{pipeline * tensor},{data}]<=[{data},{pipeline},{tensor}]T(1,2,0)"
    pairs = ",".join(f"{{{rank},{rank + tensor}}}" for rank in range(ranks) if rank // tensor % pipeline < pipeline - 1)
    tokens, part = f"bf16[{TOKENS},{WIDTH}]{{1,0}}", f"bf16[{TOKENS // tensor},{WIDTH}]{{1,0}}"
    weights, wide = f"bf16[{WIDTH},{4 * WIDTH // tensor}]{{1,0}}", f"bf16[{TOKENS},{4 * WIDTH // tensor}]{{1,0}}"
    slopes = f"bf16[{WIDTH // data},{4 * WIDTH // tensor}]{{1,0}}"
    ids = "use_global_device_ids=true"

    def lines() -> Iterator[str]:
        yield f"HloModule step, num_partitions={ranks}\n"
        yield "%sum (a: bf16[], b: bf16[]) -> bf16[] {\n  %a = bf16[] parameter(0)\n  %b = bf16[] parameter(1)"
        yield "  ROOT %s = bf16[] add(%a, %b)\n}\n"
        yield f"ENTRY %main (x: {part}, w: {slopes}) -> {slopes} {{"
        yield f"  %x0 = {part} parameter(0)\n  %v = {slopes} parameter(1)"
        yield f"  %w = {weights} all-gather(%v), channel_id=1, replica_groups={replicas}, dimensions={{0}}, {ids}"
        for n in range(2 * layers):
            groups = f"channel_id={2 * n + 2}, replica_groups={tensors}, dimensions={{0}}, {ids}"
            yield f"  %a{n} = {tokens} all-gather(%x{n}), {groups}"
            yield f"  %h{n} = {wide} dot(%a{n}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
            yield f"  %y{n} = {tokens} dot(%h{n}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
            yield f"  %x{n + 1} = {part} reduce-scatter(%y{n}), {groups}, to_apply=%sum"
        last = f"%x{2 * layers}"
        if pairs:
            yield f"  %next = {part} collective-permute({last}), channel_id=900, source_target_pairs={{{pairs}}}"
            last = "%next"
        yield f"  %b = {tokens} all-gather({last}), channel_id=901, replica_groups={tensors}, dimensions={{0}}, {ids}"
        yield f"  %c = {wide} dot(%b, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        yield "  %d = bf16[] constant(1)"
        everyone = f"replica_groups=[1,{ranks}]<=[{ranks}]"
        yield f"  %norm = bf16[] all-reduce(%d), channel_id=902, {everyone}, {ids}, to_apply=%sum"
        yield f"  %g = {weights} dot(%b, %c), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"
        yield f"  %s = {weights} all-reduce(%g), channel_id=903, replica_groups={tensors}, {ids}, to_apply=%sum"
        yield (
            f"  ROOT %r = {slopes} reduce-scatter(%s), channel_id=904, replica_groups={replicas}, dimensions={{0}}, "
            f"{ids}, to_apply=%sum"
        )
        yield "}"

    return "\n".join(lines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", nargs="+", default=["fattree-large", "hx2mesh-large", "torus2d-large"])
    parser.add_argument("--sizes", nargs=3, type=int, default=[64, 32, 8], metavar=("DATA", "PIPELINE", "TENSOR"))
    parser.add_argument("--levels", nargs="+", default=["model", "flow"])
    parser.add_argument("--layers", type=int, default=3)
    args = parsed(parser)
    data, pipeline, tensor = args.sizes
    text = program(data, pipeline, tensor, args.layers)
    graph = un.WorkloadGraph.read([("step.hlo", text.encode())])
    note = f"data x pipeline x tensor = {' x '.join(map(str, args.sizes))}"
    with Figures("workloads", "CPU of workloads", args, note=note) as figures:
        for name in args.machines:
            machine = un.machine(name)
            for level in args.levels:
                begin = time.process_time()
                report = graph.time(machine, RATES, True, level)
                took = time.process_time() - begin
                figures.add(
                    f"step of {graph.ranks:,} ranks, {name}",
                    Of(level, took, "CPU s", "required", REQUIRED_S.get(level, "")),
                    Of(f"step by {level}", report["seconds"] * 1e3, "ms"),
                    Of(f"exposed by {level}", report["exposed_seconds"] * 1e3, "ms"),
                )


if __name__ == "__main__":
    main()
