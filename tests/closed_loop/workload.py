"""A training-like program with a pretended GPU: reads files, prepares batches, computes, keeps books.

    python workload.py --file F --slot 0 --data D --truth T --seconds 60 --workers 0 --prepare-ms 300

Batches are prepared (real reads, real CPU time) by the main process, or by worker processes named as
PyTorch names its own. The GPU's time is claimed, everything else is real. At its end it writes the shares
of its time as JSON: computing, and waiting for a batch.
"""

import argparse
import ctypes
import json
import multiprocessing
import time
import zlib
from pathlib import Path
from typing import Any

from gpu_file import PretendedGpu

PR_SET_NAME = 15
BLOCK = b"sample " * 9000


def prepare(data: Path, cpu_s: float) -> int:
    """One batch: read the file, then use the CPU for that long."""
    sum_ = zlib.crc32(data.read_bytes())
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        sum_ ^= zlib.crc32(BLOCK)
    return sum_


def worker(data: Path, cpu_s: float, batches: Any) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"pt_data_worker", 0, 0, 0)
    while True:
        batches.put(prepare(data, cpu_s))


def wait_until(end_ns: int, spin: bool) -> None:
    """As CUDA waits for its GPU: spinning, or asleep with blocking synchronisation."""
    while (left_ns := end_ns - time.time_ns()) > 0:
        if not spin:
            time.sleep(left_ns / 1e9)


def train(options: argparse.Namespace) -> dict[str, float]:
    gpu = PretendedGpu(options.file, options.slot, 8 << 30)
    context = multiprocessing.get_context("fork")
    batches = context.Queue(2 * max(1, options.workers))
    cpu_s = options.prepare_ms / 1000
    for _ in range(options.workers):
        context.Process(target=worker, args=(options.data, cpu_s, batches), daemon=True).start()
    start, computing_s, steps = time.monotonic(), 0.0, 0
    while time.monotonic() - start < options.seconds:
        if options.workers:
            batches.get()
        else:
            prepare(options.data, cpu_s)
        end_ns = gpu.run(options.compute_ms / 1000)
        wait_until(end_ns, options.spin)
        computing_s += options.compute_ms / 1000
        steps += 1
    whole_s = time.monotonic() - start
    return {"steps": steps, "computing": computing_s / whole_s, "waiting": 1 - computing_s / whole_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--file", "--data", "--truth"):
        parser.add_argument(name, type=Path, required=True)
    for name, default in (("--slot", 0), ("--workers", 0)):
        parser.add_argument(name, type=int, default=default)
    for name, default in (("--seconds", 60.0), ("--prepare-ms", 300.0), ("--compute-ms", 150.0)):
        parser.add_argument(name, type=float, default=default)
    parser.add_argument("--spin", action="store_true")
    options = parser.parse_args()
    options.truth.write_text(json.dumps(train(options)))


if __name__ == "__main__":
    main()
