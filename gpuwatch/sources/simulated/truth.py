"""What a scenario did, read from its own waves instead of through the driver: for scoring."""

from gpuwatch.sources.simulated.busy import BusyFiles
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.timeline import ManualClock, Timeline
from gpuwatch.sources.simulated.waveforms import Noise

#: A GPU below this does nothing, %.
_IDLE_BELOW = 10.0
_STEP_S = 0.02


def idle_ratios(scenario: Scenario, start_s: float, end_s: float) -> dict[int, float]:
    """Share of time, 0..1, in which each GPU did nothing between two moments of the scenario."""
    timeline = Timeline(ManualClock(), scenario.timescale)
    noise, busy = Noise(scenario.seed), BusyFiles(timeline)
    count = max(1, round((end_s - start_s) / _STEP_S))
    found = {}
    for plan in scenario.gpus:
        at = SimulatedGpu(scenario, plan, timeline, noise, busy).wave("util").at
        idle = sum(1 for n in range(count) if at(start_s + (n + 0.5) * _STEP_S) < _IDLE_BELOW)
        found[plan.index] = idle / count
    return found
