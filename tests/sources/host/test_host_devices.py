from fake_tree import FakeTree
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.host.disks import DiskReader, disk_info, list_disks
from gpuwatch.sources.host.networks import NetworkReader

DISKSTATS = b"""   7       0 loop0 9 0 9 9 0 0 0 0 0 9 9 0 0 0 0 0 0
 259       0 nvme0n1 31279 8039 2396458 10280 2605 14933 773136 2351 3 4180 12848 3481 28 69632 208 192 8
 259       1 nvme0n1p1 100 0 800 5 0 0 0 0 0 5 5
   8       0 sda 10 0 80 40 0 0 0 0 0 40 40
   9       0 md0 50 0 400 0 0 0 0 0 0 0 0
 253       0 dm-0 70 0 560 0 0 0 0 0 0 0 0
 251       0 zram0 5 0 40 0 0 0 0 0 0 0 0
  43       0 nbd0 0 0 0 0 0 0 0 0 0 0 0
junk line
   8      16 sdb x 0 80 40 0 0 0 0 0 40 40
"""
BLOCKS = {
    f"/sys/block/{name}/dev": b"1:1\n"
    for name in ("loop0", "nvme0n1", "sda", "sdb", "md0", "dm-0", "zram0", "nbd0", "nvme0c0n1")
}
STACK = {"/sys/block/md0/slaves/sda": b"", "/sys/block/dm-0/slaves/nvme0n1p1": b""}


def tree(**more):
    return FakeTree({"/proc/diskstats": DISKSTATS, **BLOCKS, **STACK, **more})


def test_only_leaves_of_the_stack_count():
    assert list_disks(tree()) == ("nbd0", "nvme0n1", "sda", "sdb")


def test_counters_of_whole_disks():
    disks = DiskReader(tree()).read(0.0)
    assert [disk.name for disk in disks] == ["nvme0n1", "sda"]  # sdb's line is broken, nbd0 unused
    disk = disks[0]
    assert (disk.reads, disk.writes) == (31279, 2605)
    assert (disk.read_bytes, disk.write_bytes) == (2396458 * 512, 773136 * 512)
    assert (disk.read_ms, disk.write_ms, disk.busy_ms, disk.queue_ms) == (10280, 2351, 4180, 12848)


def test_whole_disks_are_told_by_name_where_sysfs_is_missing():
    disks = DiskReader(FakeTree({"/proc/diskstats": DISKSTATS})).read(0.0)
    assert [disk.name for disk in disks] == ["nvme0n1", "sda"]


def test_a_disk_plugged_in_later_is_found():
    files = tree()
    reader = DiskReader(files)
    reader.read(0.0)
    files.files["/sys/block/sdc/dev"] = b"8:32\n"
    files.files["/proc/diskstats"] = DISKSTATS + b"   8      32 sdc 10 0 80 40 0 0 0 0 0 40 40\n"
    assert "sdc" not in {disk.name for disk in reader.read(10.0)}
    assert "sdc" in {disk.name for disk in reader.read(40.0)}


def test_kinds():
    files = tree(**{"/sys/block/sda/queue/rotational": b"1\n", "/sys/block/sdb/queue/rotational": b"0\n"})
    kinds = [disk_info(files, name, False).kind for name in ("nvme0n1", "sda", "sdb", "sdx", "vda")]
    assert kinds == ["nvme", "hdd", "ssd", "unknown", "virtual"]
    assert disk_info(files, "sda", True).kind == "virtual"  # rotational means nothing there


@given(st.binary(max_size=300))
def test_junk_in_diskstats_never_raises(data):
    DiskReader(FakeTree({"/proc/diskstats": data})).read(0.0)


NET = b"""Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo ...
    lo:    3193      29    0    0    0     0          0         0     3193      29    0 0 0 0 0 0
  eth0:59498850    1678    0    0    0     0          0         0   136819    1128    0 0 0 0 0 0
enp1s0f1: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0
veth12ab: 7 1 0 0 0 0 0 0 7 0 0 0 0 0 0 0
 bond0: 9 1 0 0 0 0 0 0 9 0 0 0 0 0 0 0
eth0.42: 9 1 0 0 0 0 0 0 9 0 0 0 0 0 0 0
docker0: 9 1 0 0 0 0 0 0 9 0 0 0 0 0 0 0
  eth1:       0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 eth2: x 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0
"""


def test_interfaces_at_the_bottom_of_the_stack_with_speed():
    files = FakeTree(
        {
            "/proc/net/dev": NET,
            "/sys/class/net/eth0/speed": b"10000\n",
            "/sys/class/net/enp1s0f1/speed": b"-1\n",
        }
    )
    eth0, other = NetworkReader(files).read(0.0)
    assert (eth0.name, eth0.rx_bytes, eth0.tx_bytes) == ("eth0", 59498850, 136819)
    assert eth0.speed_bytes_per_s == 1.25e9
    assert (other.name, other.speed_bytes_per_s) == ("enp1s0f1", None)


def test_speed_is_asked_for_now_and_then_only():
    files = FakeTree({"/proc/net/dev": NET})
    reader = NetworkReader(files)
    for second in range(20):
        reader.read(float(second))
    assert files.reads.count("/sys/class/net/eth0/speed") == 1
    reader.read(31.0)
    assert files.reads.count("/sys/class/net/eth0/speed") == 2


@given(st.binary(max_size=300))
def test_junk_in_net_dev_never_raises(data):
    NetworkReader(FakeTree({"/proc/net/dev": data})).read(0.0)
