"""Rules about the training program itself."""

from gpuwatch.diagnosis.interface import Rule

RULES: tuple[Rule, ...] = ()
