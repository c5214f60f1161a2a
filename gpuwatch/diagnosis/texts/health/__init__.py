"""Texts of the rules about health and sight."""

from gpuwatch.diagnosis.texts.health import watch
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**watch.TEXTS}
