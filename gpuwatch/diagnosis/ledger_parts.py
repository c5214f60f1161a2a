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
_SLOWED, _FOREIGN, _PEERS, _PAUSE = (
    KEYS.index(key) for key in (LedgerKey.SLOWED, LedgerKey.FOREIGN, LedgerKey.WAITING_PEERS, LedgerKey.PAUSE)
)


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
    peer_memory_ratio: float | None = None  # of its busy time, that the late GPU of this job accesses memory

    def of(self, place: int) -> Cause | None:
        """Who claims the key at this place, waiting apart."""
        if place == _SLOWED:
            return self.slowed
        if place == _FOREIGN:
            return self.foreign
        if place == _PEERS:
            return self.peers
        return self.pause if place == _PAUSE else None

    @property
    def waiting_coverage(self) -> float:
        """How much of the waiting is explained (0..1)."""
        return min(1.0, sum(cause.coverage for cause in self.waiting))


NOBODY = Claimed()


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """To whom time is booked. Each exists once (`_slot`), so that looking it up costs no comparison."""

    key: LedgerKey
    place: int  # of the key in booking order
    layer: Layer | None = None
    cause: str | None = None
    label: str = ""


_SLOTS: dict[tuple[int, str | None, str], Slot] = {}


def _slot(place: int, layer: Layer | None, cause: str | None, label: str) -> Slot:
    named = (place, cause and f"{cause} {layer}", label)
    slot = _SLOTS.get(named)
    if slot is None:
        slot = _SLOTS[named] = Slot(KEYS[place], place, layer, cause, label)
    return slot


def _of_cause(place: int, cause: Cause) -> Slot:
    return _slot(place, cause.layer, cause.rule, cause.label)


_WAITING, _IDLE = KEYS.index(LedgerKey.WAITING), KEYS.index(LedgerKey.IDLE)
_UNPROVEN = _slot(_WAITING, None, None, NOT_PROVEN)
#: To whom time goes that nobody claims, by the place of its key.
_PLAIN = tuple(
    _slot(place, _LAYERS.get(key), None, _LABELS.get(key, key.value)) for place, key in enumerate(KEYS)
)


#: Nanoseconds by slot.
Booking = Mapping[Slot, int]


def slots(amounts_ns: Sequence[int], idle_state: JobState, claimed: Claimed) -> dict[Slot, int]:
    """`amounts_ns` in the order of LedgerKey, split among the causes that claim them."""
    found: dict[Slot, int] = {}
    for place, amount in enumerate(amounts_ns):
        if not amount:
            continue
        if place == _WAITING:
            _split(amount, claimed.waiting, found)
            continue
        cause = claimed.of(place)
        if cause is not None:
            slot = _of_cause(place, cause)
        elif place == _IDLE:
            slot = _slot(place, None, None, _IDLE_LABELS.get(idle_state, "no job"))
        else:
            slot = _PLAIN[place]
        found[slot] = amount
    return found


def _split(amount: int, causes: Sequence[Cause], found: dict[Slot, int]) -> None:
    left = amount
    for cause in causes:
        part = min(left, round(amount * min(1.0, cause.coverage)))
        if part:
            slot = _of_cause(_WAITING, cause)
            found[slot] = found.get(slot, 0) + part
            left -= part
    if left:
        found[_UNPROVEN] = left


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
    return slot.place, slot.cause is None


def _whole_units(amounts: Sequence[int], total: int) -> list[int]:
    """`amounts` as whole units of 1/SCALE that sum to SCALE (largest remainder)."""
    units = [amount * SCALE // total for amount in amounts]
    remainders = [amount * SCALE % total for amount in amounts]
    missing = SCALE - sum(units)
    for index in sorted(range(len(amounts)), key=lambda i: -remainders[i])[:missing]:
        units[index] += 1
    return units
