"""All rules, in the order of their numbers. Each layer's package registers its own."""

from gpuwatch.diagnosis.interface import Rule
from gpuwatch.diagnosis.rules import code, data, environment, gpus, hardware, health

#: Exits that the catalogue states in seconds are in the rules' own windows; others are counted in looks.
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (*hardware.RULES, *environment.RULES, *data.RULES, *code.RULES, *gpus.RULES, *health.RULES),
        key=lambda rule: rule.number,
    )
)
