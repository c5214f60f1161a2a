"""Rules about several GPUs working on one job."""

from gpuwatch.diagnosis.interface import STEADY, STEADY_OR_EPISODE, Rule
from gpuwatch.diagnosis.rules.gpus.division import (
    dp_single_process,
    gpu_imbalance,
    gpus_unused,
    p2p_or_nvlink_down,
)
from gpuwatch.diagnosis.rules.gpus.waits import collective_hang, comm_wait, straggler_card
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import JobState, Kind

_UNDER_WAY = frozenset({JobState.STEADY, JobState.EPISODE, JobState.PAUSED})

RULES: tuple[Rule, ...] = (
    rule(
        "dp-single-process", "job", Kind.OPPORTUNITY, dp_single_process, states=STEADY, every_s=10.0, enter=2
    ),
    rule("gpu-imbalance", "job", Kind.LOSS, gpu_imbalance, states=STEADY, enter=3, leave=3),
    rule("straggler-card", "job", Kind.LOSS, straggler_card, states=STEADY, enter=2, leave=3),
    rule("comm-wait", "job", Kind.LOSS, comm_wait, states=STEADY, enter=2, leave=3),
    rule("p2p-or-nvlink-down", "job", Kind.OPPORTUNITY, p2p_or_nvlink_down, states=STEADY, every_s=30.0),
    rule("collective-hang", "job", Kind.RISK, collective_hang, states=_UNDER_WAY),
    rule("gpus-unused", "job", Kind.OPPORTUNITY, gpus_unused, states=STEADY_OR_EPISODE, every_s=30.0),
)
