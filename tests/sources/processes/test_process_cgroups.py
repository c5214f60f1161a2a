import pytest
from fake_tree import FakeTree

from gpuwatch.sources.processes.cgroups import CgroupReader
from gpuwatch.sources.processes.mounts import cgroup_mounts, unescape

V2 = b"35 23 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    b"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    b"33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    b"34 31 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
)
STAT = b"usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 7000\n"


def read(mountinfo, cgroup, **files):
    tree = FakeTree({"/proc/self/mountinfo": mountinfo, "/proc/7/cgroup": cgroup, **files})
    reader = CgroupReader(tree)
    return reader.read(reader.locate(7, 0.0), 0.0)


def test_version_2_walks_up_to_the_tightest_quota():
    base = "/sys/fs/cgroup/slurm/job1"
    reading = read(
        V2,
        b"0::/slurm/job1/step0\n",
        **{
            f"{base}/step0/cpu.max": b"max 100000\n",
            f"{base}/cpu.max": b"150000 100000\n",
            f"{base}/cpu.stat": STAT,
            "/sys/fs/cgroup/slurm/cpu.max": b"800000 100000\n",
            f"{base}/memory.max": b"1073741824\n",
            f"{base}/memory.current": b"1000\n",
            f"{base}/step0/memory.max": b"max\n",
        },
    )
    assert reading.path == "/slurm/job1"
    assert reading.quota_cores == 1.5
    assert (reading.periods, reading.throttled_periods, reading.throttled_us) == (100, 40, 7000)
    assert (reading.memory_limit_bytes, reading.memory_used_bytes) == (1073741824, 1000)


def test_container_sees_its_limits_at_the_mount():
    reading = read(
        V2, b"0::/\n", **{"/sys/fs/cgroup/cpu.max": b"20000 100000\n", "/sys/fs/cgroup/cpu.stat": STAT}
    )
    assert reading.quota_cores == 0.2
    assert reading.path == "/"


def test_no_quota_anywhere_is_none_not_zero():
    reading = read(V2, b"0::/user.slice\n")
    assert (reading.quota_cores, reading.periods, reading.memory_limit_bytes) == (None, None, None)
    assert reading.path == "/user.slice"


def test_version_1_counts_nanoseconds_and_knows_no_limit():
    reading = read(
        V1,
        b"5:freezer:/x\n4:memory:/job\n3:cpu,cpuacct:/job\n",
        **{
            "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": b"50000\n",
            "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": b"100000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": b"-1\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": b"100000\n",
            "/sys/fs/cgroup/cpu,cpuacct/job/cpu.stat": b"nr_periods 10\nnr_throttled 9\n"
            b"throttled_time 8000000\n",
            "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": b"9223372036854771712\n",
        },
    )
    assert reading.quota_cores == 0.5
    assert (reading.periods, reading.throttled_periods, reading.throttled_us) == (10, 9, 8000)
    assert reading.memory_limit_bytes is None


def test_hybrid_host_checks_both():
    reading = read(
        V1 + b"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        b"3:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/unit\n",
        **{
            "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": b"400000\n",
            "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": b"100000\n",
            "/sys/fs/cgroup/unified/unit/cpu.max": b"200000 100000\n",
        },
    )
    assert reading.quota_cores == 2.0
    assert reading.path == "/unit"


@pytest.mark.parametrize(
    ("root", "path", "directory"),
    [
        (b"/docker/ab", b"/docker/ab", "/sys/fs/cgroup"),
        (b"/docker/ab", b"/docker/ab/sub", "/sys/fs/cgroup/sub"),
        (b"/docker/ab", b"/docker/abc", "/sys/fs/cgroup"),  # another container's: only the top is ours
        (b"/", b"/../../other", "/sys/fs/cgroup"),
    ],
)
def test_paths_of_other_namespaces(root, path, directory):
    mount = b"35 23 0:30 %s /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" % root
    reading = read(mount, b"0::%s\n" % path, **{f"{directory}/cpu.max": b"100000 100000\n"})
    assert reading.quota_cores == 1.0


@pytest.mark.parametrize(
    "content", [b"", b"max\n", b"5\n", b"x y\n", b"100000 0\n", b"-1 100000\n", b"0 100000\n"]
)
def test_damaged_limits_are_no_limits(content):
    assert read(V2, b"0::/\n", **{"/sys/fs/cgroup/cpu.max": content}).quota_cores is None


def test_chain_is_looked_up_now_and_then_counters_every_tick():
    tree = FakeTree(
        {
            "/proc/self/mountinfo": V2,
            "/proc/7/cgroup": b"0::/\n",
            "/proc/8/cgroup": b"0::/\n",
            "/sys/fs/cgroup/cpu.max": b"100000 100000\n",
            "/sys/fs/cgroup/cpu.stat": STAT,
        }
    )
    reader = CgroupReader(tree)
    for second in range(10):
        for pid in (7, 8):
            reader.read(reader.locate(pid, float(second)), float(second))
    assert tree.reads.count("/sys/fs/cgroup/cpu.max") == 1
    assert tree.reads.count("/sys/fs/cgroup/cpu.stat") == 10
    tree.files["/sys/fs/cgroup/cpu.max"] = b"300000 100000\n"
    assert reader.read(reader.locate(7, 40.0), 40.0).quota_cores == 3.0


def test_octal_escapes_of_mount_points():
    assert unescape(rb"/mnt/my\040disk\011x") == b"/mnt/my disk\tx"
    line = rb"35 23 0:30 / /my\040cg rw - cgroup2 cgroup2 rw"
    assert cgroup_mounts(line)[0].point == "/my cg"
