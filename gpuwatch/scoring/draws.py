"""Figures drawn anew for each seed, so that nothing is fitted to one list of numbers."""

import random
from collections.abc import Mapping


def factors(scenario: str, seed: int, spreads: Mapping[str, float]) -> dict[str, float]:
    """A factor for each name, evenly within `spread` of 1. Seed 0 changes nothing.

    The same for the same scenario and seed, and for one name whatever the other names are.
    """
    if seed == 0:
        return {}
    return {
        name: 1.0 + random.Random(f"{scenario}/{seed}/{name}").uniform(-spread, spread)
        for name, spread in spreads.items()
    }
