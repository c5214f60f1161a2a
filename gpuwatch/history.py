"""Ring buffers of everything that was derived from samples: fixed memory, gaps stay gaps.

(contract; the body is being built)
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.model import Burst, ProcessKey, Sample, ThreadBurst


@dataclass(frozen=True, slots=True)
class Tier:
    """Coarser past of one series, oldest first; NaN where nothing was measured."""

    times_s: array
    low: array
    mean: array
    high: array


class History:
    """Series by (entity, key). Entities: "gpu:<uuid>", "host:", "disk:<name>", "net:<name>",
    "process:<pid>:<start_ticks>". Keys: gpuwatch.metrics. Times are monotonic seconds."""

    def __init__(self, interval_s: float = 1.0) -> None: ...

    now_s: float
    interval_s: float
    count: int  # samples appended so far

    def append(self, sample: Sample) -> None: ...

    def entities(self, kind: str) -> tuple[str, ...]: ...

    def times(self, seconds: float) -> array:
        """Tick times of the last `seconds`, oldest first."""
        ...

    def values(self, entity: str, key: str, seconds: float) -> array:
        """Aligned with times(seconds); NaN is a gap. An unknown series is all gaps."""
        ...

    def present(self, entity: str, key: str, seconds: float) -> list[float]:
        """The values without the gaps."""
        ...

    def last(self, entity: str, key: str, max_age_s: float = 5.0) -> float | None: ...

    def mean(self, entity: str, key: str, seconds: float) -> float | None: ...

    def maximum(self, entity: str, key: str, seconds: float) -> float | None: ...

    def minimum(self, entity: str, key: str, seconds: float) -> float | None: ...

    def cells(
        self, entity: str, key: str, count: int, ticks_per_cell: int = 1, back: int = 0
    ) -> list[float | None]:
        """`count` plot cells, newest last, `back` ticks before the newest; each summarised as the metric
        says. Cells are anchored to tick numbers so that a picture shifts and never shimmers. None is a gap."""
        ...

    def cell_ranges(
        self, entity: str, key: str, count: int, ticks_per_cell: int = 1, back: int = 0
    ) -> list[tuple[float, float] | None]:
        """Likewise (lowest, highest) of each cell."""
        ...

    def tier(self, entity: str, key: str, step_s: int) -> Tier: ...

    def burst(self, uuid: str, signal: str, seconds: float) -> Burst:
        """Sub-second points; signal is "utilization", "memory_utilization" or "power". 2 minutes are kept."""
        ...

    def thread_burst(self, process: ProcessKey, tid: int, seconds: float) -> ThreadBurst | None: ...

    def core_shares(self) -> Sequence[float | None]:
        """Busy share of each core in the newest tick, in core_ids order."""
        ...
