"""Rules about several GPUs working on one job."""

from gpuwatch.diagnosis.interface import Rule

RULES: tuple[Rule, ...] = ()
