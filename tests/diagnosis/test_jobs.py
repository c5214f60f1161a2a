"""The job state gate: who trains on a GPU, and when it may be judged."""

import pytest
from build import GIB, Gpu, Process, Scene

from gpuwatch.diagnosis.jobs import JobTracker, compiles, find_trainer, job_group, serves
from gpuwatch.model import GpuProcess, GpuReading, JobState, ProcessFacts, ProcessReading, ProcessRole, Sample


def process(pid=100, **fields):
    defaults = {
        "start_ticks": 1,
        "parent_pid": 1,
        "name": "python",
        "command": "python train.py",
        "role": ProcessRole.TRAINER,
        "age_s": 1000.0,
        "trainer": (pid, 1),
    }
    return ProcessReading(pid=pid, **{**defaults, **fields})


def reading(*processes):
    return GpuReading("GPU-0", 0, 1.0, processes=tuple(processes))


def follow(scene, seconds, tracker=None, begin=0.0):
    """[(time, state)] at each change, and the tracker."""
    tracker = tracker or JobTracker("GPU-0")
    log = []
    for sample in scene.samples(seconds, begin):
        gpu = sample.gpus[0]
        values = gpu.utilization_burst.values
        utilization = sum(values) / len(values) if values else gpu.utilization_ratio
        tracker.update(sample, gpu, utilization, {p.pid: p for p in sample.processes or ()})
        if not log or log[-1][1] is not tracker.status.state:
            log.append((sample.monotonic_s - scene.start_s, tracker.status.state))
    return log, tracker


# -- who


def test_the_trainer_is_the_compute_process_with_most_memory():
    found = find_trainer(
        reading(GpuProcess(1, "G", 9 * GIB), GpuProcess(2, "C", 2 * GIB), GpuProcess(3, "C", 3 * GIB)),
        {3: process(3)},
    )
    assert found.pid == 3
    assert found.key == (3, 1)


@pytest.mark.parametrize(
    "entry",
    [
        GpuProcess(1, "C", 50 * 1024**2),
        GpuProcess(1, "G", 5 * GIB),
        GpuProcess(1, "MPS", 5 * GIB),
    ],
)
def test_no_trainer_below_100_mib_nor_graphics_nor_mps(entry):
    assert find_trainer(reading(entry), {}) is None


def test_the_mps_server_is_no_trainer():
    server = process(1, name="nvidia-cuda-mps")
    assert find_trainer(reading(GpuProcess(1, "C", GIB)), {1: server}) is None


def test_unknown_memory_is_not_zero_memory():
    assert find_trainer(reading(GpuProcess(1, "C", None)), {}).pid == 1


def test_two_jobs_of_similar_size_do_not_take_turns():
    entries = reading(GpuProcess(1, "C", 3 * GIB), GpuProcess(2, "C", 4 * GIB))
    assert find_trainer(entries, {}, held_pid=1).pid == 1
    entries = reading(GpuProcess(1, "C", 3 * GIB), GpuProcess(2, "C", 7 * GIB))
    assert find_trainer(entries, {}, held_pid=1).pid == 2


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python -m vllm.entrypoints.openai.api_server --model x", True),
        ("/usr/local/bin/ollama serve", True),
        ("python /opt/venv/bin/uvicorn app:app", True),
        ("python train.py --model vllm-distilled", False),
        ("python ollama_finetune_data/train.py", False),
        ("torchrun --nproc-per-node 8 train.py", False),
    ],
)
def test_a_server_is_known_by_its_program_not_by_an_argument(command, expected):
    assert serves(process(command=command)) is expected


def test_compilers_are_known_by_name_or_command():
    assert compiles([process(name="ptxas")])
    assert compiles([process(command="python -m torch._inductor.compile_worker --x")])
    assert not compiles([process(name="pt_data_worker")])


def test_ranks_of_one_launcher_are_one_job_and_notebooks_are_not():
    def rank(number, parent=50):
        return process(parent_pid=parent, command=f"python train.py --rank {number}")

    assert job_group(rank(0)) == job_group(rank(7))
    assert job_group(rank(0)) != job_group(rank(0, parent=51))
    sweep = [process(parent_pid=9, command=f"python train.py --workers {n} --gpu {n}") for n in (0, 2)]
    assert job_group(sweep[0]) != job_group(sweep[1])
    spawned = [
        process(parent_pid=9, command=f"python -c spawn_main(tracker_fd=7, pipe_handle={n})") for n in (9, 11)
    ]
    assert job_group(spawned[0]) == job_group(spawned[1])
    kernels = [process(parent_pid=9, command=f"python -m ipykernel -f {name}.json") for name in "ab"]
    assert job_group(kernels[0]) != job_group(kernels[1])


