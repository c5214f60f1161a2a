"""Texts of the rules about the training program."""

from gpuwatch.diagnosis.texts.code import run, step
from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {**step.TEXTS, **run.TEXTS}
