"""Rules about several GPUs working on one job."""

from functools import partial

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
#: These look at all GPUs of a job at once.
_team = partial(rule, scope="job", of_team=True)

RULES: tuple[Rule, ...] = (
    _team(
        "dp-single-process",
        kind=Kind.OPPORTUNITY,
        evaluate=dp_single_process,
        states=STEADY,
        every_s=10.0,
        enter=2,
    ),
    _team("gpu-imbalance", kind=Kind.LOSS, evaluate=gpu_imbalance, states=STEADY, enter=3, leave=3),
    _team("straggler-card", kind=Kind.LOSS, evaluate=straggler_card, states=STEADY, enter=2, leave=3),
    _team("comm-wait", kind=Kind.LOSS, evaluate=comm_wait, states=STEADY, enter=2, leave=3),
    _team(
        "p2p-or-nvlink-down", kind=Kind.OPPORTUNITY, evaluate=p2p_or_nvlink_down, states=STEADY, every_s=30.0
    ),
    _team("collective-hang", kind=Kind.RISK, evaluate=collective_hang, states=_UNDER_WAY),
    _team("gpus-unused", kind=Kind.OPPORTUNITY, evaluate=gpus_unused, states=STEADY_OR_EPISODE, every_s=30.0),
)
