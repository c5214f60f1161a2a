"""The engine around the rules: scheduling, gates, freezing, root before symptom, ranks of one job."""

from dataclasses import replace

import pytest
from build import GIB, Bench, Gpu, Process, Scene, square
from stubs import IN_MAIN, LOST, STARVED, always, between, engine, fires, never, rule, when

from gpuwatch.diagnosis.interface import STEADY, Abstain, Clear
from gpuwatch.model import (
    CheckState,
    GpuState,
    GpuStatus,
    JobState,
    Kind,
    Layer,
    LedgerKey,
    ProcessRole,
    Severity,
)

UTIL = square(0, 0.97, 1.4, 0.36)


def loading_in_main(**fields):
    return Scene(
        [Gpu(util=UTIL, **fields)],
        [Process(100, cpu=lambda t: 0.97 if UTIL(t) < 0.5 else 1.0, reads=60e6)],
        jitter=0.3,
    )


def ranks(count, util=UTIL, first_index=0):
    gpus = [Gpu(util=util, uuid=f"GPU-{i}", index=i, pids=((100 + i, 20 * GIB),)) for i in range(count)]
    processes = [
        Process(
            100 + i,
            cpu=lambda t: 0.97 if UTIL(t) < 0.5 else 1.0,
            parent_pid=50,
            command=f"python train.py --rank {i}",
        )
        for i in range(count)
    ]
    return Scene(gpus, processes, cores=64)


def rules_of(diagnosis):
    return [finding.rule for finding in diagnosis.findings]


def test_p01_the_loader_is_named_within_a_minute_and_covers_the_bare_waiting():
    bench = Bench(engine(STARVED, IN_MAIN))
    bench.run(loading_in_main(), 60)
    named = next(d for d in bench.log if rules_of(d))
    assert named.time_s - 10_000 <= 60
    last = bench.log[-1]
    assert rules_of(last) == ["loader-in-main-process"]
    (finding,) = last.findings
    assert finding.severity is Severity.CRITICAL
    assert finding.share_ratio == pytest.approx(0.64, abs=0.05)
    assert finding.speedup == pytest.approx(2.8, abs=0.2)
    assert finding.speedup_max >= finding.speedup
    assert finding.process == (100, 1000)
    assert finding.subject == "job:100:1000"
    assert not last.ended
    parts = {(part.key, part.cause): part.ratio for part in last.ledgers["GPU-0"].parts}
    assert parts[(LedgerKey.WAITING, "loader-in-main-process")] == pytest.approx(0.65, abs=0.05)
    assert last.jobs["GPU-0"].state is JobState.STEADY
    assert last.shapes["GPU-0"].period_s == pytest.approx(1.4, rel=0.1)


def test_the_same_samples_give_the_same_diagnosis():
    scene = loading_in_main()
    first, second = Bench(engine(STARVED, IN_MAIN)), Bench(engine(STARVED, IN_MAIN))
    first.run(scene, 50)
    second.run(scene, 50)
    assert first.log == second.log


def test_a_finding_ends_is_listed_and_begins_anew():
    bench = Bench(engine(rule("thermal-throttle", when(between(10, 20)))))
    bench.run(Scene(), 30)
    (ended,) = bench.log[-1].ended
    assert ended.started_s == pytest.approx(10_010)
    assert ended.ended_s == pytest.approx(10_020)
    assert ended.worst_share_ratio == 0.3
    assert not bench.log[-1].findings


def test_findings_are_worst_first():
    bench = Bench(
        engine(
            rule("batch-headroom", when(always, fires()), kind=Kind.OPPORTUNITY),
            rule("thermal-throttle", when(always, fires(0.2))),
            rule("disk", when(always, fires(0.5))),
            rule("gpu-lost", when(always, fires(severity=Severity.WARNING)), kind=Kind.RISK),
        )
    )
    bench.run(Scene(), 3)
    assert rules_of(bench.log[-1]) == ["disk", "gpu-lost", "thermal-throttle", "batch-headroom"]


