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
    "steal": "wave",  # % of all CPU time that the hypervisor gave to others
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
    "net.speed": "number",  # Mbit/s
    "shm.total": "number",  # bytes
    "shm.used": "wave",
    "cpu.mhz": "wave",  # clock of every core
    "cpu.mhz_max": "number",
    "cpu.governor": "text",
    "cpu.driver": "text",  # of cpufreq
    "cpu.throttles": "wave",  # thermal throttling events per s
    "dimms": "number",  # memory modules that the board's tables list
    "dimm.slots": "number",
    "dimm.channels": "number",
    "dimm.speed": "number",  # MT/s
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
    "cg.mem.limit": "number",  # bytes
    "cg.mem.used": "wave",
    "cg.mem.file": "wave",  # of them page cache
    "cg.refaults": "wave",  # pages/s
    "orphans": "number",  # data workers whose trainer is gone
    "p2p": "text",  # "off": the cards cannot read each other's memory; "on"
    "topology": "text",  # way between two cards: single, multiple (switches), host, node, system
    "platform": "text",  # "wsl"
    "uptime": "number",  # s at the start
    "hostname": "text",
    "vm": "text",  # "on": a virtual machine
    "container": "text",  # "docker", ...
}
JOB = {
    "W": "number",
    "main.cpu": "wave",  # cores
    "main.read": "wave",  # bytes/s through read calls, cache included
    "main.write": "wave",
    "main.delay": "wave",  # % of its runnable time spent waiting for a core
    "main.state": "text",  # "D 30 %": share of time blocked on the disk
    "main.threads": "number",  # more busy threads in the trainer
    "main.thread.cpu": "wave",  # each
    "main.thread.name": "text",
    "w.cpu": "wave",  # each
    "w.read": "wave",
    "w.disk": "wave",  # bytes/s of its reads that the disk delivers
    "w.state": "text",
    "w.respawn": "number",  # s after which all workers are replaced
    "w.pause": "number",  # s without workers before the new ones
    "w.delay": "wave",
    "w.name": "text",
    "threads": "number",  # more busy threads in each worker
    "sys": "number",  # share of CPU time in the kernel, 0..1
    "mask": "number",  # cores the job may run on
    "node": "number",  # NUMA node its threads run on
    "data": "text",  # file system the training data lies on: nfs4, fuse.s3fs, overlay, ...
    "compile": "text",  # "0..200": compiler processes run between these seconds
    "wrapper": "text",  # a command it was started under, as in nsys profile
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
    "env": "text",
    "maps": "text",
    "start": "number",  # s
    "end": "number",
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
