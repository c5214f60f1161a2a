import pytest
from fake_machine import io_file, stat_line
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.processes.environment import ALLOWED, parse_environment
from gpuwatch.sources.processes.facts import next_look_s
from gpuwatch.sources.processes.libraries import (
    libraries_of_interest,
    mapped_names,
    mapped_paths,
    paths_of_interest,
)
from gpuwatch.sources.processes.mounts import cgroup_mounts, unescape
from gpuwatch.sources.processes.stat import (
    parse_brief,
    parse_command,
    parse_io,
    parse_schedstat,
    parse_stat,
    parse_uid,
)
from gpuwatch.sources.processes.storage import parse_places

REFUSALS = (ValueError, IndexError)


def test_stat_fields():
    stat = parse_stat(stat_line(42, b"pt_data_worker", 7, state=b"D", ticks=250, start=123, threads=3, rss=9))
    assert (stat.name, stat.state, stat.parent_pid) == ("pt_data_worker", "D", 7)
    assert (stat.cpu_ticks, stat.start_ticks, stat.thread_count, stat.rss_pages) == (250, 123, 3, 9)
    assert stat.major_faults == 7
    assert (stat.group_id, stat.session_id) == (42, 42)
    assert stat.last_core == 3
    assert not stat.kernel_thread


def test_a_stat_line_of_an_old_kernel_has_no_core():
    line = stat_line(42, b"python", 7)
    assert parse_stat(b" ".join(line.split()[:30])).last_core is None


def test_kernel_threads_are_told_by_their_flag():
    assert parse_stat(stat_line(2, b"kthreadd", 0, flags=0x208040)).kernel_thread


@given(st.binary(max_size=15), st.integers(1, 2**22), st.integers(0, 2**40))
def test_any_bytes_in_the_name(name, parent, ticks):
    line = stat_line(42, name, parent, ticks=ticks, start=77)
    stat = parse_stat(line)
    assert (stat.parent_pid, stat.cpu_ticks, stat.start_ticks) == (parent, ticks, 77)
    brief = parse_brief(line)
    assert (brief.parent_pid, brief.cpu_ticks, brief.start_ticks) == (parent, ticks, 77)
    stat.name.encode("utf-8")


@pytest.mark.parametrize("name", [b"a) S 1 (b", b") R 9 9 9", b"tmux: server", b"a\nb", b""])
def test_brackets_and_blanks_in_the_name(name):
    stat = parse_stat(stat_line(42, name, 7))
    assert (stat.parent_pid, stat.state) == (7, "S")


@given(st.binary(max_size=200))
def test_junk_is_refused_plainly(data):
    for parse in (parse_stat, parse_brief, parse_schedstat, parse_io):
        try:
            parse(data)
        except REFUSALS:
            continue
    parse_uid(data)
    parse_command(data).encode("utf-8")
    cgroup_mounts(data)
    libraries_of_interest(mapped_names(data))
    unescape(data)
    parse_places(data)
    try:
        assert parse_environment(data).keys() <= ALLOWED
    except ValueError:
        assert b"=" not in data


def test_io_and_schedstat():
    io = parse_io(io_file(read_chars=10, read_calls=2, read_bytes=4096, write_bytes=512))
    assert (io.read_chars, io.read_calls, io.read_bytes, io.write_bytes) == (10, 2, 4096, 512)
    assert parse_schedstat(b"929089 17 1\n") == (929089, 17)


def test_uid_is_the_real_one():
    assert parse_uid(b"Name:\tx\nUid:\t1001\t0\t0\t0\n") == 1001
    assert parse_uid(b"Name:\tUid:\n") is None


def test_b076_malformed_utf8_in_a_command_line():
    command = parse_command(b"python\0train.py\0--name=caf\xc3\0")
    assert command == "python train.py --name=caf\N{REPLACEMENT CHARACTER}"


def test_b077_command_lines_do_not_depend_on_the_locale():
    assert parse_command("python\0--out=größe/数据".encode()) == "python --out=größe/数据"


def test_control_characters_do_not_pass():
    assert "\x1b" not in parse_command(b"python\0\x1b]0;owned\x07\0")


def test_very_long_command_lines_are_cut():
    assert len(parse_command(b"x\0" * 100_000)) <= 2000


MAPS = b"""7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libtorch_cuda.so
7f01-7f02 r--p 00000000 08:01 12 /usr/lib/libtorch_cuda.so
7f02-7f03 r-xp 00000000 08:01 13 /opt/my env/libcudnn_engines_precompiled.so.9 (deleted)
7f03-7f04 r-xp 00000000 08:01 14 /usr/lib/PIL/_imaging.cpython-311-x86_64-linux-gnu.so
7f04-7f05 r-xp 00000000 08:01 15 /usr/lib/libc.so.6
7f05-7f06 rw-p 00000000 00:00 0 [heap]
7f06-7f07 rw-p 00000000 00:00 0
7f07-7f08 r--s 00000000 08:01 16 /data/libjpeg.arrow
"""


def test_libraries_of_interest():
    assert libraries_of_interest(mapped_names(MAPS)) == (
        "_imaging.cpython-311-x86_64-linux-gnu.so",
        "libcudnn_engines_precompiled.so.9",
        "libtorch_cuda.so",
    )


def test_two_copies_of_a_library_are_one_name_and_two_paths():
    maps = (
        b"7f00-7f01 r-xp 0 08:01 12 /opt/cuda/lib64/libcudnn.so.8.9.7\n"
        b"7f01-7f02 r-xp 0 08:01 13 /venv/nvidia/cudnn/lib/libcudnn.so.9\n"
        b"7f02-7f03 r-xp 0 08:01 14 /home/a/libcudnn.so.9 (deleted)\n"
        b"7f03-7f04 r-xp 0 08:01 15 /usr/lib/libc.so.6\n"
    )
    paths = mapped_paths(maps)
    assert libraries_of_interest(mapped_names(maps)) == ("libcudnn.so.8.9.7", "libcudnn.so.9")
    assert paths_of_interest(paths) == (
        "/opt/cuda/lib64/libcudnn.so.8.9.7",
        "/home/a/libcudnn.so.9",
        "/venv/nvidia/cudnn/lib/libcudnn.so.9",
    )


def test_facts_are_due_at_30_s_and_2_minutes_and_then_every_10():
    due, moments = 0.0, []
    for _ in range(4):
        due = next_look_s(0.0, due)
        moments.append(due)
    assert moments == [30.0, 120.0, 720.0, 1320.0]
    assert next_look_s(100.0, 131.5) == 220.0  # a late look does not shift the next
