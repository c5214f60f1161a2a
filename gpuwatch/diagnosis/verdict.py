"""One line that says which layer holds the training back, and how it is kept from flapping.

Order of choice: a critical risk; what the driver cannot tell; the job's state; nothing lost; losses by
layer. A cause once named stays at least 20 s, and gives way to another only when that leads clearly
for a while or when it has itself been clear for 30 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuwatch.diagnosis.ledger_causes import STARVED
from gpuwatch.diagnosis.verdict_facts import (
    LOSS_MIN,
    Choice,
    GpuFacts,
    Loss,
    TickFacts,
    choose,
    losses,
    pace_setter,
    total,
)
from gpuwatch.diagnosis.verdict_words import (
    LATE,
    looking,
    lost_time,
    no_driver,
    nothing_lost,
    plain_finding,
    risk,
    state_of,
    unmeasured,
)
from gpuwatch.model import DriverState, Finding, Kind, LedgerKey, Severity, Verdict, severity_at_least

FIRST_S, PRELIMINARY_S = 30.0, 60.0
MIN_LIFE_S = 20.0
CHALLENGER_LEAD, CHALLENGER_S = 0.10, 15.0
CLEAR_S = 30.0
#: So much waiting is looked into before a warning of unknown cost becomes the verdict.
WAITS_CLEARLY = 0.15
#: With more of the minute than this unknown, "nothing slows it" would be a guess.
UNMEASURED = 0.5
#: A training without a job on any GPU has a verdict all the same.
NOT_ON_GPU = "not-on-gpu"
#: Strongest lever first, among those whose gain cannot be seen from outside (diagnosis §4.2.3).
LEVERS = (
    "tensor-cores-idle",
    "batch-headroom",
    "launch-bound",
    "memory-bandwidth-bound",
    "power-limit-lowered",
)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A verdict for this tick. `key` is its identity, `lead` the share it stands on (None: a state)."""

    key: tuple[str, str]
    verdict: Verdict
    lead: float | None = None


@dataclass(slots=True)
class VerdictMaker:
    """Keeps the verdict of the last tick, so that the next one need not contradict it at once."""

    _shown: _Proposal | None = None
    _shown_s: float = 0.0  # since when
    _backed_s: float = 0.0  # when the shown cause was last seen
    _challenger: str | None = None  # its rule: which of several alike GPUs is worst may change
    _challenger_s: float = 0.0

    def make(self, facts: TickFacts) -> Verdict:
        """The verdict to show now."""
        proposal = _propose(facts)
        shown = self._shown
        if shown is None or proposal.key == shown.key or self._gives_way(shown, proposal, facts):
            if shown is None or proposal.key != shown.key:
                self._shown_s = facts.now_s
            self._shown = proposal
            self._challenger = None
            if proposal.lead is not None:
                self._backed_s = facts.now_s
        assert self._shown is not None
        return replace(self._shown.verdict, since_s=self._shown_s)

    def _gives_way(self, shown: _Proposal, proposal: _Proposal, facts: TickFacts) -> bool:
        """Whether the shown verdict makes room for another one."""
        now = facts.now_s
        if shown.lead is None:  # a state, or nothing lost: whatever is found is news
            return True
        if _overrules(proposal, facts):
            return True
        if proposal.lead is not None and _explains(proposal, shown, facts):
            return True
        present = _present_lead(shown, facts)
        if present is not None:
            self._backed_s = now
        if now - self._shown_s < MIN_LIFE_S:
            return False
        if now - self._backed_s >= CLEAR_S:
            return True
        if proposal.lead is None or proposal.lead - (present or 0.0) < CHALLENGER_LEAD:
            self._challenger = None
            return False
        if self._challenger != proposal.key[0]:
            self._challenger, self._challenger_s = proposal.key[0], now
        return now - self._challenger_s >= CHALLENGER_S


def _explains(proposal: _Proposal, shown: _Proposal, facts: TickFacts) -> bool:
    """The same waiting, now with its cause; or why the late GPU is late."""
    if shown.key[0] == STARVED:
        return True
    late = next((one for one in facts.findings if one.rule == shown.key[0] == LATE), None)
    return late is not None and late.parameters.get("reason") == proposal.key[0]


def _overrules(proposal: _Proposal, facts: TickFacts) -> bool:
    """A risk, a driver that is gone and a job that ended or pauses are never held back."""
    return proposal.lead is None and (
        proposal.key[0] in ("risk", "driver", "state") or not any(gpu.judged for gpu in facts.gpus)
    )


