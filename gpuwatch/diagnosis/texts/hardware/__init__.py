"""Texts of the rules about the card itself."""

from gpuwatch.diagnosis.texts.hardware import card, cooling, link
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**card.TEXTS, **cooling.TEXTS, **link.TEXTS}
