"""What a scenario says is right: the lines that begin with `#expect`, `#forbid`, `#verdict` and their kin.

They are comments to whatever plays the file. tests/scenarios/FORMAT.md describes them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from gpuwatch.model import Confidence, Layer, Severity

DURATION_S = 180.0
#: Drawn anew for each seed where a scenario does not say otherwise, by this share up or down.
SPREAD = 0.3
VARIED = ("period", "duty", "noise")


class LabelError(Exception):
    """A mistake in a label: one sentence with the line it stands in."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)


@dataclass(frozen=True, slots=True)
class Expect:
    """One finding that must come: any of `rules`. Shares are of wall time, 0..1; times in seconds."""

    rules: tuple[str, ...]
    severity_min: Severity = Severity.STATE
    severity_max: Severity = Severity.CRITICAL
    confidences: tuple[Confidence, ...] = ()
    share: tuple[float, float] | None = None
    gpu: int | None = None
    from_s: float | None = None
    by_s: float | None = None


@dataclass(frozen=True, slots=True)
class Forbid:
    """Findings that must not come at `severity` or above: names, or patterns with `*`."""

    rules: tuple[str, ...]
    severity: Severity = Severity.NOTICE
    before_s: float | None = None
    after_s: float | None = None

    def matches(self, rule: str) -> bool:
        return any(fnmatchcase(rule, pattern) for pattern in self.rules)


@dataclass(slots=True)
class Labels:
    """All labels of one scenario."""

    duration_s: float = DURATION_S
    onset_s: float = 0.0
    healthy: bool = False
    expects: list[Expect] = field(default_factory=list)
    forbids: list[Forbid] = field(default_factory=list)
    allows: list[Forbid] = field(default_factory=list)
    layers: tuple[Layer, ...] = ()
    verdict_rules: tuple[str, ...] = ()
    verdict_at_s: float | None = None
    stall: float | str | None = None  # a share, "auto", or None: not measured
    vary: dict[str, float] = field(default_factory=lambda: dict.fromkeys(VARIED, SPREAD))
    slow: bool = False


def parse_labels(text: str, known_rules: frozenset[str]) -> Labels:
    """The labels in the text of a scenario. Raises LabelError."""
    labels = Labels()
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rest = line.partition(" ")
        reader = _READERS.get(word)
        if reader is None:
            continue
        try:
            reader(labels, rest.partition(" # ")[0].split())
        except (ValueError, KeyError, IndexError) as error:
            raise LabelError(f"cannot read {line.strip()[:60]!r} ({_reason(error)})", number) from None
        for rule in _named(labels):
            if rule not in known_rules and "*" not in rule:
                raise LabelError(f"there is no finding {rule!r}", number)
    return labels


def _named(labels: Labels) -> list[str]:
    lists = [entry.rules for entry in labels.expects]
    lists += [entry.rules for entry in (*labels.forbids, *labels.allows)]
    return [rule for rules in lists for rule in rules] + list(labels.verdict_rules)


def _reason(error: Exception) -> str:
    return str(error.args[0]) if error.args else "something is missing"


def _duration(labels: Labels, words: list[str]) -> None:
    labels.duration_s = float(words[0])


def _onset(labels: Labels, words: list[str]) -> None:
    labels.onset_s = float(words[0])


def _healthy(labels: Labels, words: list[str]) -> None:
    labels.healthy = True


def _slow(labels: Labels, words: list[str]) -> None:
    labels.slow = True


def _stall(labels: Labels, words: list[str]) -> None:
    labels.stall = None if words[0] == "none" else "auto" if words[0] == "auto" else float(words[0])


def _vary(labels: Labels, words: list[str]) -> None:
    """`#vary NAME [SPREAD] NAME [SPREAD] ...`"""
    name = ""
    for word in words:
        if re.fullmatch(r"[\d.]+", word):
            labels.vary[name] = float(word)
        else:
            name = word
            labels.vary[name] = SPREAD


def _fixed(labels: Labels, words: list[str]) -> None:
    for name in words or list(labels.vary):
        labels.vary.pop(name, None)


def _verdict(labels: Labels, words: list[str]) -> None:
    """`#verdict data|code [rule=A|B] [at=S]`"""
    labels.layers = tuple(Layer(word) for word in words[0].split("|"))
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "rule":
            labels.verdict_rules = tuple(value.split("|"))
        elif key == "at":
            labels.verdict_at_s = float(value)
        else:
            raise ValueError(f"unknown word {word}")


_CONDITION = re.compile(r"([a-z]+)(>=|<=|=)(\S+)")


def _expect(labels: Labels, words: list[str]) -> None:
    fields: dict[str, object] = {}
    for word in words[1:]:
        found = _CONDITION.fullmatch(word)
        if not found:
            raise ValueError(f"unknown word {word}")
        fields |= _expected_field(*found.groups())
    labels.expects.append(Expect(tuple(words[0].split("|")), **fields))  # type: ignore[arg-type]


def _expected_field(key: str, operator: str, value: str) -> dict[str, object]:
    if key == "severity":
        severity = Severity(value)
        low, high = operator in (">=", "="), operator in ("<=", "=")
        fields = (("severity_min", low), ("severity_max", high))
        return {name: severity for name, bound in fields if bound}
    if key == "confidence":
        return {"confidences": tuple(Confidence(word) for word in value.split("|"))}
    if key == "share":
        low_text, _, high_text = value.partition("..")
        return {"share": (float(low_text), float(high_text))}
    if key == "gpu":
        return {"gpu": int(value)}
    if key in ("from", "by"):
        return {f"{key}_s": float(value)}
    raise ValueError(f"unknown word {key}")


def _rules_and_limits(words: list[str]) -> Forbid:
    """`RULE|PATTERN ... [at=SEVERITY] [before=S] [after=S]`"""
    rules: list[str] = []
    fields: dict[str, object] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            rules += word.split("|")
        elif key == "at":
            fields["severity"] = Severity(value)
        elif key in ("before", "after"):
            fields[f"{key}_s"] = float(value)
        else:
            raise ValueError(f"unknown word {word}")
    if not rules:
        raise ValueError("no finding is named")
    return Forbid(tuple(rules), **fields)  # type: ignore[arg-type]


def _forbid(labels: Labels, words: list[str]) -> None:
    labels.forbids.append(_rules_and_limits(words))


def _allow(labels: Labels, words: list[str]) -> None:
    labels.allows.append(_rules_and_limits(words))


_READERS: dict[str, Callable[[Labels, list[str]], None]] = {
    "#duration": _duration,
    "#onset": _onset,
    "#healthy": _healthy,
    "#slow": _slow,
    "#stall": _stall,
    "#vary": _vary,
    "#fixed": _fixed,
    "#verdict": _verdict,
    "#expect": _expect,
    "#forbid": _forbid,
    "#allow": _allow,
}
