"""Builds /proc trees with processes."""

from fake_tree import FakeTree

UPTIME_S = 10_000.0


def stat_line(
    pid, name=b"python", parent=1, *, state=b"S", ticks=0, start=900_000, threads=1, flags=0, rss=100, core=3
):
    fields = [
        state,
        parent,
        pid,
        pid,
        0,
        -1,
        flags,
        11,
        0,
        7,
        0,
        ticks,
        0,
        0,
        0,
        20,
        0,
        threads,
        0,
        start,
        0,
        rss,
    ]
    words = b" ".join(word if isinstance(word, bytes) else b"%d" % word for word in fields)
    rest = b" 0" * 12 + b" 17 %d 0 0\n" % core  # fields 26 to 38, then the core
    return b"%d (%s) %s 18446744073709551615%s" % (pid, name, words, rest)


def io_file(read_chars=0, read_calls=0, read_bytes=0, write_bytes=0):
    return (
        b"rchar: %d\nwchar: 5\nsyscr: %d\nsyscw: 6\n"
        b"read_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n"
        % (read_chars, read_calls, read_bytes, write_bytes)
    )


class Machine(FakeTree):
    """A /proc with as many processes as `add` was called for."""

    def __init__(self, **options):
        super().__init__(
            {
                "/proc/uptime": b"%.2f 1.00\n" % UPTIME_S,
                "/proc/self/mountinfo": b"35 23 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n",
            },
            {"/proc/self/ns/pid": "pid:[4026531836]", "/proc/self": "999"},
            **options,
        )
        self.add(1, b"systemd", parent=0, start=1)
        self.files["/proc/1/task/1/children"] = b""

    def add(
        self, pid, name=b"python", parent=1, *, command=None, run=0, wait=0, uid=1000, listed=True, **stat
    ):
        """`listed`: the parent's children file names it at once."""
        base = f"/proc/{pid}"
        self.files[f"{base}/stat"] = stat_line(pid, name, parent, **stat)
        self.files[f"{base}/schedstat"] = b"%d %d 12\n" % (run, wait)
        self.files[f"{base}/cmdline"] = b"python\0train.py\0" if command is None else command
        self.files[f"{base}/status"] = b"Name:\tx\nUid:\t%d\t0\t0\t0\n" % uid
        self.files[f"{base}/cgroup"] = b"0::/\n"
        self.files[f"{base}/io"] = io_file()
        self.files[f"{base}/environ"] = b"PATH=/usr/bin\0"
        self.files[f"{base}/maps"] = b"7f05-7f06 rw-p 00000000 00:00 0 [heap]\n"
        self.files[f"{base}/task/{pid}/stat"] = self.files[f"{base}/stat"]
        children = f"/proc/{parent}/task/{parent}/children"
        if listed and children in self.files:
            known = self.files[children]
            if b"%d" % pid not in known.split():
                self.files[children] = known + b"%d " % pid
        self.files.setdefault(f"{base}/task/{pid}/children", b"")

    def thread(self, pid, tid, name, run=0, wait=0, state=b"S"):
        self.files[f"/proc/{pid}/task/{tid}/stat"] = stat_line(tid, name, 1, state=state)
        self.files[f"/proc/{pid}/task/{tid}/schedstat"] = b"%d %d 3\n" % (run, wait)

    def end(self, pid):
        for path in [path for path in self.files if path.startswith(f"/proc/{pid}/")]:
            del self.files[path]
