"""A scenario as data: what the parser makes and the simulated driver and host play."""

import math
from dataclasses import dataclass, field

from gpuwatch.sources.simulated.language import Node, Number
from gpuwatch.sources.simulated.models import Model


@dataclass(frozen=True, slots=True)
class Fault:
    """Between two moments a call fails with an NVML code, or takes longer, or both at random."""

    error: int | None = None
    delay_s: float = 0.0
    start_s: float = -math.inf
    end_s: float = math.inf
    probability: float = 1.0

    @property
    def always(self) -> bool:
        return self.start_s == -math.inf and self.end_s == math.inf and self.probability >= 1


@dataclass(frozen=True, slots=True)
class Metric:
    wave: Node
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class MigSlice:
    """One MIG instance: profile "3g.40gb", its GPU instance id, memory and multiprocessors."""

    profile: str
    slices: int
    gpu_instance: int
    memory_mib: int
    sm_count: int


@dataclass(slots=True)
class GpuPlan:
    """One GPU: its model, metrics, and what the scenario changed of its identity."""

    index: int
    model: Model
    metrics: dict[str, Metric]
    name: str
    uuid: str | None = None
    serial: str | None = None
    pci: tuple[int, int] | None = None  # domain, bus
    minor: int | None = None
    numa_node: int | None = None
    xids: list[tuple[float, int]] = field(default_factory=list)  # seconds, code
    mig: tuple[MigSlice, ...] | None = None  # None: MIG is off


COMPUTE, GRAPHICS, MPS = 1, 2, 4

_ONE_GIB = Number(float(1 << 30))

#: Settings of the host and of jobs: an expression, or words as they stand.
Settings = dict[str, Node | str]


@dataclass(slots=True)
class ProcessPlan:
    """One `[proc]` section. `pid`: a number, or "self", "parent", "env:NAME", "file:PATH", or an
    expression (no process while it is below 1).
    """

    pid: int | str | Node = "self"
    gpus: frozenset[int] = frozenset({0})
    kinds: int = COMPUTE
    gpu_instance: int | None = None
    memory: Node | None = _ONE_GIB  # None: the driver does not say
    waves: dict[str, Node] = field(default_factory=dict)  # sm, mem_util, enc, dec
    start_s: float = -math.inf
    end_s: float = math.inf
    host: Settings = field(default_factory=dict)


@dataclass(slots=True)
class HostPlan:
    """The `#host` lines: of the machine, of the job on each GPU, of processes on no GPU."""

    machine: Settings = field(default_factory=dict)
    jobs: dict[int, Settings] = field(default_factory=dict)
    processes: list[Settings] = field(default_factory=list)


@dataclass(slots=True)
class Scenario:
    """A whole scenario. Periods in seconds, `cuda` as the driver says it (13000 is 13.0).

    `timescale` is scenario seconds per real second; `truth` is for tests only.
    """

    name: str = "scenario"
    description: str = ""
    gpus: list[GpuPlan] = field(default_factory=list)
    processes: list[ProcessPlan] = field(default_factory=list)
    call_faults: dict[str, tuple[Fault, ...]] = field(default_factory=dict)
    host: HostPlan = field(default_factory=HostPlan)
    truth: dict[str, str] = field(default_factory=dict)
    seed: int = 1
    timescale: float = 1.0
    driver: str = "580.95.05"
    nvml: str = ""
    cuda: int = 13000
    pcie_block_s: float = 0.020
    util_sample_s: float = 1 / 6
    power_sample_s: float = 0.020
    clock_sample_s: float = 1 / 6
    process_sample_s: float = 1 / 6
    pcie_counter_bits: int = 64
    numa_nodes: int = 0
