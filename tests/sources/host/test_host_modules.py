import pytest
from fake_tree import FakeTree

from gpuwatch.sources.host.info import parse_cores, read_host_info
from gpuwatch.sources.host.modules import (
    IN_CONTAINER,
    IN_VM,
    NO_CHANNELS,
    NO_MATCH,
    NO_SLOTS,
    NOT_TOLD,
    MemoryLayout,
    read_memory_layout,
)

RECORD = "/run/udev/data/+dmi:id"
EDAC = "/sys/devices/system/edac/mc"
GIB = 1 << 30


def record(*slots, counted=None):
    """udev's record with these slots; a slot is a dictionary of its keys."""
    lines = ["I:4711", "E:ID_VENDOR=Example", "E:MEMORY_ARRAY_LOCATION=System Board Or Motherboard"]
    if counted is not None:
        lines.append(f"E:MEMORY_ARRAY_NUM_DEVICES={counted}")
    for number, slot in enumerate(slots):
        lines += [f"E:MEMORY_DEVICE_{number}_{key}={value}" for key, value in slot.items()]
    return FakeTree({RECORD: "\n".join([*lines, "V:1", ""]).encode()})


def module(locator, bank="", size=16 * GIB, speed=6400, runs=4800):
    return {
        "SIZE": size,
        "LOCATOR": locator,
        "BANK_LOCATOR": bank,
        "TYPE": "DDR5",
        "SPEED_MTS": speed,
        "SERIAL_NUMBER": "SECRET-1234",
        "CONFIGURED_SPEED_MTS": runs,
    }


def empty(locator, bank=""):
    return {"PRESENT": 0, "LOCATOR": locator, "BANK_LOCATOR": bank}


def look(tree, memory_bytes=None, *, virtual_machine=False, container=False):
    absent = {}
    found = read_memory_layout(
        tree, memory_bytes, virtual_machine=virtual_machine, container=container, absent=absent
    )
    return found, absent


def test_modules_with_their_speeds_and_channels():
    tree = record(
        module("DIMM 0", "P0 CHANNEL A"),
        empty("DIMM 1", "P0 CHANNEL A"),
        empty("DIMM 0", "P0 CHANNEL B"),
        empty("DIMM 1", "P0 CHANNEL B"),
        counted=4,
    )
    found, absent = look(tree, 15.3 * GIB)
    (only,) = found.modules
    assert (only.size_bytes, only.speed_mts, only.configured_mts) == (16 * GIB, 6400, 4800)
    assert (only.locator, only.channel) == ("DIMM 0", "P0 CHANNEL A")
    assert (found.slots, found.channels) == (4, 2)
    assert absent == {}
    assert "SECRET" not in repr(found)


@pytest.mark.parametrize(
    ("slots", "channels"),
    [
        ([("ChannelA-DIMM0", "BANK 0"), ("ChannelB-DIMM0", "BANK 2")], 2),
        ([("Controller0-ChannelA-DIMM0", "BANK 0"), ("Controller1-ChannelA-DIMM0", "BANK 0")], 2),
        ([("P0_Node0_Channel0_Dimm0", "x"), ("P0_Node0_Channel0_Dimm1", "x")], 1),
        ([("CPU1_DIMM_A1", "NODE 0 CHANNEL 0 DIMM 0"), ("CPU1_DIMM_B1", "NODE 0 CHANNEL 1 DIMM 0")], 2),
        ([("A1", "Not Specified"), ("A2", "Not Specified")], None),
        ([("DIMM_A1", "BANK 0"), ("ChannelB-DIMM0", "BANK 1")], None),  # only some are told
    ],
)
def test_channels_only_where_every_slot_names_its_own(slots, channels):
    found, absent = look(record(*(module(locator, bank) for locator, bank in slots)))
    assert found.channels == channels
    assert absent == ({} if channels else {"memory_channel_count": NO_CHANNELS})


def test_words_that_mean_nothing_are_no_names():
    found, _ = look(record(module("Not Specified", "Unknown")))
    assert (found.modules[0].locator, found.modules[0].channel) == ("", "")


def test_slots_of_several_arrays_are_counted_by_the_slots():
    tree = record(
        *(module(f"DIMM_{n}") for n in range(3)), *(empty(f"DIMM_{n}") for n in range(3, 16)), counted=8
    )
    assert look(tree)[0].slots == 16


