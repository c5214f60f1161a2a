"""Who belongs to a job when its workers come and go with the epochs."""

from gpuwatch.diagnosis.jobs_family import EPOCH_CHANGE_S, MEMORY_S, Family
from gpuwatch.model import ProcessReading, ProcessRole

TRAINER = (100, 1)


def worker(pid: int, trainer: tuple[int, int] = TRAINER) -> ProcessReading:
    return ProcessReading(pid, 1, 100, "pt_data_worker", "python", ProcessRole.WORKER, trainer=trainer)


def test_between_two_epochs_the_last_workers_stand_for_those_to_come():
    kin = Family()
    kin.update(0.0, [worker(1), worker(2)], TRAINER)
    kin.update(1.0, [], TRAINER)
    assert {process.pid for process in kin.workers} == {1, 2}
    assert kin.present == ()
    kin.update(2.0, [worker(3)], TRAINER)
    assert [process.pid for process in kin.workers] == [3]
    assert {process.pid for process in kin.recent} == {1, 2, 3}


def test_workers_that_stay_away_are_gone():
    kin = Family()
    kin.update(0.0, [worker(1)], TRAINER)
    kin.update(EPOCH_CHANGE_S + 1.0, [], TRAINER)
    assert kin.workers == ()
    kin.update(MEMORY_S + 1.0, [], TRAINER)
    assert kin.recent == ()


def test_another_trainer_has_another_family():
    kin = Family()
    kin.update(0.0, [worker(1)], TRAINER)
    kin.update(1.0, [worker(5, (200, 1))], (200, 1))
    assert [process.pid for process in kin.recent] == [5]
    kin.update(2.0, [], None)
    assert kin.recent == ()
