"""Makes plans, bounds, sweeps, plan files, decision tables and code for other tools, and times programs."""

from unisono.planning.bits import PlanTable, plan_table
from unisono.planning.certificates import check_bound
from unisono.planning.comparison import compare
from unisono.planning.contributors import add_contributors
from unisono.planning.emission import emit, emit_files, import_schedule
from unisono.planning.expectations import expect
from unisono.planning.gpu_plans import check_gpu_plan
from unisono.planning.own_algorithms import AlgorithmCase, algorithm, remove_algorithm
from unisono.planning.plan_files import load_plans, save_plans
from unisono.planning.plans import bounds, plan
from unisono.planning.programs import read_workload, step
from unisono.planning.sweeps import merge_shards, sweep
from unisono.planning.workloads import workload

__all__ = [
    "AlgorithmCase",
    "PlanTable",
    "add_contributors",
    "algorithm",
    "bounds",
    "check_bound",
    "check_gpu_plan",
    "compare",
    "emit",
    "emit_files",
    "expect",
    "import_schedule",
    "load_plans",
    "merge_shards",
    "plan",
    "plan_table",
    "read_workload",
    "remove_algorithm",
    "save_plans",
    "step",
    "sweep",
    "workload",
]
