"""Runs signals of one GPU: remembers what it does not support, keeps one failure from the others."""

from collections.abc import Iterable
from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.signals import Ask, Signal


class GpuGoneError(Exception):
    """This GPU answers no call any more; `code` says why."""

    def __init__(self, code: int) -> None:
        super().__init__(errors.text(code))
        self.code = code


class DriverGoneError(Exception):
    """All handles are void."""

    def __init__(self, code: int) -> None:
        super().__init__(errors.text(code))
        self.code = code


class Poller:
    """Asks the driver about one handle. `unsupported` (field: reason) grows as signals prove absent."""

    def __init__(self, api: Any, handle: Any) -> None:
        self._api = api
        self._handle = handle
        self.unsupported: dict[str, str] = {}
        self._ways: dict[Signal, int] = {}  # signals that fell back to a later way, or to none

    def asker(self, caller: Caller) -> Ask:
        """A function that makes calls with this GPU's handle in the caller's thread."""
        api, handle, call = self._api, self._handle, caller.call

        def ask(name: str, *arguments: Any) -> Any:
            function = getattr(api, name, None)
            if function is None:
                raise errors.MissingFunctionError(name)
            return call(function, handle, *arguments)

        return ask

    def run(self, signals: Iterable[Signal], ask: Ask, out: Builder, caller: Caller) -> None:
        """Read each signal; a failure stays with its signal. Raises GpuGoneError or DriverGoneError."""
        for signal in signals:
            way = self._ways.get(signal, 0)
            while way < len(signal.ways):
                try:
                    signal.ways[way](ask, out)
                    break
                except Exception as error:
                    code = self.failed(error, caller)
                    if code not in errors.PERMANENT:
                        out.lacks(signal.fields, errors.text(code))
                        break
                    way = self._ways[signal] = way + 1
                    if way == len(signal.ways):
                        self.lacks(signal.fields, errors.text(code))

    def lacks(self, fields: tuple[str, ...], reason: str) -> None:
        for name in fields:
            self.unsupported[name] = reason

    def failed(self, error: Exception, caller: Caller) -> int:
        """Count a failure and return its code. Raises GpuGoneError or DriverGoneError."""
        code = errors.code_of(error)
        judge(code, caller)
        return code


def judge(code: int, caller: Caller) -> None:
    """Count a failed call. Raises GpuGoneError or DriverGoneError."""
    if code in errors.GPU_FATAL:
        raise GpuGoneError(code)
    if code in errors.DRIVER_FATAL:
        raise DriverGoneError(code)
    if code not in errors.PERMANENT and code not in errors.QUIET:
        caller.failed += 1
