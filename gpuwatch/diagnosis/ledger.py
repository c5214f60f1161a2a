"""Where one GPU's last minute went: every moment booked once, the parts sum to exactly 1.

Booked tick by tick in whole nanoseconds, at burst resolution where the driver gives it, in this order:
unknown, waiting for peers, taken by others, slowed, busy, pause, waiting, idle. What the waiting was
for is decided when the ledger is drawn up, by the findings of that moment.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.diagnosis.ledger_parts import KEYS, NOBODY, Booking, Claimed, drawn, slots
from gpuwatch.diagnosis.ledger_past import Past
from gpuwatch.metrics import (
    REASON_APP_CLOCKS,
    REASON_DISPLAY,
    REASON_POWER_CAP,
    REASON_SYNC_BOOST,
    REASONS_HARMFUL,
)
from gpuwatch.model import GpuReading, JobState, Ledger, LedgerKey

WINDOW_S = 60.0
#: Busy at almost no memory traffic: NCCL kernels spin while they wait for a late peer (nccl#968).
PEERS_UTILIZATION, PEERS_MEMORY = 0.90, 0.05
#: Less than this is within the rounding of memory utilization.
SHORT_WAITS_RATIO = 0.03
#: With one of these set a clock below the card's best is a loss; a lone power cap is normal.
SLOWING_REASONS = REASONS_HARMFUL | REASON_APP_CLOCKS | REASON_SYNC_BOOST | REASON_DISPLAY

_UNKNOWN, _PEERS, _FOREIGN, _SLOWED, _BUSY, _PAUSE, _WAITING, _IDLE = range(len(KEYS))


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
    state: JobState = JobState.NO_JOB
    accessing_ns: int | None = None  # of the time at work, that memory was accessed; None: not known


@dataclass(slots=True)
class LedgerBook:
    """The bookings of one GPU: its last minute tick by tick, and its past."""

    past: Past = field(default_factory=Past)
    _entries: deque[_Entry] = field(default_factory=deque)
    _totals_ns: list[int] = field(default_factory=lambda: [0] * len(KEYS))
    _accessed_ns: list[int] = field(default_factory=lambda: [0, 0])  # working, and of it accessing memory
    _paused_from_s: float | None = None
    _idle_state: JobState = JobState.NO_JOB  # in which idle time was booked last

    def restart(self, new_job: bool = True) -> None:
        """The last minute starts empty: a new job, or one that may now be judged."""
        if new_job:
            self.past.clear()
        else:
            for entry in self._entries:
                self.past.fold(entry.end_s, slots(entry.amounts_ns, entry.state, NOBODY))
        self._entries.clear()
        self._totals_ns = [0] * len(KEYS)
        self._accessed_ns = [0, 0]
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
        claimed: Claimed = NOBODY,
    ) -> None:
        """Book the `step_s` seconds before `now`; `reading` None: nothing was measured.

        `utilization` is their mean, `low_since_s` the start of the present low stretch. What leaves the
        last minute now goes to the past under the causes `claimed` at this moment: most need as long to
        be found.
        """
        step_ns = round(step_s * 1e9)
        if step_ns <= 0:
            return
        amounts, accessing_ns = [0] * len(KEYS), None
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
            if claims.peers and memory_utilization is not None:
                accessing_ns = min(working_ns, round(memory_utilization * step_ns))
            rest_key = _rest_key(state)
            amounts[rest_key] += rest_ns
            if rest_key == _IDLE:
                self._idle_state = state
        self._add(_Entry(now, amounts, state, accessing_ns))
        if state in (JobState.EPISODE, JobState.PAUSED) and low_since_s is not None:
            self._rebook_pause(low_since_s)
        else:
            self._paused_from_s = None
        self._forget(now - WINDOW_S, claimed)

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._count(entry, 1)

    def _forget(self, before_s: float, claimed: Claimed) -> None:
        while self._entries and self._entries[0].end_s <= before_s:
            entry = self._entries.popleft()
            self._count(entry, -1)
            working = (_working_ns(entry.amounts_ns), entry.accessing_ns or 0)
            amounts = entry.amounts_ns
            if entry.accessing_ns is not None:
                amounts = _with_short_waits(amounts, working, claimed.peer_memory_ratio)
            self.past.fold(entry.end_s, slots(amounts, entry.state, claimed))

    def _count(self, entry: _Entry, sign: int) -> None:
        for index, amount in enumerate(entry.amounts_ns):
            self._totals_ns[index] += sign * amount
        if entry.accessing_ns is not None:
            self._accessed_ns[0] += sign * _working_ns(entry.amounts_ns)
            self._accessed_ns[1] += sign * entry.accessing_ns

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

    def minute(self, claimed: Claimed = NOBODY) -> Booking:
        """Nanoseconds of the last minute, by whom they are booked to."""
        amounts = _with_short_waits(self._totals_ns, self._accessed_ns, claimed.peer_memory_ratio)
        return slots(amounts, self._idle_state, claimed)

    def ledger(self, gpu: str, claimed: Claimed = NOBODY) -> Ledger:
        """The last minute drawn up."""
        return drawn(gpu, self.minute(claimed))


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


def _working_ns(amounts_ns: Sequence[int]) -> int:
    return amounts_ns[_FOREIGN] + amounts_ns[_SLOWED] + amounts_ns[_BUSY]


def _with_short_waits(
    amounts_ns: list[int], accessed_ns: Sequence[int], peer_memory_ratio: float | None
) -> list[int]:
    """What is missing of the memory traffic of a peer that works all the time was spent spinning for it, in
    waits too short for the samples."""
    if peer_memory_ratio is None or peer_memory_ratio <= PEERS_MEMORY:
        return amounts_ns
    working_ns, accessing_ns = accessed_ns
    moved = min(amounts_ns[_BUSY], working_ns - round(accessing_ns / peer_memory_ratio))
    if moved < SHORT_WAITS_RATIO * working_ns:
        return amounts_ns
    amounts = list(amounts_ns)
    amounts[_BUSY] -= moved
    amounts[_PEERS] += moved
    return amounts


def _slow_part(reading: GpuReading, best_clock_mhz: float | None, capped: bool) -> float:
    """How much slower than its own best the clock is, while a reason says that it is held back."""
    if best_clock_mhz is None or reading.sm_clock_mhz is None or reading.event_reasons is None:
        return 0.0
    slowing = SLOWING_REASONS | (REASON_POWER_CAP if capped else 0)
    if not reading.event_reasons & slowing:
        return 0.0
    return max(0.0, 1 - reading.sm_clock_mhz / best_clock_mhz)
