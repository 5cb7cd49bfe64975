"""Plans, proves, predicts and runs collective communication.

>>> import unisono as un
>>> machine = un.machine("wse2", shape=512)
>>> plan = un.plan("reduce", machine, elements=256)
>>> plan.algorithm
'auto-gen'
>>> plan.schedule.verify().complete
True
>>> un.simulate(plan.schedule).result_correct
True
"""

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    # The public names of the package; a module is imported when one of its names is first used.
    from unisono._core import Buffer as Buffer
    from unisono._core import Error as Error
    from unisono._core import InputError as InputError
    from unisono._core import Machine as Machine
    from unisono._core import NotExpressibleError as NotExpressibleError
    from unisono._core import Plan as Plan
    from unisono._core import Proof as Proof
    from unisono._core import Schedule as Schedule
    from unisono._core import ScheduleBuilder as ScheduleBuilder
    from unisono._core import SimulationError as SimulationError
    from unisono._core import Slice as Slice
    from unisono._core import Stream as Stream
    from unisono._core import UnsupportedError as UnsupportedError
    from unisono._core import VerifyError as VerifyError
    from unisono._core import WorkloadGraph as WorkloadGraph
    from unisono._core import __version__ as __version__
    from unisono._core import algorithms as algorithms
    from unisono._core import bandwidths as bandwidths
    from unisono._core import collectives as collectives
    from unisono._core import dtypes as dtypes
    from unisono._core import machine_presets as machine_presets
    from unisono._core import operators as operators
    from unisono._core import parse_shape as parse_shape
    from unisono._core import preset_toml as preset_toml
    from unisono._core import topologies as topologies
    from unisono._core import workload_presets as workload_presets
    from unisono.base.files import load as load
    from unisono.base.files import save as save
    from unisono.base.limits import Limits as Limits
    from unisono.base.limits import limits as limits
    from unisono.discovery import discover as discover
    from unisono.machines import allocate as allocate
    from unisono.machines import import_machine as import_machine
    from unisono.machines import machine as machine
    from unisono.machines import submesh as submesh
    from unisono.mpi.exports import export as export
    from unisono.planning import AlgorithmCase as AlgorithmCase
    from unisono.planning import PlanTable as PlanTable
    from unisono.planning import add_contributors as add_contributors
    from unisono.planning import algorithm as algorithm
    from unisono.planning import bounds as bounds
    from unisono.planning import check_bound as check_bound
    from unisono.planning import check_gpu_plan as check_gpu_plan
    from unisono.planning import compare as compare
    from unisono.planning import emit as emit
    from unisono.planning import emit_files as emit_files
    from unisono.planning import expect as expect
    from unisono.planning import import_schedule as import_schedule
    from unisono.planning import load_plans as load_plans
    from unisono.planning import merge_shards as merge_shards
    from unisono.planning import plan as plan
    from unisono.planning import plan_table as plan_table
    from unisono.planning import read_workload as read_workload
    from unisono.planning import remove_algorithm as remove_algorithm
    from unisono.planning import save_plans as save_plans
    from unisono.planning import step as step
    from unisono.planning import sweep as sweep
    from unisono.planning import workload as workload
    from unisono.probing import emit_probe as emit_probe
    from unisono.probing import probe as probe
    from unisono.simulation import Measurement as Measurement
    from unisono.simulation import Metric as Metric
    from unisono.simulation import Run as Run
    from unisono.simulation import Traffic as Traffic
    from unisono.simulation import measure as measure
    from unisono.simulation import simulate as simulate
    from unisono.simulation import simulate_beside as simulate_beside
    from unisono.simulation import simulate_goal as simulate_goal
    from unisono.simulation import traffic as traffic
    from unisono.viewing import view as view

__all__, __getattr__ = lazy(__name__, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
