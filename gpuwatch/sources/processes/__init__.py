"""Processes: who trains, who works for it, who is in the way - and their threads in bursts."""

from gpuwatch.sources.processes.bursts import BurstReader
from gpuwatch.sources.processes.reader import ProcessReader

__all__ = ["BurstReader", "ProcessReader"]
