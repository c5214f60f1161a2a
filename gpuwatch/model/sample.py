"""One tick, raw as read. Rates, shares and findings are computed later from two samples.

All `*_s` times are monotonic seconds of the sampling machine, except `wall_s`, which is a label.
Counters keep the value the system gave, so better formulas improve old recordings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuwatch.model.machine import Machine


class DriverState(StrEnum):
    OK = "ok"
    STARTING = "starting"
    NO_LIBRARY = "no library"  # no libnvidia-ml: no driver, or not in this container
    NOT_LOADED = "not loaded"  # kernel module missing
    MISMATCH = "mismatch"  # library and kernel module differ
    NO_PERMISSION = "no permission"
    NO_GPUS = "no gpus"
    NOT_ANSWERING = "not answering"
    BINDING = "binding"  # the Python binding cannot be imported
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DriverStatus:
    state: DriverState
    message: str = ""  # what happened, one sentence
    advice: str = ""  # what to do, one sentence
    since_s: float = 0.0
    code: int | None = None  # NVML return value


class GpuState(StrEnum):
    OK = "ok"
    ASLEEP = "asleep"  # laptop GPU in runtime suspend; not woken
    HIDDEN = "hidden"  # no permission for this GPU
    NOT_ANSWERING = "not answering"  # a driver call has not returned
    LOST = "lost"  # fell off the bus or needs a reset
    NO_HANDLE = "no handle"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class GpuStatus:
    state: GpuState = GpuState.OK
    message: str = ""
    advice: str = ""
    since_s: float = 0.0
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Burst:
    """Sub-second points of one signal, oldest first. `times_s` is the end of each point's period."""

    times_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One entry of the driver's process list. The pid may be another namespace's."""

    pid: int
    kind: str  # "C", "G", "C+G", "MPS"
    memory_bytes: int | None = None
    sm_ratio: float | None = None  # share of samples in which this process was active
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class MigReading:
    uuid: str
    gpu_instance: int | None
    compute_instance: int | None
    profile: str
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    sm_active_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What one GPU answered this tick. `read_s` is when; an old one means the data is stale."""

    uuid: str
    index: int
    read_s: float
    status: GpuStatus = GpuStatus()
    utilization_ratio: float | None = None  # the driver's gauge: its last sample period only
    memory_utilization_ratio: float | None = None  # share of time memory was accessed, not bytes
    encoder_ratio: float | None = None
    decoder_ratio: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None  # without the driver's reserve where that is known
    memory_reserved_bytes: int | None = None
    power_w: float | None = None  # gauge; a 1 s average on Ampere and newer
    energy_j: float | None = None  # counter
    power_limit_w: float | None = None  # enforced
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    p_state: int | None = None
    event_reasons: int | None = None  # clock event reason bits
    power_cap_time_ns: int | None = None  # counters of time under each reason
    sync_boost_time_ns: int | None = None
    sw_thermal_time_ns: int | None = None
    hw_thermal_time_ns: int | None = None
    power_brake_time_ns: int | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    temperature_margin_c: float | None = None  # degrees below this card's slowdown point
    fan_ratio: float | None = None  # fastest fan; may exceed 1 slightly
    fan_ratios: tuple[float, ...] | None = None  # each fan
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_tx_bytes: int | None = None  # counters, from the GPU; wraps as `pcie_counter_bits` says
    pcie_rx_bytes: int | None = None  # to the GPU
    pcie_counter_bits: int | None = None
    pcie_tx_bytes_per_s: float | None = None  # gauge (GPM or the 20 ms call), if no counter
    pcie_rx_bytes_per_s: float | None = None
    pcie_replay_count: int | None = None
    nvlink_active_count: int | None = None
    nvlink_tx_bytes: int | None = None  # counters, all links
    nvlink_rx_bytes: int | None = None
    nvlink_error_count: int | None = None  # counter: CRC, replay and recovery errors of all links
    ecc_corrected_count: int | None = None
    ecc_uncorrected_count: int | None = None
    remapped_uncorrected_count: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pending: bool | None = None
    recovery_action: int | None = None
    power_source: str | None = None  # "ac", "battery", "undersized"
    sm_active_ratio: float | None = None  # GPM, Hopper and newer
    sm_occupancy_ratio: float | None = None
    tensor_ratio: float | None = None
    dram_ratio: float | None = None
    fp64_ratio: float | None = None
    fp32_ratio: float | None = None
    fp16_ratio: float | None = None
    utilization_burst: Burst = Burst()  # values as ratios
    memory_utilization_burst: Burst = Burst()
    power_burst: Burst = Burst()  # W
    processes: tuple[GpuProcess, ...] | None = None
    processes_read_s: float | None = None
    mig: tuple[MigReading, ...] = ()
    rejected_count: int = 0  # impossible values discarded since start
    failed_calls: int = 0  # this tick
    calls: int = 0  # this tick
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Counters of all cores together, seconds since boot. Guest time is inside user."""

    user_s: float
    system_s: float
    idle_s: float
    iowait_s: float
    steal_s: float
    total_s: float


@dataclass(frozen=True, slots=True)
class DiskReading:
    name: str
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    read_ms: int
    write_ms: int
    busy_ms: int
    queue_ms: int  # weighted: divided by elapsed ms it is the mean queue depth


@dataclass(frozen=True, slots=True)
class NetworkReading:
    name: str
    rx_bytes: int
    tx_bytes: int
    speed_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class HostReading:
    read_s: float
    cpu: CpuTimes | None = None
    core_busy_s: tuple[float, ...] = ()  # counters per core, in `core_ids` order
    core_total_s: tuple[float, ...] = ()
    core_ids: tuple[int, ...] = ()
    runnable_count: int | None = None
    load_1m: float | None = None
    cpu_pressure_us: int | None = None  # PSI "some" totals
    io_pressure_us: int | None = None
    io_full_pressure_us: int | None = None
    memory_pressure_us: int | None = None
    memory_full_pressure_us: int | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_cached_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    swap_in_bytes: int | None = None  # counters
    swap_out_bytes: int | None = None
    major_fault_count: int | None = None
    oom_kill_count: int | None = None
    refault_count: int | None = None
    cpu_clock_mhz: float | None = None  # of the fastest busy core
    cpu_throttle_count: int | None = None  # counter: thermal throttling of all packages (Intel)
    shm_total_bytes: int | None = None
    shm_used_bytes: int | None = None
    disks: tuple[DiskReading, ...] = ()
    networks: tuple[NetworkReading, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


class ProcessRole(StrEnum):
    TRAINER = "trainer"  # holds a compute context
    WORKER = "worker"  # data loader worker of a trainer
    CHILD = "child"  # another descendant of a trainer (compiler, tracker, launcher's child)
    GRAPHICS = "graphics"
    OTHER = "other"  # on no GPU, kept because it uses much CPU
    ORPHAN = "orphan"  # a data loader worker whose trainer is gone (its parent is init)


#: (pid, start time in clock ticks since boot): a pid alone is not an identity.
ProcessKey = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ThreadReading:
    tid: int
    name: str
    state: str
    run_ns: int | None = None  # counters: on a core, and runnable but waiting for one
    wait_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CgroupReading:
    """The limit that binds on the way to the root; counters are that group's own."""

    path: str
    quota_cores: float | None = None  # None: no quota
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_us: int | None = None
    memory_limit_bytes: int | None = None
    memory_used_bytes: int | None = None  # page cache included
    memory_file_bytes: int | None = None  # of it page cache
    refault_count: int | None = None  # counter: pages of files read again soon after they were dropped


