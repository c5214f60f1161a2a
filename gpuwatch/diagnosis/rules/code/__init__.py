"""Rules about the training program itself."""

from gpuwatch.diagnosis.interface import STEADY, STEADY_OR_EPISODE, Rule
from gpuwatch.diagnosis.rules.code.launch import launch_bound, sync_stalls
from gpuwatch.diagnosis.rules.code.levers import batch_headroom, memory_bandwidth_bound, tensor_cores_idle
from gpuwatch.diagnosis.rules.code.memory import vram_growth, vram_near_limit
from gpuwatch.diagnosis.rules.code.pauses import episode_overhead, gpu_held_idle, slower_than_itself
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import JobState, Kind

RULES: tuple[Rule, ...] = (
    rule("launch-bound", "job", Kind.LOSS, launch_bound, states=STEADY, enter=2, leave=2),
    rule("batch-headroom", "job", Kind.OPPORTUNITY, batch_headroom, states=STEADY, every_s=30.0),
    rule("tensor-cores-idle", "job", Kind.OPPORTUNITY, tensor_cores_idle, states=STEADY, every_s=10.0),
    rule("episode-overhead", "job", Kind.LOSS, episode_overhead, states=STEADY_OR_EPISODE),
    rule("sync-stalls", "job", Kind.LOSS, sync_stalls, states=STEADY, enter=3, leave=3),
    rule("memory-bandwidth-bound", "job", Kind.STATE, memory_bandwidth_bound, states=STEADY, every_s=10.0),
    rule("vram-near-limit", "gpu", Kind.RISK, vram_near_limit, states=STEADY),
    rule("vram-growth", "gpu", Kind.RISK, vram_growth, states=STEADY, every_s=30.0),
    rule("slower-than-itself", "job", Kind.LOSS, slower_than_itself, states=STEADY, every_s=30.0),
    rule(
        "gpu-held-idle",
        "job",
        Kind.RISK,
        gpu_held_idle,
        states=frozenset({JobState.PAUSED}),
        every_s=30.0,
    ),
)
