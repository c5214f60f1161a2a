"""The real bindings on the simulated driver: calls go round through pynvml, structures and all."""

from itertools import pairwise

import pynvml
import pytest

STARVED = "gpus = rtx3090\nutil = square(0, 97, period=1.4, duty=0.36)\nmem_used = 20Gi\npower = 200\n"


def test_versions_and_inventory(play) -> None:
    play("gpus = 2 x rtx3090\ndriver = 570.86\ncuda = 12.8\n")
    assert pynvml.nvmlSystemGetDriverVersion() == "570.86"
    assert pynvml.nvmlSystemGetNVMLVersion() == "12.570.86"
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 12080
    assert pynvml.nvmlDeviceGetCount() == 2
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetName(handle) == "NVIDIA GeForce RTX 3090"
    assert pynvml.nvmlDeviceGetPciInfo(handle).busId == "00000000:25:00.0"
    assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == (8, 6)
    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle) == [100_000, 366_000]
    assert pynvml.nvmlDeviceGetTemperatureThreshold(handle, 1) == 95
    assert pynvml.nvmlDeviceGetIndex(handle) == 1


def test_one_card_by_every_name(play) -> None:
    play("gpus = 2 x a100\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    for same in (
        pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(handle)),
        pynvml.nvmlDeviceGetHandleBySerial(pynvml.nvmlDeviceGetSerial(handle)),
        pynvml.nvmlDeviceGetHandleByPciBusId(pynvml.nvmlDeviceGetPciInfo(handle).busId),
    ):
        assert pynvml.nvmlDeviceGetIndex(same) == 1
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-0")
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(2)


def test_a_library_that_is_not_started_or_not_there(play) -> None:
    driver = play(STARVED, init=False).driver
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetName(handle)
    driver.uninstall()
    assert pynvml.nvmlLib is not driver


def test_utilization_samples_are_means_of_whole_periods(play) -> None:
    clock = play(STARVED).clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    clock.advance(60)
    kind, samples = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
    assert kind == 1
    assert len(samples) == 100
    stamps = [sample.timeStamp for sample in samples]
    spacing = {round((b - a) / 1000) for a, b in pairwise(stamps)}
    assert spacing == {167}
    assert stamps[-1] <= clock.wall_s() * 1e6 < stamps[-1] + 170_000
    values = [sample.sampleValue.uiVal for sample in samples]
    assert sum(values) / len(values) == pytest.approx(97 * 0.36, abs=1.5)
    assert {0, 97} < set(values)
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetSamples(handle, 1, stamps[-1])
    clock.advance(1)
    _, fresh = pynvml.nvmlDeviceGetSamples(handle, 1, stamps[-1])
    assert len(fresh) == 6
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == fresh[-1].sampleValue.uiVal


def test_samples_do_not_depend_on_when_they_are_asked_for(play) -> None:
    def drained(step: float) -> dict[int, int]:
        found: dict[int, int] = {}
        running = play(STARVED)
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        for _ in range(round(12 / step)):
            running.clock.advance(step)
            _, samples = pynvml.nvmlDeviceGetSamples(handle, 1, max(found, default=0))
            found |= {sample.timeStamp: sample.sampleValue.uiVal for sample in samples}
        return found

    often, rarely = drained(1.0), drained(4.0)
    both = often.keys() & rarely.keys()
    assert len(both) > 100
    assert {stamp: often[stamp] for stamp in both} == {stamp: rarely[stamp] for stamp in both}
    assert max(often) == max(rarely)