@dataclass(frozen=True, slots=True)
class DataMount:
    """A file system that holds open data files of a process."""

    path: str  # the mount point
    filesystem: str  # "ext4", "nfs4", "fuse.s3fs", ...
    remote: bool
    disks: tuple[str, ...] = ()  # names as in DiskReading, through partitions, dm and md; () if unknown


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """Read once per process (again only when its libraries may have changed)."""

    libraries: tuple[str, ...] | None = None  # base names of mapped libraries of interest
    frameworks: tuple[str, ...] | None = None  # "torch", "tensorflow", "jax"
    decoder: str | None = None  # a mapped image, audio or video decoder: "PIL", "cv2", ...
    listening: bool | None = None  # has a listening socket
    session_id: int | None = None
    #: Full paths of the same libraries, links resolved where the name carries the version.
    library_paths: tuple[str, ...] | None = None
    #: Start environment, only the allow-listed names; {} when none of them is set.
    environment: Mapping[str, str] | None = None
    wrappers: tuple[str, ...] | None = None  # profilers and sanitizers among its ancestors
    data_mounts: tuple[DataMount, ...] | None = None  # where its open data files lie
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessReading:
    pid: int
    start_ticks: int
    parent_pid: int
    name: str  # the kernel's 15 characters
    command: str
    role: ProcessRole
    age_s: float | None = None
    trainer: ProcessKey | None = None  # whose descendant it is; itself for a trainer
    user: str | None = None
    uid: int | None = None
    state: str = "?"
    cpu_ns: int | None = None  # counters over all threads
    wait_ns: int | None = None  # run-queue wait, all threads that were read
    major_faults: int | None = None
    rss_bytes: int | None = None
    read_bytes: int | None = None  # from block devices
    write_bytes: int | None = None
    read_chars: int | None = None  # all read calls, cache included
    read_calls: int | None = None
    thread_count: int | None = None
    group_id: int | None = None  # process group
    session_id: int | None = None
    usable_cores: float | None = None  # min of affinity, cpuset and every quota on the path
    affinity_cores: int | None = None
    cgroup: CgroupReading | None = None
    threads: tuple[ThreadReading, ...] = ()  # main thread first; only those worth watching
    sm_ratio: float | None = None  # share of the driver's samples it was active in, its busiest GPU
    last_core: int | None = None  # on which its main thread ran last
    facts: ProcessFacts | None = None
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> ProcessKey:
        return (self.pid, self.start_ticks)


