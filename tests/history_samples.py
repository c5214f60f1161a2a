"""Small samples for the tests of history and session: one GPU, a host, what a test adds."""

from collections.abc import Sequence
from typing import Any

from gpuwatch.history import History
from gpuwatch.model import (
    CpuTimes,
    DiskReading,
    GpuReading,
    HostReading,
    ProcessReading,
    ProcessRole,
    Sample,
)

GPU = "gpu:GPU-0"


def gpu(time_s: float, uuid: str = "GPU-0", **fields: Any) -> GpuReading:
    return GpuReading(uuid=uuid, index=0, read_s=time_s, **fields)


def process(pid: int, time_s: float, cores: float = 1.0, **fields: Any) -> ProcessReading:
    """A process that used `cores` since the start of time."""
    defaults: dict[str, Any] = {"cpu_ns": int(cores * time_s * 1e9), "state": "R"}
    return ProcessReading(pid, 7, 1, "python", "python", ProcessRole.OTHER, **(defaults | fields))


def host(time_s: float, busy: Sequence[float] = (0.5, 0.25), **fields: Any) -> HostReading:
    """A host whose cores were busy for these shares since the start of time."""
    used, total = sum(busy) * time_s, len(busy) * time_s
    return HostReading(
        read_s=time_s,
        cpu=CpuTimes(used, 0.0, total - used, 0.0, 0.0, total),
        core_busy_s=tuple(share * time_s for share in busy),
        core_total_s=(time_s,) * len(busy),
        core_ids=tuple(range(len(busy))),
        **fields,
    )


def disk(name: str, time_s: float) -> DiskReading:
    return DiskReading(name, 0, 0, int(1e6 * time_s), 0, 0, 0, int(100 * time_s), 0)


def sample(time_s: float, *gpus: GpuReading, **fields: Any) -> Sample:
    return Sample(0, time_s, time_s, 1.0, gpus=gpus, **fields)


def powers(*values: float | None, start_s: float = 1000.0) -> History:
    """A history of one GPU, a tick a second; None is a tick without it."""
    history = History()
    for second, value in enumerate(values):
        time_s = start_s + second
        readings = () if value is None else (gpu(time_s, power_w=value),)
        history.append(sample(time_s, *readings))
    return history
