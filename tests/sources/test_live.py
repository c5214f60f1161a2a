from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from gpuwatch.model import (
    Burst,
    DriverInfo,
    DriverState,
    DriverStatus,
    Event,
    GpuInfo,
    GpuProcess,
    GpuReading,
    OwnCost,
    ProcessReading,
    ProcessRole,
)
from gpuwatch.sources.base import Clock
from gpuwatch.sources.joined import JoinedSource, Selection, low_trainers, own_cost

STAT = (
    b"cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 50 0 25 400 25 0 0 0 0 0\nintr 5 1\nbtime 1000\nprocs_running 1\n"
)


class Files:
    """A small /proc in a dictionary; what is not there is missing."""

    def __init__(self, files):
        self.files = files

    def read(self, path):
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def list(self, path):
        names = {name[len(path) + 1 :].split("/")[0] for name in self.files if name.startswith(path + "/")}
        if not names:
            raise FileNotFoundError(2, "No such file or directory", path)
        return sorted(names)

    def link(self, path):
        raise FileNotFoundError(2, "No such file or directory", path)

    real = link

    def usage(self, path):
        raise FileNotFoundError(2, "No such file or directory", path)

    def affinity(self, pid):
        return 1

    def owner(self, path):
        return 0


OK = DriverStatus(DriverState.OK)
DRIVER = DriverInfo(version="580.65.06")


@dataclass
class Tick:
    driver: DriverStatus = OK
    driver_info: DriverInfo = DRIVER
    gpus: tuple = ()
    infos: tuple = ()
    generation: int = 1
    events: tuple = ()


class Nvml:
    def __init__(self):
        self.answer = Tick()
        self.log = []
        self.waits = []

    def start(self):
        self.log.append("start")

    def tick(self, deadline_s, wait_s):
        self.waits.append(wait_s)
        return self.answer

    def drain(self):
        self.log.append("drain")

    def close(self):
        self.log.append("close")


class Bench:
    def __init__(self, files=None, **options):
        self.now_s, self.wall_s = 100.0, 1_700_000_000.0
        self.nvml = Nvml()
        clock = Clock(lambda: self.now_s, lambda: self.wall_s)
        tree = Files({"/proc/stat": STAT, "/proc/uptime": b"500.0 900.0\n"} if files is None else files)
        self.source = JoinedSource(clock, tree, self.nvml, measure_own=None, **options)
        self.source.open()

    def sample(self, seconds=1.0, wall_s=None):
        self.now_s += seconds
        self.wall_s += seconds if wall_s is None else wall_s
        return self.source.sample(self.now_s)


def test_without_a_driver_the_host_is_live_and_the_reason_is_in_the_sample():
    bench = Bench()
    status = DriverStatus(DriverState.NO_LIBRARY, "no NVIDIA driver library was found")
    bench.nvml.answer = Tick(driver=status, driver_info=DriverInfo())
    sample = bench.sample()
    assert sample.driver is status
    assert sample.gpus == ()
    assert sample.host.cpu.total_s > 0
    assert sample.processes == ()
    assert sample.machine.gpus == ()
    assert sample.machine.label is None


def test_the_inventory_is_sent_when_it_is_new_and_only_then():
    bench = Bench(label="simulated: x")
    bench.nvml.answer.infos = (GpuInfo("GPU-0", 0, "RTX 3090", bus_id="0000:01:00.0"),)
    first, second = bench.sample(), bench.sample()
    assert first.machine.label == "simulated: x"
    assert first.machine.driver.version == "580.65.06"
    assert first.machine.gpus[0].pcie_width_card is None
    assert "pcie_width_card" in first.machine.gpus[0].absent  # no sysfs here, and it says so
    assert second.machine is None
    bench.nvml.answer.generation = 2
    assert bench.sample().machine is not None


def test_samples_are_numbered_and_know_how_late_they_are():
    bench = Bench(interval_s=2.0)
    assert [bench.sample().number for _ in range(3)] == [0, 1, 2]
    bench.now_s += 5.0
    sample = bench.source.sample(bench.now_s - 0.25)
    assert (sample.late_s, sample.interval_s) == (0.25, 2.0)


@pytest.mark.parametrize(("interval_s", "wait_s"), [(0.2, 0.08), (1.0, 0.4), (60.0, 0.4)])
def test_the_driver_is_waited_for_only_briefly(interval_s, wait_s):
    bench = Bench(interval_s=interval_s)
    bench.sample()
    assert bench.nvml.waits == [pytest.approx(wait_s)]


def test_a_driver_that_hangs_makes_no_further_tick_late():
    bench = Bench()
    bench.nvml.answer.gpus = (GpuReading("GPU-0", 0, 101.0),)
    for _ in range(4):
        bench.sample()
    bench.nvml.answer.gpus = (GpuReading("GPU-0", 0, 106.0), GpuReading("GPU-1", 1, 101.0))
    bench.sample()
    bench.sample()
    assert bench.nvml.waits == pytest.approx([0.4, 0.4, 0.05, 0.05, 0.05, 0.4])


