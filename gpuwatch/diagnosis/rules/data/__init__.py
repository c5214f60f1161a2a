"""Rules about feeding the GPU: loader, disk, network, host memory."""

from gpuwatch.diagnosis.interface import STEADY, Rule
from gpuwatch.diagnosis.rules.data.loader_main import loader_in_main_process
from gpuwatch.diagnosis.rules.data.loader_workers import loader_cpu_bound, loader_too_few_workers
from gpuwatch.diagnosis.rules.data.starved import gpu_starved
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import Kind

RULES: tuple[Rule, ...] = (
    rule("gpu-starved", "job", Kind.LOSS, gpu_starved, states=STEADY, enter=3, leave=6, without_process=True),
    rule("loader-in-main-process", "job", Kind.LOSS, loader_in_main_process, states=STEADY, enter=2, leave=2),
    rule("loader-too-few-workers", "job", Kind.LOSS, loader_too_few_workers, states=STEADY, enter=2, leave=2),
    rule("loader-cpu-bound", "job", Kind.LOSS, loader_cpu_bound, states=STEADY, enter=2, leave=2),
)
