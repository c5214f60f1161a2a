"""Ring buffers of everything that was derived from samples: fixed memory, gaps stay gaps."""

from gpuwatch.history.history import History
from gpuwatch.history.tiers import Tier

__all__ = ["History", "Tier"]
