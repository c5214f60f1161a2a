"""Is this a container, WSL or a virtual machine? Only from files anybody may read."""

import re

from gpuwatch.sources.tree import Tree

#: Traces of container managers in the control group of pid 1 or in the mounts, most telling first.
_TRACES = (
    ("kubernetes", re.compile(rb"kubepods|kubernetes\.io")),
    ("docker", re.compile(rb"[/-]docker[/-]|/var/lib/docker/")),
    ("podman", re.compile(rb"libpod|/containers/storage/")),
    ("lxc", re.compile(rb"/lxc[./]|lxcfs")),
    ("containerd", re.compile(rb"containerd")),
)
#: Variables that container programs set for everything they start.
_VARIABLES = (
    ("kubernetes", b"KUBERNETES_SERVICE_HOST="),
    ("apptainer", b"APPTAINER_CONTAINER="),
    ("apptainer", b"SINGULARITY_CONTAINER="),
)
#: Mounted by podman when a container starts. Docker's /.dockerenv is no such sign: it is a plain file
#: of the image and stays in virtual machines that are made from one.
_PODMAN_MARKER = "/run/.containerenv"
#: DMI system vendors and products that are hypervisors.
_HYPERVISORS = re.compile(
    rb"qemu|kvm|vmware|virtualbox|innotek|xen|bochs|parallels|virtual machine|openstack|firecracker"
    rb"|google compute|amazon ec2|alibaba cloud|bhyve|nutanix|rhev|hvm domu",
    re.IGNORECASE,
)


def container_kind(tree: Tree) -> str | None:
    """Name of the container manager this process lives under; None where there is no sign of one."""
    environment = b"\0" + _content(tree, "/proc/self/environ")
    for kind, variable in _VARIABLES:
        if b"\0" + variable in environment:
            return kind
    traces = _content(tree, "/proc/1/cgroup") + _root_mounts(_content(tree, "/proc/1/mountinfo"))
    for kind, pattern in _TRACES:
        if pattern.search(traces):
            return kind
    return "podman" if _exists(tree, _PODMAN_MARKER) else None


def _root_mounts(mountinfo: bytes) -> bytes:
    """Only mounts a container gets (its root, and files bound over /etc): a host that runs containers
    has their mounts too, elsewhere.
    """
    kept = []
    for line in mountinfo.split(b"\n"):
        words = line.split(None, 5)
        if len(words) == 6 and (words[4] == b"/" or words[4].startswith((b"/etc/", b"/var/run/secrets/"))):
            kept.append(line)
    return b"\n".join(kept)


def is_wsl(tree: Tree) -> bool:
    return b"microsoft" in _content(tree, "/proc/version").lower()


def is_virtual_machine(tree: Tree, cpuinfo: bytes) -> bool | None:
    """True or False where something says so: the CPU flag `hypervisor` (x86), else the DMI names."""
    at = cpuinfo.find(b"\nflags")
    if at >= 0:
        line = cpuinfo[at + 1 : cpuinfo.find(b"\n", at + 1)]
        if b" hypervisor" in line:
            return True
    names = _content(tree, "/sys/class/dmi/id/sys_vendor") + _content(tree, "/sys/class/dmi/id/product_name")
    if _HYPERVISORS.search(names):
        return True
    return False if at >= 0 or names.strip() else None


def _content(tree: Tree, path: str) -> bytes:
    try:
        return tree.read(path)
    except OSError:
        return b""


def _exists(tree: Tree, path: str) -> bool:
    try:
        tree.read(path)
    except OSError:
        return False
    return True
