"""NVIDIA GPUs through NVML. The only place that imports the binding, besides the simulated driver."""

from gpuwatch.sources.nvml.collector import NvmlTick
from gpuwatch.sources.nvml.source import InlineNvml, NvmlSource

__all__ = ["InlineNvml", "NvmlSource", "NvmlTick"]
