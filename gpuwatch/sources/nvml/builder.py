"""The values of one reading while it is being put together: checked, and with a reason where missing."""

from collections.abc import Mapping

from gpuwatch.sources.nvml.ranges import bounds, is_blank


class Builder:
    """Collects fields of a `GpuReading`. `values` holds what was accepted, `absent` why not."""

    __slots__ = ("absent", "rejected", "values")

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.absent: dict[str, str] = {}
        self.rejected = 0

    def put(self, field: str, value: float) -> bool:
        """Accept a number if it can be true; else discard and count it. NaN fails every comparison."""
        low, high = bounds(field)
        if low <= value <= high:
            self.values[field] = value
            return True
        if is_blank(value):
            self.absent[field] = "the driver has no value"
        else:
            self.reject(field, value)
        return False

    def reject(self, field: str, value: float) -> None:
        self.rejected += 1
        self.absent[field] = f"impossible value {value:.12g} discarded"

    def number(self, field: str) -> float | None:
        """A numeric field accepted in this reading."""
        value = self.values.get(field)
        return value if isinstance(value, int | float) else None

    def lacks(self, fields: tuple[str, ...], reason: str) -> None:
        for field in fields:
            self.absent[field] = reason

    def take(self, values: Mapping[str, object], absent: Mapping[str, str]) -> None:
        """Carry over what was read less often."""
        self.values.update(values)
        self.absent.update(absent)
