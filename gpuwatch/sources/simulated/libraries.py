"""The mapped libraries of simulated processes, by words that stand for whole groups."""

_SITE = "/home/demo/venv/lib/python3.11/site-packages"
#: Word of the setting `maps`: files. `{driver}` is the driver's version.
_GROUPS = {
    "torch": (
        f"{_SITE}/torch/lib/libtorch_cpu.so",
        f"{_SITE}/torch/lib/libtorch_python.so",
        f"{_SITE}/torch/lib/libc10.so",
    ),
    "torch-cpu": (f"{_SITE}/torch/lib/libtorch_cpu.so", f"{_SITE}/torch/lib/libc10.so"),
    "cuda": (
        "/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}",
        f"{_SITE}/torch/lib/libtorch_cuda.so",
        f"{_SITE}/torch/lib/libc10_cuda.so",
        f"{_SITE}/nvidia/cu13/lib/libcudart.so.13",
        f"{_SITE}/nvidia/cu13/lib/libcublas.so.13",
        f"{_SITE}/nvidia/cudnn/lib/libcudnn.so.9",
    ),
    "cudart12": ("/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12.4.127",),
    "cudnn8-system": ("/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7",),
    "cudnn9-system": ("/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0",),
    "ptxjit": ("/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.{driver}",),
    "profiler": ("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",),
    "PIL": (
        f"{_SITE}/PIL/_imaging.cpython-311-x86_64-linux-gnu.so",
        f"{_SITE}/pillow.libs/libjpeg-a06fcdb4.so.62.4.0",
    ),
    "cv2": (f"{_SITE}/cv2/cv2.abi3.so",),
    "nccl": (f"{_SITE}/nvidia/nccl/lib/libnccl.so.2",),
    "tensorflow": (f"{_SITE}/tensorflow/libtensorflow_framework.so.2",),
    "jax": (f"{_SITE}/jaxlib/libjax_common.so",),
    "dali": (f"{_SITE}/nvidia/dali/libdali.so",),
}
_ALWAYS = ("/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libc.so.6")


def maps(words: str, driver: str) -> bytes:
    """Content of /proc/PID/maps. A word that is no group is a library's path or base name."""
    paths = list(_ALWAYS)
    for word in words.split():
        paths += _GROUPS.get(word, (word if word.startswith("/") else f"/usr/lib/{word}",))
    lines = (
        f"7f{place:06x}0000-7f{place:06x}8000 r-xp 00000000 103:02 {1000 + place}    {path}"
        for place, path in enumerate(paths)
    )
    return ("\n".join(lines) + "\n").format(driver=driver).encode()
