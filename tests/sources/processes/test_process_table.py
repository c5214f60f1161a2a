from fake_machine import Machine, stat_line

from gpuwatch.sources.processes.table import ROUND_S, ProcessTable


def crowd(count=200):
    machine = Machine()
    for pid in range(1000, 1000 + count):
        machine.files[f"/proc/{pid}/stat"] = stat_line(pid, b"sleep", 1)
    return machine


def stats(machine):
    return sum(path.endswith("/stat") for path in machine.reads)


def test_first_round_at_once_and_then_spread_over_the_ticks():
    machine = crowd()
    table = ProcessTable(machine)
    table.advance(0.0)
    assert stats(machine) == 201
    per_tick = []
    for second in range(1, 41):
        machine.reads.clear()
        table.advance(float(second))
        per_tick.append(stats(machine))
    assert max(per_tick) <= 201 / ROUND_S + 1
    assert 3 * 201 <= sum(per_tick) <= 4 * 201


def test_a_tick_never_costs_more_than_a_hundred_reads():
    machine = crowd(3000)
    table = ProcessTable(machine)
    table.advance(0.0)
    for second in range(1, 15):
        machine.reads.clear()
        table.advance(float(second) * 5)
        assert stats(machine) <= 100


def test_kernel_threads_are_looked_at_rarely():
    machine = Machine()
    for pid in range(2, 102):
        machine.files[f"/proc/{pid}/stat"] = stat_line(pid, b"kworker/0:1", 2, flags=0x208040)
    table = ProcessTable(machine)
    table.advance(0.0)
    machine.reads.clear()
    for second in range(1, 40):
        table.advance(float(second))
    assert stats(machine) <= 10
    assert table.children(2) == []


def test_children_and_ended_processes():
    machine = crowd(3)
    machine.files["/proc/1001/stat"] = stat_line(1001, b"sleep", 1000)
    table = ProcessTable(machine)
    table.advance(0.0)
    assert table.children(1000) == [1001]
    machine.end(1001)
    for second in range(1, 25):
        table.advance(float(second))
    assert table.children(1000) == []


def test_busy_means_a_tenth_of_a_core_and_a_reused_pid_starts_anew():
    machine = crowd(3)
    table = ProcessTable(machine)
    for second in range(35):
        machine.files["/proc/1000/stat"] = stat_line(1000, b"a", 1, ticks=100 * second)
        machine.files["/proc/1001/stat"] = stat_line(1001, b"b", 1, ticks=5 * second)
        machine.files["/proc/1002/stat"] = stat_line(1002, b"c", 1, ticks=50 * second, start=second)
        table.advance(float(second))
    assert table.hogs() == [1000]


def test_counters_that_run_backwards_are_no_figure():
    machine = crowd(1)
    table = ProcessTable(machine)
    for second in range(35):
        machine.files["/proc/1000/stat"] = stat_line(1000, b"a", 1, ticks=10_000 - 100 * second)
        table.advance(float(second))
    assert table.hogs() == []


def test_no_proc_at_all():
    machine = Machine()
    machine.files.clear()
    machine.links.clear()
    table = ProcessTable(machine)
    table.advance(0.0)
    table.advance(20.0)
    assert table.hogs() == []
