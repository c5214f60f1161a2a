"""Findings as events: built from the tracks that are on, kept while they last, then listed as ended."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.lifecycle import Track, severity_of
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import SEVERITIES, Finding, FindingText, Kind, Layer, Severity

Render = Callable[[str, Fires, Window], FindingText]
#: (rule, subject)
Key = tuple[str, str]

ENDED_MAX = 200
#: Health of the card or of our own sight: shown above the verdict, whatever it says.
BANNER_RULES = frozenset({"xid", "ecc-remap", "gpu-lost", "telemetry-degraded"})
#: Under 8 % nothing is promised; above 80 % a factor would be a guess ("mostly waiting").
SPEEDUP_MIN_SHARE, SPEEDUP_MAX_SHARE = 0.08, 0.80
#: A card near its power limit while it works will clock lower once it works more.
NEAR_LIMIT, NEAR_LIMIT_COST = 0.95, 0.95
#: Job findings of the first minute rest on less than a full window.
PRELIMINARY_S = 60.0

_KIND_ORDER = {Kind.RISK: 0, Kind.LOSS: 1, Kind.OPPORTUNITY: 2, Kind.STATE: 3}


@dataclass(frozen=True, slots=True)
class Member:
    """One GPU's (or the host's) part in a finding."""

    track: Track
    fires: Fires
    window: Window


@dataclass(slots=True)
class FindingBook:
    """All findings, active and ended, by (rule, subject)."""

    places: Mapping[str, tuple[Layer, str]]
    render: Render
    active: dict[Key, Finding] = field(default_factory=dict)
    ended: deque[Finding] = field(default_factory=lambda: deque(maxlen=ENDED_MAX))
    _built: dict[Key, tuple[float, int]] = field(default_factory=dict)

    def update(self, shown: Mapping[Key, Sequence[Member]], explained: Collection[Key], now: float) -> bool:
        """Begin, renew and end findings; True when one begins, ends or weighs differently.

        What is `explained` by another finding goes without having ended.
        """
        changed = False
        for key in [key for key in self.active if key not in shown]:
            finding = self.active.pop(key)
            if key not in explained:
                self.ended.appendleft(replace(finding, ended_s=now))
            del self._built[key]
            changed = True
        for key, members in shown.items():
            stamp = (max(member.track.fired_s for member in members), len(members))
            before = self.active.get(key)
            if before is not None and self._built[key] == stamp:
                continue
            self.active[key] = self._build(key, members, before, stamp[0], now)
            self._built[key] = stamp
            changed = changed or before is None or before.severity is not self.active[key].severity
        return changed

    def _build(
        self,
        key: Key,
        members: Sequence[Member],
        before: Finding | None,
        updated_s: float,
        now: float,
    ) -> Finding:
        rule, subject = key
        worst = max(members, key=_weight)
        fires, window = worst.fires, worst.window
        kind = fires.kind or worst.track.rule.kind
        layer, check = self.places[rule]
        share = fires.share_ratio
        worst_share = max(
            (s for s in (share, before.worst_share_ratio if before else None) if s), default=None
        )
        about, at_most = speedup(fires, window) if kind is Kind.LOSS else (None, None)
        job = window.job
        of_job = worst.track.rule.scope == "job"
        return Finding(
            rule=rule,
            subject=subject,
            gpus=_gpus(members),
            layer=fires.layer or layer,
            check=check,
            kind=kind,
            severity=_severity(members),
            confidence=fires.confidence,
            started_s=before.started_s if before else now,
            updated_s=updated_s,
            text=self._text(rule, fires, window),
            process=job.trainer.key if of_job and job is not None else None,
            share_ratio=share,
            share_low_ratio=fires.share_low_ratio,
            share_high_ratio=fires.share_high_ratio,
            worst_share_ratio=worst_share,
            speedup=about,
            speedup_max=at_most,
            evidence=fires.evidence,
            parameters=fires.parameters,
            intermittent=worst.track.intermittent(now),
            banner=rule in BANNER_RULES,
            preliminary=of_job and window.steady_s < PRELIMINARY_S,
        )

    def _text(self, rule: str, fires: Fires, window: Window) -> FindingText:
        try:
            return self.render(rule, fires, window)
        except Exception as problem:  # a text must never take the finding away
            return FindingText(title=rule, because=(f"its text failed: {type(problem).__name__}: {problem}",))


def speedup(fires: Fires, window: Window) -> tuple[float | None, float | None]:
    """(about, at most) the factor by which the job would be faster if this loss vanished.

    About: only the part with the cause's signature. Both assume that busy time per step stays the
    same and that no second limit hides behind the first.
    """
    share = fires.share_ratio
    if share is None or not SPEEDUP_MIN_SHARE <= share <= SPEEDUP_MAX_SHARE:
        return None, None
    attributed = share * min(1.0, fires.coverage_ratio)
    about = 1 / (1 - attributed)
    high = fires.share_high_ratio if fires.share_high_ratio is not None else share
    at_most = 1 / (1 - high) if high <= SPEEDUP_MAX_SHARE else None
    if _near_limit(window):
        about = max(1.0, about * NEAR_LIMIT_COST)
    return about, at_most


def _near_limit(window: Window) -> bool:
    if window.reading is None or window.reading.power_limit_w is None:
        return False
    peak = window.history.maximum(window.entity, "power_w", 30.0)
    return peak is not None and peak >= NEAR_LIMIT * window.reading.power_limit_w


def _member_severity(member: Member) -> Severity:
    kind = member.fires.kind or member.track.rule.kind
    return member.track.severity or severity_of(member.fires, kind, None)


def _severity(members: Sequence[Member]) -> Severity:
    return max((_member_severity(member) for member in members), key=SEVERITIES.index)


def _weight(member: Member) -> tuple[int, float]:
    return SEVERITIES.index(_member_severity(member)), member.fires.share_ratio or 0.0


def _gpus(members: Sequence[Member]) -> tuple[str, ...]:
    named: dict[str, None] = {}
    for member in members:
        own = () if member.track.gpu is None else (member.track.gpu,)
        for gpu in member.fires.gpus if member.fires.gpus is not None else own:
            named[gpu] = None
    return tuple(named)


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """By severity, then risk before loss before opportunity before state, then by share."""
    return tuple(
        sorted(
            findings,
            key=lambda finding: (
                -SEVERITIES.index(finding.severity),
                _KIND_ORDER[finding.kind],
                -(finding.share_ratio or 0.0),
                finding.started_s,
                finding.rule,
                finding.subject,
            ),
        )
    )
