"""Where one GPU's last minute went: every moment booked once, the parts sum to exactly 1.

Booked tick by tick in whole nanoseconds, at burst resolution where the driver gives it, in this order:
unknown, waiting for peers, taken by others, slowed, busy, pause, waiting, idle. What the waiting was
for is decided when the ledger is drawn up, by the findings of that moment.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.metrics import (
    REASON_APP_CLOCKS,
    REASON_DISPLAY,
    REASON_POWER_CAP,
    REASON_SYNC_BOOST,
    REASONS_HARMFUL,
)
from gpuwatch.model import GpuReading, JobState, Layer, Ledger, LedgerKey, LedgerPart

WINDOW_S = 60.0
KEYS = tuple(LedgerKey)
#: Busy at almost no memory traffic: NCCL kernels spin while they wait for a late peer (nccl#968).
PEERS_UTILIZATION, PEERS_MEMORY = 0.90, 0.05
#: With one of these set a clock below the card's best is a loss; a lone power cap is normal.
SLOWING_REASONS = REASONS_HARMFUL | REASON_APP_CLOCKS | REASON_SYNC_BOOST | REASON_DISPLAY
#: Parts are multiples of this fraction, whose sums are exact in floating point.
_SCALE = 1 << 20

_UNKNOWN, _PEERS, _FOREIGN, _SLOWED, _BUSY, _PAUSE, _WAITING, _IDLE = range(len(KEYS))


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding that claims a part of the ledger: `coverage` of it (0..1)."""

    rule: str
    layer: Layer
    label: str
    coverage: float = 1.0


@dataclass(frozen=True, slots=True)
class Claims:
    """What other findings and the other GPUs say about the tick being booked."""

    peers: bool = False  # the job has other GPUs
    foreign_ratio: float = 0.0  # share of wall time that gpu-shared gives to others
    capped: bool = False  # a lowered power limit is a finding, so the cap slows


@dataclass(slots=True)
class _Entry:
    end_s: float
    amounts_ns: list[int]


@dataclass(slots=True)
class LedgerBook:
    """The bookings of one GPU's last minute."""

    _entries: deque[_Entry] = field(default_factory=deque)
    _totals_ns: list[int] = field(default_factory=lambda: [0] * len(KEYS))
    _paused_from_s: float | None = None
    _idle_state: JobState = JobState.NO_JOB  # in which idle time was booked last

    def restart(self) -> None:
        """A new job, or one that may now be judged: its ledger starts empty."""
        self._entries.clear()
        self._totals_ns = [0] * len(KEYS)
        self._paused_from_s = None

    def book_unknown(self, end_s: float, step_s: float) -> None:
        """Book `step_s` seconds up to `end_s` as not measured."""
        step_ns = round(step_s * 1e9)
        if step_ns > 0:
            amounts = [0] * len(KEYS)
            amounts[_UNKNOWN] = step_ns
            self._add(_Entry(end_s, amounts))

    def book(
        self,
        now: float,
        step_s: float,
        reading: GpuReading | None,
        utilization: float | None,
        memory_utilization: float | None,
        state: JobState,
        low_since_s: float | None,
        claims: Claims,
        best_clock_mhz: float | None,
    ) -> None:
        """Book the `step_s` seconds before `now`; `reading` None: nothing was measured.

        `utilization` is their mean, `low_since_s` the start of the present low stretch.
        """
        step_ns = round(step_s * 1e9)
        if step_ns <= 0:
            return
        amounts = [0] * len(KEYS)
        if reading is None or utilization is None:
            amounts[_UNKNOWN] = step_ns
        else:
            slow = _slow_part(reading, best_clock_mhz, claims.capped)
            busy, spinning = _busy_parts(reading, utilization, memory_utilization, claims.peers)
            busy_ns, peers_ns = round(busy * step_ns), round(spinning * step_ns)
            rest_ns = step_ns - busy_ns
            working_ns = busy_ns - peers_ns
            foreign_ns = min(working_ns, round(claims.foreign_ratio * step_ns))
            slowed_ns = round(slow * (working_ns - foreign_ns))
            amounts[_PEERS], amounts[_FOREIGN], amounts[_SLOWED] = peers_ns, foreign_ns, slowed_ns
            amounts[_BUSY] = working_ns - foreign_ns - slowed_ns
            rest_key = _rest_key(state)
            amounts[rest_key] += rest_ns
            if rest_key == _IDLE:
                self._idle_state = state
        self._add(_Entry(now, amounts))
        if state in (JobState.EPISODE, JobState.PAUSED) and low_since_s is not None:
            self._rebook_pause(low_since_s)
        else:
            self._paused_from_s = None
        self._forget(now - WINDOW_S)

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        for index, amount in enumerate(entry.amounts_ns):
            self._totals_ns[index] += amount

    def _forget(self, before_s: float) -> None:
        while self._entries and self._entries[0].end_s <= before_s:
            for index, amount in enumerate(self._entries.popleft().amounts_ns):
                self._totals_ns[index] -= amount

    def _rebook_pause(self, since_s: float) -> None:
        """A pause is known as one after seconds; what was booked as waiting since its start was pause."""
        if self._paused_from_s == since_s:
            return
        self._paused_from_s = since_s
        for entry in self._entries:
            if entry.end_s > since_s and entry.amounts_ns[_WAITING]:
                moved = entry.amounts_ns[_WAITING]
                entry.amounts_ns[_WAITING] = 0
                entry.amounts_ns[_PAUSE] += moved
                self._totals_ns[_WAITING] -= moved
                self._totals_ns[_PAUSE] += moved

    def ratio(self, key: LedgerKey) -> float:
        """Share of the window; 0 while nothing is booked."""
        total = sum(self._totals_ns)
        return self._totals_ns[KEYS.index(key)] / total if total else 0.0

    def waiting_ratio(self) -> float | None:
        """Share of the measured time spent waiting (pauses apart); None without a measured moment."""
        measured = sum(self._totals_ns) - self._totals_ns[_UNKNOWN]
        return self._totals_ns[_WAITING] / measured if measured else None

    def ledger(
        self,
        gpu: str,
        waiting: Sequence[Cause] = (),
        slowed: Cause | None = None,
        foreign: Cause | None = None,
        peers: Cause | None = None,
        pause: Cause | None = None,
    ) -> Ledger:
        """Draw it up. `waiting` causes claim the waiting in their order; the rest is "not proven"."""
        total = sum(self._totals_ns)
        if total == 0:
            return Ledger(gpu, 0.0, (LedgerPart(LedgerKey.UNKNOWN, 1.0, label="not measured yet"),))
        units = _whole_units(self._totals_ns, total)
        named = {_SLOWED: slowed, _FOREIGN: foreign, _PEERS: peers, _PAUSE: pause}
        parts: list[LedgerPart] = []
        for index, key in enumerate(KEYS):
            if not units[index]:
                continue
            if index == _WAITING:
                parts += _waiting_parts(units[index], waiting)
                continue
            cause = named.get(index)
            layer = cause.layer if cause else _LAYERS.get(key)
            label = cause.label if cause else self._label(index)
            parts.append(LedgerPart(key, units[index] / _SCALE, layer, cause.rule if cause else None, label))
        return Ledger(gpu, total * 1e-9, tuple(parts))

    def _label(self, index: int) -> str:
        if index == _IDLE:
            return _IDLE_LABELS.get(self._idle_state, "no job")
        return _LABELS.get(index, KEYS[index].value)


