"""Rules about the card itself: heat, power, clocks, and its link to the host."""

from gpuwatch.diagnosis.interface import Rule
from gpuwatch.diagnosis.rules.hardware.heat import thermal_throttle
from gpuwatch.diagnosis.rules.hardware.pcie_link import pcie_gen_reduced, pcie_width_reduced
from gpuwatch.diagnosis.rules.hardware.power_limit import power_limit_lowered
from gpuwatch.diagnosis.rules.hardware.slowdown import hw_slowdown
from gpuwatch.diagnosis.rules.registry import rule
from gpuwatch.model import Kind

RULES: tuple[Rule, ...] = (
    rule("hw-slowdown", "gpu", Kind.LOSS, hw_slowdown, every_s=2.0),
    rule("thermal-throttle", "gpu", Kind.LOSS, thermal_throttle, every_s=3.0),
    rule("power-limit-lowered", "gpu", Kind.OPPORTUNITY, power_limit_lowered, enter=2),
    rule("pcie-width-reduced", "gpu", Kind.OPPORTUNITY, pcie_width_reduced, every_s=10.0),
    rule("pcie-gen-reduced", "gpu", Kind.OPPORTUNITY, pcie_gen_reduced, every_s=10.0),
)
