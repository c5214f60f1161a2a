"""NVLink errors of one GPU, and what is known about each pair of GPUs."""

import pytest
from fake_nvml import Fail

from gpuwatch.sources.nvml.peers import MOST_GPUS, Peers

# -- NVLink errors --------------------------------------------------------------------------------


def with_errors(machine, table):
    """`table[(field, link)]` answers; everything else is refused with its code."""

    def answer(gpu, wanted):
        array = original(gpu, wanted)
        for place, identity in enumerate(wanted):
            if isinstance(identity, tuple) and (identity[0] in ERROR_FIELDS):
                found = table.get(identity, Fail(3))
                array[place].nvmlReturn = found.code if isinstance(found, Fail) else 0
                array[place].valueType = 3
                array[place].value.ullVal = 0 if isinstance(found, Fail) else found
        return array

    original = machine.api._field_values
    machine.api._field_values = answer
    return machine


ERROR_FIELDS = {161, 162, 163, 208, 211, 215, 38, 45, 52, 59}


def test_errors_of_all_links_and_kinds_are_one_counter(rig):
    table = {(161, 0): 1, (162, 0): 2, (163, 0): 4, (161, 1): 8, (162, 1): 16, (163, 1): 32}
    assert with_errors(rig(), table).tick().gpus[0].nvlink_error_count == 63


def test_fifth_generation_links_count_under_other_numbers(rig):
    machine = with_errors(rig(), {(208, 0): 3, (211, 1): 5, (215, 1): 7})
    assert machine.tick().gpus[0].nvlink_error_count == 15


def test_a_driver_that_tells_only_sums(rig):
    table = {(38, 0): 1, (45, 0): 2, (52, 0): 3, (59, 0): 4}
    assert with_errors(rig(), table).tick().gpus[0].nvlink_error_count == 10


def test_a_link_that_goes_down_takes_no_errors_out_of_the_sum(rig):
    table = {(161, 0): 5, (161, 1): 7}
    machine = with_errors(rig(), table)
    machine.tick()
    machine.api.answers[0]["nvmlDeviceGetNvLinkState"] = lambda link: int(link == 0) if link < 2 else Fail(2)
    table[(161, 0)] = 6
    gpu = machine.tick(11).gpus[0]
    assert (gpu.nvlink_active_count, gpu.nvlink_error_count) == (1, 13)


def test_errors_are_asked_every_ten_seconds(rig):
    table = {(161, 0): 0}
    machine = with_errors(rig(), table)
    asked = []
    inner = machine.api._field_values
    machine.api._field_values = lambda gpu, ids: asked.append(ids) or inner(gpu, ids)
    machine.tick(21)
    assert sum((161, 0) in ids for ids in asked) == 3
    assert machine.last.gpus[0].nvlink_error_count == 0  # a counted zero is a figure, not a gap


def test_unsupported_errors_have_a_reason_and_are_not_asked_again(rig):
    machine = with_errors(rig(), {})
    asked = []
    inner = machine.api._field_values
    machine.api._field_values = lambda gpu, ids: asked.append(len(ids)) or inner(gpu, ids)
    gpu = machine.tick(25).gpus[0]
    assert gpu.nvlink_error_count is None
    assert gpu.absent["nvlink_error_count"] == "not supported by this GPU"
    assert sorted(count for count in asked if count in (4, 6)) == [4, 6, 6]


def test_a_blank_code_is_no_count(rig):
    machine = with_errors(rig(), {(161, 0): 0x7FFF_FFFF_FFFF_FFF0, (162, 0): 2})
    assert machine.tick().gpus[0].nvlink_error_count == 2


