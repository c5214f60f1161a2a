"""NVLink health of one GPU: how many links are up, and the errors they have counted. Asked rarely."""

from collections.abc import Sequence
from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.fields import attribute, number
from gpuwatch.sources.nvml.poller import Poller, judge
from gpuwatch.sources.nvml.signals import Ask

FIELDS = ("nvlink_active_count", "nvlink_error_count", "nvlink_tx_bytes", "nvlink_rx_bytes")
NO_LINK = "no NVLink here"
#: Field values per link (nvml.h, NVML_FI_DEV_NVLINK_*): replays, recoveries and CRC errors up to the
#: fourth generation; receive errors, integrity errors and recoveries from the fifth on. Symbol and
#: effective errors are left out: forward error correction makes them part of normal operation there.
REPLAY, RECOVERY, CRC = 161, 162, 163
RECEIVE, INTEGRITY, RECOVERIES = 208, 211, 215
_PER_LINK = ((REPLAY, RECOVERY, CRC), (RECEIVE, INTEGRITY, RECOVERIES))
#: Sums over all links, for drivers that do not tell them apart: CRC of control and data, replays, recoveries.
_TOTALS = (38, 45, 52, 59)


class NvLinks:
    """`count` links, up or not. The errors of a link that went down since stay in the sum."""

    def __init__(self, poller: Poller, count: int) -> None:
        self._poller = poller
        self._count = count
        self._ways: list[tuple[int, ...]] = [*_PER_LINK, _TOTALS]  # the first one is in use
        self._seen: dict[tuple[int, int], int] = {}  # (field, link): errors

    def read(self, ask: Ask, out: Builder, caller: Caller) -> None:
        """Raises GpuGoneError or DriverGoneError."""
        try:
            up = [link for link in range(self._count) if ask("nvmlDeviceGetNvLinkState", link)]
        except Exception as error:
            out.lacks(FIELDS[:2], errors.text(self._poller.failed(error, caller)))
            return
        out.put("nvlink_active_count", len(up))
        self._read_errors(up, ask, out, caller)

    def _read_errors(self, up: Sequence[int], ask: Ask, out: Builder, caller: Caller) -> None:
        """A way that answers for no link at all is not tried again."""
        code = errors.NOT_SUPPORTED
        while up and self._ways:
            way = self._ways[0]
            links = (0,) if way is _TOTALS else up
            code = self._try([(field, link) for link in links for field in way], ask, caller)
            if code not in errors.PERMANENT:
                break
            del self._ways[0]
        if code not in (errors.SUCCESS, *errors.PERMANENT):
            out.absent["nvlink_error_count"] = errors.text(code)
        elif self._seen:
            out.put("nvlink_error_count", sum(self._seen.values()))
        elif up:
            self._poller.lacks(("nvlink_error_count",), errors.text(code))
        else:
            out.absent["nvlink_error_count"] = "no NVLink is up"

    def _try(self, wanted: list[tuple[int, int]], ask: Ask, caller: Caller) -> int:
        """Take what is answered; SUCCESS when something was."""
        try:
            answers: Any = ask("nvmlDeviceGetFieldValues", wanted)
        except Exception as error:
            return self._poller.failed(error, caller)
        result = errors.NOT_SUPPORTED
        for key, answer in zip(wanted, answers, strict=True):
            code: int = attribute(answer, "nvmlReturn")
            if code == errors.SUCCESS:
                value = number(attribute(answer, "valueType"), attribute(answer, "value"))
                if 0 <= value < 2**62:  # neither a blank code nor not a number
                    self._seen[key] = int(value)
                    result = errors.SUCCESS
            elif code not in errors.PERMANENT:
                judge(code, caller)
                result = result if result == errors.SUCCESS else code
        return result
