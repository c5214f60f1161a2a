"""R61 and R62: a card that is gone, and a monitor that cannot see enough."""

from collections.abc import Iterator

from gpuwatch.diagnosis.interface import Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.health.frozen import FROZEN_S, is_frozen
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import (
    Confidence,
    DriverState,
    Evidence,
    GpuReading,
    GpuState,
    Severity,
)

#: Telemetry: own limits.
SLOW_POLL_S, OLD_S, FAILING_RATIO = 2.0, 5.0, 0.20
#: Samples may be this many intervals old before they count as old.
OLD_INTERVALS = 2.5
#: GPUs that exist but cannot be read now. A sleeping one is no trouble, a lost one has its own rule.
_UNREADABLE = frozenset({GpuState.NOT_ANSWERING, GpuState.HIDDEN, GpuState.NO_HANDLE, GpuState.ERROR})
#: What nothing can be judged without.
_VITAL = "utilization_ratio"


def gpu_lost(window: Window, active: bool) -> Outcome:
    """R61: the driver says that the card is lost, or that it needs a reset."""
    reading = window.reading
    if reading is None or reading.status.state is not GpuState.LOST:
        return Clear()
    status = reading.status
    gpus = window.sample.gpus
    together = len(gpus) > 1 and all(gpu.status.state is GpuState.LOST for gpu in gpus)
    evidence = [
        Evidence("status", "the driver says", status.message or "the GPU is lost"),
        Evidence("lost_s", "since", max(0.0, window.now_s - status.since_s), "s"),
        *_last_good(window),
    ]
    if status.code is not None:
        evidence.append(Evidence("code", "driver's code", float(status.code)))
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=tuple(evidence),
        severity=Severity.CRITICAL,
        variant="all" if together else "",
        parameters={"index": float(reading.index), "message": status.message, "advice": status.advice},
    )


def _last_good(window: Window) -> Iterator[Evidence]:
    for key, label, unit in (
        ("temperature_c", "last temperature", "°C"),
        ("power_w", "last power", "W"),
        ("utilization_ratio", "last utilization", "ratio"),
    ):
        value = window.last(key, 300.0)
        if value is not None:
            yield Evidence(key, label, value, unit, "", None, key)


def telemetry_degraded(window: Window, active: bool) -> Outcome:
    """R62: sampling is slow, figures are old, calls fail, or utilization cannot be read at all."""
    sample = window.sample
    if sample.driver.state is not DriverState.OK:
        return Clear()
    problems: list[tuple[str, str | None]] = []
    if sample.duration_s > SLOW_POLL_S:
        problems.append((f"one round of reading takes {sample.duration_s:.1f} s", None))
    for gpu in sample.gpus:
        problem = _problem(gpu, window)
        if problem:
            problems.append((problem, gpu.uuid))
    if not problems:
        return Clear()
    sentences = [problem for problem, _ in problems]
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=tuple(Evidence(f"problem_{i}", "cannot see", text) for i, text in enumerate(sentences)),
        severity=Severity.STATE,
        gpus=tuple(uuid for _, uuid in problems if uuid is not None),
        parameters={f"problem_{i}": text for i, text in enumerate(sentences)},
    )


def _problem(gpu: GpuReading, window: Window) -> str:
    name = f"GPU {gpu.index}"
    state = gpu.status.state
    if state in (GpuState.LOST, GpuState.ASLEEP):
        return ""
    if state in _UNREADABLE:
        return f"{name}: {gpu.status.message or state.value}"
    age = window.now_s - gpu.read_s
    if age > max(OLD_S, OLD_INTERVALS * window.sample.interval_s):
        return f"{name}: its figures are {age:.0f} s old"
    if gpu.calls and gpu.failed_calls > FAILING_RATIO * gpu.calls:
        return f"{name}: {gpu.failed_calls} of {gpu.calls} driver calls fail"
    if gpu.utilization_ratio is None and not gpu.utilization_burst.values and _VITAL in gpu.absent:
        return f"{name}: utilization cannot be read ({gpu.absent[_VITAL]})"
    if is_frozen(window, gpu):
        return f"{name}: every figure has stood still for {FROZEN_S / 60:.0f} min; it may hang"
    return ""
