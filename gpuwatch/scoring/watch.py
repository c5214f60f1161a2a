"""Watches a run and keeps what was said, and when: one entry for each change."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpuwatch.model import (
    Confidence,
    Diagnosis,
    Finding,
    JobState,
    Layer,
    LedgerKey,
    Sample,
    Severity,
)
from gpuwatch.session import Session

_JUDGED = frozenset({JobState.STEADY, JobState.SERVING})
_LOST = (LedgerKey.WAITING, LedgerKey.PAUSE)


@dataclass(frozen=True, slots=True)
class Said:
    """A finding as it stood from `start_s` on, in seconds since the first sample."""

    start_s: float
    rule: str
    severity: Severity
    confidence: Confidence
    share: float | None
    gpus: frozenset[int]
    first_s: float  # when this finding began


@dataclass(frozen=True, slots=True)
class Spoken:
    """The verdict from `start_s` on."""

    start_s: float
    layer: Layer | None
    rule: str | None
    headline: str


@dataclass(slots=True)
class Watched:
    """All that one run was told. `lost` is the share of the last minute that each GPU's ledger books as
    waiting or pause, by index.
    """

    said: list[Said] = field(default_factory=list)
    verdicts: list[Spoken] = field(default_factory=list)
    steady_s: float | None = None
    end_s: float = 0.0
    lost: dict[int, float] = field(default_factory=dict)
    problem: str = ""


def watch(samples: Iterable[Sample], interval_s: float = 1.0) -> Watched:
    """Feed a session of its own and note what it says."""
    session, watched = Session(interval_s), Watched()
    start_s: float | None = None
    shown: dict[tuple[str, str, float], Said] = {}
    for sample in samples:
        state = session.feed(sample)
        if start_s is None:
            start_s = sample.monotonic_s
        now_s = watched.end_s = sample.monotonic_s - start_s
        diagnosis = state.diagnosis
        if diagnosis is None:
            continue
        for event in sample.events:
            if event.kind == "diagnosis-failed":
                watched.problem = event.message
        places = {reading.uuid: reading.index for reading in sample.gpus}
        _note_findings(watched, shown, diagnosis, places, now_s)
        _note_verdict(watched, diagnosis, now_s)
        watched.lost = {
            places[uuid]: sum(part.ratio for part in ledger.parts if part.key in _LOST)
            for uuid, ledger in diagnosis.ledgers.items()
            if uuid in places
        }
        watched.problem = watched.problem or _failure(diagnosis)
    return watched


def _failure(diagnosis: Diagnosis) -> str:
    headline = diagnosis.verdict.headline
    return headline if headline.startswith("the diagnosis failed") else ""


def _note_findings(
    watched: Watched,
    shown: dict[tuple[str, str, float], Said],
    diagnosis: Diagnosis,
    places: dict[str, int],
    now_s: float,
) -> None:
    for finding in diagnosis.findings:
        key = (finding.rule, finding.subject, finding.started_s)
        before = shown.get(key)
        said = _said(finding, places, now_s, before)
        if before is None or _differs(before, said):
            shown[key] = said
            watched.said.append(said)


def _said(finding: Finding, places: dict[str, int], now_s: float, before: Said | None) -> Said:
    return Said(
        now_s,
        finding.rule,
        finding.severity,
        finding.confidence,
        finding.share_ratio,
        frozenset(places[uuid] for uuid in finding.gpus if uuid in places),
        now_s if before is None else before.first_s,
    )


def _differs(before: Said, now: Said) -> bool:
    if (before.severity, before.confidence, before.gpus) != (now.severity, now.confidence, now.gpus):
        return True
    if before.share is None or now.share is None:
        return before.share is not now.share
    return abs(before.share - now.share) >= 0.02


def _note_verdict(watched: Watched, diagnosis: Diagnosis, now_s: float) -> None:
    if watched.steady_s is None and any(job.state in _JUDGED for job in diagnosis.jobs.values()):
        watched.steady_s = now_s
    verdict = diagnosis.verdict
    last = watched.verdicts[-1] if watched.verdicts else None
    if last is None or (last.layer, last.rule) != (verdict.layer, verdict.rule):
        watched.verdicts.append(Spoken(now_s, verdict.layer, verdict.rule, verdict.headline))
    else:  # the same verdict in new words: the last ones are kept
        watched.verdicts[-1] = replace(last, headline=verdict.headline)
