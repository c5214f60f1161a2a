"""From outcomes to findings: hysteresis, severity that does not flicker, and flapping.

One `Track` follows one rule on one subject. What a rule says at one moment is an outcome; a finding
begins after as many firing evaluations in a row as the rule asks for, and ends likewise.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome, Rule
from gpuwatch.model import SEVERITIES, Kind, Severity

#: Levels of a loss by its share of wall time, and how far below it must fall to leave one. Above the
#: measuring error of the stall share (4-10 points), hence not the 5 % of trace profilers.
LOSS_LEVELS = ((Severity.CRITICAL, 0.35), (Severity.WARNING, 0.15), (Severity.NOTICE, 0.08))
LEVEL_FALL = 0.03
#: A finding whose rule can no longer tell is kept this long, then its claim cannot be upheld.
UNTOLD_S = 60.0
#: Flap state as in Naemon, limits our own: share of changes in the last 21 looks, one per 5 s.
FLAP_LOOKS, FLAP_EVERY_S = 21, 5.0
FLAP_START, FLAP_STOP = 0.50, 0.20
FLAP_COUNT_S = 120.0
#: After as many looks in a row that found nothing (two minutes of looks 5 s apart) a rule is settled.
SETTLED_LOOKS = 24

_PLAIN_SEVERITY = {
    Kind.LOSS: Severity.NOTICE,
    Kind.RISK: Severity.WARNING,
    Kind.OPPORTUNITY: Severity.NOTICE,
    Kind.STATE: Severity.STATE,
}


def severity_of(fires: Fires, kind: Kind, before: Severity | None) -> Severity:
    """The rule's own word, else from the share of a loss; `before` keeps a level until it fell clearly."""
    if fires.severity is not None:
        return fires.severity
    if kind is not Kind.LOSS or fires.share_ratio is None:
        return _PLAIN_SEVERITY[kind]
    share = fires.share_ratio
    for level, threshold in LOSS_LEVELS:
        held = before is not None and SEVERITIES.index(before) >= SEVERITIES.index(level)
        if share >= (threshold - LEVEL_FALL if held else threshold):
            return level
    return Severity.STATE


@dataclass(slots=True)
class Track:
    """One rule on one subject. `gpu` is None for the host."""

    rule: Rule
    check: str
    gpu: str | None
    outcome: Outcome | None = None  # the newest; None before the first look and while gated
    gate: str = ""  # why the rule does not apply now ("no job on the GPU")
    gate_s: float | None = None  # seconds until it will, where known
    fires: Fires | None = None  # the newest that fired
    fired_s: float = float("-inf")
    severity: Severity | None = None
    on: bool = False  # after hysteresis
    frozen: bool = False  # flaps: shown all the time, as intermittent
    _streak: int = 0
    _quiet: int = 0  # looks in a row that found nothing
    _looks: deque[bool] = field(default_factory=lambda: deque(maxlen=FLAP_LOOKS))
    _look_s: float = float("-inf")
    _starts: deque[float] = field(default_factory=deque)

    @property
    def shown(self) -> bool:
        return self.on or self.frozen

    @property
    def settled(self) -> bool:
        """Nothing was found for a while: looking half as often is enough."""
        return self._quiet >= SETTLED_LOOKS and not self.shown

    def take(self, outcome: Outcome, now: float) -> None:
        """One evaluation's result."""
        self.outcome, self.gate, self.gate_s = outcome, "", None
        self._quiet = self._quiet + 1 if isinstance(outcome, Clear) else 0
        if isinstance(outcome, Fires):
            self.fires, self.fired_s = outcome, now
            self.severity = severity_of(outcome, outcome.kind or self.rule.kind, self.severity)
            self._streak = 0 if self.on else self._streak + 1
            if not self.on and self._streak >= self.rule.enter_evaluations:
                self.on, self._streak = True, 0
                self._starts.append(now)
        elif isinstance(outcome, Clear):
            self._streak = self._streak + 1 if self.on else 0
            if self.on and self._streak >= self.rule.exit_evaluations:
                self._end()
        elif not self.on:
            self._streak = 0
        elif now - self.fired_s > UNTOLD_S:
            self._end()
        self._look(now)

    def close_gate(self, reason: str, seconds_left: float | None = None) -> None:
        """The rule does not apply in this job state: its finding ends, nothing was looked at."""
        self.outcome, self.gate, self.gate_s = None, reason, seconds_left
        self._quiet = 0
        if self.on or self.frozen or self._looks:
            self.reset()

    def reset(self) -> None:
        """Forget everything (a new job)."""
        self._end()
        self._streak, self._quiet, self.frozen = 0, 0, False
        self._looks.clear()
        self._starts.clear()

    def intermittent(self, now: float) -> int | None:
        """Starts within two minutes while the finding flaps, else None."""
        if not self.frozen:
            return None
        return sum(now - start <= FLAP_COUNT_S for start in self._starts)

    def _end(self) -> None:
        self.on, self._streak, self.severity = False, 0, None

    def _look(self, now: float) -> None:
        while self._starts and now - self._starts[0] > FLAP_COUNT_S:
            self._starts.popleft()
        if now - self._look_s < FLAP_EVERY_S:
            return
        self._look_s = now
        self._looks.append(self.on)
        changes = 0
        if True in self._looks and False in self._looks:
            changes = sum(before != after for before, after in pairwise(self._looks))
        share = changes / (FLAP_LOOKS - 1)
        self.frozen = share >= FLAP_STOP if self.frozen else share > FLAP_START


def abstention(track: Track) -> Abstain | None:
    """What this track could not tell, if that is its newest word."""
    return track.outcome if isinstance(track.outcome, Abstain) else None