def test_a_rule_is_evaluated_as_often_as_it_asks():
    counts = {"a": 0, "b": 0}

    def count(name):
        def evaluate(window, active):
            counts[name] += 1
            return Clear()

        return evaluate

    bench = Bench(
        engine(rule("disk", count("a"), every_s=5.0), rule("thermal-throttle", count("b"), every_s=1.0))
    )
    bench.run(Scene(jitter=0.3), 100)
    assert counts["a"] == pytest.approx(20, abs=1)
    assert counts["b"] == pytest.approx(100, abs=1)


def test_active_tells_the_rule_to_apply_its_exit_condition():
    seen = []

    def evaluate(window, active):
        seen.append(active)
        return fires(0.2)

    Bench(engine(rule("disk", evaluate))).run(Scene(), 4)
    assert seen == [False, True, True, True]


def test_the_window_knows_which_rules_are_active_here_and_on_the_host():
    seen = []

    def evaluate(window, active):
        seen.append(window.active)
        return Clear()

    bench = Bench(
        engine(
            rule("disk", evaluate),
            rule("thermal-throttle", when(always)),
            rule("host-rule", when(always), scope="host"),
        )
    )
    bench.run(Scene(), 3)
    assert seen[-1] == {"thermal-throttle", "host-rule"}


# -- gates


def test_job_rules_wait_for_steady_and_their_findings_end_with_the_job():
    scene = Scene(processes=[Process(100, age_s=5, until=100)])
    bench = Bench(engine(rule("disk", when(always), scope="job", states=STEADY)))
    bench.run(scene, 110)
    first = next(d for d in bench.log if d.findings)
    assert first.jobs["GPU-0"].state is JobState.STEADY
    assert bench.log[-1].jobs["GPU-0"].state is JobState.NO_JOB
    assert not bench.log[-1].findings
    assert [finding.rule for finding in bench.log[-1].ended] == ["disk"]


def test_n07_an_episode_neither_starts_nor_ends_a_finding():
    scene = Scene([Gpu(util=lambda t: 0.0 if 60 < t < 75 else 0.97)])
    bench = Bench(engine(rule("disk", when(between(40, 70)), scope="job", states=STEADY)))
    bench.run(scene, 80)
    active = [d.time_s - 10_000 for d in bench.log if d.findings]
    assert active[0] == pytest.approx(40)
    assert active[-1] == pytest.approx(75)  # ended when the GPU worked again, not inside the episode


def test_n30_a_new_job_starts_with_no_findings():
    first, second = Process(100, until=50), Process(300, since=50.5, age_s=-50)
    scene = Scene([Gpu(pids=((100, 4 * GIB), (300, 4 * GIB)))], [first, second])
    bench = Bench(engine(rule("disk", when(always), scope="job", states=STEADY)))
    bench.run(scene, 60)
    assert not bench.log[-1].findings
    assert bench.log[-1].ledgers["GPU-0"].window_s <= 10


def test_the_ledger_of_a_judged_job_has_nothing_of_its_start():
    scene = Scene([Gpu(util=lambda t: 0.0 if t < 40 else 0.97)], [Process(100, age_s=5)])
    bench = Bench(engine(STARVED))
    bench.run(scene, 115)
    steady = [d for d in bench.log if d.jobs["GPU-0"].state is JobState.STEADY]
    parts = {part.key for d in steady for part in d.ledgers["GPU-0"].parts}
    assert LedgerKey.IDLE not in parts
    (idle,) = [p for p in bench.log[30].ledgers["GPU-0"].parts if p.key is LedgerKey.IDLE]
    assert idle.label == "starting"


def test_a_rule_that_needs_a_missing_signal_abstains_with_the_signals_own_reason():
    scene = Scene([Gpu(fields={"absent": {"tensor_ratio": "this card has no GPM counters"}})])
    bench = Bench(engine(rule("disk", when(always), needs=("tensor_ratio",))))
    bench.run(scene, 5)
    assert not bench.log[-1].findings
    (missing,) = bench.log[-1].not_checked
    assert (missing.rule, missing.check, missing.reason) == ("disk", "dsk", "this card has no GPM counters")