def test_firmware_chips_and_persistent_memory_are_no_modules():
    tree = record(module("A"), module("SYSTEM ROM") | {"TYPE": "Flash"}, module("B", size=0))
    found, _ = look(tree)
    assert [one.locator for one in found.modules] == ["A"]
    assert found.slots == 2


def test_virtual_machines_are_not_believed():
    found, absent = look(record(module("DIMM 0")), virtual_machine=True)
    assert found == MemoryLayout()
    assert set(absent.values()) == {IN_VM}
    assert len(absent) == 3


@pytest.mark.parametrize(("container", "reason"), [(False, NOT_TOLD), (True, IN_CONTAINER)])
def test_nothing_to_read_says_why(container, reason):
    found, absent = look(FakeTree(), container=container)
    assert found == MemoryLayout()
    assert set(absent.values()) == {reason}


@pytest.mark.parametrize("memory_gib", [64, 4])
def test_tables_of_another_machine_are_not_believed(memory_gib):
    found, absent = look(record(module("DIMM 0")), memory_gib * GIB)
    assert found.modules is None
    assert set(absent.values()) == {NO_MATCH}


@pytest.mark.parametrize("content", [b"", b"\0\0", b"E:MEMORY_DEVICE_0_SIZE=x\nE:MEMORY_DEVICE_\n"])
def test_damaged_records_are_no_record(content):
    assert look(FakeTree({RECORD: content}))[1]["memory_modules"] == NOT_TOLD


def controllers(*layouts):
    """EDAC folders: (last place, [(size in MiB, place), ...]) per controller."""
    files = {}
    for number, (last, dimms) in enumerate(layouts):
        base = f"{EDAC}/mc{number}"
        files[f"{base}/max_location"] = last
        for place, (size, where) in enumerate(dimms):
            files[f"{base}/dimm{place}/size"] = b"%d\n" % size
            files[f"{base}/dimm{place}/dimm_location"] = where
    return FakeTree(files)


def test_error_detection_knows_slots_and_channels():
    tree = controllers(
        (b"channel 1 slot 1 \n", [(16384, b"channel 0 slot 0 \n"), (16384, b"channel 1 slot 0 \n")]),
        (b"channel 1 slot 1 \n", [(16384, b"channel 0 slot 0 \n")]),
    )
    found, absent = look(tree)
    assert [one.channel for one in found.modules] == ["mc0 channel 0", "mc0 channel 1", "mc1 channel 0"]
    assert [one.speed_mts for one in found.modules] == [None] * 3
    assert (found.slots, found.channels) == (8, 4)
    assert absent == {}


def test_two_ranks_are_one_module_and_slots_stay_unknown():
    ranks = [(8192, b"csrow %d channel %d \n" % (row, channel)) for row in (0, 1) for channel in (0, 1)]
    found, absent = look(controllers((b"csrow 7 channel 1 \n", ranks)))
    assert [one.size_bytes for one in found.modules] == [16 * GIB, 16 * GIB]
    assert (found.slots, found.channels) == (None, 2)
    assert absent == {"memory_slot_count": NO_SLOTS}


def test_channels_of_error_detection_complete_the_tables():
    tree = record(module("A1"))
    tree.files |= controllers((b"channel 3 slot 0 \n", [(16384, b"channel 0 slot 0 \n")])).files
    found, absent = look(tree)
    assert (found.modules[0].speed_mts, found.channels) == (6400, 4)
    assert absent == {}


@pytest.mark.parametrize(
    ("text", "cores"),
    [(b"0-3\n", (0, 1, 2, 3)), (b"0,2-3,8\n", (0, 2, 3, 8)), (b"\n", ()), (b"5\n", (5,))],
)
def test_lists_of_cores(text, cores):
    assert parse_cores(text) == cores


def nodes(**lists):
    return FakeTree({f"/sys/devices/system/node/{name}/cpulist": text for name, text in lists.items()})


def test_cores_of_a_node_stand_at_its_number():
    info = read_host_info(nodes(node0=b"0-1\n", node8=b"2-3\n", node252=b"\n"))
    assert info.numa_nodes == 3
    assert len(info.numa_cores) == 9
    assert (info.numa_cores[0], info.numa_cores[1], info.numa_cores[8]) == ((0, 1), (), (2, 3))


def test_unreadable_nodes_have_a_reason():
    info = read_host_info(nodes(node0=b"x-y\n"))
    assert (info.numa_nodes, info.numa_cores) == (1, ())
    assert info.absent["numa_cores"]
    assert read_host_info(FakeTree()).absent["numa_cores"]