@dataclass(frozen=True, slots=True)
class ThreadBurst:
    """Scheduler counters of one thread, several times a second, oldest first."""

    process: ProcessKey
    tid: int
    times_s: tuple[float, ...]
    run_ns: tuple[int, ...]
    wait_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once: a GPU lost or back, an Xid, a clock jump."""

    time_s: float
    kind: str  # "gpu-lost", "gpu-back", "gpu-added", "driver-lost", "driver-back", "xid", "clock-jump"
    message: str
    gpu: str | None = None  # uuid
    code: int | None = None


@dataclass(frozen=True, slots=True)
class OwnCost:
    cpu_s: float  # counter: this process, all threads
    rss_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One tick. Every source is optional; what is missing says why in its own record."""

    number: int
    monotonic_s: float
    wall_s: float
    interval_s: float  # the nominal interval; true spacing is the difference of monotonic_s
    late_s: float = 0.0  # behind its deadline
    duration_s: float = 0.0  # time spent sampling
    driver: DriverStatus = DriverStatus(DriverState.STARTING)
    gpus: tuple[GpuReading, ...] = ()
    host: HostReading | None = None
    processes: tuple[ProcessReading, ...] | None = None
    hidden_processes: int = 0  # listed by the driver, not visible here (another namespace)
    judged_pids: frozenset[int] | None = None  # trainers the user chose; None: all of them
    thread_bursts: tuple[ThreadBurst, ...] = ()
    events: tuple[Event, ...] = ()
    own: OwnCost | None = None
    machine: Machine | None = None  # only when the inventory is new or has changed
