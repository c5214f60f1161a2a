"""Entry points of the library as a whole: starting, versions, finding devices."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import entry, need, number, put, put_text, target
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver


@entry("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags")
def start(driver: "SimulatedDriver", flags: Any = 0) -> None:
    driver.init_count += 1


@entry("nvmlShutdown")
def shutdown(driver: "SimulatedDriver") -> None:
    driver.init_count -= 1


@entry("nvmlSystemGetDriverVersion")
def driver_version(driver: "SimulatedDriver", buffer: Any, length: Any) -> None:
    put_text(buffer, length, driver.scenario.driver)


@entry("nvmlSystemGetNVMLVersion")
def nvml_version(driver: "SimulatedDriver", buffer: Any, length: Any) -> None:
    put_text(buffer, length, driver.scenario.nvml)


@entry("nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2")
def cuda_version(driver: "SimulatedDriver", out: Any) -> None:
    put(out, driver.scenario.cuda)


@entry("nvmlSystemGetDriverBranch")
def driver_branch(driver: "SimulatedDriver", info: Any, length: Any) -> None:
    target(info).branch = f"r{driver.scenario.driver.partition('.')[0]}_00".encode()


@entry("nvmlUnitGetCount", "nvmlSystemGetHicVersion", "nvmlGetExcludedDeviceCount")
def count_nothing(driver: "SimulatedDriver", out: Any, *rest: Any) -> None:
    put(out, 0)


@entry("nvmlDeviceGetCount", "nvmlDeviceGetCount_v2")
def count_devices(driver: "SimulatedDriver", out: Any) -> None:
    put(out, len(driver.gpus))


def _hand_out(driver: "SimulatedDriver", gpu: SimulatedGpu, out: Any) -> None:
    """A handle is refused where the GPU itself does not answer."""
    gpu.suffer(gpu.plan.metrics["device"].faults, "device")
    target(out).contents = driver.handle(gpu)


@entry("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2")
def by_index(driver: "SimulatedDriver", index: Any, out: Any) -> None:
    place = number(index)
    need(0 <= place < len(driver.gpus))
    _hand_out(driver, driver.gpus[place], _pointer(out))


def _pointer(out: Any) -> Any:
    need(out is not None)
    return out


@entry("nvmlDeviceGetHandleByUUID")
def by_uuid(driver: "SimulatedDriver", uuid: Any, out: Any) -> None:
    _find_uuid(driver, _text(uuid), out)


@entry("nvmlDeviceGetHandleByUUIDV")
def by_uuid_struct(driver: "SimulatedDriver", uuid: Any, out: Any) -> None:
    wanted = target(uuid)
    need(wanted.type == 1, codes.NOT_SUPPORTED)
    _find_uuid(driver, _text(bytes(wanted.value).split(b"\0")[0]), out)


def _find_uuid(driver: "SimulatedDriver", uuid: str, out: Any) -> None:
    for gpu in driver.gpus:
        if gpu.uuid.lower() == uuid.lower():
            _hand_out(driver, gpu, out)
            return
        for slot in range(len(gpu.plan.mig or ())):
            if mig_uuid(gpu, slot) == uuid:
                target(out).contents = driver.handle(gpu, slot)
                return
    raise Refused(codes.NOT_FOUND)


def mig_uuid(gpu: SimulatedGpu, slot: int) -> str:
    return f"MIG-{0x5A000000 + slot * 0x1111:08x}-{gpu.uuid[13:]}"


@entry("nvmlDeviceGetHandleBySerial")
def by_serial(driver: "SimulatedDriver", serial: Any, out: Any) -> None:
    for gpu in driver.gpus:
        if gpu.model.serial and gpu.serial == _text(serial):
            _hand_out(driver, gpu, out)
            return
    raise Refused(codes.NOT_FOUND)


@entry("nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2")
def by_bus_id(driver: "SimulatedDriver", bus_id: Any, out: Any) -> None:
    parts = _text(bus_id).split(":")
    need(len(parts) in (2, 3))
    try:
        domain = int(parts[0], 16) if len(parts) == 3 else 0
        bus = int(parts[-2], 16)
    except ValueError:
        raise Refused(codes.INVALID_ARGUMENT) from None
    for gpu in driver.gpus:
        if (gpu.domain, gpu.bus) == (domain, bus):
            _hand_out(driver, gpu, out)
            return
    raise Refused(codes.NOT_FOUND)


def _text(argument: Any) -> str:
    value = getattr(argument, "value", argument)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
