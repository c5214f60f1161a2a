"""What a GPU and its driver are: read once when a GPU is opened."""

from collections.abc import Callable
from typing import Any

from gpuwatch.clean import decode
from gpuwatch.model import DriverInfo, GpuInfo
from gpuwatch.sources.nvml import errors, peers
from gpuwatch.sources.nvml.binding import kernel_module_version, loaded_library
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.poller import judge
from gpuwatch.sources.nvml.ranges import is_blank
from gpuwatch.sources.nvml.signals import Ask
from gpuwatch.sources.tree import Tree

#: nvml.h, nvmlBrandType_t
BRANDS = {
    1: "quadro",
    2: "tesla",
    3: "nvs",
    4: "grid",
    5: "geforce",
    6: "titan",
    7: "virtual applications",
    8: "virtual pc",
    9: "virtual compute server",
    10: "virtual workstation",
    11: "cloud gaming",
    12: "quadro rtx",
    13: "rtx workstation",
    14: "data centre",
    15: "geforce",
    16: "titan",
}
#: nvml.h, NVML_DEVICE_ARCH_*
ARCHITECTURES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
#: nvml.h, nvmlGpuVirtualizationMode_t
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu guest", 3: "vgpu host", 4: "vsga host"}
#: Systems on a chip whose GPU uses the host's memory (unified memory), by what their names contain.
UNIFIED_NAMES = ("GB10", "THOR", "ORIN", "XAVIER", "JETSON", "TEGRA")
_SHUTDOWN, _SLOWDOWN, _MEMORY_MAX, _GPU_MAX = 0, 1, 2, 3  # nvmlTemperatureThresholds_t
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_MEMORY_V2 = 0x02000028
_MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS since 13.610
UNREADABLE_NAME = "the driver's answer is no text; suspect the driver"


def sysfs_bus_id(bus_id: str) -> str:
    """`00000000:01:00.0` as the driver writes it, `0000:01:00.0` as sysfs does."""
    domain, _, rest = bus_id.partition(":")
    return f"{int(domain, 16):04x}:{rest}".lower()


