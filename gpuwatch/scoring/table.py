"""Many outcomes summed up: figures over all, a line per rule, text and JSON."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from gpuwatch.model import Severity, severity_at_least
from gpuwatch.scoring.measure import Outcome

SCHEMA = "gpuwatch.score/1"


@dataclass(slots=True)
class RuleCount:
    required: int = 0
    found: int = 0
    missed: int = 0
    false: int = 0


@dataclass(slots=True)
class Score:
    """`total` has the figures over all runs (None where nothing was asked), `rules` those of each rule."""

    total: dict[str, float | int | None]
    rules: dict[str, RuleCount]
    outcomes: list[Outcome] = field(default_factory=list)


def score(outcomes: Sequence[Outcome]) -> Score:
    """Sum up the outcomes of any number of runs."""
    rules: dict[str, RuleCount] = {}
    for outcome in outcomes:
        for rule in outcome.found:
            count = rules.setdefault(rule, RuleCount())
            count.required += 1
            count.found += 1
        for rule in outcome.missed:
            count = rules.setdefault(rule, RuleCount())
            count.required += 1
            count.missed += 1
        for rule, _ in outcome.false:
            rules.setdefault(rule, RuleCount()).false += 1
    return Score(_total(outcomes, rules), dict(sorted(rules.items())), list(outcomes))


def _total(outcomes: Sequence[Outcome], rules: dict[str, RuleCount]) -> dict[str, float | int | None]:
    required = sum(count.required for count in rules.values())
    found = sum(count.found for count in rules.values())
    false = sum(count.false for count in rules.values())
    alarms = [
        severity
        for outcome in outcomes
        for _, severity in outcome.false
        if severity_at_least(severity, Severity.WARNING)
    ]
    hours = sum(outcome.healthy_s for outcome in outcomes) / 3600
    notices = sum(outcome.healthy_notices for outcome in outcomes)
    layers = [outcome.layer_right for outcome in outcomes if outcome.layer_right is not None]
    times = [outcome.verdict_s for outcome in outcomes if outcome.verdict_s is not None]
    flaps = [outcome.flaps for outcome in outcomes if outcome.flaps is not None]
    errors = [outcome.stall_error for outcome in outcomes if outcome.stall_error is not None]
    return {
        "runs": len(outcomes),
        "failed": sum(1 for outcome in outcomes if outcome.problem),
        "recall": found / required if required else None,
        "precision": found / (found + false) if found + false else None,
        "false_warnings": len(alarms),
        "false_warnings_healthy": sum(outcome.healthy_alarms for outcome in outcomes),
        "false_notices_per_healthy_hour": notices / hours if hours else None,
        "layer_right": fmean(map(float, layers)) if layers else None,
        "time_to_verdict_s": _finite(median(times)) if times else None,
        "flaps_per_3min": fmean(flaps) if flaps else None,
        "flaps_per_3min_max": max(flaps, default=None),
        "stall_share_error": fmean(errors) if errors else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_json(scores: dict[str, Score]) -> dict[str, Any]:
    """One document: `total` and `rules` over all cadences, and the same for each in `cadences`."""
    everything = score([outcome for one in scores.values() for outcome in one.outcomes])
    return {
        "schema": SCHEMA,
        **_plain(everything),
        "cadences": {name: _plain(one) for name, one in scores.items()},
        "runs": [
            {
                "scenario": outcome.run.scenario,
                "cadence": outcome.run.cadence,
                "seed": outcome.run.seed,
                "found": outcome.found,
                "missed": outcome.missed,
                "false": [{"rule": rule, "severity": str(severity)} for rule, severity in outcome.false],
                "layer_right": outcome.layer_right,
                "time_to_verdict_s": None if outcome.verdict_s is None else _finite(outcome.verdict_s),
                "flaps_per_3min": outcome.flaps,
                "stall_share_error": outcome.stall_error,
                "notes": outcome.notes,
                "problem": outcome.problem or None,
            }
            for outcome in everything.outcomes
        ],
    }


def _plain(one: Score) -> dict[str, Any]:
    rules = {
        rule: {"required": n.required, "found": n.found, "missed": n.missed, "false": n.false}
        for rule, n in one.rules.items()
    }
    return {"total": one.total, "rules": rules}


_FIGURES = (
    ("recall", "{:.3f}"),
    ("precision", "{:.3f}"),
    ("false_warnings", "{:d}"),
    ("false_warnings_healthy", "{:d}"),
    ("false_notices_per_healthy_hour", "{:.2f}"),
    ("layer_right", "{:.3f}"),
    ("time_to_verdict_s", "{:.0f}"),
    ("flaps_per_3min", "{:.2f}"),
    ("stall_share_error", "{:.3f}"),
)


def as_text(scores: dict[str, Score]) -> list[str]:
    """The tables people read: per rule, what went wrong where, and the figures of each cadence."""
    everything = score([outcome for one in scores.values() for outcome in one.outcomes])
    return [
        *_rule_lines(everything),
        "",
        *_wrong_lines(everything.outcomes),
        *_figure_lines(scores),
    ]


def _rule_lines(one: Score) -> list[str]:
    width = max([len("rule"), *map(len, one.rules)])
    lines = [f"{'rule':<{width}}  required  found  missed  false"]
    for rule, n in one.rules.items():
        lines.append(f"{rule:<{width}}  {n.required:8d}  {n.found:5d}  {n.missed:6d}  {n.false:5d}")
    return lines


def _wrong_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What went wrong, a line for each kind, with the number of runs it happened in."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], tuple[str, int, str]] = {}
    for outcome in outcomes:
        notes = [*outcome.notes, *([outcome.problem] if outcome.problem else [])]
        for note in notes:
            key = (outcome.run.scenario, note.split(":")[0])
            counts[key] += 1
            first.setdefault(key, (outcome.run.cadence, outcome.run.seed, note))
    if not counts:
        return []
    lines = ["wrong, with the number of runs and the first of them:"]
    for (scenario, _), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        place = first[(scenario, _)]
        lines.append(f"  {scenario} x{count}: {place[2]} ({place[0]}, seed {place[1]})")
    return [*lines, ""]


def _figure_lines(scores: dict[str, Score]) -> list[str]:
    names = list(scores)
    width = max(len(name) for name, _ in _FIGURES)
    lines = [" " * width + "".join(f"{name:>9}" for name in names)]
    lines.append(f"{'runs':<{width}}" + "".join(f"{scores[name].total['runs']:>9}" for name in names))
    for figure, form in _FIGURES:
        cells = []
        for name in names:
            value = scores[name].total[figure]
            cells.append(f"{'-' if value is None else form.format(value):>9}")
        lines.append(f"{figure:<{width}}" + "".join(cells))
    return lines