def test_a_host_series_may_be_needed():
    bench = Bench(
        engine(
            rule("disk", when(always), needs=("host:cpu_ratio",)),
            rule("thermal-throttle", when(always), needs=("host:swap_in_bytes_per_s",)),
        )
    )
    bench.run(Scene(), 5)
    assert rules_of(bench.log[-1]) == ["disk"]


def test_a_job_that_cannot_be_seen_is_not_checked():
    scene = Scene([Gpu(pids=((4242, GIB),))], processes=[])
    bench = Bench(engine(rule("disk", when(always), scope="job", states=STEADY)))
    bench.run(scene, 80)
    assert bench.log[-1].not_checked[0].reason == "the job's process cannot be seen from here"


def test_a_rule_that_fails_is_listed_and_the_others_go_on():
    def broken(window, active):
        raise ZeroDivisionError("no cores")

    bench = Bench(engine(rule("disk", broken), rule("thermal-throttle", when(always))))
    bench.run(Scene(), 3)
    assert rules_of(bench.log[-1]) == ["thermal-throttle"]
    assert bench.log[-1].not_checked[0].reason == "rule failed: ZeroDivisionError: no cores"


def test_a_text_that_fails_does_not_hide_the_finding():
    def broken(rule_id, fires_, window):
        raise KeyError("title")

    bench = Bench(engine(rule("disk", when(always)), render=broken))
    bench.run(Scene(), 3)
    assert bench.log[-1].findings[0].text.title == "disk"


def test_unavailable_and_ignored_rules_are_listed_once():
    bench = Bench(
        engine(
            rule("disk", when(always), unavailable="needs the training script"),
            rule("thermal-throttle", when(always)),
            ignored={"thermal-throttle"},
        )
    )
    bench.run(ranks(2), 3)
    assert not bench.log[-1].findings
    assert {(n.rule, n.reason, n.subject) for n in bench.log[-1].not_checked} == {
        ("disk", "needs the training script", ""),
        ("thermal-throttle", "ignored by choice", ""),
    }


def test_an_abstention_of_one_gpu_names_it():
    def evaluate(window, active):
        return Abstain("no sensor") if window.reading.index else Clear()

    bench = Bench(engine(rule("disk", evaluate)))
    bench.run(ranks(2), 3)
    assert [n.subject for n in bench.log[-1].not_checked] == ["gpu:GPU-1"]


# -- lost and stale


def lost(start, end):
    return lambda t: GpuStatus(GpuState.LOST, "fell off the bus") if start <= t < end else GpuStatus()


def test_a_lost_gpu_freezes_its_findings_raises_its_own_and_leaves_the_other_alone():
    scene = ranks(2, util=0.97)
    scene.gpus[1].status = lost(20, 40)
    bench = Bench(engine(rule("disk", when(between(10, 25))), LOST))
    bench.run(scene, 60)

    def at(t):
        found = next(d for d in bench.log if d.time_s - 10_000 >= t)
        return {(f.rule, f.gpus) for f in found.findings}

    assert at(15) == {("disk", ("GPU-0",)), ("disk", ("GPU-1",))}
    assert at(30) == {("disk", ("GPU-1",)), ("gpu-lost", ("GPU-1",))}
    assert at(45) == set()
    during = next(d for d in bench.log if d.time_s - 10_000 >= 35)
    assert during.verdict.rule == "gpu-lost"
    unknown = {part.key: part.ratio for part in during.ledgers["GPU-1"].parts}
    assert unknown[LedgerKey.UNKNOWN] > 0.3
    assert LedgerKey.UNKNOWN not in {part.key for part in during.ledgers["GPU-0"].parts}


