"""Parsers for the small files of one process or thread."""

from typing import NamedTuple

from gpuwatch.clean import decode

#: Process flag of kernel threads (include/linux/sched.h, PF_KTHREAD).
_KERNEL_THREAD = 0x00200000


class Stat(NamedTuple):
    """/proc/PID/stat, the fields in use. Times in ticks of 10 ms, rss in pages."""

    name: str
    state: str
    parent_pid: int
    group_id: int
    session_id: int
    kernel_thread: bool
    major_faults: int
    cpu_ticks: int  # user and system, all threads, without waited-for children
    thread_count: int
    start_ticks: int
    rss_pages: int
    last_core: int | None  # of the main thread

    @property
    def gone(self) -> bool:
        """A zombie has no memory, libraries or threads any more; only its parent has not noticed."""
        return self.state in "ZX"


def parse_stat(data: bytes) -> Stat:
    """ValueError or IndexError if this is no stat line.

    The name stands in brackets and may hold anything, brackets and newlines included: what counts is
    the last closing one.
    """
    opening, closing = data.index(b"("), data.rindex(b")")
    words = data[closing + 1 :].split()
    state = words[0].decode("ascii", "replace")
    return Stat(
        name=decode(data[opening + 1 : closing]),
        state=state if len(state) == 1 and state.isalpha() else "?",
        parent_pid=int(words[1]),
        group_id=int(words[2]),
        session_id=int(words[3]),
        kernel_thread=bool(int(words[6]) & _KERNEL_THREAD),
        major_faults=int(words[9]),
        cpu_ticks=int(words[11]) + int(words[12]),
        thread_count=int(words[17]),
        start_ticks=int(words[19]),
        rss_pages=int(words[21]),
        last_core=int(words[36]) if len(words) > 36 else None,
    )


class Brief(NamedTuple):
    """What the round over all processes needs of a stat line."""

    name: bytes
    parent_pid: int
    kernel_thread: bool
    cpu_ticks: int
    start_ticks: int


def parse_brief(data: bytes) -> Brief:
    """The cheap part of `parse_stat`, with the same errors."""
    closing = data.rindex(b")")
    words = data[closing + 1 :].split(None, 20)
    return Brief(
        name=data[data.index(b"(") + 1 : closing],
        parent_pid=int(words[1]),
        kernel_thread=bool(int(words[6]) & _KERNEL_THREAD),
        cpu_ticks=int(words[11]) + int(words[12]),
        start_ticks=int(words[19]),
    )


def parse_schedstat(data: bytes) -> tuple[int, int]:
    """(on a core, waiting for one) in nanoseconds since the thread's start. ValueError, IndexError."""
    words = data.split(None, 2)
    return int(words[0]), int(words[1])


class Io(NamedTuple):
    """/proc/PID/io, counters since the process' start."""

    read_chars: int
    read_calls: int
    read_bytes: int
    write_bytes: int


#: Line names at their places; the kernel has written these lines in this order since 2.6.20.
_IO_LINES = ((b"rchar:", 1), (b"syscr:", 5), (b"read_bytes:", 9), (b"write_bytes:", 11))


def parse_io(data: bytes) -> Io:
    """ValueError or IndexError if this is not that file."""
    words = data.split()
    if any(words[place - 1] != name for name, place in _IO_LINES):
        raise ValueError("lines in another order")
    return Io(int(words[1]), int(words[5]), int(words[9]), int(words[11]))


def parse_uid(status: bytes) -> int | None:
    """The real user id from /proc/PID/status."""
    at = status.find(b"\nUid:")
    words = status[at + 5 : at + 80].split(None, 1) if at >= 0 else []
    return int(words[0]) if words and words[0].isdigit() else None


#: Longer command lines are cut: nobody reads them, and recordings keep them.
_LONGEST_COMMAND = 2000


def parse_command(cmdline: bytes) -> str:
    """Arguments joined by blanks; undecodable bytes and control characters become visible marks."""
    cut = cmdline[:_LONGEST_COMMAND].rstrip(b"\0 ")
    return " ".join(decode(word) for word in cut.split(b"\0"))
