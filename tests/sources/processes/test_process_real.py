"""The readers on this machine's /proc, compared with psutil."""

import subprocess
import sys
import time

import psutil
import pytest

from gpuwatch.model import ProcessRole
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host import HostReader
from gpuwatch.sources.processes import BurstReader, ProcessReader
from gpuwatch.sources.tree import DiskTree

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

JOB = """
import os, sys
for _ in range(2):
    if os.fork() == 0:
        open("/proc/self/comm", "w").write("pt_data_worker")
        sys.stdout.write("w")
        sys.stdout.flush()
        os.read(0, 1)
        os._exit(0)
sum(range(1000000))
sys.stdout.write("t")
sys.stdout.flush()
os.read(0, 1)
"""


class FirstNamespace(DiskTree):
    """This machine as if the tests ran outside of any container: the job here uses no GPU."""

    def link(self, path):
        return "pid:[4026531836]" if path == "/proc/self/ns/pid" else super().link(path)


@pytest.fixture
def job():
    process = subprocess.Popen([sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert sorted(process.stdout.read(3)) == sorted(b"wwt")
    yield process.pid
    children = psutil.Process(process.pid).children()
    for one in [process, *children]:
        one.kill()
    process.communicate()


def test_a_real_job_as_psutil_sees_it(job):
    readings, hidden = ProcessReader(FirstNamespace(), Clock()).read({job: "C"}, time.monotonic())
    other = psutil.Process(job)
    family = {reading.pid: reading for reading in readings if reading.trainer is not None}
    assert hidden == 0
    assert family.keys() == {job, *(child.pid for child in other.children(recursive=True))}
    roles = sorted(reading.role for pid, reading in family.items() if pid != job)
    assert roles == [ProcessRole.WORKER, ProcessRole.WORKER]
    trainer = family[job]
    times = other.cpu_times()
    assert trainer.cpu_ns == pytest.approx((times.user + times.system) * 1e9, abs=3e7)
    assert trainer.rss_bytes == pytest.approx(other.memory_info().rss, rel=0.3)
    assert trainer.read_calls == other.io_counters().read_count
    assert trainer.user == other.username()
    assert trainer.thread_count == other.num_threads()
    assert trainer.affinity_cores == len(other.cpu_affinity())
    assert trainer.age_s == pytest.approx(time.time() - other.create_time(), abs=2.0)
    assert trainer.command == " ".join(other.cmdline()).replace("\n", "␊")


def test_bursts_of_a_real_job(job):
    clock = Clock()
    readings, _ = ProcessReader(FirstNamespace(), clock).read({job: "C"}, clock.monotonic_s())
    trainer = next(reading for reading in readings if reading.pid == job)
    bursts = BurstReader(DiskTree(), clock)
    bursts.aim(readings, {trainer.key}, clock.monotonic_s())
    bursts.poll(clock.monotonic_s())
    drained = {burst.tid: burst for burst in bursts.drain()}
    assert len(drained) == 3
    assert drained[job].run_ns[0] >= 10_000_000 / 2


def test_this_host_as_psutil_sees_it():
    reading = HostReader(DiskTree(), Clock()).read()
    times, memory = psutil.cpu_times(), psutil.virtual_memory()
    assert reading.cpu is not None
    assert reading.cpu.idle_s == pytest.approx(times.idle, abs=2.0)
    assert reading.cpu.user_s == pytest.approx(times.user + times.nice, abs=2.0)
    assert len(reading.core_ids) == len(psutil.cpu_times(percpu=True))
    assert reading.memory_total_bytes == memory.total
    assert reading.memory_available_bytes == pytest.approx(memory.available, rel=0.2)
    counters = psutil.disk_io_counters(perdisk=True) or {}
    for disk in reading.disks:
        assert disk.read_bytes == pytest.approx(counters[disk.name].read_bytes, rel=0.05, abs=1e7)
