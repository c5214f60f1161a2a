"""Texts of the rules about the training program."""

from gpuwatch.diagnosis.texts.record import RuleText

TEXTS: dict[str, RuleText] = {}
