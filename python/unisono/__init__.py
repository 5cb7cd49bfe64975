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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono._allocation import allocate, submesh
    from unisono._core import (
        Buffer,
        Error,
        InputError,
        Machine,
        Plan,
        Proof,
        Schedule,
        ScheduleBuilder,
        SimulationError,
        Slice,
        Stream,
        UnsupportedError,
        VerifyError,
        __version__,
        algorithms,
        machine_presets,
        parse_shape,
        topologies,
        workload_presets,
    )
    from unisono._discovery import discover
    from unisono._emission import emit, emit_files, import_schedule
    from unisono._endpoint import EndpointRun, simulate_goal
    from unisono._export import export
    from unisono._files import load, save
    from unisono._limits import Limits, limits
    from unisono._machines import machine
    from unisono._measurement import Measurement, measure
    from unisono._network import NetworkRun
    from unisono._planfile import load_plans, save_plans
    from unisono._planning import bounds, plan
    from unisono._simulation import Run, simulate
    from unisono._sweep import sweep
    from unisono._switches import EngineRun
    from unisono._traffic import Traffic, traffic
    from unisono._workload import workload

__all__ = [
    "Buffer",
    "EndpointRun",
    "EngineRun",
    "Error",
    "InputError",
    "Limits",
    "Machine",
    "Measurement",
    "NetworkRun",
    "Plan",
    "Proof",
    "Run",
    "Schedule",
    "ScheduleBuilder",
    "SimulationError",
    "Slice",
    "Stream",
    "Traffic",
    "UnsupportedError",
    "VerifyError",
    "__version__",
    "algorithms",
    "allocate",
    "bounds",
    "discover",
    "emit",
    "emit_files",
    "export",
    "import_schedule",
    "limits",
    "load",
    "load_plans",
    "machine",
    "machine_presets",
    "measure",
    "parse_shape",
    "plan",
    "save",
    "save_plans",
    "simulate",
    "simulate_goal",
    "submesh",
    "sweep",
    "topologies",
    "traffic",
    "workload",
    "workload_presets",
]

#: The names of each module. A module is imported when one of its names is first used: NumPy alone takes longer to
#: import than most commands take to run.
_HOMES = {
    "_allocation": (
        "allocate",
        "submesh",
    ),
    "_core": (
        "Buffer",
        "Error",
        "InputError",
        "Machine",
        "Plan",
        "Proof",
        "Schedule",
        "ScheduleBuilder",
        "SimulationError",
        "Slice",
        "Stream",
        "UnsupportedError",
        "VerifyError",
        "__version__",
        "algorithms",
        "machine_presets",
        "parse_shape",
        "topologies",
        "workload_presets",
    ),
    "_discovery": ("discover",),
    "_emission": (
        "emit",
        "emit_files",
        "import_schedule",
    ),
    "_endpoint": (
        "EndpointRun",
        "simulate_goal",
    ),
    "_export": ("export",),
    "_files": (
        "load",
        "save",
    ),
    "_limits": (
        "Limits",
        "limits",
    ),
    "_machines": ("machine",),
    "_measurement": (
        "Measurement",
        "measure",
    ),
    "_network": ("NetworkRun",),
    "_planfile": (
        "load_plans",
        "save_plans",
    ),
    "_planning": (
        "bounds",
        "plan",
    ),
    "_simulation": (
        "Run",
        "simulate",
    ),
    "_sweep": ("sweep",),
    "_switches": ("EngineRun",),
    "_traffic": (
        "Traffic",
        "traffic",
    ),
    "_workload": ("workload",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
