"""A replacement for CuPy on hosts: its arrays have their own memory, and refuse to mix with NumPy's, as CuPy's do."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class DeviceArray(np.ndarray[Any, np.dtype[Any]]):
    """Refuses NumPy's arrays as operands and in assignments; numbers are accepted."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        for given in (*inputs, *out):
            _refuse(given)
        plain = [np.asarray(given) if isinstance(given, DeviceArray) else given for given in inputs]
        if out:
            options["out"] = tuple(np.asarray(given) for given in out)
        found = getattr(ufunc, method)(*plain, **options)
        return out[0] if out else np.asarray(found).view(DeviceArray)

    def __setitem__(self, at: Any, value: Any) -> None:
        _refuse(value)
        np.asarray(self)[at] = value

    def get(self) -> Any:
        """Returns the memory itself, for kernels of tests that are written for NumPy."""
        return self.view(np.ndarray)


def _refuse(given: Any) -> None:
    if isinstance(given, np.ndarray) and not isinstance(given, DeviceArray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")


class StandIn(ModuleType):
    """The functions of CuPy that Unisono uses; `up` and `down` count the elements copied to and from devices."""

    def __init__(self, devices: int = 1) -> None:
        super().__init__("cupy")
        self.up, self.down = 0, 0
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(getDeviceCount=lambda: devices), Device=lambda _=0: nullcontext()
        )
        self.ndarray = DeviceArray

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        return np.zeros(shape, dtype).view(DeviceArray)

    def asarray(self, data: Any) -> DeviceArray:
        self.up += data.size
        return np.array(data).view(DeviceArray)

    def asnumpy(self, data: DeviceArray) -> Any:
        assert isinstance(data, DeviceArray)
        self.down += data.size
        return np.array(data.view(np.ndarray))


def install(devices: int = 1) -> StandIn:
    """Makes a `StandIn` the module that `import cupy` finds, and returns it."""
    module = StandIn(devices)
    sys.modules["cupy"] = module
    return module
