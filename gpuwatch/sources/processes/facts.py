"""What a process has loaded and whether it serves: slow looks, once per process and rarely again.

Libraries load late (a decoder with the first image, cuDNN with the first convolution), so the look
is repeated after 30 s, after 2 minutes, and then every 10 minutes.
"""

import re

from gpuwatch.clean import decode
from gpuwatch.model import ProcessFacts
from gpuwatch.sources.host.text import why
from gpuwatch.sources.tree import Tree

#: Ages of the facts of a process at which they are read again, in seconds after the first look.
_AGAIN_S = (30.0, 120.0)
_THEN_EVERY_S = 600.0

#: Base names worth keeping: GPU stack, frameworks, communication, decoders.
_OF_INTEREST = re.compile(
    rb"lib(torch|c10|cuda|cudart|cublas|cudnn|cufft|curand|cusparse|cusolver|nvrtc|nvjpeg|nccl|nvinfer|nvcuvid"
    rb"|tensorflow|jax|xla|dali|onnxruntime|mpi|ucp|gloo|jpeg|turbojpeg|png|webp|tiff|avcodec|avformat|sndfile)[\w.+-]*"
    rb"|xla_extension[\w.-]*|_imaging[\w.-]*|cv2[\w.-]*|decord[\w.-]*"
)
_FRAMEWORKS = (
    ("torch", ("libtorch_cpu", "libtorch_python", "libtorch_cuda", "libtorch.so")),
    ("tensorflow", ("libtensorflow",)),
    ("jax", ("libjax", "xla_extension")),
)
#: The first that is mapped names the decoder.
_DECODERS = (
    ("PIL", ("_imaging",)),
    ("cv2", ("cv2",)),
    ("turbojpeg", ("libturbojpeg",)),
    ("nvjpeg", ("libnvjpeg",)),
    ("DALI", ("libdali",)),
    ("decord", ("decord", "libdecord")),
    ("ffmpeg", ("libavcodec",)),
    ("sndfile", ("libsndfile",)),
    ("jpeg", ("libjpeg",)),
)
_MOST_LIBRARIES = 60
_MOST_LINKS = 512
_LISTENING = re.compile(rb"^\s*\d+: \S+ \S+ 0A +(?:\S+ +){5}(\d+)", re.MULTILINE)
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def next_look_s(first_s: float, now_s: float) -> float:
    """When the facts first read at `first_s` are due again."""
    age = now_s - first_s
    later = (mark for mark in _AGAIN_S if age < mark)
    return first_s + next(later, age + _THEN_EVERY_S)


def mapped_names(maps: bytes) -> frozenset[bytes]:
    """Base names of all mapped files; a library replaced on disk keeps its name."""
    names = set()
    for line in maps.split(b"\n"):
        at = line.find(b"/")
        if at >= 0:
            path = line[at:].removesuffix(b" (deleted)")
            names.add(path[path.rfind(b"/") + 1 :])
    return frozenset(names)


def read_facts(tree: Tree, pid: int, session_id: int, sockets: bool) -> ProcessFacts:
    """Never raises. `sockets`: also look for listening sockets (one link per open file)."""
    absent: dict[str, str] = {}
    libraries: tuple[str, ...] | None = None
    frameworks: tuple[str, ...] | None = None
    decoder: str | None = None
    try:
        names = _mapped(tree, pid)
    except OSError as error:
        reason = _why_maps(error, pid)
        absent.update(libraries=reason, frameworks=reason, decoder=reason)
    else:
        libraries = libraries_of_interest(names)
        frameworks = tuple(name for name, marks in _FRAMEWORKS if _any_starts(libraries, marks))
        decoder = next((name for name, marks in _DECODERS if _any_starts(libraries, marks)), None)
        if decoder is None:
            absent["decoder"] = "no decoder library is loaded"
    listening = None
    if sockets:
        try:
            listening = _is_listening(tree, pid)
        except OSError as error:
            absent["listening"] = why(error, f"/proc/{pid}/fd")
    else:
        absent["listening"] = "looked up for trainers only"
    return ProcessFacts(libraries, frameworks, decoder, listening, session_id, absent=absent)


def _mapped(tree: Tree, pid: int) -> frozenset[bytes]:
    """Every living program maps something; an empty list means that its memory is gone already."""
    maps = tree.read(f"/proc/{pid}/maps")
    if not maps:
        raise ProcessLookupError("no memory")
    return mapped_names(maps)


def _why_maps(error: OSError, pid: int) -> str:
    if isinstance(error, PermissionError):
        return "its libraries may be read by its owner and root only"
    return why(error, f"/proc/{pid}/maps")


def libraries_of_interest(names: frozenset[bytes]) -> tuple[str, ...]:
    found = sorted(decode(name) for name in names if b".so" in name and _OF_INTEREST.fullmatch(name))
    return tuple(found[:_MOST_LIBRARIES])


def _any_starts(libraries: tuple[str, ...], marks: tuple[str, ...]) -> bool:
    return any(library.startswith(marks) for library in libraries)


def _is_listening(tree: Tree, pid: int) -> bool:
    """Does the process hold a listening TCP socket? OSError if its open files may not be read."""
    held = _sockets(tree, pid)
    if not held:
        return False
    for name in ("tcp", "tcp6"):
        try:
            table = tree.read(f"/proc/{pid}/net/{name}")
        except FileNotFoundError:
            continue  # no IPv6 in this kernel
        if any(inode.decode("ascii") in held for inode in _LISTENING.findall(table)):
            return True
    return False


def _sockets(tree: Tree, pid: int) -> set[str]:
    """Inodes of the sockets among the lowest 512 open files (servers listen early)."""
    names = sorted((name for name in tree.list(f"/proc/{pid}/fd") if name.isdigit()), key=int)
    held = set()
    for name in names[:_MOST_LINKS]:
        try:
            found = _SOCKET.fullmatch(tree.link(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue  # closed meanwhile
        if found:
            held.add(found.group(1))
    return held
