import pytest

from gpuwatch.model import ProcessRole
from gpuwatch.sources.processes.roles import Member, assign_roles

TRAIN = "python train.py"
SPAWN = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"
SERVER = "python -c from multiprocessing.forkserver import main; main(5, 6)"
TRACKER = "python -c from multiprocessing.resource_tracker import main;main(5)"


def workers(*members):
    roles = assign_roles(Member(10, 1, "python", TRAIN), members)
    return {pid for pid, role in roles.items() if role is ProcessRole.WORKER}


def test_named_workers_and_nothing_else():
    assert workers(
        Member(11, 10, "pt_data_worker", TRAIN),
        Member(12, 10, "pt_multiprocess", TRAIN),
        Member(13, 10, "python", TRAIN),
        Member(14, 10, "wandb-core", "wandb-core --port 1"),
    ) == {11, 12}


def test_forkserver_workers_are_grandchildren():
    assert workers(
        Member(11, 10, "python", SERVER),
        Member(12, 11, "pt_data_worker", SERVER),
        Member(13, 10, "python", TRACKER),
    ) == {12}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([Member(11, 10, "python", TRAIN), Member(12, 10, "python", TRAIN)], {11, 12}),
        ([Member(11, 10, "python", SPAWN), Member(12, 10, "python", TRACKER)], {11}),
        ([Member(11, 10, "python", SERVER), Member(12, 11, "python", SERVER)], {12}),
        ([Member(11, 10, "sh", "sh -c nvcc"), Member(12, 11, "python", TRAIN)], set()),
        ([Member(11, 10, "python", "python -m torch._inductor.compile_worker")], set()),
        ([Member(11, 10, "[python]", "")], set()),
    ],
)
def test_older_releases_without_names(members, expected):
    assert workers(*members) == expected


def test_every_descendant_gets_a_role():
    roles = assign_roles(Member(10, 1, "python", TRAIN), [Member(11, 10, "sh", "sh")])
    assert roles == {11: ProcessRole.CHILD}
