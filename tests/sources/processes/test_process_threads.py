from fake_machine import Machine, stat_line

from gpuwatch.model import ThreadReading
from gpuwatch.sources.processes.threads import ThreadWatch, WaitSum


def names(readings):
    return [reading.name for reading in readings]


def test_pytorch_threads_are_watched_the_pin_thread_first():
    machine = Machine()
    for tid, name in (
        (103, b"pt_autograd_0"),
        (101, b"cuda-EvtHandlr"),
        (104, b"pt_data_pin"),
        (102, b"python"),
    ):
        machine.thread(100, tid, name, run=5, wait=6)
    readings = ThreadWatch(machine, 100).read(1.0, 4)
    assert names(readings) == ["pt_data_pin", "pt_autograd_0"]
    assert (readings[0].tid, readings[0].run_ns, readings[0].wait_ns, readings[0].state) == (104, 5, 6, "S")


def test_a_thread_that_names_itself_late_is_found():
    machine = Machine()
    machine.thread(100, 104, b"python")
    watch = ThreadWatch(machine, 100)
    assert names(watch.read(1.0, 4)) == []
    machine.thread(100, 104, b"pt_data_pin")
    assert names(watch.read(2.0, 4)) == ["pt_data_pin"]


def test_ended_threads_go():
    machine = Machine()
    machine.thread(100, 104, b"pt_data_pin")
    watch = ThreadWatch(machine, 100)
    watch.read(1.0, 4)
    machine.end(100)
    assert watch.read(2.0, 4) == []
    assert watch.read(4.0, 4) == []


def test_busy_unnamed_threads_are_found_a_few_at_a_time_and_dropped_when_calm():
    machine = Machine()
    watch = ThreadWatch(machine, 100)
    seen = []
    for second in range(60):
        for tid in range(101, 141):
            busy = tid == 117 and second < 30
            run = (second if busy else min(second, 30)) * 900_000_000 if tid == 117 else 0
            machine.thread(100, tid, b"worker", run=run)
        machine.reads.clear()
        seen.append([reading.tid for reading in watch.read(float(second), 8)])
        if second > 5:
            assert sum(path.endswith("schedstat") for path in machine.reads) <= 9
    assert [117] in seen
    assert seen[-1] == []


def test_more_threads_than_can_be_watched():
    machine = Machine()
    for tid in range(101, 401):
        machine.thread(100, tid, b"pt_thread_data_")
    watch = ThreadWatch(machine, 100)
    for second in range(30):
        readings = watch.read(float(second), 8)
    assert len(readings) == 16


def test_damaged_thread_files_are_left_out():
    machine = Machine()
    machine.thread(100, 104, b"pt_data_pin")
    machine.files["/proc/100/task/104/schedstat"] = b"\n"
    watch = ThreadWatch(machine, 100)
    assert watch.read(1.0, 4)[0].run_ns is None
    machine.files["/proc/100/task/104/stat"] = b"104 (x"
    assert watch.read(2.0, 4) == []


def reading(tid, wait_ns):
    return ThreadReading(tid, "x", "S", 0, wait_ns)


def test_wait_counter_does_not_jump_when_threads_come_and_go():
    waits = WaitSum()
    assert waits.add([reading(1, 100)]) == 100
    assert waits.add([reading(1, 110), reading(2, 5000)]) == 110  # what thread 2 waited before is not new
    assert waits.add([reading(1, 110), reading(2, 5007)]) == 117
    assert waits.add([reading(1, 120)]) == 127
    assert waits.add([reading(1, 120), reading(3, None)]) == 127


def test_wait_counter_without_statistics():
    assert WaitSum().add([reading(1, None)]) is None


def test_state_letters_that_are_no_letters():
    machine = Machine()
    machine.thread(100, 104, b"pt_data_pin")
    machine.files["/proc/100/task/104/stat"] = stat_line(104, b"pt_data_pin", state=b"\xff")
    assert ThreadWatch(machine, 100).read(1.0, 4)[0].state == "?"
