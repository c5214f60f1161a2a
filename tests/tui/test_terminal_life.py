"""The whole program in a pseudo-terminal: it leaves a clean terminal, whatever ends it.

Times are guards: on a quiet machine leaving takes 0.3 s, the promise is 0.5 s.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import Terminal, modes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

HERE = Path(__file__).parent
#: Wrapped lines and a shown cursor are all that may be on afterwards.
CLEAN = {7, 25}
#: What is allowed on a busy test machine.
LEAVES_IN_S = 3.0


@pytest.fixture
def demo() -> Iterator[Terminal]:
    terminal = start()
    yield terminal
    terminal.close()


def start(*options: str, **named: object) -> Terminal:
    argv = [sys.executable, "-m", "gpuwatch", "demo", "starved", *options]
    terminal = Terminal(argv, **named)  # type: ignore[arg-type] # handed on as they come
    terminal.until(b"live")
    return terminal


def assert_clean(terminal: Terminal) -> None:
    assert modes(terminal.stream) == CLEAN
    assert terminal.settings_restored()
    assert b"Traceback" not in terminal.stream


def assert_leaves(terminal: Terminal, status: int) -> None:
    began = time.monotonic()
    assert terminal.status() == status
    assert time.monotonic() - began < LEAVES_IN_S
    assert_clean(terminal)


def test_q_leaves_a_clean_terminal(demo: Terminal) -> None:
    assert modes(demo.stream) >= {1049, 1000, 1006}
    assert 1003 not in modes(demo.stream)  # any-motion reports cost CPU for each move
    assert b"\x1b]" not in demo.stream  # no title, no pointer shape: some terminals print them
    demo.send(b"q")
    assert_leaves(demo, 0)


def test_sigterm_leaves_a_clean_terminal(demo: Terminal) -> None:
    demo.signal(signal.SIGTERM)
    assert_leaves(demo, 143)


def test_a_hanging_driver_does_not_hold_q_back() -> None:
    terminal = Terminal([sys.executable, str(HERE / "hanging_program.py")])
    try:
        terminal.until(b"live")
        terminal.send(b"q")
        assert_leaves(terminal, 0)
        # What libraries print does not reach the picture; it is told afterwards.
        picture, _, rest = terminal.stream.partition(b"\x1b[?1049l")
        assert b"noise" not in picture
        assert b"noise on 1" in rest
        assert b"noise on 2" in rest
    finally:
        terminal.close()


@pytest.mark.slow
def test_a_lone_escape_is_a_key_and_a_sequence_is_not(demo: Terminal) -> None:
    demo.send(b"?")
    demo.until(b"Checks")
    mark = len(demo.stream)
    demo.send(b"\x1b[B\x1b[<0;5;5M\x1b[<0;5;5m")  # an arrow and a click leave the dialog open
    demo.send(b"\x1b")
    demo.until(b"simulated: starved", after=mark)
    demo.send(b"q")
    assert_leaves(demo, 0)


@pytest.mark.slow
def test_ctrl_c_leaves_a_clean_terminal(demo: Terminal) -> None:
    demo.send(b"\x03")
    assert_leaves(demo, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_other_signals_leave_a_clean_terminal(demo: Terminal, number: int, status: int) -> None:
    demo.signal(number)
    assert_leaves(demo, status)


@pytest.mark.slow
def test_suspend_and_come_back(demo: Terminal) -> None:
    demo.send(b"\x1a")
    demo.until(b"stopped")
    assert_clean(demo)
    mark = len(demo.stream)
    demo.send(b"fg\n")
    demo.until(b"simulated: starved", after=mark)
    assert 1049 in modes(demo.stream)
    demo.send(b"q")
    assert_leaves(demo, 0)


@pytest.mark.slow
def test_a_stop_from_outside_gives_the_terminal_back(demo: Terminal) -> None:
    demo.signal(signal.SIGTSTP)
    demo.until(b"stopped")
    assert_clean(demo)
    mark = len(demo.stream)
    demo.send(b"fg\n")
    demo.until(b"simulated: starved", after=mark)
    demo.send(b"q")
    assert_leaves(demo, 0)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
def test_stray_sigconts_have_no_effect(demo: Terminal) -> None:
    tasks = Path(f"/proc/{demo.pid()}/task")
    before = len(os.listdir(tasks))
    for _ in range(3):
        mark = len(demo.stream)
        demo.signal(signal.SIGCONT)
        demo.until(b"\x1b[", after=mark)  # a repaint later
    assert len(os.listdir(tasks)) == before
    demo.send(b"q")
    assert_leaves(demo, 0)


@pytest.mark.slow
@pytest.mark.parametrize("prelude", ["", "nohup"])
def test_a_vanished_terminal_ends_the_program(prelude: str) -> None:
    terminal = start(prelude=prelude)
    try:
        pid = terminal.pid()
        terminal.hang_up()
        deadline = time.monotonic() + LEAVES_IN_S
        while alive(pid):
            assert time.monotonic() < deadline, "still there without a terminal"
            time.sleep(0.02)
    finally:
        terminal.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.slow
def test_b085_a_storm_of_sizes_survives(demo: Terminal) -> None:
    dice = random.Random(85)
    for _ in range(150):
        demo.resize(dice.randint(1, 250), dice.randint(1, 80))
        demo.read(0.01)
    demo.resize(100, 30)
    demo.until(b"live", after=len(demo.stream))
    demo.send(b"q")
    assert_leaves(demo, 0)


@pytest.mark.slow
def test_no_color_sends_no_colour() -> None:
    terminal = start(environ={"NO_COLOR": "1"})
    terminal.send(b"?")
    terminal.until(b"Checks")
    terminal.send(b"q")
    terminal.until(b"live", after=len(terminal.stream))
    terminal.send(b"q")
    assert_leaves(terminal, 0)
    terminal.close()
    parameters = {p for sgr in sgr_codes(terminal.stream) for p in sgr.split(b";")}
    assert parameters <= {b"", b"0", b"1", b"7"}  # reset, bold, reverse


def sgr_codes(stream: bytes) -> list[bytes]:
    import re

    return re.findall(rb"\x1b\[([0-9;]*)m", stream)


@pytest.mark.slow
def test_a_latin1_terminal_gets_ascii_and_no_escapes_in_print() -> None:
    terminal = start(environ={"PYTHONIOENCODING": "iso-8859-1", "PYTHONUTF8": "0"})
    terminal.send(b"q")
    assert_leaves(terminal, 0)
    terminal.close()
    assert b"\\u25" not in terminal.stream
    assert terminal.stream.isascii()


@pytest.mark.slow
@pytest.mark.parametrize("term", ["screen", "linux", "vt100", "never-heard-of"])
def test_b082_terminals_of_all_sorts_draw(term: str) -> None:
    terminal = start(environ={"TERM": term})
    terminal.send(b"q")
    assert_leaves(terminal, 0)
    terminal.close()
    assert b"38;2;" not in terminal.stream
    assert b"38;5;" not in terminal.stream


def test_b083_a_dumb_terminal_gets_text_without_a_single_escape() -> None:
    argv = [sys.executable, "-m", "gpuwatch", "demo", "starved", "--after", "5"]
    terminal = Terminal(argv, environ={"TERM": "dumb"})
    try:
        assert terminal.status() == 0
        assert b"\x1b" not in terminal.stream
        assert terminal.settings_restored()
    finally:
        terminal.close()