def test_energy_and_power_tell_the_same(play) -> None:
    clock = play("gpus = h100\npower = square(100, 500, period=2, duty=0.5)\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    clock.advance(10)
    before = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    clock.advance(20)
    joules = (pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before) / 1000
    assert joules == pytest.approx(300 * 20, rel=0.01)
    assert pynvml.nvmlDeviceGetPowerUsage(handle) / 1000 == pytest.approx(100, abs=5)  # mean of 1 s


def test_counters_never_fall(play) -> None:
    clock = play("gpus = h100\nutil = square(0, 95, 1.1, 0.5)\nnvlink_tx = 4G + noise(1G)\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    ids = [83, 74, 75, 76, 269, 197, 198, (138, 0xFFFFFFFF), (139, 0xFFFFFFFF)]
    last = [0] * len(ids)
    for _ in range(50):
        clock.advance(0.37)
        fields = pynvml.nvmlDeviceGetFieldValues(handle, ids)
        assert [field.nvmlReturn for field in fields] == [0] * len(ids)
        values = [field.value.ullVal for field in fields]
        assert all(new >= old for new, old in zip(values, last, strict=True))
        last = values


def test_time_under_a_reason_is_counted(play) -> None:
    clock = play("gpus = rtx3090\nthrottle = square(0, sw_power_cap, period=2, duty=0.85)\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def capped_s() -> float:
        return pynvml.nvmlDeviceGetFieldValues(handle, [74])[0].value.ullVal / 1e9

    clock.advance(4)
    start = capped_s()
    clock.advance(100)
    assert capped_s() - start == pytest.approx(85, abs=1)
    assert pynvml.nvmlDeviceGetViolationStatus(handle, 0).violationTime / 1e9 == pytest.approx(capped_s())


@pytest.mark.parametrize(
    ("driver", "thermal_field"), [("580.95.05", 269), ("580.82.07", 269), ("580.65.06", 251), ("575.51", 251)]
)
def test_field_ids_of_reasons_follow_the_driver(play, driver: str, thermal_field: int) -> None:
    play(f"gpus = rtx3090\ndriver = {driver}\nthrottle = sw_thermal\n").clock.advance(10)
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    by_id = {field: pynvml.nvmlDeviceGetFieldValues(handle, [field])[0] for field in (251, 269)}
    assert by_id[thermal_field].value.ullVal == pytest.approx(10e9, rel=0.02)
    other = 520 - thermal_field
    assert by_id[other].nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_fields_fail_one_by_one(play) -> None:
    play("gpus = rtx3090\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    energy, memory_temperature, none = pynvml.nvmlDeviceGetFieldValues(handle, [83, 82, 9999])
    assert energy.nvmlReturn == pynvml.NVML_SUCCESS
    assert memory_temperature.nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert none.nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_narrow_pcie_counters_wrap(play) -> None:
    clock = play("gpus = rtx3090\npcie_rx = 1G\npcie_counter_bits = 32\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    seen = []
    for _ in range(20):
        clock.advance(1)
        seen.append(pynvml.nvmlDeviceGetFieldValues(handle, [198])[0].value.ullVal)
    assert max(seen) < 2**32
    steps = {(b - a) % 2**32 for a, b in pairwise(seen)}
    assert all(abs(step - 10**9) < 10 for step in steps)
    assert any(b < a for a, b in pairwise(seen))


def test_throughput_takes_its_time_and_measures_it(play) -> None:
    clock = play("gpus = rtx3090\npcie_rx = 512M\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    before = clock.monotonic_s()
    assert pynvml.nvmlDeviceGetPcieThroughput(handle, 1) == pytest.approx(512e6 / 1024, rel=0.01)
    assert clock.monotonic_s() - before == pytest.approx(0.020)


def test_memory_both_ways(play) -> None:
    play("gpus = rtx3090\nmem_used = 10Gi\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    assert info.used == 10 * 2**30
    assert info.used + info.free + info.reserved == info.total == 24 * 2**30
    assert pynvml.nvmlDeviceGetMemoryInfo(handle).used == info.used + info.reserved


def test_process_lists_and_their_shares(play) -> None:
    clock = play(
        "gpus = 2 x rtx3090\nutil = 80\n[proc]\npid = gpu + 100\ngpu = *\nmem = 4Gi\n[proc]\npid = 7\n"
        "type = G\nmem = na\nsm = 3\n[proc]\npid = 8\nstart = 10\nend = 20\n"
    ).clock
    first, second = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(first)] == [100]
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(second)] == [101]
    graphics = pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(first)
    assert [(p.pid, p.usedGpuMemory) for p in graphics] == [(7, None)]
    assert pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(first) == []
    clock.advance(15)
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(first)] == [100, 8]
    shares = {p.pid: p.smUtil for p in pynvml.nvmlDeviceGetProcessUtilization(first, 0)}
    assert shares == {100: 80, 7: 3, 8: 80}
    newer = {p.pid: p.smUtil for p in pynvml.nvmlDeviceGetProcessesUtilizationInfo(first, 0)}
    assert newer == shares
    clock.advance(10)
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(first)] == [100]


def test_memory_follows_the_processes_by_default(play) -> None:
    play("gpus = rtx3090\n[proc]\npid = 1\nmem = 3Gi\n[proc]\npid = 2\nmem = 2Gi\n")
    info = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0), version=pynvml.nvmlMemory_v2)
    assert info.used == 5 * 2**30


def test_mig_instances(play) -> None:
    play("gpus = a100\nmig = 3g.40gb, 1g.10gb\n[proc]\npid = 5\ngi = 1\nmem = 30Gi\n")
    parent = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetUtilizationRates(parent)
    part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    assert pynvml.nvmlDeviceGetName(part).endswith("MIG 3g.40gb")
    assert pynvml.nvmlDeviceGetUUID(part).startswith("MIG-")
    assert pynvml.nvmlDeviceGetGpuInstanceId(part) == 1
    assert pynvml.nvmlDeviceGetAttributes_v2(part).memorySizeMB == 39936
    assert pynvml.nvmlDeviceGetMemoryInfo(part).used == 30 * 2**30
    running = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(part)
    assert [(p.pid, p.gpuInstanceId) for p in running] == [(5, 1)]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 3)


