"""Root before symptom: findings that another one explains are not shown beside it."""

from collections.abc import Collection, Mapping

#: symptom -> the findings that explain why it is there (diagnosis §4.2.8).
ROOTS: Mapping[str, frozenset[str]] = {
    "loader-cpu-bound": frozenset(
        {"cpu-quota-throttled", "cpu-mask-narrow", "host-cpu-contention", "thread-oversubscription"}
    ),
    "comm-wait": frozenset({"collective-hang"}),
    "gpu-imbalance": frozenset({"collective-hang", "dp-single-process", "straggler-card"}),
    "pcie-saturated": frozenset({"pcie-width-reduced", "pcie-gen-reduced"}),
}
#: The bare waiting is shown until causes cover this much of it (after TraceML's coverage rule).
COVERED = 0.80
STARVED = "gpu-starved"


def suppressed(rules: Collection[str], waiting_coverage: float) -> set[str]:
    """Of the rules active on one GPU (or the host above it), those that yield to another."""
    dropped = {symptom for symptom, roots in ROOTS.items() if symptom in rules and roots & set(rules)}
    if STARVED in rules and waiting_coverage >= COVERED:
        dropped.add(STARVED)
    return dropped
