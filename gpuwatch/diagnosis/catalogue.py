"""The one table of all rules: number, id, layer and check.

A rule that belongs to two layers stands in the first, because that look is the cheaper one. An empty
check means that the rule has no row among the eight checks: it is shown as a banner above the verdict.
"""

from collections.abc import Mapping

from gpuwatch.model import Layer

_H, _E, _D, _C = Layer.HARDWARE, Layer.ENVIRONMENT, Layer.DATA, Layer.CODE
BANNER = ""

#: In the order of their numbers, R01 first.
_TABLE: tuple[tuple[str, Layer, str], ...] = (
    ("hw-slowdown", _H, "pow"),
    ("thermal-throttle", _H, "pow"),
    ("fan-or-cooling-fault", _H, "pow"),
    ("power-limit-lowered", _H, "pow"),
    ("clocks-pinned", _H, "pow"),
    ("clock-sag-unexplained", _H, "pow"),
    ("pcie-width-reduced", _H, "lnk"),
    ("pcie-gen-reduced", _H, "lnk"),
    ("pcie-saturated", _H, "lnk"),
    ("host-memory-channels", _H, "cpu"),
    ("numa-remote", _H, "cpu"),
    ("gpu-shared", _H, "cpu"),
    ("ghost-memory", _E, "cpu"),
    ("not-on-gpu", _E, "env"),
    ("driver-runtime-mismatch", _E, "env"),
    ("arch-jit", _E, "env"),
    ("library-shadowing", _E, "env"),
    ("debug-env-on", _E, "env"),
    ("cpu-quota-throttled", _E, "cpu"),
    ("cpu-mask-narrow", _E, "cpu"),
    ("host-cpu-contention", _E, "cpu"),
    ("thread-oversubscription", _E, "cpu"),
    ("cpu-governor", _E, "cpu"),
    ("shm-nearly-full", _E, "ldr"),
    ("wrong-gpu", _E, "cpu"),
    ("sysmem-spill", _E, "env"),
    ("gpu-starved", _D, "ldr"),
    ("loader-in-main-process", _D, "ldr"),
    ("loader-too-few-workers", _D, "ldr"),
    ("loader-cpu-bound", _D, "ldr"),
    ("loader-worker-imbalance", _D, "ldr"),
    ("loader-too-many-workers", _D, "ldr"),
    ("loader-disk-bound", _D, "dsk"),
    ("page-cache-cold", _D, "dsk"),
    ("page-cache-thrash", _D, "dsk"),
    ("loader-network-bound", _D, "dsk"),
    ("pageable-copies", _D, "ldr"),
    ("host-swapping", _D, "ldr"),
    ("host-ram-pressure", _D, "ldr"),
    ("loader-respawn", _D, "ldr"),
    ("launch-bound", _C, "cod"),
    ("batch-headroom", _C, "cod"),
    ("tensor-cores-idle", _C, "cod"),
    ("episode-overhead", _C, "cod"),
    ("sync-stalls", _C, "cod"),
    ("memory-bandwidth-bound", _C, "cod"),
    ("vram-near-limit", _C, "cod"),
    ("vram-growth", _C, "cod"),
    ("slower-than-itself", _H, "pow"),
    ("gpu-held-idle", _C, "cod"),
    ("dp-single-process", _C, "mgp"),
    ("gpu-imbalance", _C, "mgp"),
    ("straggler-card", _C, "mgp"),
    ("comm-wait", _C, "mgp"),
    ("p2p-or-nvlink-down", _C, "mgp"),
    ("collective-hang", _C, "mgp"),
    ("gpus-unused", _C, "mgp"),
    ("xid", _H, BANNER),
    ("ecc-remap", _H, BANNER),
    ("pcie-errors", _H, "lnk"),
    ("gpu-lost", _H, BANNER),
    ("telemetry-degraded", _H, BANNER),
    ("stuck-process", _H, BANNER),
    ("persistence-off", _H, "pow"),
)

#: rule id -> (layer, check key)
PLACES: Mapping[str, tuple[Layer, str]] = {rule: (layer, check) for rule, layer, check in _TABLE}
#: rule id -> number
NUMBERS: Mapping[str, int] = {rule: number for number, (rule, _, _) in enumerate(_TABLE, start=1)}