def test_nothing_starts_on_stale_data():
    bench = Bench(engine(rule("disk", when(between(20, 60)))))
    scene = Scene()
    held = None
    for sample in scene.samples(40):
        t = sample.monotonic_s - scene.start_s
        if t <= 10:
            held = sample.gpus
        bench.feed(replace(sample, gpus=held) if t < 30 else sample)
    started = next(d for d in bench.log if d.findings)
    assert started.time_s - 10_000 == pytest.approx(30)
    stale = next(d for d in bench.log if d.time_s - 10_000 >= 29)
    assert {part.key for part in stale.ledgers["GPU-0"].parts} >= {LedgerKey.UNKNOWN}


def test_a_gpu_missing_from_a_tick_keeps_its_findings():
    bench = Bench(engine(rule("disk", when(always))))
    for sample in Scene().samples(10):
        bench.feed(replace(sample, gpus=()) if 5 < sample.monotonic_s - 10_000 < 8 else sample)
        if sample.monotonic_s - 10_000 >= 1:
            assert rules_of(bench.log[-1]) == ["disk"]


# -- roots and symptoms


def test_a_root_hides_its_symptom_and_the_symptom_is_not_said_to_have_ended():
    bench = Bench(
        engine(
            rule("loader-cpu-bound", when(between(10, 100))),
            rule("cpu-quota-throttled", when(between(20, 40))),
        )
    )
    bench.run(Scene(), 50)

    def at(t):
        return rules_of(next(d for d in bench.log if d.time_s - 10_000 >= t))

    assert at(15) == ["loader-cpu-bound"]
    assert at(30) == ["cpu-quota-throttled"]
    assert at(45) == ["loader-cpu-bound"]
    assert [finding.rule for finding in bench.log[-1].ended] == ["cpu-quota-throttled"]


def test_starved_stays_beside_a_cause_that_covers_too_little():
    partly = rule("loader-in-main-process", when(always, fires(0.3, coverage_ratio=0.6)))
    bench = Bench(engine(rule("gpu-starved", when(always)), partly))
    bench.run(Scene(), 3)
    assert set(rules_of(bench.log[-1])) == {"gpu-starved", "loader-in-main-process"}


# -- several GPUs


def test_ranks_of_one_job_have_one_finding_for_all_their_gpus():
    bench = Bench(engine(STARVED, IN_MAIN))
    bench.run(ranks(4), 60)
    (finding,) = bench.log[-1].findings
    assert finding.gpus == ("GPU-0", "GPU-1", "GPU-2", "GPU-3")
    assert finding.subject == "job:100:1000"


def test_findings_of_a_card_are_its_own():
    bench = Bench(engine(rule("thermal-throttle", when(lambda w: w.reading.index in (1, 3)))))
    bench.run(ranks(4), 5)
    assert {(f.subject, f.gpus) for f in bench.log[-1].findings} == {
        ("gpu:GPU-1", ("GPU-1",)),
        ("gpu:GPU-3", ("GPU-3",)),
    }


def test_siblings_are_the_other_gpus_of_the_same_job():
    seen = {}

    def evaluate(window, active):
        seen[window.entity] = [sibling.entity for sibling in window.siblings]
        return Clear()

    scene = ranks(3)
    scene.processes[2].command = "python other.py"
    Bench(engine(rule("disk", evaluate))).run(scene, 3)
    assert seen == {"gpu:GPU-0": ["gpu:GPU-1"], "gpu:GPU-1": ["gpu:GPU-0"], "gpu:GPU-2": []}


def test_host_rules_run_once_and_apply_to_every_gpu():
    bench = Bench(engine(rule("host-rule", when(always), scope="host")))
    bench.run(ranks(2), 3)
    (finding,) = bench.log[-1].findings
    assert (finding.subject, finding.gpus) == ("host", ())


# -- the job's view


