"""In a real tmux: what it does to a full-screen program beyond any other terminal."""

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
GUARD_S = 30.0


class Pane:
    """One tmux server of its own with one pane."""

    def __init__(self, width: int, height: int, command: str) -> None:
        self._socket = f"gpuwatch-{uuid.uuid4().hex[:8]}"
        size = ("-x", str(width), "-y", str(height))
        self("-f", "/dev/null", "new-session", "-d", "-s", "m", *size, f"{command}; exec cat")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout

    def text(self) -> str:
        return self("capture-pane", "-p", "-S", "-200", "-t", "m")

    def until(self, seen: Callable[[str], bool]) -> str:
        """Wait for the screen to show something; the limit is a guard, not a measure."""
        end_s = time.monotonic() + GUARD_S
        while time.monotonic() < end_s:
            text = self.text()
            if seen(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"not seen:\n{self.text()}")

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def pane() -> Iterator[Callable[[int, int], Pane]]:
    panes: list[Pane] = []

    def start(width: int, height: int) -> Pane:
        command = f"echo BEFORE; {sys.executable} -m gpuwatch demo starved; echo EXIT $?"
        panes.append(Pane(width, height, command))
        return panes[-1]

    yield start
    for one in panes:
        one.close()


def test_nothing_of_the_picture_stays_after_a_resize(pane: Callable[[int, int], Pane]) -> None:
    """tmux pushes lines of the alternate screen into the scrollback when it shrinks back on exit."""
    shown = pane(80, 24)
    shown.until(lambda text: "pcie" in text)
    shown("resize-window", "-t", "m", "-x", "200", "-y", "60")
    shown.until(lambda text: "findings" in text)
    shown("send-keys", "-t", "m", "q")
    text = shown.until(lambda text: "EXIT" in text)
    assert text.split() == ["BEFORE", "EXIT", "0"]


def test_small_and_large_again_and_again(pane: Callable[[int, int], Pane]) -> None:
    shown = pane(40, 12)
    shown.until(lambda text: "pcie" in text)
    for width, height in ((240, 70), (10, 3), (80, 24), (1, 1), (160, 50), (40, 12)):
        shown("resize-window", "-t", "m", "-x", str(width), "-y", str(height))
        time.sleep(0.1)
    text = shown.until(lambda text: "pcie" in text and "q quit" in text)
    assert max(map(len, text.splitlines())) <= 40
    shown("send-keys", "-t", "m", "C-c")
    assert shown.until(lambda text: "EXIT" in text).split() == ["BEFORE", "EXIT", "0"]
