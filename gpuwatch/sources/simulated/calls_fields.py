"""Field values: many readings in one call, each with its own return code."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.calls_health import ecc_total
from gpuwatch.sources.simulated.calls_links import (
    ALL_LINKS,
    check_link,
    link_bytes,
    link_errors,
    links_up,
    pcie_bytes,
)
from gpuwatch.sources.simulated.calls_state import energy_mj, policy_ns
from gpuwatch.sources.simulated.entries import entry, need, number, target, uint
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

#: NVML_VALUE_TYPE_*
_UINT, _ULONGLONG, _INT = 1, 3, 5
_HIGHEST_KNOWN = 307

Reading = tuple[int, int]
Reader = Callable[["SimulatedDriver", SimulatedGpu, int], Reading]


def _u32(value: float) -> Reading:
    return _UINT, uint(value)


def _u64(value: float) -> Reading:
    return _ULONGLONG, int(max(0.0, value))


def _metric(name: str, scale: float = 1.0) -> Reader:
    return lambda driver, gpu, scope: _u32(gpu.value(name) * scale)


def _counter(name: str) -> Reader:
    return lambda driver, gpu, scope: _u64(gpu.value(name))


def _policy(policy: int) -> Reader:
    return lambda driver, gpu, scope: (_ULONGLONG, policy_ns(gpu, policy))


def _ecc(uncorrected: int, aggregate: int, here: bool = True) -> Reader:
    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        total = ecc_total(gpu, uncorrected, aggregate)
        return _ULONGLONG, total if here else 0

    return read


def _model(value: Callable[[SimulatedGpu], float]) -> Reader:
    """A property of the card; 0 is Not Supported."""

    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        found = value(gpu)
        need(found, codes.NOT_SUPPORTED)
        return _u32(found)

    return read


def _relative_limit(which: int) -> Reader:
    """Thresholds on the scale of the margin: degrees below the GPU's own maximum, Ada and newer."""

    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        gpu_max = gpu.model.temperatures[2]
        need(gpu_max and gpu.model.architecture >= 8 and not gpu.model.geforce, codes.NOT_SUPPORTED)
        return _INT, gpu_max - gpu.model.temperatures[which]

    return read


def _link_bytes(direction: str, unit: float, version: int = 0) -> Reader:
    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        need(gpu.model.link_version >= version, codes.NOT_SUPPORTED)
        return _u64(link_bytes(gpu, scope, direction) / unit)

    return read


def _link_errors(metric: str, link: int | None = None) -> Reader:
    return lambda driver, gpu, scope: _u64(link_errors(gpu, scope if link is None else link, metric))


def _link_speed(link: int | None = None) -> Reader:
    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        which = scope if link is None else link
        check_link(gpu, which)
        return _u32(gpu.model.link_mb_per_s if which < links_up(gpu) else 0)

    return read


