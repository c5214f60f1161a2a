"""The one table of all series: key, label, unit, range, and how each is derived from raw readings.

Everything else (history, plots, exports, help) reads this table. A derivation gets the previous
reading of the same thing (None at first), the present one and the true seconds between them; it
returns None for "not known", which history keeps as a gap.
"""

from gpuwatch.metrics.gpu import GAP_RATIO, GPU_METRICS
from gpuwatch.metrics.host import DISK_METRICS, HOST_METRICS, NETWORK_METRICS, core_shares
from gpuwatch.metrics.kinds import Derivation, Field, Kind, Metric, Rate, Summary, rate, time_share
from gpuwatch.metrics.process import PROCESS_METRICS
from gpuwatch.metrics.reasons import (
    REASON_APP_CLOCKS,
    REASON_BITS,
    REASON_DISPLAY,
    REASON_HW_SLOWDOWN,
    REASON_HW_THERMAL,
    REASON_IDLE,
    REASON_POWER_BRAKE,
    REASON_POWER_CAP,
    REASON_SW_THERMAL,
    REASON_SYNC_BOOST,
    REASONS_HARMFUL,
    REASONS_NOT_IDLE,
)

__all__ = [
    "DISK_METRICS",
    "GAP_RATIO",
    "GPU_METRICS",
    "HOST_METRICS",
    "METRICS",
    "NETWORK_METRICS",
    "PROCESS_METRICS",
    "REASONS_HARMFUL",
    "REASONS_NOT_IDLE",
    "REASON_APP_CLOCKS",
    "REASON_BITS",
    "REASON_DISPLAY",
    "REASON_HW_SLOWDOWN",
    "REASON_HW_THERMAL",
    "REASON_IDLE",
    "REASON_POWER_BRAKE",
    "REASON_POWER_CAP",
    "REASON_SW_THERMAL",
    "REASON_SYNC_BOOST",
    "Derivation",
    "Field",
    "Kind",
    "Metric",
    "Rate",
    "Summary",
    "core_shares",
    "metric",
    "rate",
    "time_share",
]

#: By entity kind, the part of an entity's name before the colon ("gpu:GPU-…", "host:", "disk:sda").
METRICS: dict[str, tuple[Metric, ...]] = {
    "gpu": GPU_METRICS,
    "host": HOST_METRICS,
    "disk": DISK_METRICS,
    "net": NETWORK_METRICS,
    "process": PROCESS_METRICS,
}
_BY_KEY = {(kind, entry.key): entry for kind, entries in METRICS.items() for entry in entries}


def metric(entity_kind: str, key: str) -> Metric:
    """KeyError if there is no such metric."""
    try:
        return _BY_KEY[entity_kind, key]
    except KeyError:
        raise KeyError(f"no metric {key!r} of {entity_kind!r}") from None
