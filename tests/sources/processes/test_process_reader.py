import pytest
from fake_machine import UPTIME_S, Machine, io_file, stat_line
from fake_tree import FakeClock

from gpuwatch.model import ProcessRole
from gpuwatch.sources.processes import ProcessReader

COMPUTE = {100: "C"}


class Watching:
    """A reader over a machine, one second per tick."""

    def __init__(self, machine, resolve_user=lambda uid: None):
        self.machine = machine
        self.time = FakeClock()
        self.reader = ProcessReader(machine, self.time.clock, 4096, resolve_user)

    def tick(self, gpu_processes=COMPUTE, seconds=1.0):
        self.time.now += seconds
        readings, self.hidden = self.reader.read(gpu_processes, self.time.now)
        return {reading.pid: reading for reading in readings}


def machine_with_job():
    machine = Machine()
    machine.add(100, b"python", 50, ticks=500, run=5_000_000_000, wait=40_000_000, start=900_000, threads=9)
    for pid in (101, 102):
        machine.add(pid, b"pt_data_worker", 100, ticks=20, run=200_000_000, wait=9_000_000)
    machine.add(103, b"wandb-core", 100, command=b"wandb-core\0")
    return machine


def test_trainer_with_workers_and_children():
    readings = Watching(machine_with_job()).tick()
    roles = {pid: reading.role for pid, reading in readings.items()}
    assert roles == {
        100: ProcessRole.TRAINER,
        101: ProcessRole.WORKER,
        102: ProcessRole.WORKER,
        103: ProcessRole.CHILD,
    }
    assert {reading.trainer for reading in readings.values()} == {(100, 900_000)}


def test_figures_of_a_process():
    machine = machine_with_job()
    machine.files["/proc/100/io"] = io_file(read_chars=10, read_calls=2, read_bytes=4096, write_bytes=1)
    trainer = Watching(machine).tick()[100]
    assert trainer.key == (100, 900_000)
    assert trainer.command == "python train.py"
    assert (trainer.user, trainer.uid) == ("anna", 1000)
    assert trainer.cpu_ns == 5_000_000_000
    assert trainer.wait_ns == 40_000_000
    assert trainer.rss_bytes == 100 * 4096
    assert trainer.age_s == pytest.approx(UPTIME_S - 9000)
    assert (trainer.read_chars, trainer.read_calls) == (10, 2)
    assert (trainer.read_bytes, trainer.write_bytes) == (4096, 1)
    assert (trainer.affinity_cores, trainer.usable_cores) == (4, 4.0)
    assert trainer.thread_count == 9
    assert trainer.threads[0].tid == 100
    assert trainer.threads[0].run_ns == 5_000_000_000
    assert trainer.absent == {}


def test_usable_cores_are_the_tighter_of_mask_and_quota():
    machine = machine_with_job()
    machine.files["/sys/fs/cgroup/cpu.max"] = b"150000 100000\n"
    assert Watching(machine).tick()[100].usable_cores == 1.5


def test_b061_cpu_counts_all_threads_and_is_no_percentage():
    machine = machine_with_job()
    watching = Watching(machine)
    before = watching.tick()[100]
    machine.add(100, b"python", 50, ticks=500 + 991, threads=12)
    after = watching.tick()[100]
    assert (after.cpu_ns - before.cpu_ns) / 1e9 == pytest.approx(9.91)  # cores, over one second


def test_new_worker_is_seen_in_the_next_tick():
    machine = machine_with_job()
    watching = Watching(machine)
    watching.tick()
    machine.add(104, b"pt_data_worker", 100)
    assert watching.tick()[104].role is ProcessRole.WORKER


def test_without_children_files_the_next_round_finds_it():
    machine = machine_with_job()
    for path in [path for path in machine.files if path.endswith("/children")]:
        del machine.files[path]
    watching = Watching(machine)
    assert set(watching.tick()) == {100, 101, 102, 103}
    machine.add(104, b"pt_data_worker", 100, listed=False)
    seen = [104 in watching.tick() for _ in range(25)]
    assert not seen[0]
    assert seen[-1]


def test_forkserver_workers_are_found_through_the_server():
    machine = machine_with_job()
    server = b"python\0-c\0from multiprocessing.forkserver import main\0"
    machine.add(110, b"python", 100, command=server)
    machine.add(111, b"pt_data_worker", 110, command=server)
    readings = Watching(machine).tick()
    assert readings[110].role is ProcessRole.CHILD
    assert readings[111].role is ProcessRole.WORKER
    assert readings[111].trainer == (100, 900_000)


