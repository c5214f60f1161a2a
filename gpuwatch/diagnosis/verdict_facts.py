"""What the verdict is made from, and how it counts losses: ledger parts that a finding stands behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.diagnosis.ledger_causes import STARVED
from gpuwatch.model import (
    LAYERS,
    DriverStatus,
    Finding,
    JobState,
    JobStatus,
    Kind,
    Layer,
    Ledger,
    LedgerKey,
)

#: Under this sum nothing is called slow: it is within the measuring error of the stall share.
LOSS_MIN = 0.08
#: With a smaller lead both layers are named.
LEAD_MIN = 0.05

_LOSS_KEYS = frozenset(
    {LedgerKey.SLOWED, LedgerKey.FOREIGN, LedgerKey.WAITING, LedgerKey.WAITING_PEERS, LedgerKey.PAUSE}
)


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU at this tick. `findings`: the visible ones that concern it, by rule."""

    uuid: str
    index: int
    status: JobStatus
    steady_s: float
    ledger: Ledger
    findings: Mapping[str, Finding]
    unmeasured: str = ""  # why its utilization cannot be read, where that is so

    @property
    def judged(self) -> bool:
        return self.status.state in (JobState.STEADY, JobState.EPISODE)

    def ratio(self, key: LedgerKey) -> float:
        return sum(part.ratio for part in self.ledger.parts if part.key is key)


@dataclass(frozen=True, slots=True)
class TickFacts:
    now_s: float
    driver: DriverStatus
    gpus: tuple[GpuFacts, ...]
    findings: tuple[Finding, ...]  # visible, worst first


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of one GPU's ledger with the finding behind it."""

    gpu: GpuFacts
    key: LedgerKey
    ratio: float
    finding: Finding

    @property
    def layer(self) -> Layer:
        return self.finding.layer


def losses(gpu: GpuFacts) -> tuple[Loss, ...]:
    """The losses of one GPU, largest first. Time lost without a finding is not called a loss."""
    found = []
    for part in gpu.ledger.parts:
        if part.key not in _LOSS_KEYS:
            continue
        rule = part.cause
        if rule is None and part.key is LedgerKey.WAITING:
            rule = STARVED
        finding = gpu.findings.get(rule) if rule is not None else None
        if finding is not None and finding.kind is Kind.LOSS:
            found.append(Loss(gpu, part.key, part.ratio, finding))
    return tuple(sorted(found, key=lambda loss: (-loss.ratio, loss.finding.rule)))


def total(found: Sequence[Loss]) -> float:
    return sum(loss.ratio for loss in found)


@dataclass(frozen=True, slots=True)
class Choice:
    """The loss to name, and the layer that comes so close that it is named too."""

    loss: Loss
    second_layer: Layer | None = None


def choose(found: Sequence[Loss]) -> Choice | None:
    """The largest cause of the layer with the largest loss; in a near tie the cheaper look comes first."""
    if not found or total(found) < LOSS_MIN:
        return None
    unproven = sum(loss.ratio for loss in found if loss.finding.rule == STARVED)
    if unproven > total(found) / 2:
        return Choice(next(loss for loss in found if loss.finding.rule == STARVED))
    by_layer: dict[Layer, float] = {}
    for loss in found:
        by_layer[loss.layer] = by_layer.get(loss.layer, 0.0) + loss.ratio
    largest = max(by_layer.values())
    near = [layer for layer in LAYERS if layer in by_layer and largest - by_layer[layer] < LEAD_MIN]
    layer = near[0]
    loss = next(loss for loss in found if loss.layer is layer)
    return Choice(loss, near[1] if len(near) > 1 else None)


def pace_setter(gpus: Sequence[GpuFacts]) -> GpuFacts:
    """The GPU whose own losses are largest: in a synchronous job it sets the pace.

    What a GPU loses by waiting for others is theirs, unless nobody has a loss of its own.
    """

    def own(gpu: GpuFacts) -> tuple[float, float, int]:
        found = losses(gpu)
        alone = sum(loss.ratio for loss in found if loss.key is not LedgerKey.WAITING_PEERS)
        return (alone, total(found), -gpu.index)

    return max(gpus, key=own)