def _link_up(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
    check_link(gpu, scope)
    return _u32(scope < links_up(gpu))


def _link_version(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
    check_link(gpu, scope)
    return _u32(gpu.model.link_version)


def _power(averaged: bool) -> Reader:
    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        need(scope <= 3)
        need(scope == 0 and gpu.model.architecture >= 7, codes.NOT_SUPPORTED)
        gpu.check("power")
        return _u32(gpu.power(averaged) * 1000)

    return read


def _energy(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
    return _ULONGLONG, energy_mj(gpu)


def _pcie(direction: str) -> Reader:
    return lambda driver, gpu, scope: (_ULONGLONG, pcie_bytes(driver, gpu, direction))


def _zero(checked: str | None = None) -> Reader:
    def read(driver: "SimulatedDriver", gpu: SimulatedGpu, scope: int) -> Reading:
        if checked:
            gpu.check(checked)
        return _u32(0)

    return read


def _readers() -> dict[int, Reader]:
    found: dict[int, Reader] = {
        1: _metric("ecc_mode"),
        2: _metric("ecc_mode"),
        3: _ecc(0, 0),
        4: _ecc(1, 0),
        5: _ecc(0, 1),
        6: _ecc(1, 1),
        29: _counter("retired_sbe"),
        30: _counter("retired_dbe"),
        82: _metric("mem_temp"),
        83: _energy,
        90: _model(lambda gpu: gpu.model.link_mb_per_s),
        91: _model(lambda gpu: gpu.model.link_count),
        94: _metric("pcie_replay"),
        95: _zero(),
        138: _link_bytes("nvlink_tx", 1024),
        139: _link_bytes("nvlink_rx", 1024),
        140: _link_bytes("nvlink_tx", 1024 * 0.85),  # with the protocol's overhead
        141: _link_bytes("nvlink_rx", 1024 * 0.85),
        142: _counter("remap_corr"),
        143: _counter("remap_uncorr"),
        144: _counter("remap_pending"),
        145: _counter("remap_failure"),
        147: _model(lambda gpu: gpu.model.link_count if gpu.model.links_up else 0),
        161: _link_errors("nvlink_replay"),
        162: _link_errors("nvlink_recovery"),
        163: _link_errors("nvlink_crc"),
        164: _link_speed(),
        165: _link_up,
        166: _link_version,
        170: _model(lambda gpu: int(gpu.model.unified)),
        174: _metric("pcie_replay"),
        184: lambda driver, gpu, scope: _u32(gpu.model.mig),
        185: _power(True),
        186: _power(False),
        187: _model(lambda gpu: gpu.model.power[1] * 1000),
        188: _model(lambda gpu: gpu.model.power[2] * 1000),
        189: _model(lambda gpu: gpu.model.power[0] * 1000),
        190: _metric("power_limit", 1000),
        191: _energy,
        192: _metric("power_limit", 1000),
        193: _relative_limit(0),
        194: _relative_limit(1),
        196: _relative_limit(2),
        197: _pcie("pcie_tx"),
        198: _pcie("pcie_rx"),
        202: _link_bytes("nvlink_tx", 1, version=6),
        204: _link_bytes("nvlink_rx", 1, version=6),
        226: _zero(),
        227: _zero(),
        230: _zero(),
    }
    found |= dict.fromkeys((31, 92, 93), _counter("retired_pending"))
    found |= dict.fromkeys((169, 173, *range(175, 184)), _zero("pcie_replay"))
    found |= {74 + place: _policy(policy) for place, policy in enumerate((0, 1, 2, 3, 4, 5, 10, 11))}
    # 7..16 and 18..28 count by place in the chip, single and double bit errors in turn; device memory
    # has the numbers 4 and 5 of each group.
    for first, aggregate in ((7, 0), (18, 1)):
        for place in range(11):
            uncorrected = int(place == 10 or place % 2 == 1)
            found[first + place] = _ecc(uncorrected, aggregate, place in (4, 5))
    kinds = ("nvlink_crc", "nvlink_crc", "nvlink_replay", "nvlink_recovery")
    for group, metric in enumerate(kinds):
        for place in range(7):  # links 0 to 5, and their sum
            found[32 + 7 * group + place] = _link_errors(metric, ALL_LINKS if place == 6 else place)
        for place in range(6):  # links 6 to 11
            found[96 + 6 * group + place] = _link_errors(metric, 6 + place)
    for place in range(6):
        found[84 + place] = _link_speed(place)
        found[132 + place] = _link_speed(6 + place)
    return found


_READERS = _readers()
#: Time under SW thermal, HW thermal and power brake slowdown. Bindings of 580.82 renumbered the ids;
#: before, the driver answered others (nvidia-ml-py 13.580.65 against 13.580.82).
_REASON_POLICIES = (100, 101, 102)
_NEW_REASONS, _OLD_REASONS = 269, 251


def _reason_field(driver: "SimulatedDriver", field_id: int) -> Reader | None:
    """The reader of a reason's time, where this driver's version has that id."""
    version = tuple(int(part) for part in driver.scenario.driver.split(".")[:2] if part.isdecimal())
    first = _NEW_REASONS if version >= (580, 82) else _OLD_REASONS if version >= (575,) else None
    if first is None or not first <= field_id < first + 3:
        return None
    return _policy(_REASON_POLICIES[field_id - first])


@entry("nvmlDeviceGetFieldValues")
def field_values(driver: "SimulatedDriver", handle: Any, count: Any, values: Any) -> None:
    gpu = driver.gpu(handle)
    wanted = number(count)
    need(values is not None and wanted > 0)
    gpu.check("fields")
    fields = target(values)
    stamp = int(driver.timeline.wall(driver.timeline.now()) * 1e6)
    for place in range(wanted):
        value = fields[place]
        field_id = value.fieldId
        value.timestamp = stamp
        reader = _READERS.get(field_id) or _reason_field(driver, field_id)
        try:
            if reader is None:
                known = 0 < field_id <= _HIGHEST_KNOWN
                raise Refused(codes.NOT_SUPPORTED if known else codes.INVALID_ARGUMENT)
            value.valueType, value.value.ullVal = reader(driver, gpu, value.scopeId)
            value.nvmlReturn = codes.SUCCESS
        except Refused as refusal:
            value.nvmlReturn = refusal.code
