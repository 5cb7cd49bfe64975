"""The examples of each command, which its help shows and the tests run."""

#: The command lines without the name of the program; earlier lines write files that later lines read.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "algorithms": ("algorithms --collective allreduce",),
    "allocate": ("allocate --machine hx2mesh-small --jobs alibaba --fail 4 --samples 20",),
    "bench": ("bench allreduce --plan cluster.plan",),
    "bound": ("bound allreduce --machine dgx-a100-x4 --bytes 64MiB",),
    "calibrate": ("calibrate -o cluster.toml",),
    "check-guidelines": ("check-guidelines examples/logs/openmpi.csv",),
    "compare": ("compare gpt-3,dlrm --machines fattree-small,hx2mesh-small --plot compare.png",),
    "demo": ("demo",),
    "diagnose": ("diagnose examples/logs/openmpi.csv",),
    "discover": (
        "discover examples/tasks/nbody.py --nodes 64",
        "discover examples/tasks/jacobi.py --nodes 9 --machine archer",
    ),
    "doctor": ("doctor",),
    "emit": (
        "emit allreduce --machine dgx-h100 --bytes 64KiB --algorithm ring --format mscclpp -o ring.json",
        "emit ring.sched --format goal -o ring.goal",
    ),
    "expect": (
        "expect allreduce --machine dgx-h100 --sizes 8,1MiB,1GiB --as nccl",
        "expect broadcast --machine dgx-h100 --sizes 8,1MiB -o expected.prom --plot expected.png",
    ),
    "export": ("export cluster.plan --format openmpi-rules -o rules.conf --no-check",),
    "import": ("import ring.json --format mscclpp -o imported.sched",),
    "lab": ("lab up dgx-h100", "lab run -n 8 -- ./program", "lab down"),
    "machines": ("machines", "machines dgx-h100"),
    "merge": ("merge part-1.json part-2.json -o sweep.csv",),
    "plan": (
        "plan allreduce --machine lumi --ranks 96 --bytes 64K",
        "plan reduce --machine wse2 --shape 64x64 --elements 256 -o reduce.sched",
        "plan allreduce --machine lumi --ranks 4 --bytes 64K --algorithm rabenseifner --serve all -o cluster.plan",
    ),
    "probe": ("probe --machine cluster.toml",),
    "reproduce": ("reproduce multiplying --quick",),
    "run": ("run -n 4 --plan cluster.plan --report stderr -- ./program",),
    "schedule": ("schedule allreduce --machine lumi --ranks 8 --bytes 1MiB --algorithm ring -o ring.sched",),
    "show": ("show ring.sched", "show cluster.plan"),
    "simulate": ("simulate ring.sched --trace ring.json.trace",),
    "sweep": (
        "sweep allreduce --machine archer --shapes 8..64 --elements 1..4096 -o sweep.csv",
        "sweep allreduce --machine archer --shapes 8..64 --elements 1..4096 --shard 1/2 -o part-1.json",
        "sweep allreduce --machine archer --shapes 8..64 --elements 1..4096 --shard 2/2 -o part-2.json",
    ),
    "topology": ("topology hx2mesh-small --plot mesh.png",),
    "traffic": ("traffic permutation --machine hx2mesh-small --bytes 64KiB --level flow",),
    "tune": ("tune allreduce,broadcast --machine cluster.toml --for openmpi-rules -o cluster.plan",),
    "verify": ("verify ring.sched", "verify ring.json"),
    "view": (
        "view allreduce --machine lumi --ranks 16 --bytes 64KiB -o allreduce.html",
        "view ring.sched -o ring.html",
    ),
    "workload": (
        "workload gpt-3 --machine hx2mesh-small",
        "workload --from examples/programs/ddp --machine dgx-h100 --what-if link_gbps=100",
    ),
}
#: The commands whose examples need `mpiexec`.
UNDER_MPI = ("bench", "calibrate", "probe", "tune")
