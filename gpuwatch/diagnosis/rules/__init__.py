"""All rules that are built, in the order of their numbers."""

from collections.abc import Callable

from gpuwatch.diagnosis.catalogue import NUMBERS
from gpuwatch.diagnosis.interface import (
    ANY_STATE,
    STEADY,
    STEADY_OR_PAUSED,
    Outcome,
    Rule,
)
from gpuwatch.diagnosis.rules.cpu_limits import cpu_quota_throttled, host_cpu_contention
from gpuwatch.diagnosis.rules.health import gpu_lost, telemetry_degraded
from gpuwatch.diagnosis.rules.heat import thermal_throttle
from gpuwatch.diagnosis.rules.loader_main import loader_in_main_process
from gpuwatch.diagnosis.rules.loader_workers import loader_cpu_bound, loader_too_few_workers
from gpuwatch.diagnosis.rules.pcie_link import pcie_gen_reduced, pcie_width_reduced
from gpuwatch.diagnosis.rules.power_limit import power_limit_lowered
from gpuwatch.diagnosis.rules.sharing import gpu_shared
from gpuwatch.diagnosis.rules.slowdown import hw_slowdown
from gpuwatch.diagnosis.rules.starved import gpu_starved
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import JobState, Kind

_QUOTA_STATES = frozenset({JobState.STARTING, JobState.STEADY})


def _rule(
    rule_id: str,
    scope: str,
    kind: Kind,
    evaluate: Callable[[Window, bool], Outcome],
    *,
    states: frozenset[JobState] = ANY_STATE,
    every_s: float = 5.0,
    enter: int = 1,
    leave: int = 1,
    without_data: bool = False,
    without_process: bool = False,
) -> Rule:
    return Rule(
        id=rule_id,
        number=NUMBERS[rule_id],
        scope=scope,
        kind=kind,
        evaluate=evaluate,
        states=states,
        every_s=every_s,
        enter_evaluations=enter,
        exit_evaluations=leave,
        without_data=without_data,
        without_process=without_process,
    )


#: Exits that the catalogue states in seconds are in the rules' own windows; others are counted in looks.
RULES: tuple[Rule, ...] = (
    _rule("hw-slowdown", "gpu", Kind.LOSS, hw_slowdown, every_s=2.0),
    _rule("thermal-throttle", "gpu", Kind.LOSS, thermal_throttle, every_s=3.0),
    _rule("power-limit-lowered", "gpu", Kind.OPPORTUNITY, power_limit_lowered, enter=2),
    _rule("pcie-width-reduced", "gpu", Kind.OPPORTUNITY, pcie_width_reduced, every_s=10.0),
    _rule("pcie-gen-reduced", "gpu", Kind.OPPORTUNITY, pcie_gen_reduced, every_s=10.0),
    _rule("gpu-shared", "gpu", Kind.LOSS, gpu_shared, states=STEADY_OR_PAUSED, leave=12),
    _rule("cpu-quota-throttled", "job", Kind.LOSS, cpu_quota_throttled, states=_QUOTA_STATES),
    _rule("host-cpu-contention", "job", Kind.LOSS, host_cpu_contention, states=STEADY),
    _rule(
        "gpu-starved", "job", Kind.LOSS, gpu_starved, states=STEADY, enter=3, leave=6, without_process=True
    ),
    _rule(
        "loader-in-main-process", "job", Kind.LOSS, loader_in_main_process, states=STEADY, enter=2, leave=2
    ),
    _rule(
        "loader-too-few-workers", "job", Kind.LOSS, loader_too_few_workers, states=STEADY, enter=2, leave=2
    ),
    _rule("loader-cpu-bound", "job", Kind.LOSS, loader_cpu_bound, states=STEADY, enter=2, leave=2),
    _rule("gpu-lost", "gpu", Kind.RISK, gpu_lost, every_s=1.0, without_data=True),
    _rule(
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
