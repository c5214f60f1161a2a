"""Rules about the health of the card, and about what gpuwatch itself can see."""

from gpuwatch.diagnosis.interface import Rule
from gpuwatch.diagnosis.rules.health.watch import gpu_lost, telemetry_degraded
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import Kind

RULES: tuple[Rule, ...] = (
    rule("gpu-lost", "gpu", Kind.RISK, gpu_lost, every_s=1.0, without_data=True),
    rule(
        "telemetry-degraded",
        "host",
        Kind.STATE,
        telemetry_degraded,
        every_s=1.0,
        enter=3,
        leave=30,
        without_data=True,
    ),
)
