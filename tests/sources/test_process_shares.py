from gpuwatch.model import GpuProcess, GpuReading, ProcessReading, ProcessRole
from gpuwatch.sources.joined import with_shares


def process(pid: int) -> ProcessReading:
    return ProcessReading(pid, 1, 1, "python", "python train.py", ProcessRole.TRAINER)


def gpu(index: int, *processes: GpuProcess) -> GpuReading:
    return GpuReading(f"GPU-{index}", index, 0.0, processes=processes)


def test_each_process_gets_the_share_of_its_busiest_gpu():
    gpus = [
        gpu(0, GpuProcess(1, "C", sm_ratio=0.2), GpuProcess(2, "C", sm_ratio=0.0)),
        gpu(1, GpuProcess(1, "C", sm_ratio=0.7)),
    ]
    shares = [one.sm_ratio for one in with_shares((process(1), process(2), process(3)), gpus)]
    assert shares == [0.7, 0.0, None]


def test_without_shares_nothing_is_copied():
    processes = (process(1),)
    assert with_shares(processes, [gpu(0, GpuProcess(1, "C"))]) is processes
    assert with_shares(processes, [GpuReading("GPU-0", 0, 0.0)]) is processes
