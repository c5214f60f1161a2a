"""Fabricated states for the views: GPUs with waveforms, a host, processes, and a diagnosis as given.

Nothing is diagnosed here. `Machinery(...).state()` is a state a session would hand out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuwatch.history import History
from gpuwatch.model import (
    CHECKS,
    CheckResult,
    CheckState,
    Confidence,
    CpuTimes,
    Diagnosis,
    DiskReading,
    DriverInfo,
    DriverState,
    DriverStatus,
    Event,
    Evidence,
    Finding,
    FindingText,
    GpuInfo,
    GpuProcess,
    GpuReading,
    GpuStatus,
    HostInfo,
    HostReading,
    JobState,
    JobStatus,
    Kind,
    Layer,
    Ledger,
    LedgerKey,
    LedgerPart,
    Machine,
    MigReading,
    NetworkReading,
    ProcessReading,
    ProcessRole,
    Sample,
    Severity,
    ThreadReading,
    Verdict,
)
from gpuwatch.state import State

GIB = 1 << 30
START_S = 5000.0
H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "memory_total_bytes": 80 * GIB,
    "power_limit_default_w": 700.0,
    "power_limit_max_w": 700.0,
    "sm_clock_max_mhz": 1980.0,
    "temperature_slowdown_c": 87.0,
    "pcie_generation_max": 5,
    "pcie_width_max": 16,
}

Change = Callable[[int, int, dict[str, Any]], dict[str, Any] | None]


def uuid(index: int) -> str:
    return f"GPU-{index:04d}"


def pulses(second: int, index: int) -> float:
    """Busy for two of five seconds; the upper half of the cards a second later."""
    return 0.98 - index / 200 if (second + (index >= 4)) % 5 < 2 else 0.01 * (index % 3)


@dataclass
class Fabric:
    """A machine over time. `change(second, index, fields)` alters one reading, None drops it."""

    gpus: int = 1
    seconds: int = 90
    cores: int = 64
    workers: int = 0
    label: str | None = None
    change: Change | None = None
    info: dict[str, Any] = field(default_factory=dict)
    mig: int = 0
    driver: DriverStatus = field(default_factory=lambda: DriverStatus(DriverState.OK))
    user: str = "alice"
    command: str = "python train.py --config configs/resnet50.yaml --rank {index}"
    hidden_processes: int = 0
    interval_s: float = 1.0

    def machine(self) -> Machine:
        infos = tuple(
            GpuInfo(uuid=uuid(i), index=i, mig_enabled=bool(self.mig), **{**H100, **self.info})
            for i in range(self.gpus)
        )
        host = HostInfo("trainbox", logical_cores=self.cores, memory_total_bytes=503 * GIB)
        return Machine(host, DriverInfo(version="560.35.03", cuda_version="12.6"), infos, self.label)

    def sample(self, second: int) -> Sample:
        now = START_S + second * self.interval_s
        readings = [self.gpu(second, i, now) for i in range(self.gpus)]
        return Sample(
            number=second,
            monotonic_s=now,
            wall_s=1.7e9 + second,
            interval_s=self.interval_s,
            driver=self.driver,
            gpus=tuple(reading for reading in readings if reading is not None),
            host=self.host(second, now),
            processes=self.processes(second),
            hidden_processes=self.hidden_processes,
            machine=self.machine() if second == 0 else None,
        )

    def gpu(self, second: int, i: int, now: float) -> GpuReading | None:
        util = pulses(second, i)
        fields: dict[str, Any] = {
            "utilization_ratio": util,
            "power_w": 170.0 + 330 * util + 3 * i,
            "power_limit_w": 700.0,
            "sm_clock_mhz": 1980.0 if util > 0.5 else 1755.0,
            "p_state": 0 if second % 40 < 30 else 2,
            "temperature_c": 61.0 + i % 4,
            "memory_total_bytes": 80 * GIB,
            "memory_used_bytes": int(38.2 * GIB),
            "pcie_generation": 5,
            "pcie_width": 16,
            "pcie_rx_bytes_per_s": 2.1e8 if util > 0.5 else 1e6,
            "pcie_tx_bytes_per_s": 2e7,
            "event_reasons": 0,
            "fan_ratio": 0.4,
            "processes": (GpuProcess(2100 + i, "C", int(38.2 * GIB)),),
            "mig": tuple(
                MigReading(f"MIG-{i}-{k}", k, 0, "1g.10gb", 3 * GIB, 10 * GIB, 0.3) for k in range(self.mig)
            ),
        }
        if self.change is not None:
            changed = self.change(second, i, fields)
            if changed is None:
                return None
            fields = changed
        return GpuReading(**{"uuid": uuid(i), "index": i, "read_s": now, **fields})

    def host(self, second: int, now: float) -> HostReading:
        busy = [0.9 if core % 8 == 0 else 0.02 for core in range(self.cores)]
        used, total = sum(busy) * now, self.cores * now
        return HostReading(
            read_s=now,
            cpu=CpuTimes(used, 0.0, total - used, 0.0, 0.0, total),
            core_busy_s=tuple(share * now for share in busy),
            core_total_s=(now,) * self.cores,
            core_ids=tuple(range(self.cores)),
            load_1m=3.1,
            cpu_pressure_us=int(now * 20_000),
            io_pressure_us=int(now * 150_000),
            memory_pressure_us=0,
            memory_total_bytes=503 * GIB,
            memory_available_bytes=442 * GIB,
            swap_total_bytes=8 * GIB,
            swap_used_bytes=0,
            swap_in_bytes=0,
            swap_out_bytes=0,
            disks=(
                DiskReading("nvme0n1", second, 0, int(61e6 * now), int(2e6 * now), 0, 0, int(340 * now), 0),
                DiskReading("sda", second, 0, 0, 0, 0, 0, 0, 0),
            ),
            networks=(NetworkReading("eth0", int(4e5 * now), int(1e5 * now)),),
        )

    def processes(self, second: int) -> tuple[ProcessReading, ...]:
        now = START_S + second
        found = []
        for i in range(self.gpus):
            key = (2100 + i, 77)
            found.append(
                ProcessReading(
                    pid=key[0],
                    start_ticks=key[1],
                    parent_pid=1,
                    name="python",
                    command=self.command.format(index=i),
                    role=ProcessRole.TRAINER,
                    age_s=8049.0 + second,
                    trainer=key,
                    user=self.user,
                    uid=1000,
                    state="R",
                    cpu_ns=int(0.97e9 * now),
                    wait_ns=int(0.01e9 * now),
                    read_chars=int(61e6 * now),
                    threads=(ThreadReading(key[0], "python", "R", int(0.96e9 * now), 0),),
                )
            )
            found += [self.worker(3000 + 100 * i + k, key, now) for k in range(self.workers)]
        return tuple(found)

    def worker(self, pid: int, trainer: tuple[int, int], now: float) -> ProcessReading:
        return ProcessReading(
            pid=pid,
            start_ticks=78,
            parent_pid=trainer[0],
            name="python",
            command="python train.py",
            role=ProcessRole.WORKER,
            trainer=trainer,
            user=self.user,
            cpu_ns=int(0.9e9 * now),
            read_chars=int(5e6 * now),
        )

    def state(self, diagnosis: Diagnosis | None = None, **fields: Any) -> State:
        """The state after `seconds` ticks; without a diagnosis given, the fabricated one."""
        history = History(self.interval_s)
        sample = None
        for second in range(self.seconds):
            sample = self.sample(second)
            history.append(sample)
        now_s = START_S + max(0, self.seconds - 1) * self.interval_s
        given: dict[str, Any] = {
            "history": history,
            "now_s": now_s,
            "tick": history.count,
            "machine": self.machine() if sample is not None else None,
            "sample": sample,
            "diagnosis": diagnosis if diagnosis is not None or sample is None else starved(self.gpus, now_s),
            "own_cpu_ratio": 0.008,
            "own_rss_bytes": 47 << 20,
        }
        return State(**(given | fields))


def finding(rule: str = "loader-in-main-process", **fields: Any) -> Finding:
    """A loss of the data layer on GPU 0, as a rule of the product would state it."""
    given: dict[str, Any] = {
        "subject": f"gpu:{uuid(0)}",
        "gpus": (uuid(0),),
        "layer": Layer.DATA,
        "check": "ldr",
        "kind": Kind.LOSS,
        "severity": Severity.WARNING,
        "confidence": Confidence.LIKELY,
        "started_s": START_S + 20,
        "updated_s": START_S + 89,
        "text": FindingText(
            title="batches are prepared in the main process (0 workers)",
            because=(
                "main thread 0.97 core in the gaps",
                "14 of 16 cores free",
                "reads 61 MB/s",
            ),
            wrong_if="the step itself does CPU work (metrics, reinforcement learning)",
            settle="num_workers=4 for 100 steps, or random tensors",
            advice=("set num_workers=4 in the DataLoader and watch 100 steps", "pin_memory=True"),
            short_advice="num_workers=4, watch 100 steps",
        ),
        "share_ratio": 0.62,
        "share_low_ratio": 0.58,
        "share_high_ratio": 0.66,
        "worst_share_ratio": 0.64,
        "speedup": 2.6,
        "speedup_max": 2.9,
        "evidence": (
            Evidence("stall_ratio", "GPU waits", 0.62, "ratio", ">= 8 %", 60.0, "utilization_ratio"),
            Evidence("period_s", "period", 5.0, "s", "", 60.0),
            Evidence("gapcpu_main_cores", "main thread in the gaps", 0.97, "cores", ">= 0.8", 60.0),
        ),
    }
    return Finding(rule=rule, **(given | fields))


def lever(
    rule: str = "tensor-cores-idle", title: str = "tensor cores not seen busy", **fields: Any
) -> Finding:
    given: dict[str, Any] = {
        "layer": Layer.CODE,
        "check": "cod",
        "kind": Kind.OPPORTUNITY,
        "severity": Severity.NOTICE,
        "confidence": Confidence.POSSIBLE,
        "text": FindingText(title, ("tensor pipe 0 %; SM clock full",), short_advice="bf16 autocast"),
        "share_ratio": None,
        "share_low_ratio": None,
        "share_high_ratio": None,
        "evidence": (),
    }
    return finding(rule, **(given | fields))


STATES = (
    (CheckState.FINE, "no limit in 10 min; 61-64 °C"),
    (CheckState.FINE, "gen 5 x16 under load, as built"),
    (CheckState.UNMEASURABLE, "no rule for this yet"),
    (CheckState.FINE, "14 of 16 cores free, no quota"),
    (CheckState.NAMED, "batches are prepared in the main process (0 workers)"),
    (CheckState.WAITING, "needs a minute of a steady job"),
    (CheckState.POSSIBLE, "tensor cores not seen busy"),
    (CheckState.UNMEASURABLE, "one GPU only"),
)


def check_results() -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(check, state, text, seconds_left=24.0 if state is CheckState.WAITING else None)
        for check, (state, text) in zip(CHECKS, STATES, strict=True)
    )


def ledger(gpu: str, **ratios: float) -> Ledger:
    parts = (
        LedgerPart(LedgerKey.BUSY, 0.38),
        LedgerPart(LedgerKey.PAUSE, 0.04),
        LedgerPart(LedgerKey.WAITING, 0.58, Layer.DATA, "loader-in-main-process", "data loader"),
    )
    if ratios:
        parts = tuple(LedgerPart(LedgerKey[name.upper()], ratio) for name, ratio in ratios.items())
    return Ledger(gpu, 60.0, parts)


def starved(gpus: int, now_s: float, findings: Sequence[Finding] | None = None, **fields: Any) -> Diagnosis:
    """Three findings and an ended one; the loader is to blame."""
    uuids = tuple(uuid(i) for i in range(gpus))
    if not gpus:
        verdict = Verdict("no GPU here", action="start it where there is one, or gpuwatch demo")
        return Diagnosis(now_s, verdict, checks=check_results())
    main = finding(gpus=uuids)
    found = (main, lever(gpus=uuids), lever("batch-headroom", "42 of 80 GiB never used", gpus=uuids))
    several = "the GPUs wait" if gpus > 1 else "the GPU waits"
    verdict = Verdict(
        headline=f"{several} 58-66 % of the time",
        detail=f"{main.text.title}; about 2.6x, at most 2.9x",
        layer=Layer.DATA,
        confidence=Confidence.LIKELY,
        severity=Severity.WARNING,
        rule=main.rule,
        subject=main.subject,
        because=main.text.because,
        wrong_if=main.text.wrong_if,
        settle=main.text.settle,
        action=main.text.short_advice,
        after_that="tensor cores not seen busy",
        since_s=START_S + 30,
    )
    given: dict[str, Any] = {
        "checks": check_results(),
        "findings": found if findings is None else tuple(findings),
        "ended": (
            replace(
                lever("episode-overhead", "checkpoints pause the job", gpus=uuids),
                ended_s=now_s - 34,
                started_s=now_s - 42,
            ),
        ),
        "ledgers": {one: ledger(one) for one in uuids},
        "jobs": {one: JobStatus(one, JobState.STEADY, START_S, (2100, 77)) for one in uuids},
    }
    return Diagnosis(now_s, verdict, **(given | fields))


def healthy(gpus: int, now_s: float) -> Diagnosis:
    uuids = tuple(uuid(i) for i in range(gpus))
    return Diagnosis(
        now_s,
        Verdict("nothing outside the model slows this GPU", detail="busy 98 % of the time"),
        checks=tuple(CheckResult(check, CheckState.FINE, "nothing found") for check in CHECKS),
        ledgers={one: ledger(one, busy=0.98, idle=0.02) for one in uuids},
        jobs={one: JobStatus(one, JobState.STEADY, START_S, (2100, 77)) for one in uuids},
    )


def lost(message: str = "lost: it does not answer on the bus any more", since_s: float = START_S + 70) -> Any:
    from gpuwatch.model import GpuState

    return GpuStatus(GpuState.LOST, message, "look for Xid 79 in the kernel log", since_s, 15)


def event(kind: str, message: str, time_s: float) -> Event:
    return Event(time_s, kind, message)


KEYS = (
    ("?", "help"),
    ("q", "quit"),
    ("space", "freeze"),
    ("enter", "why"),
    ("n/N", "finding"),
    ("1-8", "check"),
    ("tab", "panel"),
    ("z", "zoom"),
    ("[ ]", "time"),
    ("+ -", "scale"),
    ("e", "export"),
    ("ctrl+p", "more"),
)
