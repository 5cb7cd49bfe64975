"""Plans, bounds and sweeps; plan files and decision tables; code for other tools; training iterations."""

from unisono.planning.certificates import check_bound
from unisono.planning.emission import emit, emit_files, import_schedule
from unisono.planning.plan_files import load_plans, save_plans
from unisono.planning.plans import bounds, plan
from unisono.planning.sweeps import sweep
from unisono.planning.workloads import workload

__all__ = [
    "bounds",
    "check_bound",
    "emit",
    "emit_files",
    "import_schedule",
    "load_plans",
    "plan",
    "save_plans",
    "sweep",
    "workload",
]
