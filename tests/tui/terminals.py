"""A program in a pseudo-terminal, and what its stream leaves switched on. Standard library only."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: A guard against hanging, nothing is measured with it.
LIMIT_S = 20.0

_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_ON_AT_START = {7, 25}  # line wrap, cursor


def modes(stream: bytes) -> set[int]:
    """The private modes that are on after `stream`, beginning from a fresh terminal."""
    on = set(_ON_AT_START)
    for numbers, letter in _MODE.findall(stream):
        for number in map(int, numbers.split(b";")):
            on.add(number) if letter == b"h" else on.discard(number)
    return on


class Terminal:
    """`argv` in a terminal of its own, as the foreground job of a small stand-in for a shell."""

    def __init__(
        self,
        argv: list[str],
        *,
        environ: Mapping[str, str] | None = None,
        size: tuple[int, int] = (100, 30),
        prelude: str = "",
    ) -> None:
        self.master, slave = pty.openpty()
        self.resize(*size, signal_it=False)
        self.before = termios.tcgetattr(slave)
        self._slave = slave  # kept open, so that its settings can be read afterwards
        variables = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        variables.pop("NO_COLOR", None)
        variables.pop("COLORTERM", None)
        variables.update(environ or {})
        shell = [sys.executable, "-c", _SHELL, prelude, *argv]
        self.shell = subprocess.Popen(
            shell,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables,
            start_new_session=True,
            pass_fds=(),
        )
        self.stream = b""

    def read(self, wait_s: float = 0.1) -> bytes:
        """What came within `wait_s`."""
        ready, _, _ = select.select([self.master], [], [], wait_s)
        if not ready:
            return b""
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return b""
        self.stream += data
        return data

    def until(self, pattern: bytes, after: int = 0) -> None:
        """Read until `pattern` came, looking from byte `after` of the stream."""
        deadline = time.monotonic() + LIMIT_S
        while pattern not in self.stream[after:]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{pattern!r} never came: ...{self.stream[-2000:]!r}")
            self.read()

    def send(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def resize(self, width: int, height: int, *, signal_it: bool = True) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        if signal_it:
            self.signal(signal.SIGWINCH)

    def pid(self) -> int:
        """The program's own."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            found = re.search(rb"child=(\d+)\n?", self.stream)
            if found:
                return int(found[1])
            assert time.monotonic() < deadline, self.stream
            self.read()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid(), number)

    def status(self) -> int:
        """Wait for the program's end; its exit status, negative for a signal."""
        self.until(b"status=")
        self.until(b"\n", after=self.stream.rindex(b"status="))
        found = re.search(rb"status=(-?\d+)", self.stream)
        assert found
        return int(found[1])

    def settings_restored(self) -> bool:
        """Whether echo, line editing and the rest are as before."""
        return termios.tcgetattr(self._slave) == self.before

    def hang_up(self) -> None:
        """Close the terminal under the program."""
        os.close(self._slave)
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.kill()
        self.shell.wait()
        if self.master >= 0:
            os.close(self.master)
            os.close(self._slave)


#: Job control of a shell in a few lines: own process group, foreground, `fg` after each stop.
_SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
prelude, argv = sys.argv[1], sys.argv[2:]
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in prelude else signal.SIG_DFL)
    os.execv(argv[0], argv)
os.write(1, b"child=%d\\n" % child)
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    os.write(1, b"stopped\\n")
    sys.stdin.readline()
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
os.tcsetpgrp(0, os.getpgrp())
os.write(1, b"status=%d\\n" % os.waitstatus_to_exitcode(status))
"""
