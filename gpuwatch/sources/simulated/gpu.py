"""One simulated GPU: its identity, its metrics over time, its counters and sample rings."""

import math
import random

from gpuwatch.sources.simulated.busy import BusyFiles
from gpuwatch.sources.simulated.integrals import BitTimes, Integral
from gpuwatch.sources.simulated.scenario import Fault, GpuPlan, Scenario
from gpuwatch.sources.simulated.timeline import Timeline
from gpuwatch.sources.simulated.waveforms import Compiler, Noise
from gpuwatch.sources.simulated.waves import Wave, constant_wave

_FEW_BUSES = (0x01, 0x25, 0x41, 0x61)
_MANY_BUSES = (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)
_RING = 256  # samples kept per metric
#: Faults at random are drawn anew this often.
_DRAW_S = 0.1


class Refused(Exception):  # noqa: N818 - the driver's word for a call that returns a code
    """A driver call ends with an NVML code other than success."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class SimulatedGpu:
    """`plan` played on a timeline. Values are in scenario units; times are scenario seconds."""

    def __init__(
        self,
        scenario: Scenario,
        plan: GpuPlan,
        timeline: Timeline,
        noise: Noise,
        busy: BusyFiles,
    ) -> None:
        self.plan = plan
        self.model = plan.model
        self.index = plan.index
        self.timeline = timeline
        self.procs_mem: Wave = constant_wave(0.0)  # set by the driver, which knows the processes
        self._scenario = scenario
        self._busy = busy
        self._waves: dict[str, Wave] = {}
        self._compiling: set[str] = set()
        constants = {**plan.model.constants(), "gpu": float(plan.index)}
        self.compiler = Compiler(constants, self._referred, scenario.seed, noise, busy.wave)
        self._integrals: dict[str, Integral] = {}
        self._bit_times: BitTimes | None = None
        self._samples: dict[str, dict[int, float]] = {}
        self._identify(len(scenario.gpus))

    def _identify(self, count: int) -> None:
        plan, index = self.plan, self.plan.index
        own = random.Random(f"{self._scenario.seed}/{index}/identity")
        digits = f"{own.getrandbits(128):032x}"
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        self.uuid = plan.uuid or "GPU-" + "-".join(parts)
        self.serial = plan.serial or f"165{own.randrange(10**10):010d}"
        buses = _FEW_BUSES if count <= 4 else _MANY_BUSES
        domain, bus = plan.pci or (index // 8, buses[index % len(buses)])
        if plan.model.unified and plan.pci is None:
            domain, bus = 0xF, 1
        self.domain, self.bus = domain, bus
        self.bus_id = f"{domain:08X}:{bus & 0xFF:02X}:00.0"
        self.minor = index if plan.minor is None else plan.minor
        second = count > 4 and index >= (count + 1) // 2
        self.numa_node = int(second) if plan.numa_node is None else plan.numa_node
        #: Counters start where an earlier use of the machine left them.
        self.counter_start = {name: own.randrange(10**9, 4 * 10**9) for name in ("energy", "time")}
        self.counter_start |= {name: own.randrange(3 * 10**12) for name in ("pcie_tx", "pcie_rx")}
        self.counter_start |= {name: own.randrange(9 * 10**13) for name in ("nvlink_tx", "nvlink_rx")}
        self._phase = own.random()

    def wave(self, metric: str) -> Wave:
        wave = self._waves.get(metric)
        if wave is None:
            self._compiling.add(metric)
            wave = self._waves[metric] = self.compiler.wave(self.plan.metrics[metric].wave)
            self._compiling.discard(metric)
        return wave

    def _referred(self, name: str) -> Wave:
        if name == "procs_mem":
            return self.procs_mem
        # A metric that refers to itself, over whatever detour, reads 0 there.
        return constant_wave(0.0) if name in self._compiling else self.wave(name)

    def value(self, metric: str) -> float:
        """The metric now, after its faults."""
        self.check(metric)
        return self.wave(metric).at(self.timeline.now())

    def check(self, metric: str) -> None:
        """Take the delays of a metric's faults and raise its errors."""
        metrics = self.plan.metrics
        for name in ("telemetry", metric):
            if metrics[name].faults:
                self.suffer(metrics[name].faults, name)

    def supports(self, metric: str) -> bool:
        try:
            self.check(metric)
        except Refused:
            return False
        return True

    def suffer(self, faults: tuple[Fault, ...], name: str) -> None:
        suffer(faults, self.timeline, f"{self._scenario.seed}/{self.index}/{name}")

    def integral(self, metric: str) -> float:
        """The metric's amount since the start, in units of the metric times real seconds."""
        return self._integral(metric).at(self.timeline.now()) / self.timeline.timescale

    def _integral(self, metric: str) -> Integral:
        found = self._integrals.get(metric)
        if found is None:
            found = self._integrals[metric] = Integral(self.wave(metric).mean, live=self._busy.used)
        return found

    def reason_times(self) -> list[float]:
        """Real seconds under each clock event reason since the start, by bit."""
        if self._bit_times is None:
            self._bit_times = BitTimes(self.wave("throttle").at, live=self._busy.used)
        scale = self.timeline.timescale
        return [seconds / scale for seconds in self._bit_times.at(self.timeline.now())]

    def power(self, averaged: bool) -> float:
        """W now, or the mean of the last real second."""
        now = self.timeline.now()
        if not averaged:
            return max(0.0, self.wave("power").at(now))
        return self._integral("power").mean(now - self.timeline.timescale, now)

    def last_sample(self, period_s: float) -> int:
        """Number of the newest whole sampling period; periods lie on a grid in real time."""
        real = self.timeline.now() / self.timeline.timescale
        return math.floor(real / period_s - self._phase)

    def sample_end_s(self, period_s: float, number: int) -> float:
        """Unix seconds at which a sampling period ended."""
        return self.timeline.start_s + (number + self._phase) * period_s

    def sample(self, metric: str, period_s: float, number: int) -> float:
        """Mean of a metric over one sampling period."""
        kept = self._samples.setdefault(f"{metric}/{period_s}", {})
        value = kept.get(number)
        if value is None:
            value = kept[number] = self.mean_over(self.wave(metric), period_s, number)
            if len(kept) > 2 * _RING:
                for old in sorted(kept)[:-_RING]:
                    kept.pop(old, None)
        return value

    def mean_over(self, wave: Wave, period_s: float, number: int) -> float:
        end = (number + self._phase) * period_s * self.timeline.timescale
        return wave.mean(end - period_s * self.timeline.timescale, end)

    def sampled(self, metric: str) -> float:
        """The driver's gauge: the newest sample."""
        period = self._scenario.util_sample_s
        return self.sample(metric, period, self.last_sample(period))


def suffer(faults: tuple[Fault, ...], timeline: Timeline, salt: str) -> None:
    """Wait out the delays that hold now and raise the first error."""
    code = None
    now = timeline.now()
    for fault in faults:
        if not fault.start_s <= now < fault.end_s:
            continue
        if fault.probability < 1:
            draw = random.Random(f"{salt}/{math.floor(now / _DRAW_S)}").random()
            if draw >= fault.probability:
                continue
        if fault.delay_s:
            timeline.sleep(fault.delay_s)
        elif code is None:
            code = fault.error
    if code:
        raise Refused(code)