_LAYERS = {
    LedgerKey.WAITING_PEERS: Layer.CODE,
    LedgerKey.FOREIGN: Layer.ENVIRONMENT,
    LedgerKey.SLOWED: Layer.HARDWARE,
    LedgerKey.PAUSE: Layer.CODE,
}
_LABELS = {_UNKNOWN: "not measured", _SLOWED: "clock lowered"}
_IDLE_LABELS = {
    JobState.STARTING: "starting",
    JobState.WARMUP: "warming up",
    JobState.SERVING: "no requests",
}


def _rest_key(state: JobState) -> int:
    if state is JobState.STEADY:
        return _WAITING
    if state in (JobState.EPISODE, JobState.PAUSED):
        return _PAUSE
    return _IDLE


def _busy_parts(
    reading: GpuReading, utilization: float, memory_utilization: float | None, peers: bool
) -> tuple[float, float]:
    """(busy share, of it waiting for peers), from sub-second pairs where the stamps match."""
    busy = min(1.0, max(0.0, utilization))
    if not peers:
        return busy, 0.0
    points, memory = reading.utilization_burst, reading.memory_utilization_burst
    if points.values and points.times_s == memory.times_s:
        spinning = sum(
            value
            for value, accesses in zip(points.values, memory.values, strict=True)
            if value >= PEERS_UTILIZATION and accesses <= PEERS_MEMORY
        )
        return busy, min(busy, spinning / len(points.values))
    waits = (
        busy >= PEERS_UTILIZATION and memory_utilization is not None and memory_utilization <= PEERS_MEMORY
    )
    return busy, busy if waits else 0.0


def _slow_part(reading: GpuReading, best_clock_mhz: float | None, capped: bool) -> float:
    """How much slower than its own best the clock is, while a reason says that it is held back."""
    if best_clock_mhz is None or reading.sm_clock_mhz is None or reading.event_reasons is None:
        return 0.0
    slowing = SLOWING_REASONS | (REASON_POWER_CAP if capped else 0)
    if not reading.event_reasons & slowing:
        return 0.0
    return max(0.0, 1 - reading.sm_clock_mhz / best_clock_mhz)


def _whole_units(amounts: Sequence[int], total: int) -> list[int]:
    """`amounts` as whole units of 1/_SCALE that sum to _SCALE (largest remainder)."""
    units = [amount * _SCALE // total for amount in amounts]
    remainders = [amount * _SCALE % total for amount in amounts]
    missing = _SCALE - sum(units)
    for index in sorted(range(len(amounts)), key=lambda i: -remainders[i])[:missing]:
        units[index] += 1
    return units


def _waiting_parts(units: int, causes: Sequence[Cause]) -> list[LedgerPart]:
    parts, left = [], units
    for cause in causes:
        claimed = min(left, round(units * min(1.0, cause.coverage)))
        if claimed:
            parts.append(
                LedgerPart(LedgerKey.WAITING, claimed / _SCALE, cause.layer, cause.rule, cause.label)
            )
            left -= claimed
    if left:
        parts.append(LedgerPart(LedgerKey.WAITING, left / _SCALE, label="not proven"))
    return parts
