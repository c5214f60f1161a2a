"""When a rule is asked: once for all GPUs of a job, and at once after an error report of its GPU."""

from dataclasses import replace
from itertools import pairwise

from build import GIB, Bench, Gpu, Process, Scene
from stubs import always, between, engine, fires, rule, when

from gpuwatch.diagnosis.interface import STEADY, Clear
from gpuwatch.model import Event, GpuState, GpuStatus


def ranks(*commands):
    gpus = [Gpu(uuid=f"GPU-{i}", index=i, pids=((100 + i, 20 * GIB),)) for i in range(len(commands))]
    processes = [Process(100 + i, parent_pid=50, command=command) for i, command in enumerate(commands)]
    return Scene(gpus, processes, cores=64)


ONE_JOB = ("python train.py --rank 0", "python train.py --rank 1")
TWO_JOBS = ("python train.py", "python serve.py --model b")


def about_the_job(evaluate, **fields):
    return rule("disk", evaluate, scope="job", states=STEADY, of_team=True, **fields)


def asked(scene, seconds=12, **fields):
    """The GPUs that the rule was asked about, in order, and what was found last."""
    seen = []

    def evaluate(window, active):
        seen.append(window.entity.removeprefix("gpu:"))
        return fires(0.3, gpus=tuple(w.entity.removeprefix("gpu:") for w in (window, *window.siblings)))

    bench = Bench(engine(about_the_job(evaluate, **fields)))
    bench.run(scene, seconds)
    return seen, bench.log[-1].findings


def test_a_rule_about_a_job_is_asked_on_its_first_gpu_and_found_for_all():
    seen, found = asked(ranks(*ONE_JOB))
    assert set(seen) == {"GPU-0"}
    (finding,) = found
    assert finding.gpus == ("GPU-0", "GPU-1")


def test_each_job_is_asked_for_itself():
    seen, found = asked(ranks(*TWO_JOBS))
    assert set(seen) == {"GPU-0", "GPU-1"}
    assert sorted(finding.gpus for finding in found) == [("GPU-0",), ("GPU-1",)]


def test_where_the_first_gpu_is_lost_the_next_one_is_asked():
    scene = ranks(*ONE_JOB)
    scene.gpus[0].status = lambda t: GpuStatus(GpuState.LOST, "gone") if t > 20 else GpuStatus()
    seen, _ = asked(scene, 40, every_s=1.0)
    assert seen[:10] == ["GPU-0"] * 10
    assert seen[-10:] == ["GPU-1"] * 10


def events_at(second, gpu):
    """The scene's samples, with an error report of this GPU at that second."""
    scene = ranks(*ONE_JOB)
    for sample in scene.samples(20):
        t = sample.monotonic_s - scene.start_s
        event = Event(sample.monotonic_s, "xid", "Xid 31", gpu=gpu)
        yield replace(sample, events=(event,)) if t == second else sample


def looked_at(gpu, **fields):
    seen = []

    def evaluate(window, active):
        if window.entity == "gpu:GPU-0":
            seen.append(round(window.now_s - 10_000))
        return Clear()

    bench = Bench(engine(rule("disk", evaluate, every_s=10.0, **fields)))
    for sample in events_at(7, gpu):
        bench.feed(sample)
    return seen


def test_an_error_report_is_looked_at_at_once_and_by_its_own_gpu_only():
    assert looked_at("GPU-0", on_events=True) == [1, 7, 11]
    assert looked_at("GPU-1", on_events=True) == [1, 11]
    assert looked_at("GPU-0") == [1, 11]


def test_p09_a_symptom_that_no_longer_fires_does_not_show_up_when_its_cause_ends_first():
    bench = Bench(
        engine(
            rule("loader-cpu-bound", when(between(10, 38)), exit_evaluations=8, every_s=1.0),
            rule("cpu-quota-throttled", when(between(5, 40)), every_s=1.0),
        )
    )
    bench.run(Scene(), 60)
    shown = {finding.rule for diagnosis in bench.log for finding in diagnosis.findings}
    assert shown == {"cpu-quota-throttled"}


def test_a_symptom_that_still_fires_shows_up_when_its_cause_ends():
    bench = Bench(
        engine(
            rule("loader-cpu-bound", when(always), exit_evaluations=8, every_s=1.0),
            rule("cpu-quota-throttled", when(between(5, 40)), every_s=1.0),
        )
    )
    bench.run(Scene(), 45)
    assert [finding.rule for finding in bench.log[-1].findings] == ["loader-cpu-bound"]


def test_a_rule_that_found_nothing_for_two_minutes_is_asked_half_as_often_until_it_fires():
    asked_s = []

    def evaluate(window, active):
        asked_s.append(round(window.now_s - Scene().start_s))
        return fires(0.3) if asked_s[-1] >= 300 else Clear("")

    bench = Bench(engine(rule("disk", evaluate, scope="gpu", every_s=5.0)))
    bench.run(Scene([Gpu()], [Process(100)]), 330)
    steps = [after - before for before, after in pairwise(asked_s[1:])]
    quiet = sum(time <= 120 for time in asked_s)
    assert set(steps[: quiet - 2]) == {5}
    assert set(steps[quiet : quiet + 15]) == {10}
    assert set(steps[-4:]) == {5}
    assert bench.log[-1].findings
