"""Texts of the rules about several GPUs."""

from gpuwatch.diagnosis.texts.gpus import division, waits
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**division.TEXTS, **waits.TEXTS}