def test_the_view_of_a_job_with_workers():
    seen = []

    def evaluate(window, active):
        seen.append(window.job)
        return Clear()

    workers = [
        Process(200 + i, cpu=0.9, role=ProcessRole.WORKER, trainer_pid=100, name="pt_data_worker", reads=10e6)
        for i in range(4)
    ]
    tracker = Process(300, cpu=0.1, role=ProcessRole.CHILD, trainer_pid=100, name="wandb")
    main = Process(100, cpu=0.5, main=0.4, threads=("pt_data_pin",), waits=0.1)
    scene = Scene(processes=[main, *workers, tracker], other_cores=2.0)
    Bench(engine(rule("disk", evaluate, scope="job"))).run(scene, 40)
    job = seen[-1]
    assert job.trainer.pid == 100
    assert [worker.pid for worker in job.workers] == [200, 201, 202, 203]
    assert [child.pid for child in job.children] == [300]
    assert job.main_cpu_cores == pytest.approx(0.4, abs=0.01)
    assert job.worker_cpu_cores == pytest.approx(0.9, abs=0.01)
    assert job.tree_cpu_cores == pytest.approx(4.2, abs=0.02)
    assert job.tree_wait_ratio == pytest.approx(0.1 / 4.3, abs=0.01)
    assert job.free_cores == pytest.approx(16 - 6.2, abs=0.1)
    assert job.tree_read_bytes_per_s == pytest.approx(40e6, rel=0.01)
    assert job.main_read_bytes_per_s == pytest.approx(0.0)
    assert job.pt_thread_names
    assert job.thread_workers == 0
    assert job.main_gap is None
    assert "gaps" in job.absent["main_gap"]


def test_p45_many_busy_threads_are_a_loader_of_threads():
    seen = []

    def evaluate(window, active):
        seen.append(window.job)
        return Clear()

    scene = Scene(processes=[Process(100, cpu=11.5, main=0.9)])
    Bench(engine(rule("disk", evaluate, scope="job"))).run(scene, 20)
    assert seen[-1].thread_workers == 10


def test_the_mask_bounds_the_free_cores_without_counting_others_twice():
    seen = []

    def evaluate(window, active):
        seen.append(window.job.free_cores)
        return Clear()

    scene = Scene(processes=[Process(100, cpu=3.0, usable_cores=4.0)], cores=64, other_cores=20.0)
    Bench(engine(rule("disk", evaluate, scope="job"))).run(scene, 20)
    assert seen[-1] == pytest.approx(1.0, abs=0.05)


def test_a_check_with_a_clear_rule_is_fine():
    bench = Bench(engine(rule("disk", when(never))))
    bench.run(Scene(), 3)
    by_key = {result.check.key: result for result in bench.log[-1].checks}
    assert by_key["dsk"].state is CheckState.FINE
    assert by_key["dsk"].evidence == "looked"


def test_layers_of_the_catalogue_hold_unless_the_rule_says_otherwise():
    bench = Bench(
        engine(
            rule("disk", when(always)),
            rule("thermal-throttle", when(always, fires(0.2, layer=Layer.CODE))),
        )
    )
    bench.run(Scene(), 3)
    assert {(f.rule, f.layer) for f in bench.log[-1].findings} == {
        ("disk", Layer.DATA),
        ("thermal-throttle", Layer.CODE),
    }


def test_a_near_power_limit_lowers_the_promised_factor():
    plain, near = Bench(engine(rule("disk", when(always)))), Bench(engine(rule("disk", when(always))))
    plain.run(Scene([Gpu(power=200.0)]), 5)
    near.run(Scene([Gpu(power=345.0)]), 5)
    first, second = plain.log[-1].findings[0], near.log[-1].findings[0]
    assert first.speedup == pytest.approx(1 / 0.7)
    assert second.speedup == pytest.approx(0.95 / 0.7)


def test_no_machine_readable_gpu_is_no_crash():
    bench = Bench(engine(STARVED, IN_MAIN, LOST))
    diagnosis = bench.run(Scene([], []), 5)
    assert diagnosis.findings == ()
    assert diagnosis.verdict.headline == "no GPU here"
