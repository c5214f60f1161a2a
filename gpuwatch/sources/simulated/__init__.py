"""A simulated driver and host that the real bindings and the real readers believe.

Scenario files say which GPUs there are and what they, their processes and the host do over time.
Loading one needs no driver bindings; playing it does, so that half is imported when first asked for.
"""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated.language import ScenarioError
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.shipped import describe, load, scenario_names
from gpuwatch.sources.simulated.timeline import ManualClock

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver
    from gpuwatch.sources.simulated.host import SimulatedTree
    from gpuwatch.sources.simulated.play import simulated

__all__ = [
    "ManualClock",
    "Scenario",
    "ScenarioError",
    "SimulatedDriver",
    "SimulatedTree",
    "describe",
    "load",
    "scenario_names",
    "simulated",
]

_LATE = {"SimulatedDriver": "driver", "SimulatedTree": "host", "simulated": "play"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
