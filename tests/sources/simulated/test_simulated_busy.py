"""Values from a real process: the file it writes, read the way another process would."""

import os
import struct
import time
from pathlib import Path

import pynvml
import pytest

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated import load
from gpuwatch.sources.simulated.busy import BusyFile
from gpuwatch.sources.simulated.driver import SimulatedDriver

PAGE, RECORDS = 4096, 16
SLOT_BYTES = PAGE + 3 * RECORDS * 64
T0 = 1_700_000_000 * 10**9


def own_start() -> int:
    stat = Path(f"/proc/{os.getpid()}/stat").read_bytes()
    return int(stat.rpartition(b")")[2].split()[19])


class Writer:
    """Writes kernels of a second, each followed by a second of nothing, into slot 0."""

    def __init__(self, path: Path, start: int | None = None) -> None:
        self.path = path
        self.kernels: list[bytes] = []
        self.busy_ns = 0
        self.power = 0.0
        self.start = own_start() if start is None else start

    def kernel(self, begin_s: float, end_s: float, power: float = 0.5) -> None:
        begin, end = (T0 + int(s * 1e9) for s in (begin_s, end_s))
        record = struct.pack("=QQQddddQ", begin, end, self.busy_ns, power, self.power, 0.25, 0.0, 1)
        self.kernels.append(record)
        self.busy_ns += end - begin
        self.power += power * (end - begin)

    def write(self, heartbeat_s: float = 0.0) -> None:
        data = bytearray(PAGE + SLOT_BYTES)
        struct.pack_into("=8sQQQ", data, 0, b"VGPU0001", 1, SLOT_BYTES, RECORDS)
        beat = T0 + int(heartbeat_s * 1e9)
        struct.pack_into(
            "=8Q", data, PAGE, os.getpid(), self.start, T0, beat, 5 << 30, len(self.kernels), 0, 0
        )
        for number, record in list(enumerate(self.kernels))[-RECORDS:]:
            at = 2 * PAGE + (number % RECORDS) * 64
            data[at : at + 64] = record
        self.path.write_bytes(data)


@pytest.fixture
def writer(tmp_path):
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc to know its own start")
    return Writer(tmp_path / "gpu")


def value(writer: Writer, name: str, begin_s: float, end_s: float, slot: int = 0) -> float:
    file = BusyFile(str(writer.path))
    return file.value(slot, name, T0 / 1e9 + begin_s, T0 / 1e9 + end_s)


def test_means_are_exact(writer) -> None:
    for second in range(0, 10, 2):
        writer.kernel(second, second + 1)
    writer.write()
    assert value(writer, "busy", 0, 10) == pytest.approx(50)
    assert value(writer, "busy", 0.5, 1.5) == pytest.approx(50, abs=0.01)
    assert value(writer, "busy", 2.2, 2.4) == pytest.approx(100, abs=0.01)
    assert value(writer, "busy_power", 0, 10) == pytest.approx(25)
    assert value(writer, "busy_h2d", 0, 10) == 0
    assert value(writer, "busy_pid", 0, 1) == os.getpid()
    assert value(writer, "busy_mem", 0, 1) == 5 << 30


def test_a_ring_that_has_turned_keeps_its_newest(writer) -> None:
    for second in range(0, 100, 2):
        writer.kernel(second, second + 1)
    writer.write()
    assert value(writer, "busy", 80, 100) == pytest.approx(50)
    assert value(writer, "busy", 10, 40) == pytest.approx(50, abs=3)  # spread evenly


def test_a_writer_that_died_is_no_process_and_does_nothing_after(tmp_path) -> None:
    writer = Writer(tmp_path / "gpu", start=12345)  # our pid, but another start: somebody else's
    for second in range(0, 20, 2):
        writer.kernel(second, second + 1)
    writer.write(heartbeat_s=10)
    assert value(writer, "busy_pid", 0, 1) == 0
    assert value(writer, "busy_mem", 0, 1) == 0
    assert value(writer, "busy", 0, 10) == pytest.approx(50)
    assert value(writer, "busy", 10, 20) == 0


@pytest.mark.parametrize("content", [None, b"", b"x" * 5000, b"VGPU0001" + b"\xff" * 9000])
def test_no_such_file_is_a_gpu_that_does_nothing(tmp_path, content) -> None:
    path = tmp_path / "gpu"
    if content is not None:
        path.write_bytes(content)
    assert BusyFile(str(path)).value(0, "busy", 0.0, 1.0) == 0


def test_slots_beyond_the_file(writer) -> None:
    writer.write()
    assert value(writer, "busy", 0, 1, slot=1) == 0


def test_a_real_process_behind_the_driver(writer, monkeypatch) -> None:
    now = T0 / 1e9 + 50.0
    for second in range(0, 60, 2):
        writer.kernel(second, second + 1)
    writer.write()
    monkeypatch.setenv("MY_GPUS", str(writer.path))
    scenario = load(
        "gpus = rtx3090\nutil = busy(env:MY_GPUS)\n"
        "[proc]\npid = busy_pid(env:MY_GPUS)\nmem = busy_mem(env:MY_GPUS)\n"
    )
    driver = SimulatedDriver(scenario, Clock(time.monotonic, lambda: now))
    driver.install()
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        _, samples = pynvml.nvmlDeviceGetSamples(handle, 1, 0)
        values = [sample.sampleValue.uiVal for sample in samples]
        assert sum(values) / len(values) == pytest.approx(50, abs=2)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
        assert [(process.pid, process.usedGpuMemory) for process in running] == [(os.getpid(), 5 << 30)]
    finally:
        driver.uninstall()
