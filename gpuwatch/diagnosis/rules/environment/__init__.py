"""Rules about what surrounds the job: CPU limits, neighbours, software."""

from gpuwatch.diagnosis.interface import STEADY, STEADY_OR_PAUSED, Rule
from gpuwatch.diagnosis.rules.environment.cards import (
    ghost_memory,
    shm_nearly_full,
    sysmem_spill,
    wrong_gpu,
)
from gpuwatch.diagnosis.rules.environment.cores import (
    cpu_governor,
    cpu_mask_narrow,
    numa_remote,
    thread_oversubscription,
)
from gpuwatch.diagnosis.rules.environment.cpu_limits import cpu_quota_throttled, host_cpu_contention
from gpuwatch.diagnosis.rules.environment.sharing import gpu_shared
from gpuwatch.diagnosis.rules.environment.software import (
    arch_jit,
    debug_env_on,
    driver_runtime_mismatch,
    library_shadowing,
    not_on_gpu,
)
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import JobState, Kind

_QUOTA_STATES = frozenset({JobState.STARTING, JobState.STEADY})
_WITH_JOB = frozenset(JobState) - {JobState.NO_JOB}
_STARTING = frozenset({JobState.STARTING})

RULES: tuple[Rule, ...] = (
    rule("numa-remote", "job", Kind.OPPORTUNITY, numa_remote, states=STEADY, every_s=10.0, enter=2, leave=2),
    rule("gpu-shared", "gpu", Kind.LOSS, gpu_shared, states=STEADY_OR_PAUSED, leave=12),
    rule("ghost-memory", "gpu", Kind.RISK, ghost_memory, every_s=10.0, enter=6, leave=2),
    rule("not-on-gpu", "host", Kind.OPPORTUNITY, not_on_gpu, every_s=10.0, enter=2, leave=3),
    rule(
        "driver-runtime-mismatch", "job", Kind.RISK, driver_runtime_mismatch, states=_WITH_JOB, every_s=30.0
    ),
    rule("arch-jit", "job", Kind.STATE, arch_jit, states=_STARTING, every_s=10.0),
    rule("library-shadowing", "job", Kind.OPPORTUNITY, library_shadowing, states=_WITH_JOB, every_s=30.0),
    rule("debug-env-on", "job", Kind.OPPORTUNITY, debug_env_on, states=_WITH_JOB, every_s=30.0),
    rule("cpu-quota-throttled", "job", Kind.LOSS, cpu_quota_throttled, states=_QUOTA_STATES),
    rule("cpu-mask-narrow", "job", Kind.OPPORTUNITY, cpu_mask_narrow, states=STEADY, enter=2, leave=3),
    rule("host-cpu-contention", "job", Kind.LOSS, host_cpu_contention, states=STEADY),
    rule(
        "thread-oversubscription", "job", Kind.LOSS, thread_oversubscription, states=STEADY, enter=2, leave=3
    ),
    rule("cpu-governor", "job", Kind.OPPORTUNITY, cpu_governor, states=STEADY, every_s=10.0),
    rule("shm-nearly-full", "job", Kind.RISK, shm_nearly_full, states=_WITH_JOB, every_s=10.0),
    rule("wrong-gpu", "job", Kind.OPPORTUNITY, wrong_gpu, states=STEADY, every_s=10.0),
    rule("sysmem-spill", "job", Kind.LOSS, sysmem_spill, states=STEADY, every_s=10.0),
)
