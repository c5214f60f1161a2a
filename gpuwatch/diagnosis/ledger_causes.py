"""Which part of the ledger a finding claims: waiting, slowed, taken by others, peers, pauses."""

from collections.abc import Callable, Mapping, Sequence

from gpuwatch.diagnosis.ledger import Claims
from gpuwatch.diagnosis.ledger_parts import Cause, Claimed
from gpuwatch.diagnosis.lifecycle_findings import Member
from gpuwatch.model import Kind, Layer, LedgerKey

STARVED = "gpu-starved"
SHARED = "gpu-shared"
SLOWING = (
    "thermal-throttle",
    "hw-slowdown",
    "power-limit-lowered",
    "clocks-pinned",
    "clock-sag-unexplained",
)
PEERS = ("straggler-card", "comm-wait")
PAUSES = ("loader-respawn", "episode-overhead")
SHORT = "short"  # the variant of episode-overhead with gaps that are no pauses
#: Losses that say that time is lost, not for what.
NO_CAUSE = frozenset({STARVED, "slower-than-itself", "not-on-gpu", "gpu-held-idle", "gpu-imbalance"})
#: The decision table of causes (diagnosis §2.7), top to bottom; others follow.
WAITING_ORDER = (
    "cpu-quota-throttled",
    "host-swapping",
    "cpu-mask-narrow",
    "host-cpu-contention",
    "episode-overhead",
    "loader-in-main-process",
    "thread-oversubscription",
    "loader-cpu-bound",
    "loader-too-few-workers",
    "page-cache-thrash",
    "loader-disk-bound",
    "loader-network-bound",
    "loader-worker-imbalance",
    "pcie-saturated",
    "pageable-copies",
    "sync-stalls",
    "launch-bound",
)

Label = Callable[[str], str]
Places = Mapping[str, tuple[Layer, str]]


def claimed_key(rule: str, variant: str = "") -> LedgerKey:
    """The part of the ledger this rule's loss is booked in: short pauses are booked as waiting."""
    if rule in SLOWING:
        return LedgerKey.SLOWED
    if rule == SHARED:
        return LedgerKey.FOREIGN
    if rule in PEERS:
        return LedgerKey.WAITING_PEERS
    return LedgerKey.PAUSE if rule in PAUSES and variant != SHORT else LedgerKey.WAITING


def attribute(members: Mapping[str, Member], places: Places, label: Label) -> Claimed:
    """`members`: the losses active on one GPU, by rule."""
    causes = {
        rule: Cause(
            rule=rule,
            layer=member.fires.layer or places[rule][0],
            label=label(rule),
            coverage=member.fires.coverage_ratio,
        )
        for rule, member in members.items()
        if (member.fires.kind or member.track.rule.kind) is Kind.LOSS
    }
    keys = {rule: claimed_key(rule, members[rule].fires.variant) for rule in causes}
    waiting = [
        cause for rule, cause in causes.items() if rule not in NO_CAUSE and keys[rule] is LedgerKey.WAITING
    ]
    pauses = {rule: cause for rule, cause in causes.items() if keys[rule] is LedgerKey.PAUSE}
    late = members.get("straggler-card")
    memory = None if late is None else late.fires.parameters.get("work_memory")
    return Claimed(
        waiting=tuple(sorted(waiting, key=lambda cause: _rank(cause.rule))),
        slowed=_first(causes, SLOWING),
        foreign=causes.get(SHARED),
        peers=_first(causes, PEERS),
        pause=_first(pauses, PAUSES),
        peer_memory_ratio=memory if isinstance(memory, float) else None,
    )


def claims_of(members: Mapping[str, Member], peers: bool) -> Claims:
    """What the findings of the last tick say about the one being booked."""
    shared, limit = members.get(SHARED), members.get("power-limit-lowered")
    return Claims(
        peers=peers,
        foreign_ratio=0.0 if shared is None else shared.fires.share_ratio or 0.0,
        # without its uncapped clock having been seen, what the limit costs is unknown
        capped=limit is not None and limit.fires.share_ratio is not None,
    )


def _first(causes: Mapping[str, Cause], order: Sequence[str]) -> Cause | None:
    return next((causes[rule] for rule in order if rule in causes), None)


def _rank(rule: str) -> tuple[int, str]:
    return (WAITING_ORDER.index(rule) if rule in WAITING_ORDER else len(WAITING_ORDER), rule)
