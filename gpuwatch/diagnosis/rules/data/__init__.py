"""Rules about feeding the GPU: loader, disk, network, host memory."""

from gpuwatch.diagnosis.interface import STEADY, STEADY_OR_EPISODE, Rule
from gpuwatch.diagnosis.rules.data.loader_main import loader_in_main_process
from gpuwatch.diagnosis.rules.data.loader_workers import loader_cpu_bound, loader_too_few_workers
from gpuwatch.diagnosis.rules.data.memory import host_ram_pressure, host_swapping
from gpuwatch.diagnosis.rules.data.starved import gpu_starved
from gpuwatch.diagnosis.rules.data.storage import (
    loader_disk_bound,
    loader_network_bound,
    page_cache_cold,
    page_cache_thrash,
)
from gpuwatch.diagnosis.rules.data.workers import (
    loader_respawn,
    loader_too_many_workers,
    loader_worker_imbalance,
    pageable_copies,
)
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import Kind

RULES: tuple[Rule, ...] = (
    rule("gpu-starved", "job", Kind.LOSS, gpu_starved, states=STEADY, enter=3, leave=6, without_process=True),
    rule("loader-in-main-process", "job", Kind.LOSS, loader_in_main_process, states=STEADY, enter=2, leave=2),
    rule("loader-too-few-workers", "job", Kind.LOSS, loader_too_few_workers, states=STEADY, enter=2, leave=2),
    rule("loader-cpu-bound", "job", Kind.LOSS, loader_cpu_bound, states=STEADY, enter=2, leave=2),
    rule(
        "loader-worker-imbalance", "job", Kind.LOSS, loader_worker_imbalance, states=STEADY, enter=2, leave=2
    ),
    rule(
        "loader-too-many-workers",
        "job",
        Kind.OPPORTUNITY,
        loader_too_many_workers,
        states=STEADY,
        every_s=10.0,
        enter=2,
        leave=6,
    ),
    rule("loader-disk-bound", "job", Kind.LOSS, loader_disk_bound, states=STEADY, enter=2, leave=3),
    rule("page-cache-cold", "job", Kind.STATE, page_cache_cold, states=STEADY, every_s=10.0),
    rule("page-cache-thrash", "job", Kind.LOSS, page_cache_thrash, states=STEADY, every_s=10.0, enter=2),
    rule("loader-network-bound", "job", Kind.LOSS, loader_network_bound, states=STEADY, enter=2, leave=3),
    rule("pageable-copies", "job", Kind.LOSS, pageable_copies, states=STEADY, enter=2, leave=3),
    rule("host-swapping", "host", Kind.LOSS, host_swapping),
    rule("host-ram-pressure", "host", Kind.RISK, host_ram_pressure, every_s=10.0),
    rule("loader-respawn", "job", Kind.LOSS, loader_respawn, states=STEADY_OR_EPISODE, every_s=10.0),
)