@pytest.mark.parametrize(
    ("jump_s", "words"), [(3600.0, "forward by 3600 s"), (-3600.0, "back by 3600 s"), (3e9, "forward by")]
)
def test_b110_a_clock_that_was_set_is_an_event_once(jump_s, words):
    bench = Bench()
    assert bench.sample().events == ()
    assert bench.sample().events == ()
    jumped = bench.sample(wall_s=1.0 + jump_s)
    assert [event.kind for event in jumped.events] == ["clock-jump"]
    assert words in jumped.events[0].message
    assert jumped.events[0].time_s == jumped.monotonic_s
    assert bench.sample().events == ()


def test_a_time_daemon_at_work_is_no_jump():
    bench = Bench()
    assert all(bench.sample(wall_s=1.0005).events == () for _ in range(100))


def test_events_of_the_driver_are_passed_on():
    bench = Bench()
    event = Event(100.0, "gpu-lost", "GPU 1 was lost")
    bench.nvml.answer.events = (event,)
    assert bench.sample().events == (event,)


def test_what_it_opens_it_closes_the_driver_first():
    log = []

    @contextmanager
    def library():
        log.append("installed")
        yield
        log.append("removed")

    bench = Bench(holds=library())
    bench.nvml.log = log
    bench.source.close()
    bench.source.close()
    assert log == ["installed", "close", "removed"]


def test_opening_that_fails_leaves_nothing_open(monkeypatch):
    def refuse(tree, clock):
        raise OSError("no host")

    bench = Bench()
    bench.source.close()
    bench.nvml.log.clear()
    monkeypatch.setattr("gpuwatch.sources.joined.open_host", refuse)
    with pytest.raises(OSError, match="no host"):
        bench.source.open()
    assert bench.nvml.log == ["start", "close"]


def test_without_proc_processes_are_unknown_not_none(monkeypatch):
    monkeypatch.setattr("gpuwatch.sources.joined.open_host", lambda tree, clock: (_Info(), _Host()))
    bench = Bench(files={})
    sample = bench.sample()
    assert sample.processes is None
    assert bench.source.between() is None


class _Info:
    virtual_machine = None


class _Host:
    def read(self):
        return None


def test_with_long_intervals_the_driver_is_drained_every_five_seconds():
    bench = Bench(interval_s=60.0)
    bench.sample()
    pauses = []
    for _ in range(11):
        pauses.append(bench.source.between())
        bench.now_s += pauses[-1]
    assert pauses == [5.0] * 11
    assert bench.nvml.log == ["start", *["drain"] * 10]


def test_with_short_intervals_the_tick_drains():
    bench = Bench(interval_s=5.0)
    bench.sample()
    assert bench.source.between() is None


def test_own_cost_is_counted():
    cost = own_cost()
    assert isinstance(cost, OwnCost)
    assert cost.cpu_s > 0


def row(pid, role=ProcessRole.TRAINER, parent=1, trainer=None, user="ann"):
    key = trainer or ((pid, 1) if role is ProcessRole.TRAINER else None)
    return ProcessReading(pid, 1, parent, "python", "python", role, trainer=key, user=user)


def test_nothing_chosen_means_everything_is_judged():
    assert Selection().judged([row(5)]) is None


def test_a_process_or_its_launcher_chooses_trainers():
    rows = [row(5, parent=2), row(6, parent=2), row(7), row(8, ProcessRole.WORKER, parent=5)]
    assert Selection(pid=5).judged(rows) == {5}
    assert Selection(pid=2).judged(rows) == {5, 6}
    assert Selection(pid=99).judged(rows) == frozenset()


def test_a_user_chooses_trainers():
    rows = [row(5), row(6, user="bob"), row(7, ProcessRole.OTHER)]
    assert Selection(user="ann").judged(rows) == {5}
    assert Selection(pid=6, user="ann").judged(rows) == frozenset()


def on_gpu(points, *pids, gauge=None):
    processes = tuple(GpuProcess(pid, "C") for pid in pids)
    times = tuple(float(n) for n in range(len(points)))
    return GpuReading(
        "GPU-0", 0, 1.0, utilization_ratio=gauge, utilization_burst=Burst(times, points), processes=processes
    )


def test_threads_are_watched_where_a_gpu_idled_for_a_moment():
    rows = [row(5), row(6), row(8, ProcessRole.CHILD, trainer=(6, 1))]
    assert low_trainers([on_gpu((0.9, 0.1, 0.9), 5)], rows) == {(5, 1)}
    assert low_trainers([on_gpu((0.9, 0.8), 5)], rows) == set()
    assert low_trainers([on_gpu((), 5, gauge=0.2)], rows) == {(5, 1)}
    assert low_trainers([on_gpu((), 5)], rows) == set()
    assert low_trainers([on_gpu((0.1,), 8)], rows) == {(6, 1)}  # a child that holds the context
    assert low_trainers([on_gpu((0.1,), 77)], rows) == set()  # a pid of another namespace
