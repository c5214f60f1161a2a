"""What a rule sees: one GPU, its job, the host, over the recent past.

Built by the engine once per GPU and tick. Everything is plain data or a read from history.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpuwatch.history import History
from gpuwatch.model import Event, GpuInfo, GpuReading, JobStatus, Machine, ProcessReading, Sample, Shape

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class GapCpu:
    """CPU of a thread or process while the GPU idles and while it works, in cores (diagnosis §3.4)."""

    gap_cores: float
    busy_cores: float
    sample_count: int
    error_cores: float  # standard error of gap_cores
    gap_wait_cores: float | None = None  # meanwhile runnable but without a core; on a crowded host


@dataclass(frozen=True, slots=True)
class JobView:
    """The training process on this GPU and what belongs to it, averaged over the last 15-60 s.

    None means "not known", with the reason in `absent` under the field's name.
    """

    trainer: ProcessReading
    workers: tuple[ProcessReading, ...]  # data loader workers, present now
    children: tuple[ProcessReading, ...]  # other descendants
    main_gap: GapCpu | None = None  # of the trainer's main thread
    workers_gap: GapCpu | None = None  # of all workers together
    main_cpu_cores: float | None = None  # mean, 30 s
    worker_cpu_cores: float | None = None  # median over workers of their mean, 15 s
    worker_blocked_ratio: float | None = None  # share of worker states that were D, 30 s
    tree_cpu_cores: float | None = None  # trainer and all descendants, mean, 30 s
    tree_wait_ratio: float | None = None  # run-queue wait share of the tree, 30 s
    usable_cores: float | None = None  # min(affinity, quota, online)
    free_cores: float | None = None  # usable cores minus everybody's use of the machine, 30 s, >= 0
    main_read_bytes_per_s: float | None = None  # read calls of the main process, 30 s
    tree_read_bytes_per_s: float | None = None
    pt_thread_names: bool = False  # PyTorch's thread names are visible in this job
    thread_workers: int = 0  # pt_thread_data_worker threads and other many-thread loaders
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """A pause of the GPU inside a steady job, 5 s or longer, and what the job did meanwhile."""

    start_s: float
    end_s: float | None = None  # None: still going on
    write_bytes_per_s: float | None = None  # of the whole job
    read_bytes_per_s: float | None = None  # read calls of the main process
    main_cpu_cores: float | None = None
    new_workers: bool = False  # other worker processes after it than before


@dataclass(frozen=True, slots=True)
class Turnover:
    """All data loader workers of the job were replaced by new ones at this moment."""

    time_s: float
    count: int  # workers after it
    gap_s: float  # GPU time lost around it, in seconds
    written_bytes: float | None = None  # by the trainer around it; None where that cannot be seen


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the job went at a moment: seconds per step as seen in the pulses, or bytes per s fed."""

    time_s: float
    period_s: float | None = None
    rx_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class References:
    """What was learned about this card in this session."""

    clock_mhz: float | None = None  # best SM clock under load without an event reason (p95, >= 120 s)
    clock_is_learned: bool = False  # False: 0.9 x max boost, one confidence step lower
    idle_power_w: float | None = None
    best_high_ratio: float | None = None  # best busy level of this job in 10 min


@dataclass(frozen=True, slots=True)
class Window:
    """`gpu` windows: `entity` is "gpu:<uuid>"; "host" windows have info, reading and job None."""

    history: History
    sample: Sample
    machine: Machine
    now_s: float
    entity: str
    info: GpuInfo | None = None
    reading: GpuReading | None = None
    status: JobStatus | None = None
    job: JobView | None = None
    shape: Shape | None = None  # last 60 s
    references: References = References()
    active: frozenset[str] = frozenset()  # rule ids active on this subject or on the host
    steady_s: float = 0.0  # how long the job has been STEADY, episodes included
    siblings: Sequence["Window"] = ()  # other GPUs of the same job
    ledger_idle_ratio: float | None = None
    peers_ratio: float | None = None  # share of the last minute spent spinning for other GPUs (F2)
    others: Sequence["Window"] = ()  # all other GPUs of the machine, siblings among them
    events: tuple[Event, ...] = ()  # of this GPU (host windows: of all), last 10 min, oldest first
    episodes: tuple[Episode, ...] = ()  # last 30 min of this job, oldest first
    turnovers: tuple[Turnover, ...] = ()  # likewise
    paces: tuple[Pace, ...] = ()  # one a minute of this job's steady time, last 2 h, oldest first
    by_pid: Mapping[int, ProcessReading] = field(default_factory=dict, repr=False)  # the sample's processes
    #: What was asked of history already in this tick; the host's is shared by all windows.
    memo: dict[tuple[str, str, float], Any] = field(default_factory=dict, repr=False, compare=False)
    host_memo: dict[tuple[str, str, float], Any] = field(default_factory=dict, repr=False, compare=False)

    def mean(self, key: str, seconds: float) -> float | None:
        return _kept(self.memo, self.history.mean, self.entity, key, seconds)

    def last(self, key: str, max_age_s: float = 5.0) -> float | None:
        return self.history.last(self.entity, key, max_age_s)

    def present(self, key: str, seconds: float) -> list[float]:
        """The values without the gaps, oldest first; shared by the rules of a tick, not to be changed."""
        return _kept(self.memo, self.history.present, self.entity, key, seconds)

    def host_mean(self, key: str, seconds: float) -> float | None:
        return _kept(self.host_memo, self.history.mean, "host:", key, seconds)

    def host_present(self, key: str, seconds: float) -> list[float]:
        return _kept(self.host_memo, self.history.present, "host:", key, seconds)

    def why_absent(self, key: str) -> str:
        """The signal's own reason, or a general one."""
        if self.reading is not None and key in self.reading.absent:
            return self.reading.absent[key]
        if self.job is not None and key in self.job.absent:
            return self.job.absent[key]
        return "no reading yet"


def _kept(
    memo: dict[tuple[str, str, float], Any],
    ask: Callable[[str, str, float], _T],
    entity: str,
    key: str,
    seconds: float,
) -> _T:
    """Ask once a tick: many rules look at the same means."""
    name = (ask.__name__, key, seconds)
    found: _T = memo.get(name, memo)
    if found is memo:
        found = memo[name] = ask(entity, key, seconds)
    return found
