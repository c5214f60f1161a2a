"""The terminal to draw on: taken, measured, and put right by hand when nothing else can.

Knows nothing of Textual. A terminal is two things here: a descriptor to draw on, and the settings it
had before.
"""

import contextlib
import os
import sys
import tempfile
import termios
from typing import BinaryIO

#: What libraries printed meanwhile is kept up to this many bytes, and shown up to this many lines.
NOISE_LIMIT_BYTES = 1 << 20
NOISE_SHOWN_LINES = 20

#: Undoes everything that was switched on: synchronised output, mouse, paste, focus and size reports,
#: line wrap, keyboard protocol, alternate screen, hidden cursor, colours.
RESTORE = (
    "\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?2004l\x1b[?1004l"
    "\x1b[?2048l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m"
)


class Tty:
    """The terminal to draw on: a descriptor of its own, while 1 and 2 go elsewhere.

    A driver library or a C++ assertion that prints would otherwise write into the picture.
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self._tty = os.dup(1 if os.isatty(1) else 2)
        # The stream must never raise for a character the terminal's encoding lacks.
        self.file = open(  # noqa: SIM115 - open as long as the screen
            self._tty, "w", encoding=encoding, errors="replace", newline="", closefd=False
        )
        self._attributes = _attributes(self._tty)
        self._noise = _scratch_file()
        self._kept: dict[int, int] = {}

    def take(self) -> None:
        """From here on nothing but the picture reaches the terminal."""
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor in (1, 2):
            if os.isatty(descriptor):  # an error log of the user's own stays his
                self._kept[descriptor] = os.dup(descriptor)
                os.dup2(self._noise.fileno(), descriptor)

    def give_back(self) -> list[str]:
        """Undo `take`; returns the last lines that libraries printed meanwhile."""
        for descriptor, kept in self._kept.items():
            os.dup2(kept, descriptor)
            os.close(kept)
        self._kept.clear()
        size = os.fstat(self._noise.fileno()).st_size
        self._noise.seek(max(0, size - 8192))
        text = self._noise.read().decode("utf-8", "replace")
        return [line for line in text.splitlines() if line.strip()][-NOISE_SHOWN_LINES:]

    def size(self) -> tuple[int, int]:
        """(columns, rows), from the terminal itself: COLUMNS and LINES may be old."""
        try:
            width, height = os.get_terminal_size(self._tty)
        except OSError:
            return 80, 24
        return width or 80, height or 24  # a serial line may say 0 x 0

    def trim_noise(self) -> None:
        """Keep a library that prints without end from filling the disk."""
        if os.fstat(self._noise.fileno()).st_size > NOISE_LIMIT_BYTES:
            os.ftruncate(self._noise.fileno(), 0)
            os.lseek(self._noise.fileno(), 0, os.SEEK_SET)  # shared with descriptors 1 and 2

    def restore(self) -> None:
        """Put the terminal right by hand, without waiting for it. For the last resort only."""
        with contextlib.suppress(OSError, termios.error):
            if self._attributes is not None:
                termios.tcsetattr(self._tty, termios.TCSANOW, self._attributes)
            # A description of its own: not blocking must not become the shell's setting.
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
            descriptor = os.open(os.ttyname(self._tty), flags)
            os.write(descriptor, RESTORE.encode("ascii"))


def _attributes(descriptor: int) -> list[int | list[bytes | int]] | None:
    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None


def _scratch_file() -> BinaryIO:
    try:
        return tempfile.TemporaryFile("w+b", buffering=0)
    except OSError:  # no place to write: what libraries print is lost, the picture is not
        return open(os.devnull, "r+b", buffering=0)
