"""Rules about what surrounds the job: CPU limits, neighbours, software."""

from gpuwatch.diagnosis.interface import STEADY, STEADY_OR_PAUSED, Rule
from gpuwatch.diagnosis.rules.environment.cpu_limits import cpu_quota_throttled, host_cpu_contention
from gpuwatch.diagnosis.rules.environment.sharing import gpu_shared
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import JobState, Kind

_QUOTA_STATES = frozenset({JobState.STARTING, JobState.STEADY})

RULES: tuple[Rule, ...] = (
    rule("gpu-shared", "gpu", Kind.LOSS, gpu_shared, states=STEADY_OR_PAUSED, leave=12),
    rule("cpu-quota-throttled", "job", Kind.LOSS, cpu_quota_throttled, states=_QUOTA_STATES),
    rule("host-cpu-contention", "job", Kind.LOSS, host_cpu_contention, states=STEADY),
)
