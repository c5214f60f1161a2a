"""Reading scenario files: sections, lines, includes. Every mistake names its file, line and reason."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from gpuwatch.sources.simulated.defaults import default_lines
from gpuwatch.sources.simulated.language import METRICS, Node, Number, ScenarioError
from gpuwatch.sources.simulated.models import ALIASES, MODELS
from gpuwatch.sources.simulated.parse_host import HostLines
from gpuwatch.sources.simulated.parse_values import (
    parse_expression,
    parse_gpu_set,
    parse_number,
    parse_value,
    parse_xids,
)
from gpuwatch.sources.simulated.scenario import (
    COMPUTE,
    GRAPHICS,
    MPS,
    GpuPlan,
    Metric,
    MigSlice,
    ProcessPlan,
    Scenario,
)

MOST_GPUS = 32
_MOST_PROCESSES = 64
_MOST_MIG = 7
_DEEPEST_INCLUDE = 8
_METRICS = frozenset(METRICS)


def parse_scenario(text: str, file: str = "scenario") -> Scenario:
    """A scenario from its text; `file` names it in messages and anchors its includes."""
    scenario = Scenario(name=os.path.basename(file).removesuffix(".scn"))
    _Parser(scenario).text(text, file)
    if not scenario.nvml:
        scenario.nvml = f"{scenario.cuda // 1000}.{scenario.driver}"
    if not scenario.timescale > 0:
        scenario.timescale = 1.0
    return scenario


class _Parser:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._selected: frozenset[int] = frozenset()
        self._process: ProcessPlan | None = None
        self._host = HostLines(scenario.host)
        self._file = ""
        self._depth = 0
        self._place = 0
        self._settings = _global_settings(scenario)

    def text(self, text: str, file: str) -> None:
        outer, self._file = self._file, file
        for number, line in enumerate(text.split("\n"), 1):
            try:
                self._line(line)
            except ScenarioError as error:
                if error.line:
                    raise
                raise ScenarioError(error.reason, file, number) from None
            except (RecursionError, OverflowError, ValueError):
                raise ScenarioError(f'cannot read "{line.strip()[:40]}"', file, number) from None
        self._file = outer

    def _line(self, line: str) -> None:
        if line.startswith("#"):
            self._comment(line)
            return
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            self._section(line)
        elif line:
            key, value = _split(line)
            self._set(key, value)

    def _comment(self, line: str) -> None:
        if line.startswith("#host"):
            rest = line[5:].partition("#")[0].strip()
            self._place = self._host.line(rest, self._selected, self._process, self._place)
        elif line.startswith("#truth"):
            key, value = _split(line[6:].partition("#")[0].strip())
            self._scenario.truth[key] = value
        elif not self._scenario.description and not self._scenario.gpus and self._depth == 0:
            self._scenario.description = line[1:].strip()

    def _section(self, line: str) -> None:
        name, bracket, _ = line[1:].partition("]")
        if not bracket:
            raise ScenarioError("missing ]")
        name = name.strip()
        self._process = None
        self._host.leave()
        count = len(self._scenario.gpus)
        if name == "all":
            self._selected = frozenset(range(count))
        elif name.startswith("gpu"):
            self._selected = parse_gpu_set(name[3:], count)
        elif name == "proc":
            if len(self._scenario.processes) >= _MOST_PROCESSES:
                raise ScenarioError("too many processes")
            self._process = ProcessPlan()
            self._scenario.processes.append(self._process)
        else:
            raise ScenarioError(f"unknown section [{name}]")

    def _set(self, key: str, value: str) -> None:
        if self._process is not None:
            self._set_process(self._process, key, value)
        elif key == "gpus":
            self._make_gpus(value)
        elif key == "include":
            self._include(value)
        elif key.startswith("call."):
            _, faults, self._place = parse_value(value, self._place)
            self._scenario.call_faults[key[5:]] = faults
        elif key in self._settings:
            self._settings[key](value)
        elif not self._scenario.gpus:
            raise ScenarioError(f'"{key}" comes before "gpus = ..."')
        elif key in _METRICS:
            self._set_metric(key, value)
        else:
            for index in sorted(self._selected):
                _set_identity(self._scenario.gpus[index], key, value)

    def _set_metric(self, key: str, value: str) -> None:
        node, faults, self._place = parse_value(value, self._place)
        for index in self._selected:
            metrics = self._scenario.gpus[index].metrics
            metrics[key] = Metric(metrics[key].wave if node is None else node, faults)

    def _make_gpus(self, value: str) -> None:
        gpus: list[GpuPlan] = []
        for part in filter(None, (part.strip() for part in value.split(","))):
            found = re.fullmatch(r"(\d+)\s*x\s+(\S.*)", part)
            count, key = (int(found.group(1)), found.group(2)) if found else (1, part)
            if key == "none":
                continue
            model = MODELS.get(ALIASES.get(key, key))
            if model is None:
                raise ScenarioError(f'unknown model "{key}" (known: {", ".join(MODELS)})')
            for index in range(len(gpus), min(len(gpus) + count, MOST_GPUS)):
                metrics = dict(_default_metrics(ALIASES.get(key, key)))
                gpus.append(GpuPlan(index, model, metrics, model.name))
        self._scenario.gpus = gpus
        self._selected = frozenset(range(len(gpus)))

    def _include(self, name: str) -> None:
        if self._depth >= _DEEPEST_INCLUDE:
            raise ScenarioError("includes nest too deep")
        path = os.path.join(os.path.dirname(self._file), name)
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
        except OSError:
            raise ScenarioError(f"cannot open {path}") from None
        self._depth += 1
        self.text(text, path)
        self._depth -= 1

    def _set_process(self, process: ProcessPlan, key: str, value: str) -> None:
        if key == "pid":
            process.pid = self._pid(value)
        elif key == "gpu":
            process.gpus = parse_gpu_set(value, len(self._scenario.gpus))
        elif key == "mem":
            process.memory = None if value == "na" else self._expression(value)
        elif key in ("sm", "mem_util", "enc", "dec"):
            process.waves[key] = self._expression(value)
        elif key == "type":
            kinds = MPS if "MPS" in value else COMPUTE if "C" in value else 0
            process.kinds = kinds | (GRAPHICS if "G" in value else 0)
        elif key == "gi":
            process.gpu_instance = int(parse_number(value))
        elif key == "start":
            process.start_s = parse_number(value)
        elif key == "end":
            process.end_s = parse_number(value)
        else:
            raise ScenarioError(f'unknown process setting "{key}"')

    def _pid(self, value: str) -> int | str | Node:
        if value in ("self", "parent") or value.startswith(("file:", "env:")):
            return value
        digits = re.match(r"\d+", value)
        return int(digits.group()) if digits else self._expression(value)

    def _expression(self, value: str) -> Node:
        node, _, self._place = parse_value(value, self._place)
        return Number(0.0) if node is None else node


def _split(line: str) -> tuple[str, str]:
    key, equals, value = line.partition("=")
    if not equals:
        raise ScenarioError(f'expected name = value, got "{line}"')
    return key.strip(), value.strip()


@cache
def _default_metrics(key: str) -> dict[str, Metric]:
    metrics = {name: Metric(Number(0.0)) for name in METRICS}
    place = 1_000_000  # far from the places of the scenario's own noise
    for line in filter(None, default_lines(MODELS[key]).split("\n")):
        name, value = _split(line)
        node, faults, place = parse_value(value, place)
        metrics[name] = Metric(metrics[name].wave if node is None else node, faults)
    return metrics


def _global_settings(scenario: Scenario) -> dict[str, Callable[[str], None]]:
    def number(name: str, scale: float = 1.0) -> Callable[[str], None]:
        return lambda value: setattr(scenario, name, parse_number(value) * scale)

    def whole(name: str) -> Callable[[str], None]:
        return lambda value: setattr(scenario, name, int(parse_number(value)))

    def text(name: str) -> Callable[[str], None]:
        return lambda value: setattr(scenario, name, value)

    def cuda(value: str) -> None:
        major, _, minor = value.partition(".")
        scenario.cuda = int(major) * 1000 + int(minor or 0) * 10

    return {
        "seed": whole("seed"),
        "timescale": number("timescale"),
        "driver": text("driver"),
        "nvml": text("nvml"),
        "cuda": cuda,
        "pcie_block_ms": number("pcie_block_s", 1e-3),
        "util_sample_ms": number("util_sample_s", 1e-3),
        "power_sample_ms": number("power_sample_s", 1e-3),
        "clock_sample_ms": number("clock_sample_s", 1e-3),
        "proc_sample_ms": number("process_sample_s", 1e-3),
        "pcie_counter_bits": whole("pcie_counter_bits"),
        "numa_nodes": whole("numa_nodes"),
    }


def _set_identity(gpu: GpuPlan, key: str, value: str) -> None:
    if key == "name":
        gpu.name = value
    elif key == "uuid":
        gpu.uuid = value
    elif key == "serial":
        gpu.serial = value
    elif key == "minor":
        gpu.minor = int(value)
    elif key == "numa":
        gpu.numa_node = int(value)
    elif key == "bus_id":
        found = re.fullmatch(r"([0-9a-fA-F]+):([0-9a-fA-F]+):([0-9a-fA-F]+)\.([0-9a-fA-F])", value)
        if not found:
            raise ScenarioError("bus_id wants 00000000:01:00.0")
        gpu.pci = (int(found.group(1), 16), int(found.group(2), 16))
    elif key == "xid":
        gpu.xids.extend(parse_xids(value))
        gpu.xids.sort()
    elif key == "mig":
        _set_mig(gpu, value)
    else:
        raise ScenarioError(f'unknown setting "{key}"')


def _set_mig(gpu: GpuPlan, value: str) -> None:
    if not gpu.model.mig:
        raise ScenarioError(f"{gpu.model.name} has no MIG")
    if value == "off":
        gpu.mig = None
        return
    slices: list[MigSlice] = []
    for part in (part.strip() for part in value.split(",")):
        if part == "on":
            continue
        found = re.fullmatch(r"(\d+)g\.(\d+)gb", part)
        if not found or len(slices) >= _MOST_MIG:
            raise ScenarioError(f'mig wants slices such as 3g.40gb, not "{part}"')
        count, memory = int(found.group(1)), int(found.group(2))
        whole = MigSlice(part, count, len(slices) + 1, 0, gpu.model.sm_count // 7 * count)
        slices.append(replace(whole, memory_mib=memory * 1024 - memory * 1024 // 40))
    gpu.mig = tuple(slices)


__all__ = ["parse_expression", "parse_scenario"]
