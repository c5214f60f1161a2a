import pytest
from build import GIB, Gpu, Process, Scene, noisy, square
from watch import evidence, found, watch

from gpuwatch.model import Confidence, LedgerKey, Severity

LATE, IMBALANCE = "straggler-card", "gpu-imbalance"


def ranks(count: int, **of_late) -> Scene:
    """A data-parallel job whose last rank does more; the others spin in waits shorter than a sample."""
    gpus = [
        Gpu(
            util=0.99,
            memory_util=noisy(0.35, 0.01),
            power=265.0,
            uuid=f"GPU-{place}",
            index=place,
            pids=((100 + place, 20 * GIB),),
        )
        for place in range(count)
    ]
    gpus[-1].memory_util, gpus[-1].power = noisy(0.54, 0.01), 310.0
    for name, value in of_late.items():
        setattr(gpus[-1], name, value)
    return Scene(gpus, [Process(100 + place, parent_pid=50, group_id=50) for place in range(count)])


@pytest.mark.parametrize("count", [2, 4])
def test_a_late_rank_is_seen_by_the_memory_traffic_the_others_lack(count):
    diagnosis, bench = watch(ranks(count), 120)
    finding = found(diagnosis, LATE)
    assert finding.gpus == (f"GPU-{count - 1}",)
    assert (finding.severity, finding.confidence) == (Severity.NOTICE, Confidence.POSSIBLE)
    assert finding.share_ratio == pytest.approx(1 - 0.35 / 0.54, abs=0.03)
    assert evidence(finding)["traffic_ratio"] == pytest.approx(0.54, abs=0.02)
    assert bench.alarms == {LATE}
    assert diagnosis.verdict.headline.startswith(f"GPU {count - 1} is late: the others wait")
    ledger = diagnosis.ledgers["GPU-0"]
    peers = sum(part.ratio for part in ledger.parts if part.key is LedgerKey.WAITING_PEERS)
    assert peers == pytest.approx(0.35, abs=0.03)
    assert sum(part.ratio for part in ledger.parts) == 1.0
    own = diagnosis.ledgers[f"GPU-{count - 1}"]
    assert not [part for part in own.parts if part.key is LedgerKey.WAITING_PEERS]


def test_stages_of_a_pipeline_hold_different_amounts_of_memory():
    assert watch(ranks(2, pids=((101, 12 * GIB),)), 120)[1].alarms == set()


def test_cards_of_other_models_are_not_compared():
    assert watch(ranks(2, info={"name": "NVIDIA GeForce RTX 4090"}), 120)[1].alarms == set()


def test_less_traffic_at_equal_power_is_other_work():
    assert watch(ranks(2, power=265.0), 120)[1].alarms == set()


def test_others_that_differ_among_themselves_do_not_wait_for_one():
    scene = ranks(4)
    for gpu, traffic in zip(scene.gpus, (0.2, 0.3, 0.45), strict=False):
        gpu.memory_util = traffic
    assert watch(scene, 120)[1].alarms == set()


def test_a_rank_whose_batches_are_late_is_not_taken_for_one_with_less_to_do():
    """Two ranks, the second waits for its loader: the first spins, which looks like work."""
    busy = square(0, 0.98, 0.8, 0.4)
    scene = ranks(2, util=busy, memory_util=lambda t: 0.54 * busy(t), power=180.0)
    scene.gpus[0].memory_util, scene.gpus[0].power = 0.215, 236.0
    diagnosis, _ = watch(scene, 120)
    assert found(diagnosis, "gpu-starved").gpus == ("GPU-1",)
    assert found(diagnosis, LATE).gpus == ("GPU-1",)
    assert IMBALANCE not in {one.rule for one in diagnosis.findings}
    ledger = diagnosis.ledgers["GPU-0"]
    peers = sum(part.ratio for part in ledger.parts if part.key is LedgerKey.WAITING_PEERS)
    assert peers == pytest.approx(0.58, abs=0.05)
