"""Texts of the rules about what surrounds the job."""

from gpuwatch.diagnosis.texts.environment import sharing
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**sharing.TEXTS}