def _present_lead(shown: _Proposal, facts: TickFacts) -> float | None:
    """The share the shown cause stands on now; None when its finding is gone."""
    rule, uuid = shown.key
    gpu = next((gpu for gpu in facts.gpus if gpu.uuid == uuid), None)
    if gpu is None or rule not in gpu.findings:
        return None
    return sum(loss.ratio for loss in losses(gpu) if loss.finding.rule == rule)


def _propose(facts: TickFacts) -> _Proposal:
    danger = next((f for f in facts.findings if _is_danger(f)), None)
    if danger is not None:
        return _Proposal(("risk", f"{danger.rule} {danger.subject}"), risk(danger))
    if facts.driver.state is not DriverState.OK and not facts.gpus:
        return _Proposal(("driver", facts.driver.state.value), no_driver(facts.driver))
    judged = [gpu for gpu in facts.gpus if gpu.judged]
    ready = [gpu for gpu in judged if gpu.steady_s >= FIRST_S]
    if not judged:
        elsewhere = next((one for one in facts.findings if one.rule == NOT_ON_GPU), None)
        if elsewhere is not None and severity_at_least(elsewhere.severity, Severity.WARNING):
            return _Proposal(("finding", elsewhere.rule), plain_finding(facts, elsewhere, False))
        return _Proposal(("state", ""), state_of(facts))
    if not ready:
        wait = FIRST_S - max(gpu.steady_s for gpu in judged)
        return _Proposal(("state", ""), looking(facts, wait))
    return _of_job(facts, ready)


def _is_danger(finding: Finding) -> bool:
    return finding.kind is Kind.RISK and finding.severity is Severity.CRITICAL


def _of_job(facts: TickFacts, ready: Sequence[GpuFacts]) -> _Proposal:
    gpu = pace_setter(ready)
    found = losses(gpu)
    choice = choose(found)
    preliminary = gpu.steady_s < PRELIMINARY_S
    if choice is not None:
        rest = [loss for loss in found if loss.finding.rule != choice.loss.finding.rule]
        verdict = lost_time(
            facts,
            choice,
            share=sum(loss.ratio for loss in found if loss.key is choice.loss.key),
            candidates=_candidates(choice, rest),
            after=_after_that(facts, rest),
            preliminary=preliminary,
        )
        return _Proposal((choice.loss.finding.rule, gpu.uuid), verdict, choice.loss.ratio)
    lever = _lever(facts.findings)
    warns = lever is not None and severity_at_least(lever.severity, Severity.WARNING)
    waiting = max(one.ratio(LedgerKey.WAITING) for one in ready)
    if preliminary and waiting >= (WAITS_CLEARLY if warns else LOSS_MIN):
        return _Proposal(("looking", ""), looking(facts, None))
    if lever is not None and warns:
        return _Proposal(("finding", lever.rule), plain_finding(facts, lever, preliminary))
    if all(one.ratio(LedgerKey.UNKNOWN) > UNMEASURED for one in ready):
        return _Proposal(("state", "unmeasured"), unmeasured(ready, lever))
    return _Proposal(("nothing", ""), nothing_lost(facts, ready, lever, preliminary))


def _candidates(choice: Choice, rest: Sequence[Loss]) -> tuple[Finding, ...]:
    """Beside an unproven waiting: the causes that explain a part of it."""
    if choice.loss.finding.rule != STARVED:
        return ()
    return tuple(loss.finding for loss in rest if loss.key is LedgerKey.WAITING)[:2]


def _after_that(facts: TickFacts, rest: Sequence[Loss]) -> str:
    """What would be next once the named cause is gone."""
    following = choose(rest)
    if following is not None:
        return f"{following.loss.finding.text.title} ({following.loss.ratio:.0%})".replace("%", " %")
    if rest and total(rest) > 0 and rest[0].finding.rule != STARVED:
        return rest[0].finding.text.title
    lever = _lever(facts.findings)
    return lever.text.title if lever is not None else "nothing else stands out"


def _lever(findings: Sequence[Finding]) -> Finding | None:
    """The strongest finding that is no measured loss: warnings first, then the known levers in order."""
    levers = [
        finding
        for finding in findings
        if not finding.banner
        and (finding.kind is not Kind.LOSS or _unpriced(finding))
        and severity_at_least(finding.severity, Severity.NOTICE)
    ]

    def rank(finding: Finding) -> tuple[bool, int]:
        known = LEVERS.index(finding.rule) if finding.rule in LEVERS else len(LEVERS)
        return (not severity_at_least(finding.severity, Severity.WARNING), known)

    return min(levers, key=rank, default=None)


def _unpriced(finding: Finding) -> bool:
    """A loss that is certain enough to warn of, while its cost cannot be measured from outside."""
    return finding.share_ratio is None and severity_at_least(finding.severity, Severity.WARNING)
