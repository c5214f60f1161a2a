import os
import subprocess
import sys

import pytest

from gpuwatch.sources.tree import DiskTree, repeated


def tree_with(tmp_path, **files):
    for name, content in files.items():
        path = tmp_path / "proc" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return DiskTree(str(tmp_path))


def test_a_file_that_stays_open_is_read_afresh(tmp_path):
    tree = tree_with(tmp_path, uptime=b"1.0 1.0\n")
    assert tree.again("/proc/uptime") == b"1.0 1.0\n"
    (tmp_path / "proc" / "uptime").write_bytes(b"2.0 2.0\n")
    assert tree.again("/proc/uptime") == b"2.0 2.0\n"


def test_missing_files_raise_as_read_does(tmp_path):
    tree = DiskTree(str(tmp_path))
    for read in (tree.read, tree.again):
        with pytest.raises(FileNotFoundError):
            read("/proc/stat")


def test_open_files_are_bounded_and_closed_with_the_tree(tmp_path):
    def count():
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    tree = tree_with(tmp_path, **{str(i): b"%d" % i for i in range(600)})
    before = count()
    assert [tree.again(f"/proc/{i}") for i in range(600)] == [b"%d" % i for i in range(600)]
    assert count() - before <= 384
    assert tree.again("/proc/3") == b"3"  # closed meanwhile
    del tree
    assert count() == before


def test_an_ended_process_does_not_answer_through_its_open_file():
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("needs /proc")
    tree = DiskTree()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = f"/proc/{child.pid}/stat"
    assert tree.again(path).startswith(b"%d " % child.pid)
    child.kill()
    child.communicate()
    with pytest.raises((FileNotFoundError, ProcessLookupError)):
        tree.again(path)


def test_trees_without_open_files_are_read_plainly():
    class Plain:
        def read(self, path):
            return path.encode()

    assert repeated(Plain())("/proc/stat") == b"/proc/stat"


def test_long_files_are_read_whole(tmp_path):
    content = b"cpu  1 2 3\n" * 20_000
    assert tree_with(tmp_path, stat=content).read("/proc/stat") == content
