"""Texts of the rules about health and sight."""

from gpuwatch.diagnosis.texts.health import errors, watch
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**errors.TEXTS, **watch.TEXTS}
