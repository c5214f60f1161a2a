"""The eight checks, always in the same place, and the list of what was not checked.

Never silently green: FINE needs a rule that really looked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires
from gpuwatch.diagnosis.ledger_causes import STARVED
from gpuwatch.diagnosis.lifecycle import Track
from gpuwatch.model import (
    CHECKS,
    Check,
    CheckResult,
    CheckState,
    Confidence,
    Finding,
    Kind,
    NotChecked,
    Severity,
    severity_at_least,
)

NO_RULE = "no rule for this yet"
NO_GPU = "no GPU to look at"
_SURE = (Confidence.MEASURED, Confidence.LIKELY)
#: Notes of more rules than this do not fit a line.
MAX_NOTES = 3
#: Rules that look at a quarter of an hour keep no row waiting for it.
LONGEST_WAIT_S = 120.0


def check_results(
    by_check: Mapping[str, Sequence[Track]], findings: Sequence[Finding], ruled: Collection[str] = ()
) -> tuple[CheckResult, ...]:
    """`by_check`: all tracks by the check's key; banners have no row. `findings`: the visible ones, worst
    first. `ruled`: keys of checks that have a rule at all."""
    return tuple(
        _result(check, by_check.get(check.key, ()), findings, check.key in ruled) for check in CHECKS
    )


def _result(check: Check, tracks: Sequence[Track], findings: Sequence[Finding], ruled: bool) -> CheckResult:
    here = [finding for finding in findings if finding.check == check.key]
    alarms = [finding for finding in here if not _explains(finding)]
    named = next((finding for finding in alarms if _is_named(finding)), None)
    if named is not None:
        return CheckResult(check, CheckState.NAMED, named.text.title, rule=named.rule)
    if alarms:
        return CheckResult(check, CheckState.POSSIBLE, alarms[0].text.title, rule=alarms[0].rule)
    if here:
        return CheckResult(check, CheckState.FINE, here[0].text.title, rule=here[0].rule)
    able = [track for track in tracks if not track.rule.unavailable]
    if not able:
        return CheckResult(check, CheckState.UNMEASURABLE, NO_GPU if ruled else NO_RULE)
    return _without_finding(check, able)


def _explains(finding: Finding) -> bool:
    """A state that is as it should be ("at its power limit, normal at full load")."""
    return finding.kind is Kind.STATE and finding.severity is Severity.STATE


def _is_named(finding: Finding) -> bool:
    """A cause that stands: measured or likely, and a loss or risk that counts, or a warning."""
    if finding.rule == STARVED or finding.confidence not in _SURE:
        return False
    floor = Severity.NOTICE if finding.kind in (Kind.LOSS, Kind.RISK) else Severity.WARNING
    return severity_at_least(finding.severity, floor)


def _without_finding(check: Check, tracks: Sequence[Track]) -> CheckResult:
    if any(isinstance(track.outcome, Fires) and not track.on for track in tracks):
        return CheckResult(check, CheckState.WAITING, "something shows up; watching whether it lasts")
    soon = _soonest(tracks)
    if soon is not None:
        # A neighbour that found nothing does not make the row green while another still looks.
        return CheckResult(check, CheckState.WAITING, soon[1], seconds_left=soon[0])
    clear = [track.outcome for track in tracks if isinstance(track.outcome, Clear)]
    if clear:
        notes = list(dict.fromkeys(outcome.note for outcome in clear if outcome.note))
        return CheckResult(check, CheckState.FINE, "; ".join(notes[:MAX_NOTES]) or "nothing found")
    gated = _gated(tracks)
    if gated is not None:
        reason, seconds = gated
        return CheckResult(check, CheckState.WAITING, reason, seconds_left=seconds)
    reasons = [track.outcome.reason for track in tracks if isinstance(track.outcome, Abstain)]
    if reasons:
        return CheckResult(check, CheckState.UNMEASURABLE, reasons[0])
    return CheckResult(check, CheckState.WAITING, "looking")


def _soonest(tracks: Sequence[Track]) -> tuple[float, str] | None:
    """The nearest look that only needs time, of rules that may look at all.

    Looks that need many minutes do not hold up a row in which others have found nothing.
    """
    cleared = any(isinstance(track.outcome, Clear) for track in tracks)
    return min(
        (
            (track.outcome.seconds_left, track.outcome.reason)
            for track in tracks
            if isinstance(track.outcome, Abstain)
            and track.outcome.seconds_left is not None
            and (track.outcome.seconds_left <= LONGEST_WAIT_S or not cleared)
        ),
        default=None,
    )


def _gated(tracks: Sequence[Track]) -> tuple[str, float | None] | None:
    """The job state that keeps the rules from looking."""
    gated = [track for track in tracks if track.gate]
    if not gated:
        return None
    times = [track.gate_s for track in gated if track.gate_s is not None]
    return gated[0].gate, min(times) if times else None


def not_checked(
    tracks: Iterable[Track], ignored: Mapping[str, str], gpu_count: int
) -> tuple[NotChecked, ...]:
    """Every rule that could not tell, once per reason; the subject where it is not all GPUs."""
    subjects: dict[tuple[str, str, str], list[str]] = {}
    for track in tracks:
        outcome = track.outcome
        reason = track.rule.unavailable
        if not reason and isinstance(outcome, Abstain) and outcome.seconds_left is None:
            reason = outcome.reason
        if reason:
            subjects.setdefault((track.rule.id, track.check, reason), []).append(track.gpu or "")
    result = [NotChecked(rule, check, "ignored by choice") for rule, check in ignored.items()]
    for (rule, check, reason), gpus in subjects.items():
        named = [gpu for gpu in gpus if gpu] if len(gpus) < gpu_count else []
        result += [NotChecked(rule, check, reason, f"gpu:{gpu}") for gpu in named] or [
            NotChecked(rule, check, reason)
        ]
    return tuple(result)
