"""The dashboard on a source whose third sample never comes: a driver call that hangs, outside Python.

Besides, something in C prints while the screen is on.
"""

import ctypes
import os
import sys
import time

from gpuwatch.model import Sample
from gpuwatch.sampler import Sampler
from gpuwatch.session import Session


class Hanging:
    """Two samples, then a call into C that does not return."""

    def __init__(self) -> None:
        self._taken = 0

    def open(self) -> None:
        pass

    def sample(self, deadline_s: float) -> Sample:
        self._taken += 1
        if self._taken > 2:
            ctypes.CDLL(None).sleep(1000)
        return Sample(self._taken, time.monotonic(), time.time(), 0.2)

    def between(self) -> float | None:
        return None

    def close(self) -> None:
        ctypes.CDLL(None).sleep(1000)


def main() -> int:
    sampler = Sampler(Hanging(), interval_s=0.2)
    sampler.start()
    from gpuwatch.tui.app import run_app

    session = Session(interval_s=0.2)
    session.observe(lambda _sample, _diagnosis: noise())
    return run_app(session, sampler)


def noise() -> None:
    os.write(1, b"noise on 1\n")
    os.write(2, b"noise on 2\n")


if __name__ == "__main__":
    sys.exit(main())
