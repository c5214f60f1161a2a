import pytest
from fake_tree import FakeTree

from gpuwatch.sources.host.frequency import (
    NO_FREQUENCY,
    NONE_BUSY,
    CpuClock,
    ThrottleCount,
    read_frequency_info,
)

CPU = "/sys/devices/system/cpu"


def cores(*mhz):
    return FakeTree(
        {f"{CPU}/cpu{n}/cpufreq/scaling_cur_freq": b"%d\n" % (clock * 1000) for n, clock in enumerate(mhz)}
    )


class Running:
    """A clock reader over cores that work the given shares of each second."""

    def __init__(self, tree):
        self.tree = tree
        self.clock = CpuClock(tree)
        self.now = 100.0
        self.busy = [0.0] * sum(path.endswith("cur_freq") for path in tree.files)

    def run(self, seconds, *shares):
        for _ in range(seconds):
            self.now += 1.0
            self.busy = [used + share for used, share in zip(self.busy, shares, strict=True)]
            ids = tuple(range(len(shares)))
            self.answer = self.clock.read(ids, tuple(self.busy), self.now)
        return self.answer[0]


def test_clock_of_the_fastest_of_the_busy_cores():
    running = Running(cores(5000, 2100, 2400, 800))
    assert running.run(8, 0.05, 0.9, 1.0, 0.1) == 2400.0  # core 0 is fast and asleep


def test_first_figures_come_within_seconds():
    running = Running(cores(3000, 3000))
    assert running.run(1, 1.0, 0.0) is None
    assert running.answer[1] == "known after the first seconds"
    assert running.run(2, 1.0, 0.0) == 3000.0


def test_clocks_are_read_rarely_and_one_core_at_a_time():
    running = Running(cores(*[3000] * 64))
    running.run(3, *[1.0] * 64)
    running.tree.reads.clear()
    most = 0
    for _ in range(60):
        before = len(running.tree.reads)
        running.run(1, *[1.0] * 64)
        most = max(most, len(running.tree.reads) - before)
    assert most == 1
    assert len(running.tree.reads) <= 60 / 5 * 3


def test_while_nothing_works_there_is_no_clock():
    running = Running(cores(3000, 3000))
    running.run(5, 1.0, 1.0)
    assert running.run(12, 0.1, 0.0) is None
    assert running.answer[1] == NONE_BUSY


def test_a_core_switched_off_meanwhile():
    running = Running(cores(3000, 2000))
    running.run(6, 1.0, 1.0)
    running.tree.files.pop(f"{CPU}/cpu0/cpufreq/scaling_cur_freq")
    assert running.run(7, 1.0, 1.0) == 2000.0


def test_other_cores_than_before_begin_anew():
    running = Running(cores(3000, 2000))
    running.run(5, 1.0, 1.0)
    running.clock.read((1,), (500.0,), running.now + 20)
    assert running.clock.read((1,), (505.0,), running.now + 26)[0] == 2000.0


@pytest.mark.parametrize("content", [b"<unknown>\n", b"0\n", b""])
def test_without_a_clock_the_kernel_is_not_asked_again(content):
    tree = FakeTree({f"{CPU}/cpu0/cpufreq/scaling_cur_freq": content})
    clock = CpuClock(tree)
    for second in range(30):
        assert clock.read((0,), (float(second),), float(second)) == (None, NO_FREQUENCY)
    assert len(tree.reads) == 1


def policies(*policies):
    files = {}
    for n, (governor, driver, maximum) in enumerate(policies):
        base = f"{CPU}/cpufreq/policy{n}"
        files |= {
            f"{base}/scaling_governor": governor,
            f"{base}/scaling_driver": driver,
            f"{base}/cpuinfo_max_freq": maximum,
        }
    return FakeTree(files)


def test_governor_of_most_cores_and_clock_of_the_fastest():
    tree = policies(
        (b"performance\n", b"acpi-cpufreq\n", b"3000000\n"),
        (b"powersave\n", b"acpi-cpufreq\n", b"5100000\n"),
        (b"powersave\n", b"acpi-cpufreq\n", b"3000000\n"),
    )
    absent = {}
    assert read_frequency_info(tree, absent) == ("powersave", "acpi-cpufreq", 5100.0)
    assert absent == {}


@pytest.mark.parametrize("tree", [FakeTree(), FakeTree({f"{CPU}/cpufreq/boost": b"1\n"})])
def test_no_frequencies_at_all_have_a_reason(tree):
    absent = {}
    assert read_frequency_info(tree, absent) == (None, None, None)
    assert absent == dict.fromkeys(
        ("cpu_governor", "cpu_frequency_driver", "cpu_clock_max_mhz"), NO_FREQUENCY
    )


def packages(*counts, name="package", cores_each=2):
    files = {}
    for package, count in enumerate(counts):
        for core in range(package * cores_each, (package + 1) * cores_each):
            files[f"{CPU}/cpu{core}/topology/physical_package_id"] = b"%d\n" % package
            files[f"{CPU}/cpu{core}/thermal_throttle/{name}_throttle_count"] = b"%d\n" % count
    return FakeTree(files)


def test_one_core_of_each_package_speaks_for_it():
    assert ThrottleCount(packages(5, 7)).read((0, 1, 2, 3), 0.0) == 12


def test_old_cpus_count_per_core():
    assert ThrottleCount(packages(5, 7, name="core")).read((0, 1, 2, 3), 0.0) == 24


def test_throttling_is_read_every_ten_seconds():
    tree = packages(5, 7)
    count = ThrottleCount(tree)
    for second in range(30):
        count.read((0, 1, 2, 3), float(second))
    reads = [path for path in tree.reads if path.endswith("/cpu0/thermal_throttle/package_throttle_count")]
    assert len(reads) <= 3 + 2  # and twice to see whether the file exists


def test_a_core_that_goes_offline_makes_no_events():
    tree = packages(5, 7)
    count = ThrottleCount(tree)
    assert count.read((0, 1, 2, 3), 0.0) == 12
    del tree.files[f"{CPU}/cpu0/thermal_throttle/package_throttle_count"]
    tree.files[f"{CPU}/cpu1/thermal_throttle/package_throttle_count"] = b"900\n"  # its own count of old
    assert count.read((1, 2, 3), 20.0) == 12
    tree.files[f"{CPU}/cpu1/thermal_throttle/package_throttle_count"] = b"902\n"
    assert count.read((1, 2, 3), 40.0) == 14


def test_no_counter_is_not_zero():
    tree = FakeTree({f"{CPU}/cpu0/topology/physical_package_id": b"0\n"})
    count = ThrottleCount(tree)
    assert [count.read((0,), 20.0 * n) for n in range(5)] == [None] * 5
    assert len(tree.reads) <= 3  # looked for once
