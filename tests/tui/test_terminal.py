"""The last resort and the modes, without a terminal. With one: test_terminal_life.py."""

import os
import threading

import pytest
from terminals import modes

from gpuwatch.tui import terminal
from gpuwatch.tui.terminal import Leaving
from gpuwatch.tui.tty import RESTORE


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.GRACE_S <= 0.4  # half a second is the promise, the terminal is restored within it
    monkeypatch.setattr(terminal, "GRACE_S", 0.05)


class Ends:
    """Stands for `os._exit`; remembers how the process would have ended."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.code: int | None = None
        self.ended = threading.Event()

    def restore(self) -> None:
        self.order.append("restore")

    def close(self) -> None:
        self.order.append("close")

    def end(self, code: int) -> None:
        self.order.append("end")
        self.code = code
        self.ended.set()


def leaving(ends: Ends, *closers: object) -> tuple[Leaving, int]:
    read, write = os.pipe()
    made = Leaving(ends.restore, closers, input_fd=read, end=ends.end)  # type: ignore[arg-type] # test doubles
    threading.Thread(target=made._watch, daemon=True).start()
    return made, write


def test_restore_switches_off_whatever_was_on() -> None:
    everything = "".join(f"\x1b[?{mode}h" for mode in (1000, 1002, 1003, 1006, 1015, 1016, 2004, 1004, 2048))
    stream = (everything + "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2026h" + RESTORE).encode()
    assert modes(stream) == {7, 25}


def test_what_does_not_leave_is_ended_after_closing_the_recording() -> None:
    ends = Ends()
    made, _write = leaving(ends, ends.close)
    made.begin(143)
    assert ends.ended.wait(10)
    assert ends.order == ["close", "restore", "end"]
    assert ends.code == 143


def test_an_orderly_leave_calls_the_last_resort_off() -> None:
    ends = Ends()
    made, _write = leaving(ends, ends.close)
    made.begin(0)
    assert made.finish() == 0
    assert not ends.ended.wait(0.2)
    assert ends.order == ["close"]


def test_the_first_wish_decides_the_status() -> None:
    ends = Ends()
    made, _write = leaving(ends)
    made.begin(143)
    made.begin(0)
    assert made.finish() == 143


def test_a_screen_that_failed_by_itself_is_a_failure() -> None:
    ends = Ends()
    made, _write = leaving(ends, ends.close)
    assert made.finish() == 1
    assert ends.order == ["close"]


def test_a_vanished_terminal_leaves_as_sighup_would() -> None:
    ends = Ends()
    _made, write = leaving(ends)
    os.close(write)  # the read end now reports a hang-up
    assert ends.ended.wait(10)
    assert ends.code == 129


def test_a_closer_that_hangs_does_not_hold_the_end_back() -> None:
    ends = Ends()
    made, _write = leaving(ends, threading.Event().wait)
    made.begin(0)
    assert ends.ended.wait(10)
    assert ends.order == ["restore", "end"]
