"""The table of the library's entry points, and how they read and fill what pynvml hands them.

An entry gets the same arguments as the C function behind the same name: structures come by reference
and are filled through it. It returns nothing for success and raises `Refused` for anything else.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

Entry = Callable[..., None]
ENTRIES: dict[str, Entry] = {}

_UINT_MAX = 0xFFFFFFFF


def entry(*names: str) -> Callable[[Entry], Entry]:
    """Register a function `(driver, *arguments)` under the library's names."""

    def register(function: Entry) -> Entry:
        for name in names:
            ENTRIES[name] = function
        return function

    return register


def target(argument: Any) -> Any:
    """The ctypes object behind `byref(x)`, a pointer, or an array; NULL is refused."""
    if argument is None:
        raise Refused(codes.INVALID_ARGUMENT)
    try:
        return argument._obj
    except AttributeError:
        pass
    try:
        return argument.contents
    except AttributeError:
        return argument
    except ValueError:
        raise Refused(codes.INVALID_ARGUMENT) from None


def number(argument: Any) -> int:
    """A C integer that comes as `c_uint(n)` or as a plain int."""
    return int(getattr(argument, "value", argument))


def put(argument: Any, value: int) -> None:
    target(argument).value = value


def put_text(buffer: Any, length: Any, text: str) -> None:
    data = text.encode()
    if len(data) + 1 > number(length):
        raise Refused(codes.INSUFFICIENT_SIZE)
    buffer.value = data


def put_memory(destination: Any, source: Any, count: int) -> None:
    """Copy the first `count` elements of a list into a ctypes array."""
    for place in range(count):
        destination[place] = source[place]


def uint(value: float) -> int:
    """Rounded and kept within an unsigned int, as C would have it."""
    if value <= 0:
        return 0
    return min(_UINT_MAX, int(value + 0.5))


def percent(value: float) -> int:
    return uint(min(100.0, value))


def need(condition: object, code: int = codes.INVALID_ARGUMENT) -> None:
    if not condition:
        raise Refused(code)


def metric_entry(name: str, metric: str, scale: float = 1.0) -> None:
    """An entry that hands out one metric as an unsigned int."""

    def read(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
        put(out, uint(driver.gpu(handle).value(metric) * scale))

    ENTRIES[name] = read


def fixed_entry(name: str, value: Callable[[SimulatedGpu], float | None]) -> None:
    """An entry that hands out a property of the card; None is Not Supported."""

    def read(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
        found = value(driver.gpu(handle))
        need(found is not None, codes.NOT_SUPPORTED)
        put(out, int(found or 0))

    ENTRIES[name] = read
