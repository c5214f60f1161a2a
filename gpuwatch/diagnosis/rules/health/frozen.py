"""Readings that stand still to the last digit: a driver or a card that hangs and looks healthy."""

from gpuwatch.diagnosis.window import Window
from gpuwatch.model import GpuReading, JobState

FROZEN_S, FIRST_LOOK_S = 120.0, 10.0
#: These move on any card that works, at least one of them. A card at rest may stand still.
MOVING = ("power_w", "sm_clock_mhz", "temperature_c", "utilization_ratio", "memory_utilization_ratio")
WORKS = 0.05
LEAST_KNOWN = 3
#: Power from an energy counter carries the error of the clock; that of a card that works varies far more.
STILL_PART = 2e-4


def is_frozen(window: Window, gpu: GpuReading) -> bool:
    """Whether every reading of a working card has been the same for two minutes. `window`: the host's."""
    history, entity = window.history, f"gpu:{gpu.uuid}"
    if not _still(history.present(entity, MOVING[0], FIRST_LOOK_S)):
        return False  # nearly always, at little cost
    known = 0
    for key in MOVING:
        values = history.present(entity, key, FROZEN_S)
        if not values:
            continue
        if len(values) * window.sample.interval_s < 0.95 * FROZEN_S or not _still(values):
            return False
        if key == "utilization_ratio" and values[0] < WORKS:
            return False
        known += 1
    own = next((one for one in window.others if one.entity == entity), None)
    if own is None or own.status is None:
        return False
    return known >= LEAST_KNOWN and own.status.state not in (JobState.NO_JOB, JobState.STARTING)


def _still(values: list[float]) -> bool:
    return bool(values) and max(values) - min(values) <= STILL_PART * max(values)
