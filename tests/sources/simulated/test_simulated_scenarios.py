"""The scenarios that come with the program: they load, describe themselves, and hold what they promise."""

import os
import subprocess
import sys
import time
from itertools import pairwise

import pynvml
import pytest

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated import ManualClock, describe, load, scenario_names, simulated

NAMES = scenario_names()


def test_the_stories_are_there() -> None:
    stories = "disk healthy lost mixed pcie-x4 power-cap starved straggler thermal workers"
    assert " ".join(NAMES) == stories


@pytest.mark.parametrize("name", NAMES)
def test_each_says_in_a_sentence_what_it_is(name: str) -> None:
    text = describe(name)
    assert text.endswith(".")
    assert 20 < len(text) < 110


def test_unknown_names_are_missing_files() -> None:
    with pytest.raises(FileNotFoundError):
        load("no-such-story")


def test_loading_needs_no_bindings() -> None:
    code = (
        "import sys; from gpuwatch.sources.simulated import load; load('starved');"
        "print('pynvml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", NAMES)
def test_each_is_answered_by_driver_and_host(name: str) -> None:
    clock = ManualClock()
    with simulated(name, clock) as (driver, tree):
        pynvml.nvmlInit()
        clock.advance(10)
        for gpu in driver.gpus:
            handle = pynvml.nvmlDeviceGetHandleByIndex(gpu.index)
            assert 0 <= pynvml.nvmlDeviceGetUtilizationRates(handle).gpu <= 100
            limit = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)
            assert 0 < pynvml.nvmlDeviceGetPowerUsage(handle) <= limit * 1.02
            running = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
            assert len(running) == 1
            assert tree.read(f"/proc/{running[0].pid}/comm") == b"python\n"
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
            assert running[0].usedGpuMemory <= memory.used < memory.total


def measured(name: str, seconds: int = 120) -> dict[str, float]:
    """Period and share of the gaps from the driver's own samples, as anybody would see them."""
    clock = ManualClock()
    with simulated(name, clock):
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        values: list[int] = []
        last = int(clock.wall_s() * 1e6)
        for _ in range(seconds):
            clock.advance(1)
            _, samples = pynvml.nvmlDeviceGetSamples(handle, 1, last)
            last = samples[-1].timeStamp
            values += [sample.sampleValue.uiVal for sample in samples]
    high = max(values)
    middle = sum(values) / len(values)
    rises = sum(1 for a, b in pairwise(values) if a < middle <= b)
    return {
        "period_s": len(values) / 6 / rises,
        "stall_ratio": 1 - sum(min(value / high, 1) for value in values) / len(values),
    }


@pytest.mark.parametrize("name", [name for name in NAMES if "period_s" in load(name).truth])
def test_the_truth_is_what_the_driver_shows(name: str) -> None:
    truth = load(name).truth
    found = measured(name)
    assert found["period_s"] == pytest.approx(float(truth["period_s"]), rel=0.05)
    assert found["stall_ratio"] == pytest.approx(float(truth["stall_ratio"]), abs=0.03)


def test_healthy_is_normal_in_every_respect() -> None:
    clock = ManualClock()
    with simulated("healthy", clock) as (driver, tree):
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        for _ in range(60):
            clock.advance(1)
            assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu >= 94
            assert pynvml.nvmlDeviceGetPerformanceState(handle) == 2
            reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            assert reasons in (0, pynvml.nvmlClocksEventReasonSwPowerCap)
        assert pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) == driver.gpus[0].model.power[0] * 1000
        before = int(tree.read("/proc/4242/schedstat").split()[0])
        clock.advance(10)
        assert int(tree.read("/proc/4242/schedstat").split()[0]) - before == pytest.approx(10e9, rel=0.01)


def test_lost_is_lost_and_back() -> None:
    clock = ManualClock()
    with simulated("lost", clock):
        pynvml.nvmlInit()
        first, second = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
        states = []
        for _ in range(50):
            clock.advance(1)
            pynvml.nvmlDeviceGetTemperature(first, 0)
            try:
                pynvml.nvmlDeviceGetTemperature(second, 0)
                states.append("ok")
            except pynvml.NVMLError_GpuIsLost:
                states.append("lost")
        assert states == ["ok"] * 19 + ["lost"] * 20 + ["ok"] * 11


def test_real_and_simulated_time_show_the_same() -> None:
    """Only the time passed counts, not which clock tells it."""

    def answers(clock: Clock | ManualClock) -> list[int]:
        with simulated("starved", clock) as (driver, tree):
            pynvml.nvmlInit()
            driver.timeline.start_s -= 33.0
            tree.machine.timeline.start_s = driver.timeline.start_s
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)
            _, samples = pynvml.nvmlDeviceGetSamples(handle, 1, 0)
            return [sample.sampleValue.uiVal for sample in samples][:90]

    frozen = time.time()
    assert answers(ManualClock()) == answers(Clock(time.monotonic, lambda: frozen))


@pytest.mark.parametrize(("name", "limit_ms"), [("starved", 3.0), ("straggler", 12.0)])
def test_a_tick_is_cheap(name: str, limit_ms: float) -> None:
    """Driver calls and host files of one tick; three times the measured cost is a guard, no benchmark."""
    clock = ManualClock()
    with simulated(name, clock) as (driver, tree):
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(gpu.index) for gpu in driver.gpus]
        last = [0] * len(handles)

        def tick() -> None:
            clock.advance(1)
            for place, handle in enumerate(handles):
                pynvml.nvmlDeviceGetUtilizationRates(handle)
                pynvml.nvmlDeviceGetPowerUsage(handle)
                pynvml.nvmlDeviceGetTemperature(handle, 0)
                pynvml.nvmlDeviceGetClockInfo(handle, 1)
                pynvml.nvmlDeviceGetPerformanceState(handle)
                pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
                pynvml.nvmlDeviceGetFieldValues(handle, [83, 74, 75, 76, 269, 197, 198])
                _, samples = pynvml.nvmlDeviceGetSamples(handle, 1, last[place])
                last[place] = samples[-1].timeStamp
            for path in ("stat", "meminfo", "vmstat", "diskstats", "net/dev", "pressure/cpu", "pressure/io"):
                tree.read(f"/proc/{path}")
            for pid in tree.machine.processes:
                tree.read(f"/proc/{pid}/stat")
                tree.read(f"/proc/{pid}/schedstat")

        for _ in range(5):
            tick()
        before = time.process_time()
        for _ in range(20):
            tick()
        assert (time.process_time() - before) / 20 * 1000 < limit_ms * 3


@pytest.mark.interop
@pytest.mark.parametrize("name", NAMES)
def test_the_c_driver_loads_the_same_file(name: str, tmp_path) -> None:
    """GPUWATCH_C_DRIVER: the folder of a libnvidia-ml.so.1 that plays the same language, and
    GPUWATCH_C_DRIVER_VARIABLE: the environment variable in which it finds its scenario.
    """
    folder = os.environ.get("GPUWATCH_C_DRIVER")
    variable = os.environ.get("GPUWATCH_C_DRIVER_VARIABLE")
    if not folder or not variable or not os.path.exists(f"{folder}/libnvidia-ml.so.1"):
        pytest.skip("GPUWATCH_C_DRIVER names no driver")
    from gpuwatch.sources.simulated.shipped import scenario_path

    code = "import pynvml as p; p.nvmlInit(); print(p.nvmlDeviceGetCount())"
    environment = {**os.environ, "LD_LIBRARY_PATH": folder, variable: str(scenario_path(name))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(len(load(name).gpus)), done.stderr
