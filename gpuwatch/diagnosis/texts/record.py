"""What a rule says: its words for one finding, and its explanation for `gpuwatch explain`."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import FindingText

#: A first step of advice has this many cells at most, so that it fits beside a finding.
SHORT_ADVICE = 36


@dataclass(frozen=True, slots=True)
class RuleText:
    """`render` words one finding; the rest does not depend on it. All are messages (gpuwatch.language).

    `title` is the rule in general, `label` its part of the ledger bar. `sees` is one sentence that
    explains it; `decides` states the thresholds; `unlike` what it must not be confused with; `steps` are
    two or three things to do, the cheapest first; `wrong_if` and `settle` what would refute it and the
    one experiment that decides; `sources` where the thresholds come from.
    """

    title: str
    label: str
    render: Callable[[Fires, Window], FindingText]
    sees: str
    decides: str
    unlike: str
    steps: tuple[str, ...]
    wrong_if: str
    settle: str
    sources: str
