"""What several rules ask of the GPUs of one job, and of how they wait for each other."""

from collections.abc import Sequence
from statistics import median

from gpuwatch.diagnosis.rules.waiting import power_ratio
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import JobState

WINDOW_S = 60.0
ALONE = "the job runs on one GPU"
#: Findings of a card that explain why it is late.
OWN_REASONS = (
    "thermal-throttle",
    "hw-slowdown",
    "clock-sag-unexplained",
    "clocks-pinned",
    "power-limit-lowered",
    "pcie-width-reduced",
    "pcie-gen-reduced",
    "gpu-shared",
    "loader-in-main-process",
    "loader-too-few-workers",
    "loader-cpu-bound",
    "loader-disk-bound",
    "loader-network-bound",
)


def team(window: Window) -> tuple[Window, ...]:
    """All GPUs of the job, in the driver's order."""
    return tuple(sorted((window, *window.siblings), key=_index))


def _index(window: Window) -> int:
    return window.reading.index if window.reading is not None else -1


def all_steady(windows: Sequence[Window]) -> bool:
    return all(one.status is not None and one.status.state is JobState.STEADY for one in windows)


def name(window: Window) -> str:
    """ "GPU 5"."""
    return f"GPU {window.reading.index}" if window.reading is not None else "a GPU"


def uuid(window: Window) -> str:
    return window.entity.partition(":")[2]


def means(windows: Sequence[Window], key: str, seconds: float = WINDOW_S) -> list[float] | None:
    """Of each GPU; None where one is not known."""
    found = [window.mean(key, seconds) for window in windows]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def same_model(windows: Sequence[Window]) -> bool:
    names = {window.info.name for window in windows if window.info is not None}
    return len(names) == 1


def traffic_bytes_per_s(window: Window, seconds: float) -> float | None:
    """PCIe and NVLink traffic together, both ways; None where no link can be read."""
    keys = (
        "pcie_rx_bytes_per_s",
        "pcie_tx_bytes_per_s",
        "nvlink_rx_bytes_per_s",
        "nvlink_tx_bytes_per_s",
    )
    known = [value for key in keys if (value := window.mean(key, seconds)) is not None]
    return sum(known) if known else None


def power_share(window: Window) -> float | None:
    return power_ratio(window)


def own_reason(window: Window) -> str | None:
    """A finding of the card itself, or of its own rank, that makes it late."""
    return next((rule for rule in OWN_REASONS if rule in window.active), None)


def middle(values: Sequence[float]) -> float:
    return median(values)
