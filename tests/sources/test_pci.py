import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "host"))

import pytest
from fake_tree import FakeTree
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.model import GpuInfo
from gpuwatch.sources.pci import PciLink, read_link, sysfs_address, with_link

GPU = "/sys/bus/pci/devices/0000:0b:00.0"
ROOT = "/sys/devices/pci0000:00/0000:00:03.1"


def device(path, speed=None, width=None, **more):
    files = {f"{path}/{name}": content for name, content in more.items()}
    if speed:
        files[f"{path}/max_link_speed"] = speed
    if width:
        files[f"{path}/max_link_width"] = width
    return files


def tree(*parts, real=f"{ROOT}/0000:0b:00.0"):
    files = {}
    for part in parts:
        files.update(part)
    return FakeTree(files, links={GPU: real})


CARD = device(GPU, b"16.0 GT/s PCIe\n", b"16\n", numa_node=b"1\n")


def test_card_and_slot():
    link = read_link(tree(CARD, device(ROOT, b"8.0 GT/s PCIe\n", b"4\n")), "00000000:0B:00.0", False)
    assert link == PciLink(card=(4, 16), slot=(3, 4), chain=(3, 4), numa_node=1, runtime_status="")


def test_a_switch_on_the_card_hides_a_narrow_uplink():
    real = f"{ROOT}/0000:09:00.0/0000:0a:00.0/0000:0b:00.0"
    ports = (
        device(ROOT, b"16.0 GT/s PCIe\n", b"8\n"),
        device(f"{ROOT}/0000:09:00.0", b"16.0 GT/s PCIe\n", b"16\n"),
        device(f"{ROOT}/0000:09:00.0/0000:0a:00.0", b"32.0 GT/s PCIe\n", b"16\n"),
    )
    link = read_link(tree(CARD, *ports, real=real), "0000:0b:00.0", False)
    assert link.slot == (5, 16)
    assert link.chain == (4, 8)


def test_a_sleeping_gpu_is_not_woken():
    files = tree(CARD, device(ROOT, b"8.0 GT/s\n", b"4\n"), {f"{GPU}/power/runtime_status": b"suspended\n"})
    link = read_link(files, "0000:0b:00.0", False)
    assert link.runtime_status == "suspended"
    assert link.card is None
    assert "asleep" in link.absent["card"]
    assert not [path for path in files.reads if "link" in path]


@pytest.mark.parametrize("vendor", [b"0x1b36\n", b"0x15ad\n"])
def test_emulated_ports_are_not_believed(vendor):
    port = device(ROOT, b"2.5 GT/s PCIe\n", b"1\n", vendor=vendor)
    link = read_link(tree(CARD, port), "0000:0b:00.0", None)
    assert link.card == (4, 16)
    assert (link.slot, link.chain) == (None, None)
    assert "emulated" in link.absent["slot"]


def test_virtual_machine_has_no_chain():
    link = read_link(tree(CARD, device(ROOT, b"2.5 GT/s\n", b"1\n")), "0000:0b:00.0", True)
    assert (link.card, link.slot, link.chain) == (None, None, None)
    assert "virtual machine" in link.absent["chain"]
    assert link.numa_node == 1


def test_thunderbolt_ports_are_not_believed():
    port = device(ROOT, b"2.5 GT/s PCIe\n", b"4\n", removable=b"removable\n")
    assert "Thunderbolt" in read_link(tree(CARD, port), "0000:0b:00.0", False).absent["slot"]


@pytest.mark.parametrize(
    ("speed", "width"), [(b"Unknown\n", b"16\n"), (b"16.0 GT/s PCIe\n", b"255\n"), (b"", b"0\n")]
)
def test_no_link_information_is_absent_not_zero(speed, width):
    link = read_link(tree(device(GPU, speed, width), device(ROOT, speed, width)), "0000:0b:00.0", False)
    assert (link.card, link.slot) == (None, None)
    assert set(link.absent) == {"card", "slot", "chain", "numa_node"}


def test_unknown_node_and_missing_device():
    link = read_link(tree(device(GPU, numa_node=b"-1\n")), "0000:0b:00.0", False)
    assert link.numa_node is None
    assert "firmware" in link.absent["numa_node"]
    assert set(read_link(FakeTree(), "0000:0b:00.0", False).absent) == {"card", "slot", "chain", "numa_node"}
    assert "no PCI address" in read_link(FakeTree(), "?", False).absent["card"]


@pytest.mark.parametrize(
    ("given_id", "address"),
    [
        ("00000000:0B:00.0", "0000:0b:00.0"),
        ("0000:01:00.0", "0000:01:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
)
def test_addresses(given_id, address):
    assert sysfs_address(given_id) == address


@given(st.text(max_size=20))
def test_any_address_text_is_taken_or_refused(text):
    sysfs_address(text)


def test_inventory_record_keeps_what_the_driver_knew():
    info = GpuInfo("GPU-1", 0, "x", pcie_generation_card=4, absent={"pcie_width_card": "not asked"})
    filled = with_link(
        info, PciLink(slot=(3, 8), chain=(3, 8), absent={"card": "asleep", "numa_node": "none"})
    )
    assert filled.pcie_generation_card == 4
    assert (filled.pcie_generation_slot, filled.pcie_width_slot) == (3, 8)
    assert (filled.pcie_generation_chain, filled.pcie_width_chain) == (3, 8)
    assert filled.absent == {"pcie_width_card": "asleep", "numa_node": "none"}


def test_inventory_record_takes_the_card_from_sysfs():
    filled = with_link(GpuInfo("GPU-1", 0, "x"), PciLink(card=(4, 16), numa_node=0))
    assert (filled.pcie_generation_card, filled.pcie_width_card, filled.numa_node) == (4, 16, 0)