def test_a_worker_with_a_gpu_context_stays_a_worker():
    readings = Watching(machine_with_job()).tick({100: "C", 101: "C"})
    assert readings[101].role is ProcessRole.WORKER
    assert readings[101].trainer == (100, 900_000)


def test_ranks_below_a_launcher_with_a_context_are_trainers_of_their_own():
    machine = machine_with_job()
    machine.add(120, b"python", 100, start=900_100)
    machine.add(121, b"pt_data_worker", 120)
    readings = Watching(machine).tick({100: "C", 120: "C"})
    assert readings[120].trainer == (120, 900_100)
    assert readings[121].trainer == (120, 900_100)
    assert readings[101].trainer == (100, 900_000)


def test_a_child_that_was_adopted_by_init_is_no_longer_family():
    machine = machine_with_job()
    watching = Watching(machine)
    watching.tick()
    machine.files["/proc/103/stat"] = stat_line(103, b"wandb-core", 1)
    assert 103 not in watching.tick()


def test_zombie_workers_are_left_out():
    machine = machine_with_job()
    machine.files["/proc/102/stat"] = stat_line(102, b"pt_data_worker", 100, state=b"Z")
    assert 102 not in Watching(machine).tick()


def test_b064_a_listed_pid_that_is_gone_has_a_row_once():
    machine = machine_with_job()
    watching = Watching(machine)
    row = watching.tick({100: "C", 30094: "C"})[30094]
    assert row.command == "(ended)"
    assert row.state == "X"
    assert row.cpu_ns is None
    assert row.absent["cpu_ns"] == "the process has ended"
    assert 30094 not in watching.tick({100: "C", 30094: "C"})
    assert watching.hidden == 0


def test_b064_a_trainer_that_ends_keeps_its_name_for_one_tick():
    machine = machine_with_job()
    watching = Watching(machine)
    watching.tick()
    for pid in (100, 101, 102, 103):
        machine.end(pid)
    row = watching.tick()[100]
    assert row.command == "python train.py (ended)"
    assert row.role is ProcessRole.OTHER
    assert row.threads == ()
    assert watching.tick() == {}


def test_a_reused_pid_is_a_new_process():
    machine = machine_with_job()
    watching = Watching(machine)
    watching.tick()
    machine.add(100, b"jupyter", 50, start=990_000, command=b"jupyter\0lab\0")
    reading = watching.tick()[100]
    assert reading.key == (100, 990_000)
    assert reading.command == "jupyter lab"


def test_exec_changes_the_command():
    machine = machine_with_job()
    watching = Watching(machine)
    watching.tick()
    machine.add(100, b"vllm", 50, command=b"VLLM::Worker\0")
    assert watching.tick()[100].command == "VLLM::Worker"


def container():
    machine = machine_with_job()
    machine.links["/proc/self/ns/pid"] = "pid:[4026532201]"
    return machine


def test_b065_foreign_pid_in_a_container_is_counted_not_named():
    machine = container()
    machine.add(4145, b"nginx", 1, command=b"nginx\0")
    machine.files["/proc/4145/maps"] = b"7f00-7f01 r-xp 0 08:01 12 /usr/lib/libssl.so.3\n"
    machine.files["/proc/100/maps"] = b"7f00-7f01 r-xp 0 08:01 12 /usr/lib/libcuda.so.580.65\n"
    watching = Watching(machine)
    readings = watching.tick({100: "C", 4145: "C", 777: "C"})
    assert 100 in readings
    assert not {4145, 777} & readings.keys()
    assert watching.hidden == 2


def test_b065_an_open_device_file_is_proof_enough():
    machine = container()
    machine.links["/proc/100/fd/7"] = "/dev/nvidia0"
    assert 100 in Watching(machine).tick()


def test_b065_under_doubt_no_name_is_attached():
    machine = container()
    machine.files["/proc/100/maps"] = PermissionError(13, "Permission denied")
    watching = Watching(machine)
    assert watching.tick() == {}
    assert watching.hidden == 1


def test_hidepid_makes_missing_processes_hidden():
    machine = machine_with_job()
    machine.end(1)
    watching = Watching(machine)
    assert 555 not in watching.tick({100: "C", 555: "C"})
    assert watching.hidden == 1


def test_b067_uid_without_a_name_is_shown_as_number():
    machine = machine_with_job()
    machine.files["/proc/100/status"] = b"Name:\tx\nUid:\t70001\t70001\t70001\t70001\n"
    assert Watching(machine).tick()[100].user == "70001"


