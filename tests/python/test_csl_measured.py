"""The script that measures on a wafer, run with a replacement of the host's library and simulated clocks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import unisono as un

from .conftest import call
from .test_mpi import PATIENCE

STUB = """
import numpy as np
from enum import Enum

MemcpyDataType = Enum("MemcpyDataType", "MEMCPY_16BIT MEMCPY_32BIT")
MemcpyOrder = Enum("MemcpyOrder", "ROW_MAJOR COL_MAJOR")
ROWS, COLS, WRITE, COLLECTIVE = {rows}, {cols}, {write}, 321


class SdkRuntime:
    def __init__(self, name, cmaddr=None):
        self.memory = {{}}
        self.offset = np.arange(ROWS * COLS, dtype=np.int64) * 7919 % 1013 + 2**33

    def load(self): pass
    def run(self): pass
    def stop(self): pass
    def get_id(self, name): return name

    def memcpy_h2d(self, symbol, array, x, y, width, height, elements, *, data_type, **options):
        assert data_type is MemcpyDataType.MEMCPY_16BIT and array.dtype == np.uint32
        assert array.shape == (ROWS * COLS * elements,) and (x, y, width, height) == (0, 0, COLS, ROWS)
        self.memory[symbol] = array.astype(np.int64)

    def launch(self, function, nonblock):
        hops = np.add.outer(np.arange(ROWS), np.arange(COLS)).reshape(-1)
        trigger = 5000 + hops + 2
        start = trigger + np.rint(self.memory["writes"] * WRITE).astype(np.int64)
        end = start.max() + COLLECTIVE if function == "measure" else 0 * start
        self.memory.update(referred=trigger + self.offset, started=start + self.offset, ended=end + self.offset)

    def memcpy_d2h(self, array, symbol, x, y, width, height, elements, **options):
        words = np.stack([self.memory[symbol] >> 16 * n & 0xFFFF for n in range(3)], axis=1)
        array[:] = words.reshape(-1)
"""


@pytest.mark.parametrize(("rows", "cols", "write"), [(1, 300, 1.0), (1, 300, 1.25), (40, 150, 2.0)])
def test_the_script_calibrates_and_measures(tmp_path: Path, rows: int, cols: int, write: float) -> None:
    plan = un.plan("reduce", "wse2", shape=(rows, cols), elements=4, algorithm="chain" if rows == 1 else "x-y")
    un.emit(plan.schedule, "csl-measured", tmp_path)
    module = tmp_path / "cerebras" / "sdk" / "runtime"
    module.mkdir(parents=True)
    (module / "sdkruntimepybind.py").write_text(STUB.format(rows=rows, cols=cols, write=write))
    command = [sys.executable, "measure.py", "--name", "out", "--repeats", "2"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE)
    *runs, summary = map(json.loads, ran.stdout.splitlines())
    assert len(runs) == summary["repeats"] == 2
    limit = 57 if rows == 1 else 129
    for run in runs:
        assert run["calibrated"] is True
        assert run["start_spread"] < limit
        # The last start is 321 cycles before the end, for any offsets of the clocks.
        assert run["cycles"] == 321 + run["start_spread"]
    assert runs[0]["runs"] == (1 if write == 1.0 else 2)
    assert runs[1]["runs"] == 1
    assert runs[0]["alpha"] == pytest.approx(1 / write, rel=0.01)


PING_PONG = """
import numpy as np
from enum import Enum

MemcpyDataType = Enum("MemcpyDataType", "MEMCPY_16BIT MEMCPY_32BIT")
MemcpyOrder = Enum("MemcpyOrder", "ROW_MAJOR COL_MAJOR")


class SdkRuntime:
    def __init__(self, name, cmaddr=None):
        self.now = 2**33 + 65530

    def load(self): pass
    def run(self): pass
    def stop(self): pass
    def get_id(self, name): return name

    def launch(self, function, nonblock):
        assert function == "ping_pong"
        self.memory = dict(started=self.now, ended=self.now + 20 * 77 + 10)
        self.now += 100000

    def memcpy_d2h(self, array, symbol, x, y, width, height, elements, *, data_type, **options):
        assert data_type is MemcpyDataType.MEMCPY_16BIT and (x, y, width, height, elements) == (0, 0, 1, 1, 3)
        array[:] = [self.memory[symbol] >> 16 * n & 0xFFFF for n in range(3)]
"""


@pytest.mark.parametrize("machine", ["wse2", "wse3"])
def test_broadcasts_on_lines_are_measured_by_ping_pong(tmp_path: Path, machine: str) -> None:
    plan = un.plan("broadcast", machine, shape=9, elements=64)
    un.emit(plan.schedule, "csl-measured", tmp_path)
    module = tmp_path / "cerebras" / "sdk" / "runtime"
    module.mkdir(parents=True)
    (module / "sdkruntimepybind.py").write_text(PING_PONG)
    command = [sys.executable, "measure.py", "--name", "out", "--repeats", "3"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE)
    *runs, summary = map(json.loads, ran.stdout.splitlines())
    # 10 rounds of two broadcasts of 77.5 cycles each, by a clock whose low word wraps around.
    assert runs == [{"cycles": 77.5, "rounds": 10}] * 3
    assert summary == {"mean_cycles": 77.5, "std_cycles": 0.0, "repeats": 3}


def test_a_measured_project_is_emitted_and_refused(tmp_path: Path) -> None:
    reduce = ["reduce", "--machine", "wse2", "--elements", "16", "--format", "csl-measured"]
    ran = call("emit", *reduce, "--shape", "8x6", "-o", str(tmp_path / "out"))
    assert ran.code == 0, ran.err
    assert "measure.py" in (tmp_path / "out" / "commands.sh").read_text()
    plan = un.plan("reduce", "wse2", shape=(64, 64), elements=256, algorithm="kd-tree", target="csl")
    with pytest.raises(un.NotExpressibleError, match="a measurement takes 4 more of 20"):
        un.emit_files(plan.schedule, "csl-measured")


def test_only_ping_pong_is_measured_where_a_hop_has_no_published_time() -> None:
    plan = un.plan("reduce", "wse3", shape=9, elements=8)
    printed = call("plan", "reduce", "--machine", "wse3", "--shape", "9", "--elements", "8")
    assert "ramp_latency_cycles, clock_mhz, queue_depth, hop_cycles of wse3 are assumed" in printed.out
    with pytest.raises(un.NotExpressibleError, match="the cycles of a hop, which are not published for the WSE-3"):
        un.emit_files(plan.schedule, "csl-measured")
