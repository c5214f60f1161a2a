"""How long diagnosing takes: an hour of samples in memory, through history and all rules.

    python benchmarks/diagnose_hour.py [SCENARIO] [MINUTES]

Prints CPU seconds for history, rules and both, and milliseconds a tick. The samples are made first and do
not count.
"""

import gc
import sys
import time

from gpuwatch.diagnosis.engine import Engine
from gpuwatch.history import History
from gpuwatch.model import Sample
from gpuwatch.sources.live import run_simulated


def cpu_s(samples: list[Sample], with_rules: bool) -> float:
    """CPU time of one pass over the samples."""
    history, engine = History(1.0), Engine()
    machine = samples[0].machine
    assert machine is not None
    gc.collect()
    start = time.process_time()
    for sample in samples:
        history.append(sample)
        if with_rules:
            engine.evaluate(history, sample, sample.machine or machine)
    return time.process_time() - start


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "straggler"
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    samples = list(run_simulated(name, minutes * 60))
    history, whole = cpu_s(samples, False), cpu_s(samples, True)
    gpus = len(samples[0].gpus)
    print(f"{name}: {gpus} GPUs, {len(samples)} ticks")
    for what, seconds in (("history", history), ("rules", whole - history), ("both", whole)):
        print(f"{what:8} {seconds:6.2f} s  {seconds / len(samples) * 1000:6.3f} ms a tick")


if __name__ == "__main__":
    main()
