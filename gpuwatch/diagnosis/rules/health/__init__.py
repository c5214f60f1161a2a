"""Rules about the health of the card, and about what gpuwatch itself can see."""

from gpuwatch.diagnosis.interface import Rule
from gpuwatch.diagnosis.rules.health.errors import ecc_remap, persistence_off, stuck_process, xid
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
        every_s=2.0,
        enter=2,
        leave=15,
        without_data=True,
    ),
    rule("xid", "gpu", Kind.RISK, xid, on_events=True),
    rule("ecc-remap", "gpu", Kind.RISK, ecc_remap, on_events=True),
    rule("stuck-process", "job", Kind.RISK, stuck_process, every_s=10.0),
    rule("persistence-off", "gpu", Kind.STATE, persistence_off, every_s=30.0),
)
