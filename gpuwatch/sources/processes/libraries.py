"""Which libraries a process has mapped, and what they say about it: frameworks and decoders."""

import re
from collections.abc import Iterable

from gpuwatch.clean import decode

#: Base names worth keeping: GPU stack, frameworks, communication, decoders.
_OF_INTEREST = re.compile(
    rb"lib(torch|c10|gomp|mkl|nvidia-ptxjitcompiler|cuda|cudart|cublas|cudnn|cufft|curand|cusparse|cusolver|nvrtc|nvjpeg|nccl|nvinfer|nvcuvid"
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


def mapped_paths(maps: bytes) -> frozenset[bytes]:
    """Full paths of all mapped files, links resolved (the kernel names the file itself).

    A library replaced on disk since keeps its path.
    """
    paths = set()
    for line in maps.split(b"\n"):
        at = line.find(b"/")
        if at >= 0:
            paths.add(line[at:].removesuffix(b" (deleted)"))
    return frozenset(paths)


def mapped_names(maps: bytes) -> frozenset[bytes]:
    """Base names of all mapped files."""
    return frozenset(_base(path) for path in mapped_paths(maps))


def _base(path: bytes) -> bytes:
    return path[path.rfind(b"/") + 1 :]


def libraries_of_interest(names: Iterable[bytes]) -> tuple[str, ...]:
    """The libraries among these base names, each once, in order."""
    found = sorted({decode(name) for name in names if _is_library(name)})
    return tuple(found[:_MOST_LIBRARIES])


def paths_of_interest(paths: Iterable[bytes]) -> tuple[str, ...]:
    """Likewise with their folders: two copies of one library are two entries."""
    found = sorted((_base(path), path) for path in paths if _is_library(_base(path)))
    return tuple(decode(path) for _, path in found[:_MOST_LIBRARIES])


def _is_library(name: bytes) -> bool:
    return b".so" in name and _OF_INTEREST.fullmatch(name) is not None


def frameworks_of(libraries: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name, marks in _FRAMEWORKS if _any_starts(libraries, marks))


def decoder_of(libraries: tuple[str, ...]) -> str | None:
    return next((name for name, marks in _DECODERS if _any_starts(libraries, marks)), None)


def _any_starts(libraries: tuple[str, ...], marks: tuple[str, ...]) -> bool:
    return any(library.startswith(marks) for library in libraries)
