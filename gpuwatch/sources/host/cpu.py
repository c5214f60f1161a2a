"""/proc/stat: time per core since boot."""

from dataclasses import dataclass

from gpuwatch.model import CpuTimes
from gpuwatch.sources.host.text import TICKS_PER_S, number_after

#: Columns that add up to all time: user nice system idle iowait irq softirq steal. The two that may
#: follow, guest and guest_nice, are inside user and nice already (filesystems/proc.rst).
_COLUMNS = 8
_IDLE, _IOWAIT = 3, 4


@dataclass(frozen=True, slots=True)
class CpuStat:
    """Counters in seconds since boot; `runnable_count` is of this moment."""

    cpu: CpuTimes
    core_ids: tuple[int, ...]
    core_busy_s: tuple[float, ...]
    core_total_s: tuple[float, ...]
    runnable_count: int | None


def parse_stat(data: bytes) -> CpuStat:
    """ValueError or IndexError if this is no /proc/stat.

    The table is split once and read by columns: 256 cores cost a third of what line by line costs.
    """
    end = data.find(b"\nintr")  # the interrupt line may be longer than all the rest
    words = (data if end < 0 else data[:end]).split()
    if not words or words[0] != b"cpu":
        raise ValueError("no cpu line")
    width = next((i for i in range(1, len(words)) if not words[i].isdigit()), len(words))
    if not words[width : width + 1] or not words[width].startswith(b"cpu"):
        words = words[:width]
    names = words[width::width]
    if width < 5 or len(words) % width or not all(name.startswith(b"cpu") for name in names):
        raise ValueError("cpu lines of different lengths")
    columns = [list(map(int, words[i::width])) for i in range(1, min(width, _COLUMNS + 1))]
    totals = list(map(sum, zip(*columns, strict=True)))
    idle = columns[_IDLE]
    iowait = columns[_IOWAIT] if len(columns) > _IOWAIT else [0] * len(totals)
    return CpuStat(
        cpu=_all_cores(columns, totals[0]),
        core_ids=tuple(int(name[3:]) for name in names),
        core_busy_s=tuple(
            (total - rest - wait) / TICKS_PER_S
            for total, rest, wait in zip(totals[1:], idle[1:], iowait[1:], strict=True)
        ),
        core_total_s=tuple(total / TICKS_PER_S for total in totals[1:]),
        runnable_count=number_after(data, b"\nprocs_running ", max(0, end)),
    )


def _all_cores(columns: list[list[int]], total: int) -> CpuTimes:
    first = [column[0] / TICKS_PER_S for column in columns]
    first += [0.0] * (_COLUMNS - len(first))
    user, nice, system, idle, iowait, irq, softirq, steal = first
    return CpuTimes(
        user_s=user + nice,
        system_s=system + irq + softirq,
        idle_s=idle,
        iowait_s=iowait,
        steal_s=steal,
        total_s=total / TICKS_PER_S,
    )
