"""Runs some of the built rules over a scene and keeps what they say."""

from build import Bench, Scene

from gpuwatch.diagnosis.engine import Engine
from gpuwatch.diagnosis.rules import RULES
from gpuwatch.diagnosis.texts import SHORT_ADVICE
from gpuwatch.model import Diagnosis, Finding, Severity, severity_at_least


class Watch:
    """A bench with the rules named, or with all of them."""

    def __init__(self, *rules: str, interval_s: float = 1.0) -> None:
        chosen = tuple(rule for rule in RULES if not rules or rule.id in rules)
        assert len(chosen) == (len(rules) or len(RULES))
        self.bench = Bench(Engine(chosen), interval_s)
        self.first_s: dict[str, float] = {}

    def run(self, scene: Scene, seconds: float, begin: float = 0.0) -> Diagnosis:
        for sample in scene.samples(seconds, begin):
            diagnosis = self.bench.feed(sample)
            for finding in diagnosis.findings:
                self.first_s.setdefault(finding.rule, sample.monotonic_s - scene.start_s)
        assert self.bench.diagnosis is not None
        for finding in (*self.bench.diagnosis.findings, *self.bench.diagnosis.ended):
            well_worded(finding)
        return self.bench.diagnosis

    @property
    def alarms(self) -> set[str]:
        """Rules that were at notice or above at any time."""
        return {
            finding.rule
            for diagnosis in self.bench.log
            for finding in diagnosis.findings
            if severity_at_least(finding.severity, Severity.NOTICE)
        }


def watch(scene: Scene, seconds: float, *rules: str) -> tuple[Diagnosis, Watch]:
    bench = Watch(*rules)
    return bench.run(scene, seconds), bench


def found(diagnosis: Diagnosis, rule: str) -> Finding:
    """The one finding of this rule."""
    (finding,) = [finding for finding in diagnosis.findings if finding.rule == rule]
    return finding


def reason(diagnosis: Diagnosis, rule: str) -> str:
    """Why this rule could not tell."""
    (entry,) = [entry for entry in diagnosis.not_checked if entry.rule == rule]
    return entry.reason


def evidence(finding: Finding) -> dict[str, float | str | None]:
    return {item.key: item.value for item in finding.evidence}


def well_worded(finding: Finding) -> None:
    text = finding.text
    assert text.title
    assert not text.title.endswith(".")
    assert "failed" not in text.title + "".join(text.because)
    assert text.because
    assert all(text.because)
    assert text.wrong_if
    assert text.settle
    assert text.advice
    assert 0 < len(text.short_advice) <= SHORT_ADVICE, text.short_advice
    everything = " ".join((text.title, *text.because, text.wrong_if, text.settle, *text.advice))
    assert "None" not in everything
    assert "nan" not in everything.split()
