"""One run against its labels: what was found, missed and falsely said, and how soon the verdict was right."""

import math
from dataclasses import dataclass, field, replace

from gpuwatch.model import Severity, severity_at_least
from gpuwatch.scoring.labels import Expect, Forbid, Labels
from gpuwatch.scoring.watch import Said, Watched

FLAP_WINDOW_S = 180.0
#: One reading a second cannot show most gaps one by one, so how sure a finding is is not asked there.
POLLED = "1hz"


@dataclass(frozen=True, slots=True)
class Run:
    """Which scenario, read how often, drawn how."""

    scenario: str
    cadence: str
    seed: int


@dataclass(slots=True)
class Outcome:
    """Of one run. `verdict_s` is infinite where the right verdict never came; None: not asked for."""

    run: Run
    found: list[str] = field(default_factory=list)  # of each expected finding, the name it goes by
    missed: list[str] = field(default_factory=list)
    false: list[tuple[str, Severity]] = field(default_factory=list)
    healthy_s: float = 0.0
    healthy_notices: int = 0
    healthy_alarms: int = 0
    layer_right: bool | None = None
    verdict_s: float | None = None
    flaps: float | None = None  # in three minutes
    stall_error: float | None = None
    notes: list[str] = field(default_factory=list)
    problem: str = ""


def measure(run: Run, labels: Labels, watched: Watched, stalls: dict[int, float]) -> Outcome:
    """`stalls`: the true share of waiting in the last minute, by GPU."""
    outcome = Outcome(run, problem=watched.problem)
    for expect in labels.expects:
        if run.cadence == POLLED:
            expect = replace(expect, confidences=())
        if _came(expect, watched.said):
            outcome.found.append(expect.rules[0])
        else:
            outcome.missed.append(expect.rules[0])
            outcome.notes.append(_miss_note(expect, watched.said))
    _false(outcome, labels, watched)
    if labels.healthy:
        outcome.healthy_s = watched.end_s
    if labels.layers:
        _verdict(outcome, labels, watched)
    outcome.stall_error = _stall_error(labels, watched, stalls)
    return outcome


def _came(expect: Expect, said: list[Said]) -> bool:
    return any(_fits(expect, one) for one in said)


def _fits(expect: Expect, one: Said) -> bool:
    if one.rule not in expect.rules:
        return False
    if not severity_at_least(one.severity, expect.severity_min):
        return False
    if not severity_at_least(expect.severity_max, one.severity):
        return False
    if expect.confidences and one.confidence not in expect.confidences:
        return False
    if expect.gpu is not None and expect.gpu not in one.gpus:
        return False
    if expect.from_s is not None and one.first_s < expect.from_s:
        return False
    if expect.by_s is not None and one.start_s > expect.by_s:
        return False
    low, high = expect.share or (-math.inf, math.inf)
    return expect.share is None or (one.share is not None and low <= one.share <= high)


def _miss_note(expect: Expect, said: list[Said]) -> str:
    near = [one for one in said if one.rule in expect.rules]
    if not near:
        return f"missed {'|'.join(expect.rules)}"
    one = near[-1]
    share = "" if one.share is None else f" share {one.share:.2f}"
    gpus = ",".join(map(str, sorted(one.gpus)))
    return (
        f"missed {'|'.join(expect.rules)}: came at {one.start_s:.0f} s as {one.severity}/{one.confidence}"
        f"{share} on {gpus or 'the host'}"
    )


def _false(outcome: Outcome, labels: Labels, watched: Watched) -> None:
    wanted = {rule for expect in labels.expects for rule in expect.rules}
    seen: dict[tuple[str, float, frozenset[int]], Severity] = {}
    for one in watched.said:
        forbidden = any(_breaks(forbid, one) for forbid in labels.forbids)
        excused = one.rule in wanted or any(_breaks(allow, one) for allow in labels.allows)
        if not forbidden and excused:
            continue
        notable = forbidden or severity_at_least(one.severity, Severity.WARNING)
        if not notable and not (labels.healthy and one.severity is not Severity.STATE):
            continue
        key = (one.rule, one.first_s, one.gpus)
        before = seen.get(key)
        if before is None or severity_at_least(one.severity, before):
            seen[key] = one.severity
    for (rule, first_s, _), severity in seen.items():
        outcome.false.append((rule, severity))
        outcome.notes.append(f"false {rule}: {severity} from {first_s:.0f} s")
        if labels.healthy and severity_at_least(severity, Severity.WARNING):
            outcome.healthy_alarms += 1
        elif labels.healthy and severity is Severity.NOTICE:
            outcome.healthy_notices += 1


def _breaks(forbid: Forbid, one: Said) -> bool:
    if not forbid.matches(one.rule) or not severity_at_least(one.severity, forbid.severity):
        return False
    if forbid.before_s is not None and one.start_s >= forbid.before_s:
        return False
    return forbid.after_s is None or one.start_s >= forbid.after_s


def _verdict(outcome: Outcome, labels: Labels, watched: Watched) -> None:
    at_s = watched.end_s if labels.verdict_at_s is None else labels.verdict_at_s
    heard = [spoken for spoken in watched.verdicts if spoken.start_s <= at_s]
    last = heard[-1] if heard else None
    outcome.layer_right = last is not None and last.layer in labels.layers
    right = [
        spoken
        for spoken in heard
        if spoken.layer in labels.layers
        and (not labels.verdict_rules or spoken.rule in labels.verdict_rules)
        and spoken.start_s >= labels.onset_s - 1
    ]
    begin_s = max(labels.onset_s, watched.steady_s or 0.0)
    outcome.verdict_s = max(0.0, right[0].start_s - begin_s) if right else math.inf
    if right:
        later = [spoken for spoken in heard if spoken.start_s > right[0].start_s]
        length_s = max(FLAP_WINDOW_S, at_s - right[0].start_s)
        outcome.flaps = len(later) * FLAP_WINDOW_S / length_s
    if not outcome.layer_right or not right:
        what = "nothing" if last is None else f"{last.layer or 'no layer'}: {last.headline}"
        outcome.notes.append(f"verdict {what}")


def _stall_error(labels: Labels, watched: Watched, stalls: dict[int, float]) -> float | None:
    if labels.stall is None or not watched.lost:
        return None
    truth = stalls if labels.stall == "auto" else dict.fromkeys(watched.lost, float(labels.stall))
    errors = [abs(watched.lost[gpu] - share) for gpu, share in truth.items() if gpu in watched.lost]
    return sum(errors) / len(errors) if errors else None
