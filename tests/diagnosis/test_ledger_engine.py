"""The ledgers of the whole engine, over samples in which anything may be missing, lost or start anew."""

from dataclasses import replace

from build import GIB, Bench, Gpu, Process, Scene, square
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.diagnosis.engine import Engine
from gpuwatch.model import Burst, GpuReading, GpuState, GpuStatus, ProcessReading, Sample

LOST = GpuStatus(GpuState.LOST, "lost")
#: What may happen to a GPU in one tick.
MISHAPS = (
    "lost",
    "absent",
    "stale",
    "no utilization",
    "no bursts",
    "no memory utilization",
    "no clocks",
    "no processes",
    "counters start anew",
)


def hit(reading: GpuReading, mishap: str | None, now: float) -> GpuReading | None:
    if mishap == "lost":
        return GpuReading(reading.uuid, reading.index, now, LOST)
    if mishap == "absent":
        return None
    changes: dict[str, dict[str, object]] = {
        "stale": {"read_s": now - 30.0},
        "no utilization": {"utilization_ratio": None, "utilization_burst": Burst()},
        "no bursts": {"utilization_burst": Burst(), "memory_utilization_burst": Burst()},
        "no memory utilization": {"memory_utilization_ratio": None, "memory_utilization_burst": Burst()},
        "no clocks": {"sm_clock_mhz": None, "event_reasons": None},
        "no processes": {"processes": None},
        "counters start anew": {"energy_j": 0.5, "pcie_rx_bytes": 3, "pcie_tx_bytes": 0},
    }
    return replace(reading, **changes.get(mishap or "", {}))


def anew(process: ProcessReading) -> ProcessReading:
    """Counters that go back: another process took the pid, or the kernel's wrapped."""
    return replace(process, cpu_ns=1, wait_ns=0, read_bytes=0, write_bytes=0, read_chars=0)


def starved_pair() -> Scene:
    busy = square(0.0, 0.97, 1.4, 0.5)
    gpus = [
        Gpu(util=wave, memory_util=0.4, uuid=f"GPU-{place}", index=place, pids=((100 + place, 20 * GIB),))
        for place, wave in enumerate((busy, 0.98))
    ]
    for gpu in gpus:
        gpu.fields = {
            "energy_j": lambda t: 300.0 * t,
            "pcie_rx_bytes": lambda t: round(1e8 * t),
            "pcie_tx_bytes": lambda t: round(1e7 * t),
        }
    return Scene(gpus, [Process(100 + place, parent_pid=50, group_id=50) for place in range(2)])


SAMPLES = list(starved_pair().samples(80))
mishaps = st.lists(
    st.tuples(st.integers(0, 79), st.integers(1, 12), st.integers(0, 1), st.sampled_from(MISHAPS)), max_size=6
)
host_mishaps = st.lists(
    st.tuples(st.integers(1, 79), st.sampled_from(("dropped", "anew", "gone"))), max_size=6
)


def played(struck: list[tuple[int, int, int, str]], host: list[tuple[int, str]]) -> list[Sample]:
    found = []
    for number, sample in enumerate(SAMPLES):
        here = {what for tick, what in host if tick == number}
        if "dropped" in here:
            continue
        readings = [
            hit(reading, next((m for t, n, g, m in struck if g == place and t <= number < t + n), None), now)
            for place, reading in enumerate(sample.gpus)
            for now in (sample.monotonic_s,)
        ]
        processes = sample.processes or ()
        if "anew" in here:
            processes = tuple(anew(process) for process in processes)
        found.append(
            replace(
                sample,
                gpus=tuple(reading for reading in readings if reading is not None),
                processes=None if "gone" in here else processes,
            )
        )
    return found


@given(mishaps, host_mishaps)
@settings(max_examples=25, deadline=None)
def test_every_ledger_sums_to_one_whatever_is_missing(struck, host):
    bench = Bench(Engine())
    for sample in played(struck, host):
        diagnosis = bench.feed(sample)
        spans = [ledger for one in diagnosis.spans.values() for ledger in (one.quarter, one.run)]
        for ledger in (*diagnosis.ledgers.values(), *spans):
            ratios = [part.ratio for part in ledger.parts]
            assert sum(ratios) == 1.0
            assert min(ratios) >= 0.0
        assert all("rule failed" not in entry.reason for entry in diagnosis.not_checked)
