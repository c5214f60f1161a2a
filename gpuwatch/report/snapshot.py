"""One moment as a JSON document, schema `gpuwatch.snapshot/1`.

Additive within a major version. Numbers are never formatted, units are in the key names, unknown is
null, and `absent` says why.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gpuwatch import __version__
from gpuwatch.metrics import METRICS, Kind, Metric
from gpuwatch.model import GpuReading, ProcessReading, Sample
from gpuwatch.state import State

SCHEMA = "gpuwatch.snapshot/1"

Document = dict[str, Any]


def snapshot_document(state: State) -> Document:
    """Everything a script may want of `state`; JSON-serializable (no NaN, no bytes)."""
    sample = state.sample
    return {
        "schema": SCHEMA,
        "version": __version__,
        "time": None if sample is None else datetime.fromtimestamp(sample.wall_s, UTC).isoformat(),
        "time_s": None if sample is None else sample.wall_s,
        "label": None if state.machine is None else state.machine.label,
        "machine": _machine(state),
        "driver": _driver(state),
        "gpus": [] if sample is None else [_gpu(state, reading) for reading in sample.gpus],
        "host": _host(state),
        "processes": _processes(state, sample),
        "hidden_process_count": None if sample is None else sample.hidden_processes,
        "diagnosis": _diagnosis(state),
        "events": [_plain(event) for event in state.events],
        "own": {"cpu_ratio": state.own_cpu_ratio, "rss_bytes": state.own_rss_bytes},
    }


def _machine(state: State) -> Document | None:
    return None if state.machine is None else _plain(state.machine.host)


def _driver(state: State) -> Document:
    document = {} if state.machine is None else _plain(state.machine.driver)
    if state.sample is not None:
        document.update(_plain(state.sample.driver))
    return document


def _gpu(state: State, reading: GpuReading) -> Document:
    infos = () if state.machine is None else state.machine.gpus
    info = next((info for info in infos if info.uuid == reading.uuid), None)
    entity = f"gpu:{reading.uuid}"
    document: Document = {} if info is None else _plain(info)
    document.update(
        uuid=reading.uuid,
        index=reading.index,
        status=_plain(reading.status),
        age_s=max(0.0, state.now_s - reading.read_s),
        metrics=_metrics(state, entity, "gpu"),
        absent=dict(reading.absent),
        mig=[_plain(instance) for instance in reading.mig],
        processes=None if reading.processes is None else [_plain(entry) for entry in reading.processes],
        rejected_count=reading.rejected_count,
    )
    return document


def _metrics(state: State, entity: str, kind: str) -> Document:
    return {metric.key: _value(state, entity, metric) for metric in METRICS[kind]}


def _value(state: State, entity: str, metric: Metric) -> float | int | None:
    value = state.history.last(entity, metric.key)
    if value is not None and metric.kind in (Kind.BITS, Kind.STATE) and value == int(value):
        return int(value)
    return value


def _host(state: State) -> Document | None:
    if state.sample is None or state.sample.host is None:
        return None
    host = state.sample.host
    return {
        "metrics": _metrics(state, "host:", "host"),
        "memory_total_bytes": host.memory_total_bytes,
        "swap_total_bytes": host.swap_total_bytes,
        "core_busy_ratios": list(state.history.core_shares()),
        "disks": {disk.name: _metrics(state, f"disk:{disk.name}", "disk") for disk in host.disks},
        "networks": {net.name: _metrics(state, f"net:{net.name}", "net") for net in host.networks},
        "absent": dict(host.absent),
    }


def _processes(state: State, sample: Sample | None) -> list[Document] | None:
    if sample is None or sample.processes is None:
        return None
    return [_process(state, process) for process in sample.processes]


def _process(state: State, process: ProcessReading) -> Document:
    return {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "trainer_pid": None if process.trainer is None else process.trainer[0],
        "role": str(process.role),
        "name": process.name,
        "command": process.command,
        "user": process.user,
        "state": process.state,
        "age_s": process.age_s,
        "thread_count": process.thread_count,
        "usable_cores": process.usable_cores,
        "metrics": _metrics(state, f"process:{process.pid}:{process.start_ticks}", "process"),
        "absent": dict(process.absent),
    }


def _diagnosis(state: State) -> Document | None:
    diagnosis = state.diagnosis
    if diagnosis is None:
        return None
    return {
        "verdict": _plain(diagnosis.verdict),
        "checks": [
            {
                "number": result.check.number,
                "key": result.check.key,
                "label": result.check.label,
                "layer": str(result.check.layer),
                "state": str(result.state),
                "evidence": result.evidence,
                "seconds_left": result.seconds_left,
                "rule": result.rule,
            }
            for result in diagnosis.checks
        ],
        "findings": [_plain(finding) for finding in diagnosis.findings],
        "ended": [_plain(finding) for finding in diagnosis.ended],
        "ledgers": [_plain(ledger) for ledger in diagnosis.ledgers.values()],
        "spans": {subject: _plain(spans) for subject, spans in diagnosis.spans.items()},
        "jobs": [_plain(job) for job in diagnosis.jobs.values()],
        "shapes": {uuid: _plain(shape) for uuid, shape in diagnosis.shapes.items()},
        "not_checked": [_plain(entry) for entry in diagnosis.not_checked],
        "ignored": sorted(state.ignored),
    }


def _plain(record: object) -> Any:
    """A record as JSON types: dataclasses become objects, enums their text, tuples lists."""
    slots = getattr(type(record), "__dataclass_fields__", None)
    if slots is not None:
        return {name: _plain(getattr(record, name)) for name in slots}
    if isinstance(record, Mapping):
        return {str(key): _plain(value) for key, value in record.items()}
    if isinstance(record, (tuple, list, frozenset, set)):
        return [_plain(item) for item in record]
    if isinstance(record, str):
        return str(record)
    if isinstance(record, float):
        return record if record == record and abs(record) != float("inf") else None
    return record
