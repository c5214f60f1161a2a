"""Whatever the machine does, each ledger sums to one: random ticks through history and all rules."""

from dataclasses import replace

import pytest
from build import Bench, Gpu, Process, Scene
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.diagnosis.engine import Engine
from gpuwatch.model import Burst, GpuState, GpuStatus, Sample

SECONDS = 40
LOST = GpuStatus(GpuState.LOST, "lost", since_s=1.0)
SILENT = GpuStatus(GpuState.NOT_ANSWERING, "no answer", since_s=1.0)

#: What may be gone or strange in one tick of one GPU.
strange = st.sampled_from(
    [
        {},
        {},
        {},
        {"status": LOST},
        {"status": SILENT},
        {"utilization_ratio": None, "utilization_burst": Burst()},
        {"memory_utilization_ratio": None, "memory_utilization_burst": Burst()},
        {"utilization_burst": Burst((5.0, 4.0), (2.0, -1.0))},
        {"power_w": None, "sm_clock_mhz": None, "event_reasons": None},
        {"event_reasons": 0x20, "sm_clock_mhz": 300.0},
        {"event_reasons": 0x4, "power_limit_w": 100.0},
        {"processes": None},
        {"processes": ()},
        {"sw_thermal_time_ns": 0, "power_cap_time_ns": 0, "pcie_rx_bytes": 0, "energy_j": 0.0},
        {"sw_thermal_time_ns": 10**18, "pcie_rx_bytes": 2**63, "energy_j": 1e12},
    ]
)
tick = st.tuples(
    strange, strange, st.sampled_from(["", "", "", "no host", "no processes", "no gpus", "skip"])
)


def made(sample: Sample, changes: tuple[dict[str, object], dict[str, object], str]) -> Sample | None:
    *of_gpus, of_host = changes
    if of_host == "skip":
        return None
    gpus = tuple(replace(gpu, **change) for gpu, change in zip(sample.gpus, of_gpus, strict=True))
    sample = replace(sample, gpus=() if of_host == "no gpus" else gpus)
    if of_host == "no host":
        sample = replace(sample, host=None)
    if of_host == "no processes":
        sample = replace(sample, processes=None)
    return sample


@given(
    ticks=st.lists(tick, min_size=SECONDS, max_size=SECONDS),
    duty=st.floats(0.0, 1.0),
    period=st.floats(0.3, 9.0),
    restart=st.integers(5, SECONDS),
    interval_s=st.sampled_from([0.2, 1.0, 7.0]),
)
@settings(max_examples=25, deadline=None)
def test_every_ledger_of_every_tick_sums_to_one(ticks, duty, period, restart, interval_s):
    def busy(t: float) -> float:
        return 0.97 if (t % period) < duty * period else 0.0

    after = restart * interval_s
    scene = Scene(
        gpus=[
            Gpu(busy, pids=((100, 2**34), (200, 2**34))),
            Gpu(1.0, memory_util=0.01, uuid="GPU-1", index=1, pids=((100, 2**34),)),
        ],
        processes=[
            Process(100, until=after),
            Process(200, since=after, start_ticks=5000, age_s=0.0),
        ],
        interval_s=interval_s,
    )
    bench = Bench(Engine(), interval_s)
    for sample, changes in zip(scene.samples(SECONDS * interval_s), ticks, strict=True):
        changed = made(sample, changes)
        if changed is None:
            continue
        if bench.diagnosis is None:
            changed = replace(changed, machine=scene.machine())
        diagnosis = bench.feed(changed)
        drawn = [*diagnosis.ledgers.values()]
        for spans in diagnosis.spans.values():
            drawn += [spans.minute, spans.quarter, spans.run]
        for ledger in drawn:
            ratios = [part.ratio for part in ledger.parts]
            assert sum(ratios) == pytest.approx(1.0, abs=1e-9)
            assert min(ratios) >= 0.0
