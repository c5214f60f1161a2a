"""Ledgers over the last minute, the last quarter of an hour and the whole run, by GPU and by job."""

from collections.abc import Mapping

from gpuwatch.diagnosis.ledger_parts import NOBODY, Booking, Claimed, added, drawn
from gpuwatch.diagnosis.window_builder import GpuMemory
from gpuwatch.model import LedgerSpans

Three = tuple[Booking, Booking, Booking]


def all_spans(
    gpus: Mapping[str, GpuMemory],
    claimed: Mapping[str, Claimed],
    job_of: Mapping[str, str],
    now_s: float,
) -> dict[str, LedgerSpans]:
    """By GPU uuid, and by job ("job:<pid>:<start>"), whose ledger is the sum over its GPUs."""
    found: dict[str, LedgerSpans] = {}
    by_job: dict[str, list[Three]] = {}
    for uuid, memory in gpus.items():
        three = _bookings(memory, claimed.get(uuid, NOBODY), now_s)
        found[uuid] = _spans(uuid, three, 1)
        job = job_of[uuid]
        if job.startswith("job:"):
            by_job.setdefault(job, []).append(three)
    for job, members in by_job.items():
        if len(members) == 1:
            three = members[0]
        else:
            minutes, quarters, runs = zip(*members, strict=True)
            three = (added(*minutes), added(*quarters), added(*runs))
        found[job] = _spans(job, three, len(members))
    return found


def _bookings(memory: GpuMemory, claimed: Claimed, now_s: float) -> Three:
    book = memory.ledger
    minute = book.minute(claimed)
    return minute, added(book.past.quarter(now_s), minute), added(book.past.run, minute)


def _spans(subject: str, three: Three, members: int) -> LedgerSpans:
    minute, quarter, run = (drawn(subject, booking, members) for booking in three)
    return LedgerSpans(minute, quarter, run)
