"""The inventory: what this machine is. Changes only when hardware or driver change."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """One GPU as the driver describes it. `uuid` is its identity everywhere else.

    `index` is the driver's (PCI bus order); CUDA may number the cards differently.
    `bus_id` has the sysfs form `0000:01:00.0`.
    """

    uuid: str
    index: int
    name: str
    bus_id: str | None = None
    brand: str | None = None  # "geforce", "titan", "rtx workstation", "data centre", ...
    architecture: str | None = None  # "ampere", "hopper", ...
    compute_capability: tuple[int, int] | None = None
    core_count: int | None = None
    memory_total_bytes: int | None = None
    unified_memory: bool = False
    power_limit_default_w: float | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    temperature_shutdown_c: float | None = None
    temperature_slowdown_c: float | None = None
    temperature_gpu_max_c: float | None = None
    temperature_memory_max_c: float | None = None
    pcie_generation_max: int | None = None  # what card and slot can do together
    pcie_width_max: int | None = None  # likewise: already includes the slot
    pcie_generation_card: int | None = None  # the card's own
    pcie_width_card: int | None = None  # the card's own, from sysfs
    pcie_generation_slot: int | None = None  # the upstream port's, from sysfs
    pcie_width_slot: int | None = None
    pcie_generation_chain: int | None = None  # the narrowest port between card and root, from sysfs
    pcie_width_chain: int | None = None
    numa_node: int | None = None
    persistence_mode: bool | None = None
    virtualization: str | None = None  # "none", "passthrough", "vgpu guest", ...
    mig_enabled: bool | None = None
    nvlink_count: int | None = None
    fan_count: int | None = None
    gpm_supported: bool | None = None
    #: To each other GPU (by uuid) of this machine: can it read the peer's memory directly? "ok", or NVML's
    #: reason in words ("chipset not supported", "disabled by regkey", ...).
    peer_access: Mapping[str, str] = field(default_factory=dict)
    #: Likewise the path: "internal", "single switch", "multiple switches", "host bridge", "node", "system".
    peer_path: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriverInfo:
    version: str | None = None  # kernel and user space driver, "580.65.06"
    nvml_version: str | None = None
    cuda_version: str | None = None  # highest CUDA of this driver, "13.0"
    kernel_module_version: str | None = None
    library_path: str | None = None


@dataclass(frozen=True, slots=True)
class DiskInfo:
    name: str  # "nvme0n1"
    kind: str  # "nvme", "ssd", "hdd", "virtual", "unknown"


@dataclass(frozen=True, slots=True)
class MemoryModule:
    """One populated slot of main memory, from the machine's own tables."""

    size_bytes: int | None = None
    speed_mts: int | None = None  # what it could do
    configured_mts: int | None = None  # what it does
    locator: str = ""  # "DIMM_A1", the vendor's words
    channel: str = ""  # "P0 CHANNEL A", likewise, or the memory controller's own number


@dataclass(frozen=True, slots=True)
class HostInfo:
    hostname: str
    system: str = "Linux"
    kernel: str | None = None
    cpu_model: str | None = None
    logical_cores: int | None = None
    physical_cores: int | None = None
    numa_nodes: int | None = None
    memory_total_bytes: int | None = None
    container: str | None = None  # "docker", "kubernetes", "podman", ...
    wsl: bool = False
    virtual_machine: bool | None = None
    disks: tuple[DiskInfo, ...] = ()
    numa_cores: tuple[tuple[int, ...], ...] = ()  # logical cores of each node
    cpu_governor: str | None = None
    cpu_frequency_driver: str | None = None  # "intel_pstate", "amd-pstate-epp", "acpi-cpufreq", ...
    cpu_clock_max_mhz: float | None = None
    memory_modules: tuple[MemoryModule, ...] | None = None
    memory_slot_count: int | None = None  # populated or not
    memory_channel_count: int | None = None  # that the machine has, where it says so
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything that does not change from tick to tick.

    `label` is shown in the header all the time ("simulated: starved"); a real machine has none.
    """

    host: HostInfo
    driver: DriverInfo = DriverInfo()
    gpus: tuple[GpuInfo, ...] = ()
    label: str | None = None
    utc_offset_s: float = 0.0  # its local time minus UTC when the inventory was taken
