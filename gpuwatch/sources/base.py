"""What every source of samples is, and the clock it reads."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpuwatch.model import Sample


def _local_offset_s(wall_s: float) -> float:
    return float(time.localtime(wall_s).tm_gmtoff)


@dataclass(frozen=True, slots=True)
class Clock:
    """The only way a source learns the time, so that tests and simulations can bring their own."""

    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time
    #: Local time minus UTC at a moment (unix seconds).
    utc_offset_s: Callable[[float], float] = _local_offset_s


class Source(Protocol):
    """Where samples come from: live, simulated, a recording, a log. Used from one thread only.

    `open` and `sample` never raise for anything the machine does: what goes wrong is data in the
    sample (`DriverStatus`, `GpuStatus`, `absent`).
    """

    def open(self) -> None: ...

    def sample(self, deadline_s: float) -> Sample:
        """Take one tick. `deadline_s` is the monotonic time it was due."""
        ...

    def between(self) -> float | None:
        """Do a little sub-second work; the seconds until the next such moment, None for never."""
        ...

    def close(self) -> None:
        """Give everything back. May block when the driver hangs; never called by the screen."""
        ...
