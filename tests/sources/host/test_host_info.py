import pytest
from fake_tree import FakeTree

from gpuwatch.sources.host.container import container_kind, is_virtual_machine, is_wsl
from gpuwatch.sources.host.info import read_host_info

OVERLAY = b"600 500 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/x\n"
HOSTS = b"620 600 8:1 /var/lib/docker/containers/ab12/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
PODMAN = b"620 600 0:25 /containers/storage/overlay-containers/ab/hosts /etc/hosts rw - tmpfs tmpfs rw\n"
DOCKER_HOST = (
    b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    b"90 22 0:50 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/x\n"
)


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({}, None),
        ({"/proc/1/cgroup": b"0::/init.scope\n", "/proc/1/mountinfo": DOCKER_HOST}, None),
        ({"/proc/1/cgroup": b"0::/\n", "/proc/1/mountinfo": OVERLAY}, "docker"),
        ({"/proc/1/cgroup": b"0::/\n", "/proc/1/mountinfo": HOSTS}, "docker"),
        ({"/proc/1/cgroup": b"4:memory:/docker/0123abcd\n"}, "docker"),
        ({"/proc/1/cgroup": b"4:memory:/kubepods/burstable/pod12/ab\n"}, "kubernetes"),
        ({"/proc/self/environ": b"A=1\0KUBERNETES_SERVICE_HOST=10.0.0.1\0"}, "kubernetes"),
        ({"/proc/self/environ": b"MY_KUBERNETES_SERVICE_HOST=10.0.0.1\0"}, None),
        ({"/proc/self/environ": b"APPTAINER_CONTAINER=/x.sif\0"}, "apptainer"),
        ({"/proc/1/mountinfo": PODMAN}, "podman"),
        ({"/run/.containerenv": b""}, "podman"),
        ({"/.dockerenv": b""}, None),  # left over in a machine image made from a container image
        ({"/proc/1/cgroup": b"4:memory:/lxc/web1\n"}, "lxc"),
    ],
)
def test_container(files, kind):
    assert container_kind(FakeTree(files)) == kind


def test_wsl():
    version = b"Linux version 5.15.90.1-microsoft-standard-WSL2 (x)"
    assert is_wsl(FakeTree({"/proc/version": version}))
    assert not is_wsl(FakeTree({"/proc/version": b"Linux version 6.8.0-45-generic"}))


def test_virtual_machine():
    flag = b"\nprocessor\t: 0\nflags\t\t: fpu hypervisor lahf\n"
    bare = b"\nprocessor\t: 0\nflags\t\t: fpu lahf\n"
    assert is_virtual_machine(FakeTree(), flag) is True
    assert is_virtual_machine(FakeTree(), bare) is False
    assert is_virtual_machine(FakeTree({"/sys/class/dmi/id/sys_vendor": b"QEMU\n"}), b"") is True
    assert is_virtual_machine(FakeTree({"/sys/class/dmi/id/sys_vendor": b"ASUS\n"}), b"") is False
    assert is_virtual_machine(FakeTree(), b"") is None


def test_everything_missing_is_reasons_only():
    info = read_host_info(FakeTree())
    assert info.hostname == "localhost"
    assert info.logical_cores is None
    assert info.disks == ()
    for field in ("cpu_model", "memory_total_bytes", "numa_nodes", "disks", "kernel", "virtual_machine"):
        assert info.absent[field], field


def test_hidden_processes_are_said():
    assert "hidepid" in read_host_info(FakeTree({"/proc/4242/stat": b""})).absent["processes"]
    assert "processes" not in read_host_info(FakeTree({"/proc/1/stat": b""})).absent


def test_arm_board_names_itself():
    tree = FakeTree(
        {
            "/proc/cpuinfo": b"processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp\n",
            "/sys/firmware/devicetree/base/model": b"Example Board\0",
        }
    )
    assert read_host_info(tree).cpu_model == "Example Board"


def test_control_characters_in_names_do_not_pass():
    info = read_host_info(FakeTree({"/proc/sys/kernel/hostname": b"a\x1b[31mb\n"}))
    assert "\x1b" not in info.hostname
