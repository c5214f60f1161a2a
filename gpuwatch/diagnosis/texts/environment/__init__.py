"""Texts of the rules about what surrounds the job."""

from gpuwatch.diagnosis.texts.environment import machine, sharing, software
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**machine.TEXTS, **sharing.TEXTS, **software.TEXTS}