def test_errors_while_no_link_is_up_are_unknown(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetNvLinkState"] = lambda link: 0 if link < 2 else Fail(2)
    gpu = machine.tick().gpus[0]
    assert (gpu.nvlink_active_count, gpu.nvlink_error_count) == (0, None)
    assert gpu.absent["nvlink_error_count"] == "no NVLink is up"


def test_a_card_without_nvlink_says_so(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetNvLinkState"] = Fail(3)
    gpu = machine.tick().gpus[0]
    assert gpu.absent["nvlink_error_count"] == "no NVLink here"


def test_one_passing_failure_is_not_the_end_of_the_counter(rig):
    table = {(161, 0): Fail(999), (162, 0): Fail(999), (163, 0): Fail(999)}
    machine = with_errors(rig(), table)
    assert machine.tick().gpus[0].absent["nvlink_error_count"] == "unknown driver error 999"
    table[(161, 0)] = 4
    assert machine.tick(11).gpus[0].nvlink_error_count == 4


# -- pairs of GPUs --------------------------------------------------------------------------------


def with_pairs(machine, access=lambda *_: 0, path=lambda *_: 30):
    for answers in machine.api.answers:
        answers["nvmlDeviceGetP2PStatus"] = access
        answers["nvmlDeviceGetTopologyCommonAncestor"] = path
    return machine


UUIDS = ("GPU-00000000", "GPU-00000001", "GPU-00000002")


def test_each_gpu_knows_its_way_to_the_others(rig):
    machine = with_pairs(
        rig(3), lambda other, what: 4 if other == 2 else 0, lambda other: {1: 10, 2: 50}[other]
    )
    first = machine.tick()
    assert first.infos[0].peer_access == {}
    assert first.infos[0].absent["peer_access"]
    tick = machine.tick()
    assert tick.generation == first.generation + 1
    assert tick.infos[0].peer_access == {UUIDS[1]: "ok", UUIDS[2]: "disabled by regkey"}
    assert tick.infos[0].peer_path == {UUIDS[1]: "single switch", UUIDS[2]: "system"}
    assert tick.infos[2].peer_access == dict.fromkeys(UUIDS[:2], "disabled by regkey")
    assert not {"peer_access", "peer_path"} & tick.infos[0].absent.keys()


def test_the_read_capability_is_asked_for_with_a_plain_number(rig):
    asked = []
    with_pairs(rig(2), lambda other, what: asked.append(what) or 0).tick(2)
    assert asked == [0]


def test_pairs_are_asked_once(rig):
    machine = with_pairs(rig(3))
    generation = machine.tick(2).generation
    assert machine.tick(40).generation == generation
    assert machine.api.count("nvmlDeviceGetP2PStatus") == 3
    assert machine.api.count("nvmlDeviceGetTopologyCommonAncestor") == 3


def test_one_gpu_asks_nothing_and_says_why(rig):
    machine = with_pairs(rig())
    generation = machine.tick().generation
    tick = machine.tick(3)
    assert machine.api.count("nvmlDeviceGetP2PStatus") == 0
    assert tick.generation == generation
    assert "2 to 16 GPUs" in tick.infos[0].absent["peer_access"]


def test_many_gpus_ask_nothing(rig):
    machine = with_pairs(rig(MOST_GPUS + 1))
    machine.tick(3)
    assert machine.api.count("nvmlDeviceGetP2PStatus") == 0


@pytest.mark.parametrize(
    ("code", "reason"), [(3, "not supported"), (13, "does not offer"), (4, "permission")]
)
def test_a_refused_question_has_its_reason_and_leaves_the_other(rig, code, reason):
    machine = with_pairs(rig(2), lambda *_: Fail(code))
    info = machine.tick(3).infos[0]
    assert info.peer_access == {}
    assert reason in info.absent["peer_access"]
    assert info.peer_path == {UUIDS[1]: "host bridge"}
    assert machine.api.count("nvmlDeviceGetP2PStatus") == 1


def test_a_level_unknown_to_this_program_keeps_its_number(rig):
    assert with_pairs(rig(2), path=lambda *_: 99).tick(2).infos[0].peer_path == {UUIDS[1]: "unknown (99)"}


def test_a_gpu_lost_while_asking_is_left_to_its_next_reading(rig):
    machine = with_pairs(rig(3), lambda other, what: Fail(15) if other == 2 else 0)
    tick = machine.tick(4)
    assert tick.infos[0].peer_access == {UUIDS[1]: "ok"}
    assert tick.infos[0].absent["peer_access"] == "the GPU is lost"


def test_a_new_connection_asks_again(rig):
    machine = with_pairs(rig(2))
    machine.tick(2)
    machine.api.system["nvmlDeviceGetCount"] = 1
    machine.tick(12)
    machine.api.system["nvmlDeviceGetCount"] = 2
    tick = machine.tick(14)
    assert tick.infos[0].peer_access == {UUIDS[1]: "ok"}
    assert machine.api.count("nvmlDeviceGetP2PStatus") == 2


def test_nothing_is_told_before_all_pairs_are_known(rig, monkeypatch):
    machine = rig(3)
    with_pairs(machine, lambda *_: machine.time.advance(0.2) or 0)
    first = machine.tick().generation
    assert machine.tick().generation == first  # each pair took longer than a pause may
    tick = machine.tick(3)
    assert tick.generation == first + 1
    assert len(tick.infos[0].peer_access) == 2


def test_without_any_look_nothing_is_known():
    assert Peers().look(object(), [], None) is False
