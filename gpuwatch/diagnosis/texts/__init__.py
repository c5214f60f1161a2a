"""The words of all rules: for a finding, for the ledger bar, and for `gpuwatch explain`."""

import textwrap
from collections.abc import Mapping
from difflib import get_close_matches

from gpuwatch.diagnosis.catalogue import NUMBERS, PLACES
from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts import code, data, environment, gpus, hardware, health
from gpuwatch.diagnosis.texts.record import SHORT_ADVICE, RuleText
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import CHECKS, LAYERS, FindingText

__all__ = ["SHORT_ADVICE", "TEXTS", "RuleText", "explain", "label", "listing", "render", "titles"]

_ALL = {
    **hardware.TEXTS,
    **environment.TEXTS,
    **data.TEXTS,
    **code.TEXTS,
    **gpus.TEXTS,
    **health.TEXTS,
}
#: Texts of the built rules by id, in the order of their numbers.
TEXTS: Mapping[str, RuleText] = {rule: _ALL[rule] for rule in NUMBERS if rule in _ALL}
_WIDTH = 92


def render(rule_id: str, fires: Fires, window: Window) -> FindingText:
    """The words of one finding. KeyError for a rule without texts."""
    return TEXTS[rule_id].render(fires, window)


def label(rule_id: str) -> str:
    """The rule's name in the ledger bar; its id where it has no text."""
    text = TEXTS.get(rule_id)
    return rule_id if text is None else text.label


def titles() -> dict[str, str]:
    """General titles of all built rules, by id, in the order of their numbers."""
    return {rule: text.title for rule, text in TEXTS.items()}


def listing() -> list[str]:
    """All rules by layer, one line each: id and general title."""
    width = max(map(len, TEXTS))
    lines: list[str] = []
    for layer in LAYERS:
        lines += [*([""] if lines else []), layer.value]
        lines += [
            f"  {rule:<{width}}  {say(text.title)}"
            for rule, text in TEXTS.items()
            if PLACES[rule][0] is layer
        ]
    return lines


def explain(rule_id: str) -> str:
    """What the rule sees, how it decides, what it is not, what to do, and its sources.

    KeyError with a whole sentence for an unknown rule.
    """
    text = TEXTS.get(rule_id)
    if text is None:
        raise KeyError(_unknown(rule_id))
    layer, check = PLACES[rule_id]
    row = next((f", check {c.number} {c.label}" for c in CHECKS if c.key == check), ", shown as a banner")
    parts = [f"{rule_id} (R{NUMBERS[rule_id]:02}, {layer.value}{row})", text.title]
    for head, body in (
        (say("What it sees."), text.sees),
        (say("How it decides."), text.decides),
        (say("What it is not."), text.unlike),
    ):
        parts += ["", *_wrapped(f"{head} {say(body)}")]
    parts += ["", say("What to do.")]
    for number, step in enumerate(text.steps, start=1):
        parts += _wrapped(f"{number}. {say(step)}", indent="   ")
    for head, body in (
        (say("Wrong if"), text.wrong_if),
        (say("Settle it:"), text.settle),
        (say("Where this comes from."), text.sources),
    ):
        parts += ["", *_wrapped(f"{head} {say(body)}")]
    return "\n".join(parts)


def _wrapped(paragraph: str, indent: str = "") -> list[str]:
    """Lines of a paragraph; a percent sign stays with its figure, a space before it."""
    held = paragraph.replace(" %", "%").replace("%", "\N{NO-BREAK SPACE}%")
    found = textwrap.wrap(held, _WIDTH, subsequent_indent=indent)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in found]


def _unknown(rule_id: str) -> str:
    near = get_close_matches(rule_id, TEXTS, n=3, cutoff=0.5)
    near += [rule for rule in TEXTS if rule_id and rule_id in rule and rule not in near]
    if near:
        return f"there is no rule {rule_id!r}; near it: {', '.join(near[:4])}"
    return f"there is no rule {rule_id!r}; the rules are {', '.join(TEXTS)}"
