"""Rules about the card itself: heat, power, clocks, and its link to the host."""

from gpuwatch.diagnosis.interface import STEADY, Rule
from gpuwatch.diagnosis.rules.hardware.bus import host_memory_channels, pcie_errors, pcie_saturated
from gpuwatch.diagnosis.rules.hardware.cooling import (
    clock_sag_unexplained,
    clocks_pinned,
    fan_or_cooling_fault,
)
from gpuwatch.diagnosis.rules.hardware.heat import thermal_throttle
from gpuwatch.diagnosis.rules.hardware.pcie_link import pcie_gen_reduced, pcie_width_reduced
from gpuwatch.diagnosis.rules.hardware.power_limit import power_limit_lowered
from gpuwatch.diagnosis.rules.hardware.slowdown import hw_slowdown
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import Kind

RULES: tuple[Rule, ...] = (
    rule("hw-slowdown", "gpu", Kind.LOSS, hw_slowdown),
    rule("thermal-throttle", "gpu", Kind.LOSS, thermal_throttle),
    rule("power-limit-lowered", "gpu", Kind.OPPORTUNITY, power_limit_lowered, enter=2),
    rule("pcie-width-reduced", "gpu", Kind.OPPORTUNITY, pcie_width_reduced, every_s=10.0),
    rule("pcie-gen-reduced", "gpu", Kind.OPPORTUNITY, pcie_gen_reduced, every_s=10.0),
    rule("fan-or-cooling-fault", "gpu", Kind.RISK, fan_or_cooling_fault, enter=2, leave=6),
    rule("clocks-pinned", "gpu", Kind.LOSS, clocks_pinned, every_s=10.0, enter=2, leave=2),
    rule(
        "clock-sag-unexplained", "gpu", Kind.LOSS, clock_sag_unexplained, states=STEADY, every_s=10.0, leave=3
    ),
    rule("pcie-saturated", "gpu", Kind.LOSS, pcie_saturated, states=STEADY),
    rule("host-memory-channels", "host", Kind.OPPORTUNITY, host_memory_channels, every_s=30.0),
    rule("pcie-errors", "gpu", Kind.RISK, pcie_errors, every_s=10.0),
)
