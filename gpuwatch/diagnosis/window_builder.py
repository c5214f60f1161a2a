"""Keeps what is known of each GPU between ticks and builds the window its rules see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwatch.diagnosis.episodes import EpisodeTracker
from gpuwatch.diagnosis.jobs import JobTracker, job_group
from gpuwatch.diagnosis.jobs_family import Family
from gpuwatch.diagnosis.jobs_view import job_view
from gpuwatch.diagnosis.ledger import Claims, LedgerBook
from gpuwatch.diagnosis.ledger_parts import NOBODY, Claimed
from gpuwatch.diagnosis.paces import PaceTracker
from gpuwatch.diagnosis.references import IDLE_UTILIZATION, ReferenceLearner
from gpuwatch.diagnosis.shape import shape_of
from gpuwatch.diagnosis.shape_series import utilization_series
from gpuwatch.diagnosis.turnovers import TurnoverTracker
from gpuwatch.diagnosis.window import JobView, References, Window
from gpuwatch.history import History
from gpuwatch.model import (
    Event,
    GpuInfo,
    GpuReading,
    GpuState,
    JobState,
    LedgerKey,
    Machine,
    ProcessReading,
    Sample,
    Shape,
    ShapeKind,
)

#: Readings older than this are stale: nothing starts or ends on them.
STALE_S = 5.0
#: A tick longer than this many intervals was not watched all the time.
LONGEST_TICK = 3.0
SHAPE_S = 60.0
#: Shapes and job views cost most, hence so seldom; and less often once a steady job moves alike.
MEASURE_EVERY_S, SETTLED_EVERY_S = 5.0, 10.0
SETTLED_S, SETTLED_SHAPES = 90.0, 3


_JUDGED = (JobState.STEADY, JobState.EPISODE)


@dataclass(slots=True)
class GpuMemory:
    """Everything remembered of one GPU."""

    uuid: str
    entity: str
    offset_s: float  # spreads the slow parts of several GPUs over the ticks
    tracker: JobTracker
    references: ReferenceLearner = field(default_factory=ReferenceLearner)
    learned: References = field(default_factory=References)
    ledger: LedgerBook = field(default_factory=LedgerBook)
    shape: Shape = field(default_factory=lambda: Shape(ShapeKind.UNKNOWN))
    job: JobView | None = None
    kin: Family = field(default_factory=Family)
    episodes: EpisodeTracker = field(default_factory=EpisodeTracker)
    paces: PaceTracker = field(default_factory=PaceTracker)
    turnovers: TurnoverTracker = field(default_factory=TurnoverTracker)
    group: tuple[object, ...] | None = None  # equal for the GPUs of one job
    frozen: str = ""  # why nothing may start or end: lost, stale
    new_job: bool = False
    _facts_due: bool = False  # the environment of the job's process was not read yet
    _measure_due_s: float = float("-inf")
    _alike: int = 0  # shapes of one class in a row
    _read_s: float = float("-inf")
    _tick_s: float | None = None

    def observe(
        self,
        history: History,
        sample: Sample,
        reading: GpuReading,
        info: GpuInfo | None,
        by_pid: Mapping[int, ProcessReading],
        claims: Claims,
        claimed: Claimed = NOBODY,
    ) -> None:
        """Take this tick's reading: job state, references, ledger."""
        now = sample.monotonic_s
        step = 0.0 if self._tick_s is None else now - self._tick_s
        self._tick_s = now
        fresh = reading.read_s > self._read_s
        self._read_s = max(self._read_s, reading.read_s)
        self.frozen = _why_frozen(reading, now, sample.interval_s)
        self.new_job = False
        utilization = None
        if fresh and not self.frozen:
            utilization = self._last(history, sample, "utilization_ratio")
            self._follow_job(sample, reading, utilization, by_pid)
            has_context = self.tracker.status.state is not JobState.NO_JOB
            idle = utilization is not None and utilization < IDLE_UTILIZATION
            power_w = self._last(history, sample, "power_w") if idle else None
            self.references.update(now, step, reading, utilization, power_w, has_context)
        self.learned = self.references.references(info)
        seen_s = min(step, LONGEST_TICK * sample.interval_s)
        self.ledger.book_unknown(now - seen_s, step - seen_s)
        self.ledger.book(
            now,
            seen_s,
            reading if utilization is not None else None,
            utilization,
            self._last(history, sample, "memory_utilization_ratio") if claims.peers else None,
            self.tracker.status.state,
            self.tracker.low_since_s,
            claims,
            self.learned.clock_mhz,
            claimed,
        )

    def _last(self, history: History, sample: Sample, key: str) -> float | None:
        """The series' point of this tick."""
        return history.last(self.entity, key, 0.9 * sample.interval_s)

    def _follow_job(
        self,
        sample: Sample,
        reading: GpuReading,
        utilization: float | None,
        by_pid: Mapping[int, ProcessReading],
    ) -> None:
        """Advance the job's state; start anew what belongs to one job."""
        before = self.tracker.status.state
        self.new_job = self.tracker.update(sample, reading, utilization, by_pid)
        if self.new_job or (self.tracker.status.state is JobState.STEADY and before not in _JUDGED):
            self.ledger.restart(self.new_job)
        process = None if self.tracker.trainer is None else self.tracker.trainer.process
        if process is None:
            self.group = None
        elif self.new_job or self.group is None or (self._facts_due and process.facts is not None):
            self.group = job_group(process)
            self._facts_due = process.facts is None
        if self.new_job:
            self.references.new_job()
            self.episodes.reset()
            self.paces.reset()
            self.turnovers.reset()
            self.job, self.shape = None, Shape(ShapeKind.UNKNOWN)
            self._measure_due_s = sample.monotonic_s + self.offset_s
            self._alike = 0

    def refresh(
        self, history: History, sample: Sample, machine: Machine, relatives: Sequence[ProcessReading]
    ) -> None:
        """Measure shape and job again when it is their turn. `relatives`: the trainer's descendants."""
        now = sample.monotonic_s
        trainer = self.tracker.trainer
        self.kin.update(now, relatives, None if trainer is None else trainer.key)
        state = self.tracker.status.state
        process = None if trainer is None else trainer.process
        if not self.frozen:
            self.turnovers.update(now, process, self.kin.present, history, self.entity)
            self.episodes.update(now, state, self.tracker.low_since_s, history, process, self.kin.recent)
        if self.frozen or now + 0.5 * sample.interval_s < self._measure_due_s:
            return
        before = self.shape.kind
        self.shape = self._measure(history, now)
        self._alike = self._alike + 1 if self.shape.kind is before else 1
        settled = self._alike >= SETTLED_SHAPES and self.tracker.steady_s >= SETTLED_S
        every_s = SETTLED_EVERY_S if settled else MEASURE_EVERY_S
        due = self._measure_due_s + every_s
        self._measure_due_s = due if due > now else now + every_s
        self.references.note_shape(now, self.shape)
        self.paces.update(now, state, self.tracker.steady_s, self.shape, history, self.entity)
        self.job = (
            None
            if trainer is None or trainer.process is None
            else job_view(history, sample, machine, self.entity, trainer.process, self.kin, self.shape)
        )

    def _measure(self, history: History, now: float) -> Shape:
        since = self.tracker.steady_since_s
        if since is None:
            since = self.tracker.job_s if self.tracker.trainer is not None else self.tracker.attached_s
        seconds = SHAPE_S if since is None else min(SHAPE_S, now - since)
        (times, values), buffered = utilization_series(history, self.uuid, seconds)
        return shape_of(times, values, buffered, self.references.best_high)

    def window(
        self,
        history: History,
        sample: Sample,
        machine: Machine,
        info: GpuInfo | None,
        reading: GpuReading,
        active: frozenset[str],
        events: tuple[Event, ...],
        siblings: Sequence[Window],
        others: Sequence[Window],
        by_pid: Mapping[int, ProcessReading],
        host_memo: dict[Any, Any],
    ) -> Window:
        """What the rules see of this GPU in this tick, and of those of its job and of the machine."""
        return Window(
            history=history,
            sample=sample,
            machine=machine,
            now_s=sample.monotonic_s,
            entity=self.entity,
            info=info,
            reading=reading,
            status=self.tracker.status,
            job=self.job,
            shape=self.shape,
            references=self.learned,
            active=active,
            steady_s=self.tracker.steady_s,
            siblings=siblings,
            others=others,
            by_pid=by_pid,
            ledger_idle_ratio=self.ledger.waiting_ratio(),
            peers_ratio=self.ledger.ratio(LedgerKey.WAITING_PEERS),
            events=tuple(event for event in events if event.gpu == self.uuid) if events else (),
            host_memo=host_memo,
            episodes=tuple(self.episodes.episodes),
            paces=tuple(self.paces.paces),
            turnovers=tuple(self.turnovers.turnovers),
        )


def _why_frozen(reading: GpuReading, now: float, interval_s: float) -> str:
    if reading.status.state is not GpuState.OK:
        return reading.status.message or f"the GPU is {reading.status.state.value}"
    age = now - reading.read_s
    if age > max(STALE_S, 2.5 * interval_s):
        return f"its data are {age:.0f} s old"
    return ""
