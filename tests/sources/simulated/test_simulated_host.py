"""The simulated host: its files agree with each other and with the scenario."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.sources.simulated import ManualClock, ScenarioError, load
from gpuwatch.sources.simulated.host import SimulatedTree

STARVED = (
    "gpus = rtx3090\nutil = square(0, 97, period=1.4, duty=0.36)\n[proc]\npid = 4242\nmem = 4Gi\n"
    "#host W = 0\n#host main.cpu = if(util < 50, 0.5, 1)\n#host main.read = 60M\n"
)
WORKERS = (
    "gpus = rtx4090\nutil = 50\n[proc]\npid = 4242\n#host W = 3\n#host w.cpu = 0.9\n#host main.cpu = 0.2\n"
    "#host others.cpu = 2.5\n"
)


class Host:
    def __init__(self, text: str) -> None:
        self.clock = ManualClock()
        self.tree = SimulatedTree(load(text), self.clock)

    def pids(self) -> list[int]:
        return [int(name) for name in self.tree.list("/proc") if name.isdigit()]

    def stat(self, pid: int) -> list[bytes]:
        return self.tree.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()

    def cpu_s(self, pid: int) -> float:
        words = self.stat(pid)
        return (int(words[11]) + int(words[12])) / 100

    def run_s(self, pid: int, tid: int | None = None) -> float:
        return int(self.tree.read(f"/proc/{pid}/task/{tid or pid}/schedstat").split()[0]) / 1e9

    def cores_busy_s(self) -> list[float]:
        lines = self.tree.read("/proc/stat").split(b"\n")
        rows = [line.split() for line in lines if line.startswith(b"cpu") and line[3:4] != b" "]
        return [(int(row[1]) + int(row[3])) / 100 for row in rows]

    def number(self, path: str, name: bytes) -> int:
        words = self.tree.read(path).split()
        return int(words[words.index(name) + 1])


@pytest.mark.parametrize(
    "text",
    [
        STARVED,
        WORKERS,
        WORKERS + "#host cores = 4\n",  # more is asked for than there is
        WORKERS + "#host mask = 2\n",
        WORKERS + "#host threads = 2\n",
        "gpus = 4 x h100\nutil = square(0, 90, 1.3, 0.5)\n#host W = 2\n#host w.cpu = util/100\n",
    ],
)
def test_the_time_of_the_cores_is_the_time_of_the_processes(text: str) -> None:
    host = Host(text)
    host.clock.advance(7.3)
    pids = host.pids()
    before = sum(map(host.cpu_s, pids)), host.cores_busy_s()
    host.clock.advance(20)
    used = sum(map(host.cpu_s, pids)) - before[0]
    per_core = [new - old for new, old in zip(host.cores_busy_s(), before[1], strict=True)]
    assert used > 1
    assert sum(per_core) == pytest.approx(used, abs=0.05 * len(per_core) + 0.05 * len(pids))
    assert max(per_core) <= 20.05


def test_too_many_for_the_cores_wait_for_each_other() -> None:
    host = Host(WORKERS + "#host cores = 4\n#host w.delay = 0\n")
    before = int(host.tree.read("/proc/pressure/cpu").split(b"total=")[1].split()[0])
    waited = [int(host.tree.read(f"/proc/{pid}/schedstat").split()[1]) for pid in host.pids() if pid > 4242]
    host.clock.advance(10)
    after = [int(host.tree.read(f"/proc/{pid}/schedstat").split()[1]) for pid in host.pids() if pid > 4242]
    assert all(new - old > 1e9 for new, old in zip(after, waited, strict=True))
    assert int(host.tree.read("/proc/pressure/cpu").split(b"total=")[1].split()[0]) - before > 5e6


def test_a_mask_holds_the_job_on_its_cores() -> None:
    host = Host("gpus = t4\nutil = 90\n[proc]\npid = 9\n#host W = 4\n#host w.cpu = 0.9\n#host mask = 2\n")
    before = host.cores_busy_s()
    host.clock.advance(10)
    used = [new - old for new, old in zip(host.cores_busy_s(), before, strict=True)]
    assert sum(used[:2]) == pytest.approx(20, abs=0.2)
    assert sum(used[2:]) < 0.2
    assert host.tree.affinity(9) == 2
    assert b"Cpus_allowed_list:\t0-1" in host.tree.read("/proc/9/status")


def test_cpu_follows_the_phases_of_the_gpu() -> None:
    host = Host(STARVED)
    host.clock.advance(14)  # ten whole periods: busy from now on for 0.504 s

    def cores(seconds: float) -> float:
        before = host.run_s(4242)
        host.clock.advance(seconds)
        return (host.run_s(4242) - before) / seconds

    assert cores(0.45) == pytest.approx(1.0, abs=0.05)
    host.clock.advance(0.1)
    assert cores(0.8) == pytest.approx(0.5, abs=0.05)
    host.clock.advance(0.05)
    assert cores(14) == pytest.approx(0.36 + 0.5 * 0.64, abs=0.02)


@given(st.lists(st.floats(0.01, 3), min_size=3, max_size=12))
@settings(max_examples=25)
def test_counters_do_not_depend_on_who_reads_when(steps: list[float]) -> None:
    often, once = Host(STARVED), Host(STARVED)
    seen = []
    for step in steps:
        often.clock.advance(step)
        seen.append((often.run_s(4242), often.cpu_s(4242), sum(often.cores_busy_s())))
    once.clock.advance(often.clock.wall_s() - once.clock.wall_s())
    assert (once.run_s(4242), once.cpu_s(4242), sum(once.cores_busy_s())) == pytest.approx(seen[-1], abs=0.02)
    assert all(all(b >= a for a, b in zip(old, new, strict=True)) for old, new in pairwise(seen))


def test_a_training_process_looks_like_one() -> None:
    host = Host(WORKERS)
    children = [int(word) for word in host.tree.read("/proc/4242/task/4242/children").split()]
    assert len(children) == 3
    for child in children:
        assert host.tree.read(f"/proc/{child}/comm") == b"pt_data_worker\n"
        assert host.tree.read(f"/proc/{child}/cmdline") == host.tree.read("/proc/4242/cmdline")
        assert int(host.stat(child)[1]) == 4242
    names = {
        host.tree.read(f"/proc/4242/task/{tid}/comm").strip() for tid in host.tree.list("/proc/4242/task")
    }
    assert {b"python", b"pt_data_pin", b"pt_autograd_0"} <= names
    maps = host.tree.read("/proc/4242/maps")
    assert b"libtorch_cuda.so" in maps
    assert b"/libcuda.so.580.95.05" in maps
    assert b"libcuda" not in host.tree.read(f"/proc/{children[0]}/maps")
    assert "/dev/nvidia0" in {host.tree.link(f"/proc/4242/fd/{fd}") for fd in host.tree.list("/proc/4242/fd")}


def test_no_workers_means_no_workers_and_old_torch_has_no_names() -> None:
    host = Host(STARVED)
    assert host.tree.read("/proc/4242/task/4242/children") == b""
    old = Host("gpus = t4\n[proc]\npid = 5\n#host W = 2\n#host names = off\n#host cmd = python3 a.py\n")
    children = old.tree.read("/proc/5/task/5/children").split()
    assert {old.tree.read(f"/proc/{int(pid)}/comm") for pid in children} == {b"python\n"}


def test_ranks_have_one_parent() -> None:
    host = Host("gpus = 4 x h100\nutil = 90\n#host W = 1\n")
    parents = {int(host.stat(pid)[1]) for pid in (4001, 4002, 4003, 4004)}
    assert len(parents) == 1
    assert host.tree.read(f"/proc/{parents.pop()}/comm") == b"pt_elastic\n"
    names = [host.tree.read(f"/proc/4001/task/{tid}/comm") for tid in host.tree.list("/proc/4001/task")]
    assert b"pt_nccl_watchdg\n" in names


def test_other_users_are_no_part_of_the_job() -> None:
    host = Host("gpus = t4\n[proc]\npid = 50\n[proc]\npid = 60\n#host user = alex\n")
    mine, other = host.stat(50), host.stat(60)
    for place in (1, 2, 3):  # parent, process group, session
        assert mine[place] != other[place]
    assert host.tree.read("/proc/50/cgroup") != host.tree.read("/proc/60/cgroup")


def test_ages_are_from_before_the_start() -> None:
    host = Host(STARVED + "#host age = 1800\n")
    uptime = float(host.tree.read("/proc/uptime").split()[0])
    assert uptime - int(host.stat(4242)[19]) / 100 == pytest.approx(1800)
    assert host.cpu_s(4242) == pytest.approx(1800 * 0.68, rel=0.1)


def test_processes_come_and_go() -> None:
    host = Host("gpus = t4\n[proc]\npid = 50\nstart = 10\nend = 20\n#host W = 1\n#host main.cpu = 1\n")
    with pytest.raises(FileNotFoundError):
        host.tree.read("/proc/50/stat")
    host.clock.advance(15)
    assert 50 in host.pids()
    assert host.run_s(50) == pytest.approx(5, abs=0.1)
    host.clock.advance(10)
    assert 50 not in host.pids()


def test_what_others_own_is_closed() -> None:
    host = Host("gpus = t4\n[proc]\npid = 50\n#host user = alex\n#host W = 0\n")
    for name in ("io", "maps", "environ"):
        with pytest.raises(PermissionError):
            host.tree.read(f"/proc/50/{name}")
    with pytest.raises(PermissionError):
        host.tree.list("/proc/50/fd")
    uid = host.tree.owner("/proc/50")
    assert f"alex:x:{uid}:".encode() in host.tree.read("/etc/passwd")
    assert host.tree.read("/proc/50/cgroup").startswith(b"0::/")


def test_reading_is_counted_and_the_disk_is_shared() -> None:
    host = Host(
        WORKERS + "#host disk.kind = hdd\n#host disk.read = 42M\n#host w.read = 20M\n#host psi.io = 61\n"
    )
    child = int(host.tree.read("/proc/4242/task/4242/children").split()[0])
    path = f"/proc/{child}/io"

    def reads() -> tuple[int, int, int, int]:
        sda = next(row.split() for row in host.tree.read("/proc/diskstats").split(b"\n") if b" sda " in row)
        pressure = int(host.tree.read("/proc/pressure/io").split(b"total=")[1].split()[0])
        return host.number(path, b"rchar:"), host.number(path, b"read_bytes:"), int(sda[5]) * 512, pressure

    before = reads()
    host.clock.advance(10)
    chars, device, disk, pressure = (new - old for new, old in zip(reads(), before, strict=True))
    assert chars == pytest.approx(200e6, rel=0.01)
    assert device == pytest.approx(140e6, rel=0.01)
    assert disk == pytest.approx(420e6, rel=0.01)
    assert pressure == pytest.approx(6.1e6, rel=0.01)
    assert host.tree.read("/sys/block/sda/queue/rotational") == b"1\n"
    assert b" /data " in host.tree.read("/proc/4242/mountinfo")


def test_blocked_workers_are_seen_waiting() -> None:
    host = Host(WORKERS + "#host w.state = D 60 %\n")
    child = int(host.tree.read("/proc/4242/task/4242/children").split()[0])
    states = []
    for _ in range(300):
        host.clock.advance(0.1)
        states.append(host.stat(child)[0])
    assert states.count(b"D") / 300 == pytest.approx(0.6, abs=0.1)


def test_quota_and_throttling() -> None:
    host = Host("gpus = t4\n[proc]\npid = 50\n#host cg.quota = 2.5\n#host cg.throttled = 40\n")
    group = host.tree.read("/proc/50/cgroup").decode().strip().removeprefix("0::")
    base = f"/sys/fs/cgroup{group}"
    assert host.tree.read(f"{base}/cpu.max") == b"250000 100000\n"
    before = [host.number(f"{base}/cpu.stat", name) for name in (b"nr_periods", b"nr_throttled")]
    host.clock.advance(100)
    after = [host.number(f"{base}/cpu.stat", name) for name in (b"nr_periods", b"nr_throttled")]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1000, 400]


def test_the_card_in_sysfs() -> None:
    host = Host("gpus = rtx3090\nutil = 90\npcie_width_max = 4\npcie_width = 4\n")
    card = host.tree.real("/sys/bus/pci/devices/0000:01:00.0")
    port = card.rpartition("/")[0]
    assert host.tree.read(f"{card}/max_link_width") == b"16\n"
    assert host.tree.read("/sys/bus/pci/devices/0000:01:00.0/current_link_width") == b"4\n"
    assert host.tree.read(f"{port}/max_link_width") == b"4\n"
    assert host.tree.read(f"{card}/max_link_speed") == b"16.0 GT/s PCIe\n"
    assert host.tree.read(f"{card}/power/runtime_status") == b"active\n"
    assert host.tree.list("/proc/driver/nvidia/gpus") == ["0000:01:00.0"]


def test_errors_are_those_of_a_file_system() -> None:
    tree = Host(STARVED).tree
    for path in ("/proc/99999/stat", "/proc/4242/nonsense", "/sys/nothing", "/proc/4242/task/1/stat"):
        with pytest.raises(FileNotFoundError) as raised:
            tree.read(path)
        assert raised.value.strerror
    with pytest.raises(IsADirectoryError):
        tree.read("/sys/block")
    with pytest.raises(OSError, match="Invalid argument"):
        tree.link("/proc/stat")
    with pytest.raises(FileNotFoundError):
        tree.list("/sys/nothing")


def test_pressure_information_can_be_off() -> None:
    tree = Host(STARVED + "#host psi = off\n").tree
    with pytest.raises(FileNotFoundError):
        tree.read("/proc/pressure/cpu")


def test_two_processes_with_one_pid_are_refused() -> None:
    with pytest.raises(ScenarioError, match="two processes with pid 901"):
        Host("gpus = t4\n[proc]\npid = 901\n")
