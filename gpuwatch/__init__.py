"""gpuwatch: why is this training slow? A live terminal dashboard that looks from outside.

Importing the package imports nothing else, so that `gpuwatch --version` stays instant.
"""

__version__ = "0.1.0"
