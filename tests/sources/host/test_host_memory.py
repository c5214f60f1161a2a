import errno

import pytest
from fake_tree import FakeTree
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.host.memory import parse_meminfo, parse_vmstat, read_pressure, why_no_pressure

MEMINFO = b"""MemTotal:       24684084 kB
MemFree:        20503048 kB
MemAvailable:   24424776 kB
Buffers:             716 kB
Cached:           310380 kB
SwapCached:           12 kB
SwapTotal:       8388604 kB
SwapFree:        8388504 kB
"""


def test_meminfo_in_bytes():
    assert parse_meminfo(MEMINFO) == {
        "memory_total_bytes": 24684084 * 1024,
        "memory_available_bytes": 24424776 * 1024,
        "memory_cached_bytes": 310380 * 1024,  # not SwapCached
        "swap_total_bytes": 8388604 * 1024,
        "swap_used_bytes": 100 * 1024,
    }


def test_missing_line_is_missing_not_zero():
    assert "memory_available_bytes" not in parse_meminfo(b"MemTotal: 5 kB\n")


def test_more_free_than_total_swap_is_not_a_figure():
    assert "swap_used_bytes" not in parse_meminfo(b"SwapTotal: 5 kB\nSwapFree: 6 kB\n")


def test_vmstat_counts_pages_and_events():
    data = (
        b"nr_free_pages 1\npswpin 3\npswpout 4\npgmajfault 99\n"
        b"workingset_refault_anon 1\nworkingset_refault_file 7\noom_kill 2\n"
    )
    assert parse_vmstat(data, 65536) == {
        "swap_in_bytes": 3 * 65536,
        "swap_out_bytes": 4 * 65536,
        "major_fault_count": 99,
        "refault_count": 7,
        "oom_kill_count": 2,
    }


def test_vmstat_of_a_kernel_before_5_9():
    assert parse_vmstat(b"pgmajfault 1\nworkingset_refault 5\n", 4096)["refault_count"] == 5


@given(st.binary(max_size=300))
def test_junk_never_raises(data):
    assert all(value >= 0 for value in parse_meminfo(data).values())
    assert all(value >= 0 for value in parse_vmstat(data, 4096).values())


PRESSURE = b"""some avg10=0.00 avg60=0.12 avg300=0.02 total=2936978
full avg10=0.00 avg60=0.10 avg300=0.02 total=2821849
"""


def test_pressure_some_and_full():
    tree = FakeTree({"/proc/pressure/io": PRESSURE, "/proc/pressure/cpu": PRESSURE})
    assert read_pressure(tree, "io") == {"io_pressure_us": 2936978, "io_full_pressure_us": 2821849}
    assert read_pressure(tree, "cpu") == {"cpu_pressure_us": 2936978}


def test_pressure_without_full_line():
    tree = FakeTree({"/proc/pressure/io": b"some avg10=0.00 total=5\n"})
    assert read_pressure(tree, "io") == {"io_pressure_us": 5}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), "is off in this kernel"),
        (OSError(errno.EOPNOTSUPP, "Operation not supported"), "psi=1"),
        (PermissionError(errno.EACCES, "Permission denied"), "not allowed"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
    ],
)
def test_reasons_for_no_pressure(error, words):
    assert words in why_no_pressure(error)
