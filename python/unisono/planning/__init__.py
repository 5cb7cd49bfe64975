"""Makes plans, bounds, sweeps, plan files, decision tables and code for other tools, and times programs."""

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    from unisono.planning.bits import PlanTable as PlanTable
    from unisono.planning.bits import plan_table as plan_table
    from unisono.planning.certificates import check_bound as check_bound
    from unisono.planning.comparison import compare as compare
    from unisono.planning.contributors import add_contributors as add_contributors
    from unisono.planning.emission import emit as emit
    from unisono.planning.emission import emit_files as emit_files
    from unisono.planning.emission import import_schedule as import_schedule
    from unisono.planning.expectations import expect as expect
    from unisono.planning.gpu_plans import check_gpu_plan as check_gpu_plan
    from unisono.planning.own_algorithms import AlgorithmCase as AlgorithmCase
    from unisono.planning.own_algorithms import algorithm as algorithm
    from unisono.planning.own_algorithms import remove_algorithm as remove_algorithm
    from unisono.planning.plan_files import load_plans as load_plans
    from unisono.planning.plan_files import save_plans as save_plans
    from unisono.planning.plans import bounds as bounds
    from unisono.planning.plans import plan as plan
    from unisono.planning.programs import read_workload as read_workload
    from unisono.planning.programs import step as step
    from unisono.planning.sweeps import merge_shards as merge_shards
    from unisono.planning.sweeps import sweep as sweep
    from unisono.planning.workloads import workload as workload

__all__, __getattr__ = lazy(__name__, globals())
