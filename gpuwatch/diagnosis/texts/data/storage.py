"""Texts of the rules about disk, page cache and network."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import byte_rate, cores, facts, gap_line, gib, lines, percent
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText

_KINDS = {"hdd": "a hard disk", "nvme": "an NVMe disk", "ssd": "an SSD"}


def _disk(fires: Fires, window: Window) -> FindingText:
    found, name = facts(fires), str(fires.parameters["disk"])
    kind = say(_KINDS.get(str(fires.parameters["kind"]), "a disk"))
    cold = fires.variant == "cold"
    reads, slow, pressure = (
        found.get("read_bytes_per_s"),
        found.get("await_ms"),
        found.get("io_pressure_ratio"),
    )
    blocked, each = found.get("worker_blocked_ratio"), found.get("worker_cpu_cores")
    return FindingText(
        title=say("the first pass reads from the disk {disk}", disk=name)
        if cold
        else say("the workers wait for the disk {disk}", disk=name),
        because=lines(
            None
            if reads is None
            else say("{disk}, {kind}, delivers {rate}", disk=name, kind=kind, rate=byte_rate(reads)),
            None if slow is None else say("a read takes {ms} ms", ms=round(slow, 1)),
            None if pressure is None else say("I/O pressure {share}", share=percent(pressure)),
            say("workers blocked in {share} of the looks", share=percent(blocked))
            if blocked
            else None
            if each is None
            else say("each worker uses {cores}", cores=cores(each)),
        ),
        wrong_if=say("something else keeps the workers, and the disk is busy for others"),
        settle=say("copy a part of the data set to RAM (/dev/shm) and train 100 steps on it"),
        advice=(
            say("wait one pass before judging: the cache is warming")
            if cold
            else say("put the data set on NVMe, or in RAM"),
            say("pack small files: tar shards, LMDB, HDF5 with large chunks"),
            say("on a hard disk: sequential reads and fewer readers"),
        ),
        short_advice=say("wait one epoch, then judge") if cold else say("data to NVMe or RAM, or pack files"),
    )


def _cold(fires: Fires, window: Window) -> FindingText:
    cached = facts(fires).get("memory_cached_bytes")
    return FindingText(
        title=say("first pass over the data: the page cache is warming"),
        because=lines(
            say("reads from {disk} in the first ten minutes, or falling", disk=str(fires.parameters["disk"])),
            None if cached is None else say("{size} are cached", size=gib(cached)),
        ),
        wrong_if=say("the data set is larger than the memory that may cache it"),
        settle=say("compare the second epoch"),
        advice=(
            say("wait one epoch before judging"),
            say("read the set once before training: cat files > /dev/null"),
        ),
        short_advice=say("wait one epoch"),
    )


def _thrash(fires: Fires, window: Window) -> FindingText:
    found = facts(fires)
    reads, cached, again = (
        found.get("read_bytes_per_s"),
        found.get("memory_cached_bytes"),
        found.get("refaults_per_s"),
    )
    return FindingText(
        title=say("the data set does not fit into the memory that may cache it"),
        because=lines(
            None if reads is None else say("{rate} from the disk, all the time", rate=byte_rate(reads)),
            None if cached is None else say("{size} are cached", size=gib(cached)),
            None
            if again is None
            else say("{count} pages a second are read again soon after", count=round(again)),
        ),
        wrong_if=say("the reader bypasses the cache on purpose (O_DIRECT)"),
        settle=say("train on a part of the set that fits: do the reads end?"),
        advice=(
            say("raise the container's memory limit: the cache counts against it")
            if fires.variant == "limit"
            else say("more memory, a smaller or sharded set"),
            say("a local NVMe disk"),
            say("sequential shards instead of random files"),
        ),
        short_advice=say("raise the memory limit")
        if fires.variant == "limit"
        else say("local NVMe, or smaller shards"),
    )


def _network(fires: Fires, window: Window) -> FindingText:
    found = facts(fires)
    rate, link, blocked = (
        found.get("rx_bytes_per_s"),
        found.get("link_bytes_per_s"),
        found.get("worker_blocked_ratio"),
    )
    system = str(fires.parameters.get("filesystem", ""))
    return FindingText(
        title=say("samples come over the network too slowly"),
        because=lines(
            say("the data lie on {system}", system=system) if system else None,
            None
            if rate is None
            else say("{rate} are received", rate=byte_rate(rate))
            if link is None
            else say(
                "{rate} are received, the link carries {link}", rate=byte_rate(rate), link=byte_rate(link)
            ),
            None if not blocked else say("workers blocked in {share} of the looks", share=percent(blocked)),
            gap_line(window),
        ),
        wrong_if=say("the traffic belongs to training on several machines"),
        settle=say("copy a part of the data set to a local disk and train 100 steps on it"),
        advice=(
            say("stage the data set locally"),
            say("larger shards, more parallel streams"),
            say("a cache layer in front of the storage"),
        ),
        short_advice=say("stage the data set locally"),
    )


TEXTS: dict[str, RuleText] = {
    "loader-disk-bound": RuleText(
        title="the workers wait for the disk",
        label="disk",
        render=_disk,
        sees="Workers that wait instead of working, and the disk that holds the data they read.",
        decides="The GPU waits; workers below 0.6 core; two of: I/O pressure 20 %, workers blocked in 30 % of the looks, reads "
        "slower than 2 ms (NVMe), 5 ms (SSD), 20 ms (hard disk) or a disk other than NVMe 90 % busy, iowait 20 %; the job "
        "does half of the reads. Within the first 10 min of a job a notice at most.",
        unlike="A busy NVMe disk means little by itself; a remote mount is the network's; swapping reads no files.",
        steps=(
            "Put the data set on NVMe, or in RAM.",
            "Pack small files: tar shards, LMDB, HDF5 with large chunks.",
            "On a hard disk: sequential reads and fewer readers.",
        ),
        wrong_if="something else keeps the workers, and the disk is busy for others.",
        settle="train 100 steps on a part of the data set in /dev/shm.",
        sources="I/O wait beside an idle GPU: SageMaker Debugger; 500 MB/s and 5000 reads: gpuprof; two of four is our own.",
    ),
    "page-cache-cold": RuleText(
        title="first pass: the page cache is warming",
        label="cold cache",
        render=_cold,
        sees="A disk-bound loader in a young job, or one whose reads fall.",
        decides="The disk keeps the workers and the job is younger than 10 min, or the last third of 10 min reads less than a third of the "
        "first. A state; it holds the disk's finding at a notice.",
        unlike="A data set larger than memory never warms.",
        steps=("Wait one epoch before judging.", "Read the set once before training."),
        wrong_if="the data set is larger than the memory that may cache it.",
        settle="compare the second epoch.",
        sources="Three times between first and last third: gpuprof; 10 min are our own.",
    ),
    "page-cache-thrash": RuleText(
        title="every epoch reads everything again",
        label="page cache",
        render=_thrash,
        sees="Reads from the disk that do not end although the cache is full.",
        decides="After 10 min: 100 MB/s or more (ends below 50), and 40 % of memory cached, or a control group 90 % full with "
        "more than 100 pages a second read again.",
        unlike="A first pass; readers that bypass the cache.",
        steps=(
            "Raise the container's memory limit: the cache counts against it.",
            "A smaller or sharded set, a local NVMe disk.",
            "Sequential shards instead of random files.",
        ),
        wrong_if="the reader bypasses the cache on purpose.",
        settle="train on a part of the set that fits.",
        sources="40 % and 100 MB/s: gpuprof; refaults: kernel documentation, limits our own.",
    ),
    "loader-network-bound": RuleText(
        title="samples come over the network too slowly",
        label="network",
        render=_network,
        sees="Workers that rest or block while data come over a remote mount or a network card.",
        decides="The GPU waits; workers below 0.5 core; the data on a remote file system with workers blocked in 20 % of the looks or "
        "20 MB/s received; or 70 % of the link received with little sent and a quiet disk.",
        unlike="Training on several machines sends as much as it receives; a local disk under pressure.",
        steps=(
            "Stage the data set locally.",
            "Larger shards, more parallel streams.",
            "A cache layer in front of the storage.",
        ),
        wrong_if="the traffic belongs to training on several machines.",
        settle="train 100 steps on a part of the data set on a local disk.",
        sources="Share of data operations among causes: ICSE 2024 study of 400 jobs; numbers are our own.",
    ),
}
