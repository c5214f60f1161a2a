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
    """`render` words one finding; the rest does not depend on it.

    `title` is the rule in general, `label` its part of the ledger bar. `sees`, `decides`, `unlike`, `todo`
    and `sources` are whole sentences: what is looked at, the thresholds, what it must not be confused
    with, what helps, and where the thresholds come from.
    """

    title: str
    label: str
    render: Callable[[Fires, Window], FindingText]
    sees: str
    decides: str
    unlike: str
    todo: str
    sources: str
