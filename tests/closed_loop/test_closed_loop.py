"""Real processes in front of a pretended GPU: the cause that is named is the true one.

Everything but the driver is this machine: scheduler counters, reads, process tree, real time. The truth
comes from the programs' own books. Slow: it watches for the better part of a minute.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gpu_file
import pytest

from gpuwatch.model import Diagnosis, LedgerKey, Severity, severity_at_least
from gpuwatch.session import Session
from gpuwatch.sources.base import Clock
from gpuwatch.sources.joined import JoinedSource
from gpuwatch.sources.nvml import InlineNvml
from gpuwatch.sources.simulated import load, simulated
from gpuwatch.sources.tree import DiskTree
from gpuwatch.state import State

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

WATCH_S = 48.0
SCENARIO = """
gpus = 2 x rtx3090
util = busy({path})
mem_util = busy_membw({path})
power = 110 + 220*busy_power({path})/100
mem_used = 8Gi
[proc]
pid = busy_pid({path})
gpu = *
mem = busy_mem({path})
"""


class OlderTree(DiskTree):
    """This machine, but everything was started ten minutes earlier: a young job is not judged yet."""

    def read(self, path: str) -> bytes:
        return self._older(path, super().read(path))

    def again(self, path: str) -> bytes:
        return self._older(path, super().again(path))

    @staticmethod
    def _older(path: str, data: bytes) -> bytes:
        if path != "/proc/uptime":
            return data
        up, idle = data.split()
        return b"%.2f %s\n" % (float(up) + 600.0, idle)


def started(folder: Path, slot: int, *options: str) -> subprocess.Popen[bytes]:
    program = Path(__file__).parent / "workload.py"
    files = ["--file", folder / "gpus", "--data", folder / "data", "--truth", folder / f"truth{slot}"]
    command = [sys.executable, program, *files, "--slot", str(slot), "--seconds", str(WATCH_S + 4), *options]
    return subprocess.Popen([str(word) for word in command])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[State, list[dict[str, float]]]]:
    """GPU 0: the main process prepares its batches. GPU 1: a worker does, and keeps up."""
    folder = tmp_path_factory.mktemp("closed")
    gpu_file.create(folder / "gpus")
    (folder / "data").write_bytes(b"x" * (2 << 20))
    (folder / "two.scn").write_text(SCENARIO.format(path=folder / "gpus"))
    programs = [
        started(folder, 0, "--workers", "0", "--prepare-ms", "500", "--compute-ms", "300"),
        started(folder, 1, "--workers", "1", "--prepare-ms", "60", "--compute-ms", "400"),
    ]
    try:
        state = watch(folder / "two.scn")
        for program in programs:
            program.wait(timeout=60)
        yield state, [json.loads((folder / f"truth{slot}").read_text()) for slot in range(2)]
    finally:
        for program in programs:
            program.kill()
            program.wait()


def watch(scenario: Path) -> State:
    clock, tree, session = Clock(), OlderTree(), Session(interval_s=1.0)
    with simulated(load(str(scenario)), clock):
        source = JoinedSource(clock, tree, InlineNvml(clock, tree, interval_s=1.0), interval_s=1.0)
        source.open()
        start = due = time.monotonic()
        state = session.feed(source.sample(due))
        while due - start < WATCH_S:
            due += 1.0
            while (left := due - time.monotonic()) > 0:
                pause = source.between()
                time.sleep(min(left, pause) if pause is not None else left)
            state = session.feed(source.sample(due))
        source.close()
    return state


def seen(state: State, index: int) -> tuple[Diagnosis, str]:
    assert state.diagnosis is not None
    assert state.sample is not None
    return state.diagnosis, state.sample.gpus[index].uuid


def share(diagnosis: Diagnosis, uuid: str, *keys: LedgerKey) -> float:
    return sum(part.ratio for part in diagnosis.ledgers[uuid].parts if part.key in keys)


def test_the_main_process_is_named_and_its_share_is_true(watched):
    state, truths = watched
    diagnosis, uuid = seen(state, 0)
    found = {finding.rule: finding for finding in diagnosis.findings if uuid in finding.gpus}
    assert "loader-in-main-process" in found
    assert severity_at_least(found["loader-in-main-process"].severity, Severity.WARNING)
    assert share(diagnosis, uuid, LedgerKey.WAITING) == pytest.approx(truths[0]["waiting"], abs=0.05)
    assert diagnosis.verdict.rule == "loader-in-main-process"


def test_the_fed_gpu_is_left_alone(watched):
    state, truths = watched
    diagnosis, uuid = seen(state, 1)
    assert truths[1]["computing"] > 0.85, "this machine was too busy to feed a GPU"
    named = {
        finding.rule: finding.severity
        for finding in (*diagnosis.findings, *diagnosis.ended)
        if uuid in finding.gpus and severity_at_least(finding.severity, Severity.NOTICE)
    }
    assert named == {}
    busy = share(diagnosis, uuid, LedgerKey.BUSY, LedgerKey.SLOWED)
    assert busy == pytest.approx(truths[1]["computing"], abs=0.05)
