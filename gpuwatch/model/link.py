"""What a PCIe link can carry."""

#: Payload bytes per second and lane, one way, by generation (PCI Express base specification: 2.5, 5, 8, 16,
#: 32, 64, 128 GT/s with 8b/10b, 128b/130b and flit coding).
LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9, 7: 15.13e9}


def link_bytes_per_s(generation: float | None, width: float | None) -> float | None:
    """The most this link can carry one way; None for an unknown link."""
    if generation is None or not width:
        return None
    lane = LANE_BYTES_PER_S.get(int(generation))
    return None if lane is None else lane * width