def test_gpm_means_between_two_samples(play) -> None:
    clock = play("gpus = h100\ntensor = square(0, 50, period=1, duty=0.5)\npcie_rx = 10Mi\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
    first, second = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    pynvml.nvmlGpmSampleGet(handle, first)
    clock.advance(4)
    pynvml.nvmlGpmSampleGet(handle, second)
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 3
    request.sample1, request.sample2 = first, second
    for place, metric in enumerate((5, 21, 400)):
        request.metrics[place].metricId = metric
    pynvml.nvmlGpmMetricsGet(request)
    assert request.metrics[0].value == pytest.approx(25, abs=0.1)
    assert request.metrics[1].value == pytest.approx(10, abs=0.01)
    assert request.metrics[2].nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    pynvml.nvmlGpmSampleFree(first)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlGpmMetricsGet(request)


def test_xid_events_come_when_they_are_due(play) -> None:
    clock = play("gpus = 2 x a100\n[gpu 1]\nxid = 5:63, 20:79\n").clock
    events = pynvml.nvmlEventSetCreate()
    for index in range(2):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait_v2(events, 0)
    clock.advance(30)
    found = [pynvml.nvmlEventSetWait_v2(events, 0) for _ in range(2)]
    assert [event.eventData for event in found] == [63, 79]
    assert pynvml.nvmlDeviceGetIndex(found[0].device) == 1
    pynvml.nvmlEventSetFree(events)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlEventSetWait_v2(events, 0)


def test_what_follows_from_utilization_by_default(play) -> None:
    clock = play("gpus = rtx3090\nutil = steps(0, 60:98)\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def state() -> tuple[int, int, int, int]:
        return (
            pynvml.nvmlDeviceGetPerformanceState(handle),
            pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
            pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        )

    clock.advance(30)
    assert state() == (8, 1, 405, pynvml.nvmlClocksEventReasonGpuIdle)
    cold = pynvml.nvmlDeviceGetTemperature(handle, 0)
    clock.advance(150)
    assert state()[:3] == (2, 4, 9751)
    assert pynvml.nvmlDeviceGetTemperature(handle, 0) > cold + 30


def test_time_runs_at_the_scenarios_pace(play) -> None:
    clock = play("gpus = a100\npower = 100\ntemp = t\ntimescale = 10\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    before = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    clock.advance(6)
    assert pynvml.nvmlDeviceGetTemperature(handle, 0) == 60
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before == pytest.approx(600e3, rel=0.01)


def test_unified_memory_card(play) -> None:
    play("gpus = gb10\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    for call in (pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlDeviceGetEnforcedPowerLimit):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            call(handle)
    assert pynvml.nvmlDeviceGetAddressingMode(handle) == 2


def test_topology_and_links(play) -> None:
    play("gpus = 8 x h100\n")
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(8)]
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(handles[0], handles[1]) == 40
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(handles[0], handles[7]) == 50
    assert pynvml.nvmlDeviceGetP2PStatus(handles[0], handles[7], 2) == 0
    assert sum(pynvml.nvmlDeviceGetNvLinkState(handles[0], link) for link in range(18)) == 18
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetNvLinkState(handles[0], 18)
