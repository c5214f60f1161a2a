"""The host's side of a scenario: lines behind `#host`, comments to anything else that reads the file.

    #host cores = 16                              the machine
    #host main.cpu = if(util < 50, 0.97, 1.0)     the job, on the GPUs of the section it stands in
    #host [process]                               a process on no GPU; until the next section
    #host name = ffmpeg

Inside a `[proc]` section the lines of the job belong to that process alone. `util` and the other
metrics are those of the job's first GPU (of GPU 0 for the machine).
"""

from gpuwatch.sources.simulated.language import Node, ScenarioError
from gpuwatch.sources.simulated.parse_values import parse_expression
from gpuwatch.sources.simulated.scenario import HostPlan, ProcessPlan, Settings

#: name: what it is. "wave" and "number" are expressions, "text" stays as it stands.
MACHINE = {
    "cores": "number",
    "others.cpu": "wave",  # cores kept busy by processes of others
    "psi": "text",  # "off": this kernel has no pressure information
    "psi.cpu": "wave",  # some, %
    "psi.io": "wave",
    "psi.mem": "wave",
    "disk.kind": "text",  # nvme, ssd, hdd
    "disk.read": "wave",  # bytes/s
    "disk.write": "wave",
    "disk.busy": "wave",  # %
    "disk.await": "wave",  # s
    "disk.iops": "wave",  # reads/s
    "net.rx": "wave",  # bytes/s
    "net.tx": "wave",
    "mem.total": "number",  # bytes
    "mem.avail": "wave",  # % of total
    "mem.cached": "wave",
    "swap.total": "number",
    "swap.in": "wave",  # bytes/s
    "swap.out": "wave",
    "faults.major": "wave",  # per s
    "refaults": "wave",  # pages/s
    "cg.quota": "number",  # cores
    "cg.throttled": "wave",  # % of periods
    "uptime": "number",  # s at the start
    "hostname": "text",
    "vm": "text",  # "on": a virtual machine
    "container": "text",  # "docker", ...
}
JOB = {
    "W": "number",
    "main.cpu": "wave",  # cores
    "main.read": "wave",  # bytes/s through read calls, cache included
    "main.delay": "wave",  # % of its runnable time spent waiting for a core
    "w.cpu": "wave",  # each
    "w.read": "wave",
    "w.state": "text",  # "D 60 %": share of time blocked on the disk
    "w.delay": "wave",
    "w.name": "text",
    "threads": "number",  # more busy threads in each worker
    "sys": "number",  # share of CPU time in the kernel, 0..1
    "mask": "number",  # cores the job may run on
    "age": "number",  # s at the start
    "env": "text",
    "maps": "text",
    "cmd": "text",
    "name": "text",
    "user": "text",
    "pin": "text",
    "names": "text",  # "off": a PyTorch without thread names
}
PROCESS = {
    "pid": "number",
    "name": "text",
    "cmd": "text",
    "cpu": "wave",  # cores
    "user": "text",
    "age": "number",
    "parent": "number",
}


class HostLines:
    """Collects `#host` lines into a plan."""

    def __init__(self, plan: HostPlan) -> None:
        self._plan = plan
        self._process: Settings | None = None

    def leave(self) -> None:
        """A section of the file began: the host's own section ends."""
        self._process = None

    def line(self, text: str, gpus: frozenset[int], owner: ProcessPlan | None, place: int) -> int:
        """One line behind the marker; the last place used for noise."""
        if text.startswith("["):
            self._section(text)
            return place
        if not text:
            return place
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ScenarioError(f'expected name = value, got "{text}"')
        if self._process is not None:
            return _store(self._process, PROCESS, key, value, place)
        if key in MACHINE:
            return _store(self._plan.machine, MACHINE, key, value, place)
        if owner is not None:
            return _store(owner.host, JOB, key, value, place)
        after = place
        for index in sorted(gpus) or [0]:
            after = _store(self._plan.jobs.setdefault(index, {}), JOB, key, value, place)
        return after

    def _section(self, text: str) -> None:
        name = text[1:].partition("]")[0].strip()
        if name == "process":
            self._process = {}
            self._plan.processes.append(self._process)
        elif name == "host":
            self._process = None
        else:
            raise ScenarioError(f"unknown section [{name}] behind #host")


def _store(settings: Settings, known: dict[str, str], key: str, value: str, place: int) -> int:
    kind = known.get(key)
    if kind is None:
        raise ScenarioError(f'unknown host setting "{key}"')
    stored: Node | str = value
    if kind != "text":
        stored, place = parse_expression(value, place)
    settings[key] = stored
    return place
