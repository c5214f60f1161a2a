"""The same scenario with other figures: periods, duties, noise and chosen settings times a factor."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gpuwatch.sources.simulated.language import Binary, Call, Node, Number
from gpuwatch.sources.simulated.scenario import Fault, GpuPlan, ProcessPlan, Scenario, Settings
from gpuwatch.sources.simulated.shapes import PERIODIC

#: A pulse stays one: its high part takes between these shares of the period.
DUTY_MIN, DUTY_MAX = 0.08, 0.92
_PERIOD, _DUTY = 2, 3  # places of the arguments
_SAMPLES, _NOT_SUPPORTED = "nvmlDeviceGetSamples", 3  # nvml.h
#: Counts, and shares of one core that stay shares of one core.
_WHOLE = frozenset({"cores", "W", "mask", "threads"})
_ONE_CORE = frozenset({"main.cpu", "w.cpu"})


def varied(scenario: Scenario, factors: Mapping[str, float]) -> Scenario:
    """A copy of `scenario`. `factors` are by name: `period`, `duty` (of every wave that has one),
    `noise`, a metric of the GPU, or a setting of the host. Names that do not occur change nothing.
    """
    waves = {name: factors[name] for name in ("period", "duty", "noise") if name in factors}

    def shaped(node: Node) -> Node:
        return _shaped(node, waves) if waves else node

    host = replace(
        scenario.host,
        machine=_settings(scenario.host.machine, shaped, factors),
        jobs={gpu: _settings(job, shaped, factors) for gpu, job in scenario.host.jobs.items()},
        processes=[_settings(process, shaped, factors) for process in scenario.host.processes],
    )
    return replace(
        scenario,
        gpus=[_gpu(plan, shaped, factors) for plan in scenario.gpus],
        processes=[_process(plan, shaped, factors) for plan in scenario.processes],
        host=host,
    )


def without_samples(scenario: Scenario) -> Scenario:
    """A copy whose driver keeps no samples of its own: utilization is read once a tick and no oftener."""
    return replace(scenario, call_faults={**scenario.call_faults, _SAMPLES: (Fault(error=_NOT_SUPPORTED),)})


def _gpu(plan: GpuPlan, shaped: Callable[[Node], Node], factors: Mapping[str, float]) -> GpuPlan:
    metrics = {
        name: replace(metric, wave=_times(shaped(metric.wave), factors.get(name, 1.0)))
        for name, metric in plan.metrics.items()
    }
    return replace(plan, metrics=metrics)


def _process(plan: ProcessPlan, shaped: Callable[[Node], Node], factors: Mapping[str, float]) -> ProcessPlan:
    return replace(
        plan,
        waves={name: shaped(node) for name, node in plan.waves.items()},
        host=_settings(plan.host, shaped, factors),
    )


def _settings(settings: Settings, shaped: Callable[[Node], Node], factors: Mapping[str, float]) -> Settings:
    changed: Settings = {}
    for name, value in settings.items():
        if isinstance(value, str):
            changed[name] = value
            continue
        node = _times(shaped(value), factors.get(name, 1.0))
        if name in factors and name in _WHOLE:
            node = Call("max", (Number(1.0), Call("floor", (Binary("+", node, Number(0.5)),))))
        elif name in factors and name in _ONE_CORE:
            node = Call("min", (Number(1.0), node))
        changed[name] = node
    return changed


def _times(node: Node, factor: float) -> Node:
    return node if factor == 1.0 else Binary("*", node, Number(factor))


def _shaped(node: Node, factors: Mapping[str, float]) -> Node:
    if isinstance(node, Binary):
        return replace(node, left=_shaped(node.left, factors), right=_shaped(node.right, factors))
    if not isinstance(node, Call):
        return node
    arguments = [None if part is None else _shaped(part, factors) for part in node.arguments]
    if node.name == "noise" and "noise" in factors and arguments[0] is not None:
        arguments[0] = _times(arguments[0], factors["noise"])
    if node.name in PERIODIC:
        period = arguments[_PERIOD]
        if "period" in factors and period is not None:
            arguments[_PERIOD] = _times(period, factors["period"])
        if "duty" in factors and node.name == "square" and len(arguments) > _DUTY:
            arguments[_DUTY] = _duty(arguments[_DUTY], factors["duty"])
    return replace(node, arguments=tuple(arguments))


def _duty(node: Node | None, factor: float) -> Node | None:
    if not isinstance(node, Number) or not 0.0 < node.value < 1.0:
        return node
    low, high = min(DUTY_MIN, node.value), max(DUTY_MAX, node.value)
    return Number(min(high, max(low, node.value * factor)))
