"""Files of the whole simulated host below /proc, made when they are read."""

from collections.abc import Callable

from gpuwatch.sources.simulated.loads import CoreClass
from gpuwatch.sources.simulated.machine import Machine, whole

_TICKS = 100
_BEFORE_BUSY = 0.2  # mean use of the cores since the machine was started
_CPU_MODELS = ((16, "AMD Ryzen 7 5800X 8-Core Processor"), (64, "AMD EPYC 7543 32-Core Processor"))
_BIG_CPU = "INTEL(R) XEON(R) PLATINUM 8480C"


def host_files(machine: Machine) -> dict[str, Callable[[], bytes]]:
    """Path and maker of each file."""
    files: dict[str, Callable[[], bytes]] = {
        "/proc/stat": lambda: stat(machine),
        "/proc/uptime": lambda: _uptime(machine),
        "/proc/loadavg": lambda: _loadavg(machine),
        "/proc/meminfo": lambda: _meminfo(machine),
        "/proc/vmstat": lambda: _vmstat(machine),
        "/proc/diskstats": lambda: _diskstats(machine),
        "/proc/net/dev": lambda: _net_dev(machine),
        "/proc/cpuinfo": lambda: _cpuinfo(machine),
    }
    if machine.settings.on("psi", True):
        files |= {
            "/proc/pressure/cpu": lambda: _cpu_pressure(machine),
            "/proc/pressure/io": lambda: _pressure(machine, "psi.io", "0.2"),
            "/proc/pressure/memory": lambda: _pressure(machine, "psi.mem", "0"),
        }
    return files


def stat(machine: Machine) -> bytes:
    """Ticks per core: user nice system idle iowait irq softirq steal guest guest_nice."""
    real = machine.timeline.real()
    part = machine.cpu.advance(real)
    before = machine.uptime_s
    lines = []
    sums = [0, 0, 0, 0, 0]
    cache: dict[CoreClass, list[int]] = {}
    for core, kind in enumerate(machine.cpu.core_classes()):
        ticks = cache.get(kind)
        if ticks is None:
            ticks = cache[kind] = _core_ticks(machine, kind, part, real, before)
        sums = [total + tick for total, tick in zip(sums, ticks, strict=True)]
        lines.append(_cpu_line(b"cpu%d" % core, ticks))
    running = max(1, round(machine.cpu.totals.runnable))
    started = int(machine.timeline.start_s - machine.uptime_s)
    tail = b"intr 0\nctxt %d\nbtime %d\nprocesses 90000\nprocs_running %d\nprocs_blocked 0\n"
    text = b"\n".join([_cpu_line(b"cpu ", sums), *lines])
    return text + b"\n" + tail % (whole((before + real) * 9000), started, running)


def _core_ticks(machine: Machine, kind: CoreClass, part: float, real: float, before: float) -> list[int]:
    system = machine.system_ratio
    stolen = machine.counter("steal", "0") / 100
    busy = before * _BEFORE_BUSY + kind.busy_s + kind.busy_rate * part
    waiting = kind.iowait_s + kind.wait_rate * part
    spent = busy - before * _BEFORE_BUSY + waiting + stolen
    idle = before * (1 - _BEFORE_BUSY) + max(0.0, real) - spent
    return [
        whole(busy * (1 - system) * _TICKS),
        whole(busy * system * _TICKS),
        whole(idle * _TICKS),
        whole(waiting * _TICKS),
        whole(stolen * _TICKS),
    ]


def _cpu_line(name: bytes, ticks: list[int]) -> bytes:
    user, system, idle, waiting, stolen = ticks
    return b"%s %d 0 %d %d %d 0 0 %d 0 0" % (name, user, system, idle, waiting, stolen)


def _uptime(machine: Machine) -> bytes:
    up = machine.uptime_s + machine.timeline.real()
    return b"%.2f %.2f\n" % (up, up * machine.cores * (1 - _BEFORE_BUSY))


def _loadavg(machine: Machine) -> bytes:
    machine.cpu.advance(machine.timeline.real())
    load = machine.cpu.totals.load_average
    running = max(1, round(machine.cpu.totals.runnable))
    return b"%.2f %.2f %.2f %d/%d 90000\n" % (load, load, load, running, len(machine.living()) + 200)


