"""The start environment of a process: only the names below are ever kept.

An environment holds passwords and keys. What is not on this list is dropped while it is read, and
never reaches a record, the screen or a file.
"""

from gpuwatch.clean import decode
from gpuwatch.sources.tree import Tree

ALLOWED = frozenset(
    {
        "CUDA_CACHE_DISABLE",
        "CUDA_CACHE_MAXSIZE",
        "CUDA_CACHE_PATH",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "CUBLAS_WORKSPACE_CONFIG",
        "GOMP_CPU_AFFINITY",
        "KMP_AFFINITY",
        "LD_LIBRARY_PATH",
        "LOCAL_RANK",
        "MKL_NUM_THREADS",
        "NCCL_DEBUG",
        "NCCL_IB_DISABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_SHM_DISABLE",
        "NCCL_SOCKET_IFNAME",
        "NVIDIA_TF32_OVERRIDE",
        "OMPI_COMM_WORLD_RANK",
        "OMP_NUM_THREADS",
        "PMI_RANK",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "RANK",
        "SLURM_JOB_GPUS",
        "SLURM_JOB_ID",
        "SLURM_PROCID",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "TORCH_DISTRIBUTED_DEBUG",
        "TORCH_NCCL_BLOCKING_WAIT",
        "WORLD_SIZE",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    }
)
_NAMES = {name.encode("ascii"): name for name in ALLOWED}
_LONGEST_VALUE = 2000

OVERWRITTEN = "the process has overwritten its start environment (its title stands there)"


def parse_environment(data: bytes) -> dict[str, str]:
    """The allowed variables of /proc/PID/environ; of two entries the first counts, as for getenv.

    ValueError where a program that sets its title has written over all of it.
    """
    if b"=" not in data:
        raise ValueError("no variable at all")
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        key, equals, value = entry.partition(b"=")
        name = _NAMES.get(key)
        if name is not None and equals:
            found.setdefault(name, decode(value[:_LONGEST_VALUE]))
    return found


def read_environment(tree: Tree, pid: int) -> dict[str, str]:
    """OSError if it may not be read, ValueError as above. Later changes by the program do not show."""
    return parse_environment(tree.read(f"/proc/{pid}/environ"))
