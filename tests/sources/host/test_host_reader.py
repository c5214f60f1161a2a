import errno
from dataclasses import fields
from pathlib import Path

import pytest
from fake_tree import FakeClock, FakeTree

from gpuwatch.model import HostReading
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host import HostReader, has_proc, open_host, read_host_info
from gpuwatch.sources.tree import DiskTree

WORKSTATION = Path(__file__).parents[2] / "fixtures" / "host" / "workstation"


def captured() -> FakeTree:
    """The captured tree as a dictionary, so that a test can break one file of it."""
    files = {
        "/" + str(path.relative_to(WORKSTATION)): path.read_bytes()
        for path in WORKSTATION.rglob("*")
        if path.is_file()
    }
    return FakeTree(files, usage=(1000, 10))


def test_captured_tree_gives_every_field():
    reading = HostReader(DiskTree(str(WORKSTATION)), FakeClock(5.0).clock, page_bytes=4096).read()
    assert reading.absent == {"cpu_clock_mhz": "known after the first seconds"}
    assert reading.read_s == 5.0
    empty = [field.name for field in fields(HostReading) if getattr(reading, field.name) is None]
    assert empty == ["cpu_clock_mhz"]
    assert reading.cpu_throttle_count == 17
    assert reading.runnable_count == 2
    assert reading.load_1m == 0.52
    assert reading.memory_available_bytes == 20000000 * 1024
    assert reading.major_fault_count == 4321
    assert [disk.name for disk in reading.disks] == ["nvme0n1", "sda"]
    assert [(net.name, net.speed_bytes_per_s) for net in reading.networks] == [("eno1", 125e6)]


def test_inventory_of_the_captured_tree():
    info = read_host_info(DiskTree(str(WORKSTATION)))
    assert info.hostname == "box"
    assert info.cpu_model == "12th Gen Example(R) Core(TM) i7"
    assert (info.logical_cores, info.physical_cores, info.numa_nodes) == (4, 2, 1)
    assert info.memory_total_bytes == 32768000 * 1024
    assert (info.container, info.wsl, info.virtual_machine) == (None, False, False)
    assert [(disk.name, disk.kind) for disk in info.disks] == [("nvme0n1", "nvme"), ("sda", "hdd")]
    assert info.numa_cores == ((0, 1, 2, 3),)
    assert (info.cpu_governor, info.cpu_frequency_driver) == ("powersave", "intel_pstate")
    assert info.cpu_clock_max_mhz == 4900.0
    assert [module.size_bytes for module in info.memory_modules] == [16 << 30, 16 << 30]
    assert (info.memory_slot_count, info.memory_channel_count) == (4, 2)
    assert info.absent == {}


FILES = {
    "/proc/stat": "cpu",
    "/proc/meminfo": "memory_total_bytes",
    "/proc/vmstat": "swap_in_bytes",
    "/proc/loadavg": "load_1m",
    "/proc/pressure/cpu": "cpu_pressure_us",
    "/proc/pressure/io": "io_full_pressure_us",
    "/proc/diskstats": "disks",
    "/proc/net/dev": "networks",
}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "x"), PermissionError(13, "x"), OSError(errno.EIO, "x")]
)
def test_b073_each_file_fails_alone(path, error):
    tree = captured()
    tree.files[path] = error
    reading = HostReader(tree, FakeClock().clock).read()
    field = FILES[path]
    assert reading.absent[field]
    assert not getattr(reading, field)
    others = {name for file, name in FILES.items() if file != path}
    assert not others & reading.absent.keys()


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"cpu x y z\n"])
@pytest.mark.parametrize("path", FILES)
def test_damaged_files_never_raise_and_give_no_zero(path, content):
    tree = captured()
    tree.files[path] = content
    reading = HostReader(tree, FakeClock().clock).read()
    assert not getattr(reading, FILES[path])  # None or nothing in it, never a made-up figure
    assert reading.memory_total_bytes != 0


def test_nothing_readable_at_all_is_one_record_of_reasons():
    reading = HostReader(FakeTree(), FakeClock().clock).read()
    assert reading.cpu is None
    assert reading.absent["cpu_pressure_us"] == "pressure stall information is off in this kernel"
    assert reading.absent["shm_total_bytes"] == "/dev/shm does not exist here"


def test_b110_a_jump_of_the_wall_clock_leaves_the_reading_time_alone():
    clock = FakeClock(monotonic_s=50.0)
    reader = HostReader(captured(), clock.clock)
    clock.wall += 3.0e8
    assert reader.read().read_s == 50.0
    clock.now, clock.wall = 51.0, 0.0
    assert reader.read().read_s == 51.0


def test_b112_counters_that_ran_backwards_are_handed_on_as_read():
    tree = captured()
    reader = HostReader(tree, FakeClock().clock)
    before = reader.read()
    tree.files["/proc/stat"] = b"cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
    after = reader.read()
    assert before.cpu is not None
    assert after.cpu is not None
    assert after.cpu.total_s == pytest.approx(0.08)
    assert after.cpu.total_s < before.cpu.total_s


def test_no_proc_falls_back_to_psutil():
    info, reader = open_host(FakeTree(), Clock())
    reading = reader.read()
    assert info.memory_total_bytes == reading.memory_total_bytes
    assert reading.cpu is not None
    assert len(reading.core_ids) == len(reading.core_busy_s) > 0
    assert "only Linux" in reading.absent["io_pressure_us"]
    assert "process" in info.absent["processes"]


def test_proc_is_read_where_it_is():
    tree = captured()
    assert has_proc(tree)
    assert isinstance(open_host(tree, Clock())[1], HostReader)