def test_processes_of_another_user_lack_io_and_libraries_with_reason():
    machine = machine_with_job()
    denied = PermissionError(13, "Permission denied")
    machine.files["/proc/100/io"] = machine.files["/proc/100/maps"] = denied
    watching = Watching(machine)
    watching.tick()
    trainer = watching.tick()[100]
    assert trainer.read_chars is None
    assert "owner and root" in trainer.absent["read_chars"]
    assert trainer.cpu_ns == 5_000_000_000
    assert trainer.facts.libraries is None
    assert "owner and root" in trainer.facts.absent["libraries"]
    for _ in range(10):
        watching.tick()
    assert machine.reads.count("/proc/100/io") == 1  # not tried every second


def test_kernel_without_scheduler_statistics():
    machine = machine_with_job()
    del machine.files["/proc/100/schedstat"]
    trainer = Watching(machine).tick()[100]
    assert trainer.wait_ns is None
    assert "scheduler" in trainer.absent["wait_ns"]
    assert trainer.cpu_ns is not None


def test_graphics_and_desktop_contexts_are_no_trainers():
    machine = machine_with_job()
    machine.add(200, b"Xorg", 1)
    machine.add(201, b"kwin_wayland", 1)
    readings = Watching(machine).tick({100: "C", 200: "G", 201: "C+G"})
    assert readings[200].role is ProcessRole.GRAPHICS
    assert readings[201].role is ProcessRole.GRAPHICS


def test_busy_strangers_are_listed_busiest_first_and_not_gpuwatch_itself():
    machine = machine_with_job()
    strangers = {300: 40, 301: 90, 302: 60, 303: 70, 304: 1, 999: 95}
    for pid in strangers:
        machine.add(pid, b"stress", 1, command=b"stress\0")
    watching = Watching(machine)
    for second in range(30):
        for pid, ticks in strangers.items():
            machine.files[f"/proc/{pid}/stat"] = stat_line(pid, b"stress", 1, ticks=second * ticks)
        readings = watching.tick()
    others = [pid for pid, reading in readings.items() if reading.role is ProcessRole.OTHER]
    assert others == [301, 303, 302]
    assert readings[301].trainer is None


def test_age_falls_back_to_the_boot_time_and_never_is_negative():
    machine = machine_with_job()
    del machine.files["/proc/uptime"]
    machine.files["/proc/stat"] = b"cpu 1 2 3 4\nbtime 1799990000\n"
    watching = Watching(machine)
    assert watching.tick()[100].age_s == pytest.approx(1000.0)
    machine.files["/proc/uptime"] = b"5.0 1.0\n"  # a container's own uptime
    trainer = watching.tick()[100]
    assert trainer.age_s is None
    assert trainer.absent["age_s"]


def test_nothing_about_processes_can_be_read():
    machine = Machine()
    machine.files.clear()
    machine.links.clear()
    watching = Watching(machine)
    assert watching.tick({}) == {}
    assert watching.tick({5: "C"}) == {}
    assert watching.hidden == 1


def test_facts_are_read_once_per_process_and_one_process_per_tick():
    machine = machine_with_job()
    for pid in (100, 101, 102):
        machine.files[f"/proc/{pid}/maps"] = b"7f00-7f01 r-xp 0 08:01 1 /x/libtorch_cpu.so\n"
    watching = Watching(machine)
    watching.tick()
    for count in (1, 2, 3, 3, 3):
        readings = watching.tick()
        known = [pid for pid, reading in readings.items() if reading.facts is not None]
        assert len(known) == count
    assert readings[100].facts.frameworks == ("torch",)
    assert sum(path.endswith("/maps") for path in machine.reads) == 3
    for _ in range(30):
        watching.tick()
    assert sum(path.endswith("/maps") for path in machine.reads) == 6


def test_listening_trainer():
    machine = machine_with_job()
    machine.links["/proc/100/fd/3"] = "socket:[4711]"
    machine.files["/proc/100/net/tcp"] = (
        b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000    0 4711 1 0\n"
    )
    watching = Watching(machine)
    watching.tick()
    assert watching.tick()[100].facts.listening is True


def test_an_established_connection_is_not_listening():
    machine = machine_with_job()
    machine.links["/proc/100/fd/3"] = "socket:[4711]"
    machine.files["/proc/100/net/tcp"] = (
        b"   0: 0100007F:1F90 0100007F:1F91 01 00000000:00000000 00:00000000 00000000  1000    0 4711 1 0\n"
    )
    watching = Watching(machine)
    watching.tick()
    assert watching.tick()[100].facts.listening is False


def test_a_dying_trainer_has_no_libraries_rather_than_none_of_interest():
    machine = machine_with_job()
    machine.files["/proc/100/maps"] = b""
    watching = Watching(machine)
    watching.tick()
    facts = watching.tick()[100].facts
    assert facts.libraries is None
    assert facts.absent["libraries"] == "the process has ended"
