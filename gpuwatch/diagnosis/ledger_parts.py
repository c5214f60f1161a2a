"""From booked nanoseconds to a ledger: who claims what, and parts that sum to exactly 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.model import JobState, Layer, Ledger, LedgerKey, LedgerPart

KEYS = tuple(LedgerKey)
#: Parts are multiples of this fraction, whose sums are exact in floating point.
SCALE = 1 << 20

_LAYERS = {
    LedgerKey.WAITING_PEERS: Layer.CODE,
    LedgerKey.FOREIGN: Layer.ENVIRONMENT,
    LedgerKey.SLOWED: Layer.HARDWARE,
    LedgerKey.PAUSE: Layer.CODE,
}
_LABELS = {LedgerKey.UNKNOWN: "not measured", LedgerKey.SLOWED: "clock lowered"}
_IDLE_LABELS = {
    JobState.STARTING: "starting",
    JobState.WARMUP: "warming up",
    JobState.SERVING: "no requests",
}
NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding that claims a part of the ledger: `coverage` of it (0..1)."""

    rule: str
    layer: Layer
    label: str
    coverage: float = 1.0


@dataclass(frozen=True, slots=True)
class Claimed:
    """Which finding claims which part. `waiting` causes claim in their order; the rest is not proven."""

    waiting: tuple[Cause, ...] = ()
    slowed: Cause | None = None
    foreign: Cause | None = None
    peers: Cause | None = None
    pause: Cause | None = None

    @property
    def waiting_coverage(self) -> float:
        """How much of the waiting is explained (0..1)."""
        return min(1.0, sum(cause.coverage for cause in self.waiting))


NOBODY = Claimed()


@dataclass(frozen=True, slots=True)
class Slot:
    """To whom time is booked."""

    key: LedgerKey
    layer: Layer | None = None
    cause: str | None = None
    label: str = ""


#: Nanoseconds by slot.
Booking = Mapping[Slot, int]


def slots(amounts_ns: Sequence[int], idle_state: JobState, claimed: Claimed) -> dict[Slot, int]:
    """`amounts_ns` in the order of LedgerKey, split among the causes that claim them."""
    named = {
        LedgerKey.SLOWED: claimed.slowed,
        LedgerKey.FOREIGN: claimed.foreign,
        LedgerKey.WAITING_PEERS: claimed.peers,
        LedgerKey.PAUSE: claimed.pause,
    }
    found: dict[Slot, int] = {}
    for key, amount in zip(KEYS, amounts_ns, strict=True):
        if not amount:
            continue
        if key is LedgerKey.WAITING:
            _split(amount, claimed.waiting, found)
            continue
        cause = named.get(key)
        if cause is not None:
            slot = Slot(key, cause.layer, cause.rule, cause.label)
        elif key is LedgerKey.IDLE:
            slot = Slot(key, None, None, _IDLE_LABELS.get(idle_state, "no job"))
        else:
            slot = Slot(key, _LAYERS.get(key), None, _LABELS.get(key, key.value))
        found[slot] = found.get(slot, 0) + amount
    return found


def _split(amount: int, causes: Sequence[Cause], found: dict[Slot, int]) -> None:
    left = amount
    for cause in causes:
        part = min(left, round(amount * min(1.0, cause.coverage)))
        if part:
            slot = Slot(LedgerKey.WAITING, cause.layer, cause.rule, cause.label)
            found[slot] = found.get(slot, 0) + part
            left -= part
    if left:
        slot = Slot(LedgerKey.WAITING, label=NOT_PROVEN)
        found[slot] = found.get(slot, 0) + left


def added(*bookings: Booking) -> dict[Slot, int]:
    """The sum of several: spans of one GPU, or the GPUs of one job."""
    total: dict[Slot, int] = {}
    for booking in bookings:
        for slot, amount in booking.items():
            total[slot] = total.get(slot, 0) + amount
    return total


def drawn(subject: str, booking: Booking, members: int = 1) -> Ledger:
    """A ledger whose parts sum to exactly 1; `window_s` is the time of one of `members` equal GPUs."""
    total = sum(booking.values())
    if total == 0:
        return Ledger(subject, 0.0, (LedgerPart(LedgerKey.UNKNOWN, 1.0, label="not measured yet"),))
    order = sorted(booking, key=_place)
    units = _whole_units([booking[slot] for slot in order], total)
    parts = tuple(
        LedgerPart(slot.key, unit / SCALE, slot.layer, slot.cause, slot.label)
        for slot, unit in zip(order, units, strict=True)
        if unit
    )
    return Ledger(subject, total * 1e-9 / members, parts)


def _place(slot: Slot) -> tuple[int, bool]:
    """In booking order; waiting that nobody claims stands behind its causes."""
    return KEYS.index(slot.key), slot.cause is None


def _whole_units(amounts: Sequence[int], total: int) -> list[int]:
    """`amounts` as whole units of 1/SCALE that sum to SCALE (largest remainder)."""
    units = [amount * SCALE // total for amount in amounts]
    remainders = [amount * SCALE % total for amount in amounts]
    missing = SCALE - sum(units)
    for index in sorted(range(len(amounts)), key=lambda i: -remainders[i])[:missing]:
        units[index] += 1
    return units
