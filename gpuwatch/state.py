"""What views may see: one frozen object per tick. Built by the session, drawn by `views`."""

from dataclasses import dataclass, field

from gpuwatch.history import History
from gpuwatch.model import Diagnosis, Event, Machine, Sample


@dataclass(frozen=True, slots=True)
class State:
    """The newest of everything. `now_s` is the drawing moment (monotonic), to show ages.

    `history` is shared and only read by views. `machine` and `sample` are None before the first
    tick arrived ("reading GPUs ...").
    """

    history: History
    now_s: float
    tick: int = 0  # grows by one per sample; panels cache on it
    machine: Machine | None = None
    sample: Sample | None = None
    diagnosis: Diagnosis | None = None
    events: tuple[Event, ...] = ()  # newest last, the last 100
    recording: str | None = None  # "REC 2:10", None when off
    own_cpu_ratio: float | None = None  # of one core, last minute
    own_rss_bytes: int | None = None
    ignored: frozenset[str] = field(default_factory=frozenset)  # rule ids

    @property
    def age_s(self) -> float | None:
        """Seconds since the newest sample was taken."""
        return None if self.sample is None else max(0.0, self.now_s - self.sample.monotonic_s)
