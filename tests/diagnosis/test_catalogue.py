import pytest

from gpuwatch.diagnosis.catalogue import BANNER, NUMBERS, PLACES
from gpuwatch.diagnosis.lifecycle_findings import BANNER_RULES
from gpuwatch.diagnosis.rules import RULES
from gpuwatch.metrics import METRICS
from gpuwatch.model import CHECKS, Kind, Layer


def test_there_are_64_rules_with_numbers_and_places():
    assert len(PLACES) == 64
    assert list(NUMBERS.values()) == list(range(1, 65))
    keys = {check.key for check in CHECKS} | {BANNER}
    assert all(check in keys for _, check in PLACES.values())


@pytest.mark.parametrize(
    ("rule", "number"),
    [
        ("hw-slowdown", 1),
        ("gpu-shared", 12),
        ("cpu-quota-throttled", 19),
        ("gpu-starved", 27),
        ("launch-bound", 41),
        ("dp-single-process", 51),
        ("xid", 58),
        ("gpu-lost", 61),
        ("persistence-off", 64),
    ],
)
def test_numbers(rule, number):
    assert NUMBERS[rule] == number


def test_several_gpus_belong_to_the_code_and_its_own_check():
    several = [rule for rule, number in NUMBERS.items() if 51 <= number <= 57]
    assert all(PLACES[rule] == (Layer.CODE, "mgp") for rule in several)


def test_health_is_hardware_and_what_blinds_us_is_a_banner_only():
    health = [rule for rule, number in NUMBERS.items() if number >= 58]
    assert all(PLACES[rule][0] is Layer.HARDWARE for rule in health)
    assert PLACES["telemetry-degraded"][1] == BANNER
    assert {rule for rule in BANNER_RULES if PLACES[rule][1] != BANNER} == set()


def test_double_layers_take_the_first_and_sharing_has_no_check_of_its_own():
    assert PLACES["gpu-shared"] == (Layer.HARDWARE, "cpu")
    assert PLACES["pcie-saturated"] == (Layer.HARDWARE, "lnk")
    assert PLACES["thread-oversubscription"][0] is Layer.ENVIRONMENT
    assert PLACES["host-swapping"][0] is Layer.DATA


def test_built_rules_are_in_order_and_well_formed():
    numbers = [rule.number for rule in RULES]
    assert numbers == sorted(set(numbers))
    for rule in RULES:
        assert NUMBERS[rule.id] == rule.number
        assert rule.scope in ("gpu", "job", "host")
        assert rule.every_s > 0
        assert rule.enter_evaluations >= 1
        assert rule.exit_evaluations >= 1
        kind = "host" if rule.scope == "host" else "gpu"
        keys = {metric.key for metric in METRICS[kind]}
        assert all(need.partition(":")[2] or need in keys for need in rule.needs)


def test_all_rules_of_the_catalogue_are_built():
    assert [rule.number for rule in RULES] == list(range(1, 65))
    kinds = {rule.id: rule.kind for rule in RULES}
    assert kinds["gpu-lost"] is Kind.RISK
    assert kinds["telemetry-degraded"] is Kind.STATE
