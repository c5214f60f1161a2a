"""Machines and jobs that are as they should be: every rule stays silent."""

import pytest
from build import GIB, Gpu, Process, Scene, noisy, square
from watch import watch

from gpuwatch.model import ProcessRole


def workers(count: int, cpu: float, trainer: int = 100) -> list[Process]:
    return [
        Process(
            trainer * 10 + i, cpu=cpu, role=ProcessRole.WORKER, trainer_pid=trainer, name="pt_data_worker"
        )
        for i in range(count)
    ]


def idle_desktop() -> Scene:
    fields = {"pcie_generation": 1, "fan_ratio": 0.0, "temperature_c": 38.0, "p_state": 8}
    gpus = [
        Gpu(
            uuid=f"GPU-{i}",
            index=i,
            util=noisy(0.015, 0.015),
            power=25.0,
            clock=210.0,
            reasons=1,
            pids=(),
            fields=fields,
        )
        for i in range(2)
    ]
    return Scene(gpus, [])


def compile_warmup() -> Scene:
    compilers = [
        Process(
            300 + i,
            cpu=1.0,
            role=ProcessRole.CHILD,
            trainer_pid=100,
            name="ptxas",
            command="ptxas -O3",
            until=130.0,
        )
        for i in range(4)
    ]

    def util(t: float) -> float:
        return 0.5 if t < 12 else 0.0 if t < 130 else 0.96

    return Scene([Gpu(util=util)], [Process(100, cpu=1.0, age_s=5.0, reads=30e6), *compilers])


def inference_server() -> Scene:
    served = Process(100, cpu=1.0, reads=20e6, name="ollama", command="/usr/bin/ollama serve")
    return Scene([Gpu(util=lambda t: 0.9 if t % 60 < 10 else 0.0)], [served])


def memory_bound() -> Scene:
    gpu = Gpu(util=0.99, memory_util=0.82, power=230.0)
    return Scene([gpu], [Process(100), *workers(4, 0.2)])


def pipeline_parallel() -> Scene:
    gpus = [
        Gpu(uuid=f"GPU-{i}", index=i, util=noisy(level, 0.02), power=300.0, pids=((100 + i, 20 * GIB),))
        for i, level in enumerate((0.96, 0.90, 0.88, 0.75))
    ]
    ranks = [Process(100 + i, command=f"python train.py --rank {i}", parent_pid=50) for i in range(4)]
    return Scene(gpus, ranks)


def memory_nearly_full() -> Scene:
    return Scene([Gpu(util=0.95, fields={"memory_used_bytes": round(22.8 * GIB)})])


def spin_wait() -> Scene:
    return Scene([Gpu(util=0.98, power=310.0)], [Process(100, cpu=1.0, reads=5e6), *workers(8, 0.3)])


def ddp_of_eight() -> Scene:
    gpus = [
        Gpu(uuid=f"GPU-{i}", index=i, util=noisy(0.97, 0.02), pids=((100 + i, 20 * GIB),)) for i in range(8)
    ]
    ranks = [Process(100 + i, command=f"python train.py --rank {i}", parent_pid=50) for i in range(8)]
    loaders = [worker for i in range(8) for worker in workers(2, 0.4, 100 + i)]
    return Scene(gpus, [*ranks, *loaders], cores=64, host={"cpu_pressure_ratio": 0.15})


def two_jobs_on_two_cards() -> Scene:
    gpus = [
        Gpu(uuid=f"GPU-{i}", index=i, util=0.95, pids=((100 + i, 20 * GIB),), power=250.0) for i in range(2)
    ]
    jobs = [
        Process(100 + i, command=f"python job{i}.py", user=user, group_id=100 + i, extra={"sm_ratio": 0.9})
        for i, user in enumerate(("alice", "bob"))
    ]
    return Scene(gpus, jobs)


def fast_steps() -> Scene:
    """Gaps of 3 % between steps, as every training has."""
    return Scene([Gpu(util=square(0, 1.0, 0.5, 0.97), power=320.0)], [Process(100), *workers(4, 0.5)])


SCENES = {
    "n03": (idle_desktop, 120),
    "n04": (compile_warmup, 220),
    "n09": (inference_server, 150),
    "n10": (memory_bound, 120),
    "n12": (pipeline_parallel, 120),
    "n15": (spin_wait, 120),
    "n27": (memory_nearly_full, 90),
    "eight": (ddp_of_eight, 90),
    "two jobs": (two_jobs_on_two_cards, 90),
    "fast steps": (fast_steps, 90),
}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("buffered", [True, False])
def test_every_rule_is_silent(name, buffered):
    make, seconds = SCENES[name]
    scene = make()
    scene.jitter = 0.25
    for gpu in scene.gpus:
        gpu.buffered = buffered
    _, bench = watch(scene, seconds)
    assert not bench.alarms
