import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.host.cpu import parse_stat

STAT = b"""cpu  300 10 60 5000 40 5 6 7 3 0
cpu0 200 10 40 2400 10 5 2 4 3 0
cpu2 100 0 20 2600 30 0 4 3 0 0
intr 123456 0 9 0 0
ctxt 271244
btime 1764559999
processes 8000
procs_running 3
procs_blocked 1
softirq 5 1 1 1 1 1
"""


def test_all_cores_in_seconds():
    cpu = parse_stat(STAT).cpu
    assert cpu.user_s == pytest.approx(3.10)  # nice is inside, guest is not added again
    assert cpu.system_s == pytest.approx(0.71)
    assert cpu.idle_s == pytest.approx(50.0)
    assert cpu.iowait_s == pytest.approx(0.40)
    assert cpu.steal_s == pytest.approx(0.07)
    assert cpu.total_s == pytest.approx(54.28)


def test_offline_core_is_left_out_and_ids_stay():
    stat = parse_stat(STAT)
    assert stat.core_ids == (0, 2)
    assert stat.core_busy_s == pytest.approx((2.61, 1.27))
    assert stat.core_total_s == pytest.approx((26.71, 27.57))


def test_runnable_is_found_behind_the_interrupts():
    assert parse_stat(STAT).runnable_count == 3


def test_short_table_of_an_old_kernel():
    stat = parse_stat(b"cpu  1 2 3 4\ncpu0 1 2 3 4\n")
    assert stat.core_total_s == (0.10,)
    assert stat.cpu.iowait_s == 0.0
    assert stat.runnable_count is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"cpu",
        b"ctxt 5\n",
        b"cpu  1 2 3 4 5\ncpu0 1 2 3\n",
        b"cpu  1 2 3 4 5\ncpu0 1 2 x 4 5\n",
    ],
)
def test_what_is_no_stat_is_refused(data):
    with pytest.raises((ValueError, IndexError)):
        parse_stat(data)


@given(st.binary(max_size=400))
def test_any_bytes_give_a_reading_or_a_plain_refusal(data):
    try:
        stat = parse_stat(data)
    except (ValueError, IndexError):
        return
    assert len(stat.core_ids) == len(stat.core_busy_s) == len(stat.core_total_s)


@given(
    st.lists(st.lists(st.integers(0, 10**12), min_size=10, max_size=10), min_size=1, max_size=300),
)
def test_columns_equal_a_reading_line_by_line(cores):
    lines = [b"cpu  " + b" ".join(b"%d" % sum(column) for column in zip(*cores, strict=True))]
    lines += [b"cpu%d " % i + b" ".join(b"%d" % n for n in core) for i, core in enumerate(cores)]
    stat = parse_stat(b"\n".join(lines) + b"\nintr 5 0\nprocs_running 2\n")
    for core, busy, total in zip(cores, stat.core_busy_s, stat.core_total_s, strict=True):
        assert total == pytest.approx(sum(core[:8]) / 100)
        assert busy == pytest.approx((sum(core[:3]) + sum(core[5:8])) / 100)
    assert stat.core_ids == tuple(range(len(cores)))