def started_with(parent=9, **environment):
    return process(parent_pid=parent, command="python train.py", facts=ProcessFacts(environment=environment))


def test_the_same_command_on_cards_of_its_own_is_a_job_of_its_own():
    one, two = (started_with(CUDA_VISIBLE_DEVICES=card) for card in "01")
    assert job_group(one) != job_group(two)
    assert job_group(one) == job_group(started_with(CUDA_VISIBLE_DEVICES="0"))


@pytest.mark.parametrize("name", ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"])
def test_ranks_that_a_launcher_numbered_are_one_job_though_each_sees_its_own_card(name):
    ranks = [started_with(**{"CUDA_VISIBLE_DEVICES": card, name: card}) for card in "01"]
    assert job_group(ranks[0]) == job_group(ranks[1])


def test_only_the_trainings_that_were_chosen():
    entries = reading(GpuProcess(1, "C", 3 * GIB), GpuProcess(2, "C", 9 * GIB))
    assert find_trainer(entries, {}, chosen={1}).pid == 1
    assert find_trainer(entries, {}, chosen=()) is None


# -- when


def test_an_old_job_is_steady_at_attach_and_its_time_counts_from_there():
    log, tracker = follow(Scene(), 30)
    assert log == [(1.0, JobState.STEADY)]
    assert tracker.steady_s == pytest.approx(29)


def test_a_young_job_starts_warms_up_and_becomes_steady():
    log, _ = follow(Scene(processes=[Process(100, age_s=5)]), 100)
    assert [state for _, state in log] == [JobState.STARTING, JobState.WARMUP, JobState.STEADY]
    assert log[1][0] == pytest.approx(11, abs=1.1)
    assert log[2][0] - log[1][0] == pytest.approx(60, abs=1.1)


def test_warm_up_tells_the_seconds_left():
    _, tracker = follow(Scene(processes=[Process(100, age_s=5)]), 41)
    assert tracker.status.remaining_s == pytest.approx(30, abs=1.1)


def test_n04_compiler_children_extend_warm_up_ten_minutes_at_most():
    ptxas = Process(200, 1.0, role=ProcessRole.CHILD, trainer_pid=100, name="ptxas", until=200)
    log, _ = follow(Scene(processes=[Process(100, age_s=5), ptxas]), 260)
    assert log[-1] == (pytest.approx(200, abs=1.1), JobState.STEADY)
    forever = Process(200, 1.0, role=ProcessRole.CHILD, trainer_pid=100, name="ptxas")
    log, _ = follow(Scene(processes=[Process(100, age_s=5), forever]), 700)
    assert log[-1] == (pytest.approx(611, abs=2.1), JobState.STEADY)


def test_n04_a_job_that_has_not_worked_yet_is_starting_for_as_long_as_it_takes():
    scene = Scene([Gpu(util=lambda t: 0.96 if t > 200 else 0.0)], [Process(100, age_s=5)])
    log, _ = follow(scene, 220)
    assert log[1] == (pytest.approx(211, abs=1.1), JobState.WARMUP)


def test_n07_one_checkpoint_is_an_episode_and_steady_time_goes_on():
    scene = Scene([Gpu(util=lambda t: 0.0 if 60 < t < 72 else 0.97)])
    log, tracker = follow(scene, 100)
    assert [state for _, state in log] == [JobState.STEADY, JobState.EPISODE, JobState.STEADY]
    assert log[1][0] == pytest.approx(65, abs=1.1)
    assert log[2][0] == pytest.approx(73, abs=1.1)
    assert tracker.steady_s == pytest.approx(99)


def test_two_minutes_without_work_are_a_pause_after_which_steady_time_starts_again():
    scene = Scene([Gpu(util=lambda t: 0.0 if 60 < t < 200 else 0.97)])
    log, tracker = follow(scene, 210)
    assert [state for _, state in log] == [
        JobState.STEADY,
        JobState.EPISODE,
        JobState.PAUSED,
        JobState.STEADY,
    ]
    assert log[2][0] == pytest.approx(181, abs=1.1)
    assert tracker.steady_s == pytest.approx(9, abs=1.1)


def test_a_little_work_keeps_an_episode_from_being_a_pause():
    scene = Scene([Gpu(util=lambda t: 0.07 if t > 60 else 0.97)])
    log, _ = follow(scene, 300)
    assert log[-1][1] is JobState.EPISODE


def test_a_server_is_serving():
    scene = Scene(processes=[Process(100, command="python -m vllm serve")])
    assert follow(scene, 5)[0] == [(1.0, JobState.SERVING)]


def test_n30_a_new_pid_is_a_new_job_and_the_old_one_is_gone_after_seconds():
    first = Process(100, until=30)
    second = Process(300, since=50, age_s=-50)
    scene = Scene([Gpu(pids=((100, 4 * GIB), (300, 4 * GIB)))], [first, second])
    log, tracker = follow(scene, 56)
    assert [state for _, state in log] == [JobState.STEADY, JobState.NO_JOB, JobState.STARTING]
    assert log[1][0] == pytest.approx(33, abs=1.1)
    assert tracker.status.trainer == (300, 1000)


def test_one_missed_process_list_is_no_end():
    scene = Scene(
        [Gpu(fields={"processes": lambda t: () if 20 < t < 22.5 else (GpuProcess(100, "C", GIB),)})]
    )
    assert [state for _, state in follow(scene, 40)[0]] == [JobState.STEADY]


def test_a_hidden_process_of_a_container_is_a_job_of_unknown_age():
    scene = Scene([Gpu(pids=((4242, GIB),))], processes=[])
    log, tracker = follow(scene, 100)
    assert [state for _, state in log] == [JobState.STARTING, JobState.WARMUP, JobState.STEADY]
    assert tracker.status.trainer is None


def test_a_process_whose_facts_come_a_few_ticks_late_is_still_the_old_job():
    known = Process(100, since=3.5)
    scene = Scene([Gpu(fields={"processes": (GpuProcess(100, "C", GIB),)})], [known])
    log, tracker = follow(scene, 10)
    assert [state for _, state in log] == [JobState.STARTING, JobState.STEADY]
    assert tracker.status.trainer == (100, 1000)


def test_without_a_process_list_work_is_the_sign_of_a_job():
    busy = Scene([Gpu(util=0.9, fields={"processes": None})], processes=[])
    assert [s for _, s in follow(busy, 100)[0]] == [JobState.STARTING, JobState.WARMUP, JobState.STEADY]
    idle = Scene([Gpu(util=0.0, fields={"processes": None})], processes=[])
    assert [s for _, s in follow(idle, 100)[0]] == [JobState.NO_JOB]


def test_n21_without_utilization_age_decides():
    scene = Scene(
        [Gpu(util=0.0, buffered=False, fields={"processes": (GpuProcess(100, "C", GIB),)})],
        [Process(100, age_s=5)],
    )
    tracker = JobTracker("GPU-0")
    for sample in scene.samples(130):
        tracker.update(sample, sample.gpus[0], None, {p.pid: p for p in sample.processes})
    assert tracker.status.state is JobState.STEADY


def test_work_without_any_listed_process_is_a_job_nobody_sees():
    """Drivers leave out processes of other pid namespaces (a container, WSL)."""
    tracker, states = JobTracker("GPU-0"), []
    for second in range(200):
        sample = Sample(second, float(second), 0.0, 1.0)
        tracker.update(sample, reading(), 0.9, {})
        states.append(tracker.status.state)
    assert states[20] is JobState.NO_JOB
    assert states[199] is JobState.STEADY
    assert tracker.trainer.process is None


def test_a_short_burst_without_a_process_is_no_job():
    tracker = JobTracker("GPU-0")
    for second in range(100):
        busy = 0.9 if second % 25 < 20 else 0.0
        tracker.update(Sample(second, float(second), 0.0, 1.0), reading(), busy, {})
        assert tracker.status.state is JobState.NO_JOB


def test_a_job_nobody_sees_ends_when_the_gpu_rests():
    tracker = JobTracker("GPU-0")
    for second in range(400):
        sample = Sample(second, float(second), 0.0, 1.0)
        tracker.update(sample, reading(), 0.9 if second < 200 else 0.0, {})
    assert tracker.status.state is JobState.NO_JOB