def _meminfo(machine: Machine) -> bytes:
    total = machine.memory_bytes // 1024
    available = int(total * machine.now("mem.avail", "50") / 100)
    cached = int(total * machine.now("mem.cached", "38") / 100)
    free = max(total // 50, available - int(cached * 0.9))
    swap = int(machine.settings.number("swap.total", "8Gi")) // 1024
    lines = (
        ("MemTotal", total),
        ("MemFree", min(free, total)),
        ("MemAvailable", available),
        ("Buffers", total // 200),
        ("Cached", cached),
        ("SwapCached", 0),
        ("Shmem", total // 100),
        ("SwapTotal", swap),
        ("SwapFree", swap),
        ("Dirty", 2048),
        ("Slab", total // 100),
    )
    return b"".join(b"%-15s %8d kB\n" % (f"{name}:".encode(), value) for name, value in lines)


def _vmstat(machine: Machine) -> bytes:
    page = 4096
    values = (
        ("pswpin", machine.counter("swap.in", "0") / page),
        ("pswpout", machine.counter("swap.out", "0") / page),
        ("pgmajfault", machine.counter("faults.major", "0.5")),
        ("workingset_refault_file", machine.counter("refaults", "2")),
        ("allocstall_normal", 0),
        ("oom_kill", 0),
    )
    return b"".join(b"%s %d\n" % (name.encode(), whole(value)) for name, value in values)


def _pressure_line(kind: bytes, percent: float, total_s: float) -> bytes:
    return b"%s avg10=%.2f avg60=%.2f avg300=%.2f total=%d\n" % (
        kind,
        percent,
        percent,
        percent,
        whole(total_s * 1e6),
    )


def _cpu_pressure(machine: Machine) -> bytes:
    """As the scenario says, else what follows from how many cores are asked for."""
    if machine.settings.has("psi.cpu"):
        return _pressure(machine, "psi.cpu", "0")
    part = machine.cpu.advance(machine.timeline.real())
    totals = machine.cpu.totals
    some = totals.pressure_s + totals.pressure_rate * part
    share = totals.pressure_rate * 100
    return _pressure_line(b"some", share, 40.0 + some) + _pressure_line(b"full", 0.0, 0.0)


def _pressure(machine: Machine, key: str, default: str) -> bytes:
    percent = machine.now(key, default)
    total = machine.counter(key, default) / 100
    return _pressure_line(b"some", percent, total) + _pressure_line(b"full", percent / 2, total / 2)


def disks(machine: Machine) -> tuple[tuple[str, int, int, bool], ...]:
    """(name, major, minor, holds the data): the system's own, and one for data that is not NVMe."""
    system = ("nvme0n1", 259, 0, machine.disk_kind == "nvme")
    return (system,) if machine.disk_kind == "nvme" else (system, ("sda", 8, 0, True))


def _diskstats(machine: Machine) -> bytes:
    lines = []
    for name, major, minor, holds_data in disks(machine):
        values = _data_disk(machine) if holds_data else _system_disk(machine)
        words = b" ".join(b"%d" % whole(value) for value in values)
        lines.append(b"%4d %7d %s %s 0 0 0 0 0 0\n" % (major, minor, name.encode(), words))
        part = f"{name}p1" if name.startswith("nvme") else f"{name}1"
        lines.append(b"%4d %7d %s %s 0 0 0 0 0 0\n" % (major, minor + 1, part.encode(), words))
    return b"".join(lines)


def _data_disk(machine: Machine) -> tuple[float, ...]:
    reads = machine.count("disk reads", machine.disk_reads)
    read_bytes = machine.count("disk.read", machine.disk_read)
    write_bytes = machine.count("disk.write", machine.disk_write)
    busy_s = machine.count("disk.busy", machine.disk_busy)
    read_s = machine.count("disk wait", machine.disk_wait)
    writes = write_bytes / 65536
    write_ms = writes * 0.5
    queue_ms = read_s * 1000 + write_ms
    return (
        reads,
        0,
        read_bytes / 512,
        read_s * 1000,
        writes,
        0,
        write_bytes / 512,
        write_ms,
        0,
        busy_s * 1000,
        queue_ms,
    )


def _system_disk(machine: Machine) -> tuple[float, ...]:
    """A quiet hum of log files."""
    passed = 3600.0 + machine.timeline.real()
    writes = passed * 6
    return (
        passed * 0.5,
        0,
        passed * 64,
        passed * 0.1,
        writes,
        0,
        passed * 400,
        writes * 0.2,
        0,
        passed * 2,
        writes,
    )


def _net_dev(machine: Machine) -> bytes:
    received, sent = machine.counter("net.rx", "20K"), machine.counter("net.tx", "15K")
    head = b"Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed|bytes\n"
    line = b"%6s: %d %d 0 0 0 0 0 0 %d %d 0 0 0 0 0 0\n"
    own = line % (b"lo", 912345, 1200, 912345, 1200)
    return head + own + line % (b"eno1", received, received / 900, sent, sent / 900)


def _cpuinfo(machine: Machine) -> bytes:
    model = next((name for most, name in _CPU_MODELS if machine.cores <= most), _BIG_CPU)
    flags = "fpu vme avx avx2 sse4_2 fma" + (" hypervisor" if machine.settings.on("vm", False) else "")
    records = (
        f"processor\t: {core}\nvendor_id\t: AuthenticAMD\nmodel name\t: {model}\ncpu MHz\t\t: 3800.000\n"
        f"flags\t\t: {flags}\n\n"
        for core in range(machine.cores)
    )
    return "".join(records).encode()