class Inventory:
    """Asks one GPU what it is. Everything may fail alone and then has its reason."""

    def __init__(self, ask: Ask, caller: Caller) -> None:
        self._ask = ask
        self._caller = caller
        self._absent: dict[str, str] = dict.fromkeys(peers.FIELDS, peers.NOT_ASKED)

    def read(self, index: int) -> GpuInfo:
        """Raises GpuGoneError or DriverGoneError."""
        name = self._name(index)
        bus_id = self._get(
            "bus_id", "nvmlDeviceGetPciInfo", convert=lambda pci: sysfs_bus_id(decode(pci.busId))
        )
        uuid = self._get("uuid", "nvmlDeviceGetUUID", convert=decode)
        total = self._memory_total()
        unified = total is None and self._is_system_on_chip(name)
        if unified:
            self._absent["memory_total_bytes"] = "unified memory: the GPU uses the host's"
        mig = self._get("mig_enabled", "nvmlDeviceGetMigMode", convert=lambda mode: bool(mode[0]))
        gpm = self._get(
            "gpm_supported",
            "nvmlGpmQueryDeviceSupport",
            convert=lambda answer: bool(answer.isSupportedDevice),
        )
        limits = self._get("power_limit_max_w", "nvmlDeviceGetPowerManagementLimitConstraints")
        if limits is None:
            self._absent["power_limit_min_w"] = self._absent["power_limit_max_w"]
        return GpuInfo(
            uuid=uuid or f"pci-{bus_id or index}",
            index=index,
            name=name,
            bus_id=bus_id,
            brand=self._word("brand", "nvmlDeviceGetBrand", BRANDS),
            architecture=self._word("architecture", "nvmlDeviceGetArchitecture", ARCHITECTURES),
            compute_capability=self._get(
                "compute_capability", "nvmlDeviceGetCudaComputeCapability", convert=tuple
            ),
            core_count=self._number("core_count", "nvmlDeviceGetNumGpuCores"),
            memory_total_bytes=total,
            unified_memory=unified,
            power_limit_default_w=self._number(
                "power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit", divisor=1000
            ),
            power_limit_min_w=_watts(limits, 0),
            power_limit_max_w=_watts(limits, 1),
            sm_clock_max_mhz=self._number("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
            memory_clock_max_mhz=self._number(
                "memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY
            ),
            temperature_shutdown_c=self._threshold("temperature_shutdown_c", _SHUTDOWN),
            temperature_slowdown_c=self._threshold("temperature_slowdown_c", _SLOWDOWN),
            temperature_gpu_max_c=self._threshold("temperature_gpu_max_c", _GPU_MAX),
            temperature_memory_max_c=self._threshold("temperature_memory_max_c", _MEMORY_MAX),
            pcie_generation_max=self._link(
                "pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", unified
            ),
            pcie_width_max=self._link("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", unified),
            pcie_generation_card=self._link(
                "pcie_generation_card", "nvmlDeviceGetGpuMaxPcieLinkGeneration", unified
            ),
            persistence_mode=self._get("persistence_mode", "nvmlDeviceGetPersistenceMode", convert=bool),
            virtualization=self._word("virtualization", "nvmlDeviceGetVirtualizationMode", VIRTUALIZATION),
            mig_enabled=mig,
            nvlink_count=self._links(),
            fan_count=self._get("fan_count", "nvmlDeviceGetNumFans"),
            gpm_supported=gpm,
            absent=self._absent,
        )

    def _get(
        self, field: str, function: str, *arguments: Any, convert: Callable[[Any], Any] | None = None
    ) -> Any:
        try:
            answer = self._ask(function, *arguments)
            return answer if convert is None else convert(answer)
        except Exception as error:
            code = errors.code_of(error)
            judge(code, self._caller)
            self._absent[field] = errors.text(code)
            return None

    def _number(self, field: str, function: str, *arguments: Any, divisor: int = 1) -> Any:
        """A positive number; 0 and blank codes mean that the driver does not know."""
        value = self._get(field, function, *arguments)
        if value is not None and (value <= 0 or value >= 0xFFFF_FFFF or is_blank(value)):
            self._absent[field] = "the driver has no value"
            return None
        return value if value is None or divisor == 1 else value / divisor

    def _word(self, field: str, function: str, words: dict[int, str]) -> str | None:
        value = self._get(field, function)
        if value is not None and value not in words:
            self._absent[field] = f"unknown to this program ({value})"
        return words.get(value)

    def _name(self, index: int) -> str:
        name = self._get("name", "nvmlDeviceGetName", convert=decode)
        if (
            not name
            or "\N{REPLACEMENT CHARACTER}" in name
            or self._absent.get("name") == errors.text(errors.UNREADABLE)
        ):
            self._absent["name"] = UNREADABLE_NAME
            return f"GPU {index} (name unreadable)"
        return str(name)

    def _memory_total(self) -> int | None:
        """The size in bytes. Version 2 first: version 1 fails nowhere, but need not exist for ever."""
        total = self._get("memory_total_bytes", "nvmlDeviceGetMemoryInfo", _MEMORY_V2, convert=_total)
        if total is None:
            total = self._get("memory_total_bytes", "nvmlDeviceGetMemoryInfo", convert=_total)
        if total is not None and not 0 < total < 4e12:
            self._absent["memory_total_bytes"] = "the driver has no value"
            return None
        if total is not None:
            self._absent.pop("memory_total_bytes", None)
        return None if total is None else int(total)

    def _is_system_on_chip(self, name: str) -> bool:
        """Not by architecture: a failing discrete card has no memory size either."""
        upper = name.upper()
        return any(word in upper for word in UNIFIED_NAMES)

    def _threshold(self, field: str, which: int) -> float | None:
        value = self._get(field, "nvmlDeviceGetTemperatureThreshold", which)
        if value is not None and not 0 < value <= 150:
            self._absent[field] = "the driver has no value"
            return None
        return value if value is None else float(value)

    def _link(self, field: str, function: str, on_package: bool) -> Any:
        if on_package:
            self._absent[field] = ON_PACKAGE
            return None
        return self._number(field, function)

    def _links(self) -> int | None:
        """How many NVLinks this GPU has, up or not: states are asked until there is no next link."""
        count = 0
        for link in range(_MOST_LINKS):
            if self._get("nvlink_count", "nvmlDeviceGetNvLinkState", link) is None:
                break
            count += 1
        if count:
            self._absent.pop("nvlink_count", None)
        return count or None


ON_PACKAGE = "on-package GPU: these figures describe an internal connection"


def _total(memory: Any) -> int:
    return int(memory.total)


def _watts(limits: Any, place: int) -> float | None:
    return limits[place] / 1000 if limits is not None and 0 < limits[place] < 2e6 else None


def read_driver_info(api: Any, caller: Caller, tree: Tree, library_path: str | None) -> DriverInfo:
    """Versions, each None when the driver does not say. Needs an initialised library."""

    def ask(name: str) -> Any:
        function = getattr(api, name, None)
        try:
            return None if function is None else caller.call(function)
        except Exception as error:
            judge(errors.code_of(error), caller)
            return None

    version, nvml = ask("nvmlSystemGetDriverVersion"), ask("nvmlSystemGetNVMLVersion")
    cuda = ask("nvmlSystemGetCudaDriverVersion_v2")
    return DriverInfo(
        version=decode(version) or None,
        nvml_version=decode(nvml) or None,
        cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        kernel_module_version=kernel_module_version(tree),
        library_path=library_path or loaded_library(tree),
    )
