"""One verdict: what is chosen, in which words, and that it does not flap."""

from dataclasses import replace

import pytest
from build import GIB, Bench, Gpu, Process, Scene, square
from stubs import IN_MAIN, STARVED, between, engine, fires, rule, when

from gpuwatch.diagnosis.verdict import VerdictMaker
from gpuwatch.diagnosis.verdict_facts import GpuFacts, TickFacts, choose, losses, pace_setter
from gpuwatch.diagnosis.verdict_words import seconds
from gpuwatch.model import (
    Confidence,
    DriverState,
    DriverStatus,
    Finding,
    FindingText,
    JobState,
    JobStatus,
    Kind,
    Layer,
    Ledger,
    LedgerKey,
    LedgerPart,
    Severity,
)

OK = DriverStatus(DriverState.OK)


def finding(rule_id, layer=Layer.DATA, share=0.3, gpus=("G0",), kind=Kind.LOSS, **fields):
    defaults = {
        "subject": "job:1:1",
        "check": "ldr",
        "severity": Severity.WARNING,
        "confidence": Confidence.LIKELY,
        "started_s": 0.0,
        "updated_s": 0.0,
        "text": FindingText(title=f"title of {rule_id}", short_advice=f"do {rule_id}"),
        "share_ratio": share,
    }
    return Finding(rule=rule_id, gpus=gpus, layer=layer, kind=kind, **{**defaults, **fields})


def gpu(parts, findings, index=0, state=JobState.STEADY, steady_s=100.0, since_s=0.0, remaining_s=None):
    """`parts`: (ledger key, ratio, rule or None); busy fills up to 1."""
    uuid = f"G{index}"
    booked = [LedgerPart(key, ratio, cause=cause) for key, ratio, cause in parts]
    rest = 1 - sum(part.ratio for part in booked)
    status = JobStatus(uuid, state, since_s, remaining_s=remaining_s)
    ledger = Ledger(uuid, 60.0, (*booked, LedgerPart(LedgerKey.BUSY, rest)))
    return GpuFacts(uuid, index, status, steady_s, ledger, {found.rule: found for found in findings})


def facts(*gpus, now=1000.0, driver=OK, findings=None):
    if findings is None:
        findings = tuple({id(f): f for g in gpus for f in g.findings.values()}.values())
    return TickFacts(now, driver, gpus, tuple(findings))


def verdict_of(*gpus, **fields):
    return VerdictMaker().make(facts(*gpus, **fields))


def waits(rule_id, ratio, **fields):
    return gpu([(LedgerKey.WAITING, ratio, rule_id)], [finding(rule_id, share=ratio, **fields)])


# -- the choice


def test_the_largest_layer_is_named_with_its_cause_words_and_next_step():
    found = finding(
        "loader-in-main-process",
        share=0.62,
        share_low_ratio=0.58,
        share_high_ratio=0.66,
        speedup=2.63,
        speedup_max=2.94,
        text=FindingText(
            title="batches are prepared in the main process (0 workers)",
            because=("a", "b", "c", "d", "e"),
            wrong_if="the step itself does CPU work",
            settle="num_workers=4 for 100 steps",
            advice=("first", "second"),
            short_advice="num_workers=4, watch 100 steps",
        ),
    )
    verdict = verdict_of(gpu([(LedgerKey.WAITING, 0.62, "loader-in-main-process")], [found]))
    assert verdict.headline == "the GPU waits 58-66 % of the time"
    assert verdict.detail == (
        "batches are prepared in the main process (0 workers); about 2.6x, at most 2.9x"
    )
    assert verdict.layer is Layer.DATA
    assert verdict.because == ("a", "b", "c", "d")
    assert verdict.wrong_if == "the step itself does CPU work"
    assert verdict.settle == "num_workers=4 for 100 steps"
    assert verdict.action == "num_workers=4, watch 100 steps"
    assert verdict.after_that == "nothing else stands out"


def test_p42_two_causes_the_larger_first_and_the_other_after_that():
    heat = finding("thermal-throttle", Layer.HARDWARE, 0.13)
    loader = finding("loader-in-main-process", share=0.5)
    verdict = verdict_of(
        gpu(
            [
                (LedgerKey.SLOWED, 0.13, "thermal-throttle"),
                (LedgerKey.WAITING, 0.5, "loader-in-main-process"),
            ],
            [heat, loader],
        )
    )
    assert verdict.layer is Layer.DATA
    assert verdict.second_layer is None
    assert verdict.after_that == "title of thermal-throttle (13 %)"


def test_a_near_tie_names_both_and_the_cheaper_look_first():
    heat = finding("thermal-throttle", Layer.HARDWARE, 0.18)
    loader = finding("loader-in-main-process", share=0.20)
    verdict = verdict_of(
        gpu(
            [
                (LedgerKey.SLOWED, 0.18, "thermal-throttle"),
                (LedgerKey.WAITING, 0.20, "loader-in-main-process"),
            ],
            [heat, loader],
        )
    )
    assert (verdict.layer, verdict.second_layer) == (Layer.HARDWARE, Layer.DATA)
    assert verdict.headline == "the GPU loses 18 % of its speed"


def test_p46_mostly_unproven_waiting_says_so_with_candidates():
    starved = finding("gpu-starved", share=0.5)
    disk = finding("loader-disk-bound", share=0.15)
    verdict = verdict_of(
        gpu(
            [(LedgerKey.WAITING, 0.15, "loader-disk-bound"), (LedgerKey.WAITING, 0.35, None)],
            [starved, disk],
        )
    )
    assert verdict.rule == "gpu-starved"
    assert "possible: title of loader-disk-bound" in verdict.detail


def test_waiting_without_a_finding_is_no_loss():
    assert losses(gpu([(LedgerKey.WAITING, 0.2, None)], [])) == ()
    little = verdict_of(gpu([(LedgerKey.WAITING, 0.14, None)], []))
    assert little.headline == "nothing outside the model slows this GPU"
    assert little.detail == "busy 86 % of the time"


def test_much_idle_time_of_unknown_cause_is_not_called_nothing():
    verdict = verdict_of(gpu([(LedgerKey.WAITING, 0.2, None)], []))
    assert verdict.headline == "the GPU idles 20 % of the time, no cause found outside the model"
    assert verdict.detail == "busy 80 % of the time"


def test_n21_unknown_utilization_is_neither_idle_nor_fine():
    gpus = [Gpu(util=0.0, buffered=False, fields={"absent": {"utilization_ratio": "not offered with MIG"}})]
    bench = Bench(engine(STARVED))
    for sample in Scene(gpus).samples(60):
        blind = replace(sample.gpus[0], utilization_ratio=None)
        bench.feed(replace(sample, gpus=(blind,)))
    verdict = bench.log[-1].verdict
    assert verdict.headline == "utilization cannot be read here: not judged"
    assert verdict.detail == "not offered with MIG"
    assert [part.key for part in bench.log[-1].ledgers["GPU-0"].parts] == [LedgerKey.UNKNOWN]


def test_losses_within_the_measuring_error_are_nothing():
    assert choose(losses(waits("a", 0.07))) is None
    assert verdict_of(waits("a", 0.07)).layer is None


def test_nothing_lost_names_the_strongest_lever():
    small = finding("batch-headroom", Layer.CODE, None, kind=Kind.OPPORTUNITY, severity=Severity.NOTICE)
    amp = finding("tensor-cores-idle", Layer.CODE, None, kind=Kind.OPPORTUNITY, severity=Severity.NOTICE)
    verdict = verdict_of(gpu([], [small, amp]))
    assert verdict.headline == "nothing outside the model slows this GPU"
    assert verdict.detail == "busy 100 % of the time; next lever: title of tensor-cores-idle"
    assert verdict.action == "do tensor-cores-idle"


def test_a_warning_whose_cost_is_unknown_is_the_verdict_when_nothing_is_lost():
    link = finding("pcie-width-reduced", Layer.HARDWARE, None, kind=Kind.OPPORTUNITY)
    verdict = verdict_of(gpu([], [link]))
    assert (verdict.layer, verdict.headline) == (Layer.HARDWARE, "title of pcie-width-reduced")
    assert "cannot be measured" in verdict.detail


def test_in_the_first_minute_a_warning_speaks_unless_the_gpu_clearly_waits():
    link = finding("pcie-width-reduced", Layer.HARDWARE, None, kind=Kind.OPPORTUNITY)
    a_little = gpu([(LedgerKey.WAITING, 0.09, None)], [link], steady_s=40.0)
    assert verdict_of(a_little).rule == "pcie-width-reduced"
    clearly = gpu([(LedgerKey.WAITING, 0.5, None)], [link], steady_s=40.0)
    assert verdict_of(clearly).detail == "looking for the cause"


def test_a_warning_on_several_cards_names_them_all():
    def limit(index):
        return finding(
            "power-limit-lowered",
            Layer.HARDWARE,
            None,
            gpus=(f"G{index}",),
            kind=Kind.OPPORTUNITY,
            subject=f"gpu:G{index}",
        )

    gpus = [gpu([], [limit(index)], index=index) for index in (0, 1)]
    assert verdict_of(*gpus, gpu([], [], index=2)).headline == "GPUs 0 and 1: title of power-limit-lowered"


def test_a_critical_risk_pre_empts_everything():
    gone = finding("gpu-lost", Layer.HARDWARE, None, kind=Kind.RISK, severity=Severity.CRITICAL, banner=True)
    verdict = verdict_of(waits("a", 0.6), findings=(gone,))
    assert verdict.rule == "gpu-lost"


def test_above_four_fifths_no_factor_is_promised():
    verdict = verdict_of(waits("a", 0.85, speedup=None))
    assert verdict.detail == "title of a; mostly waiting"


# -- several GPUs


def test_the_worst_rank_sets_the_pace():
    gpus = [
        gpu([(LedgerKey.WAITING, share, "a")], [finding("a", share=share, gpus=(f"G{index}",))], index=index)
        for index, share in enumerate((0.1, 0.4, 0.2))
    ]
    assert pace_setter(gpus).index == 1
    assert verdict_of(*gpus).headline == "GPU 1 waits 40 % of the time"


def test_p34_victims_that_spin_for_a_hot_card_are_not_blamed():
    wait = finding("comm-wait", Layer.CODE, 0.4, gpus=("G0", "G1"))
    heat = finding("thermal-throttle", Layer.HARDWARE, 0.25, gpus=("G2",))
    victims = [gpu([(LedgerKey.WAITING_PEERS, 0.4, "comm-wait")], [wait], index=i) for i in range(2)]
    culprit = gpu([(LedgerKey.SLOWED, 0.25, "thermal-throttle")], [heat], index=2)
    verdict = verdict_of(*victims, culprit)
    assert verdict.layer is Layer.HARDWARE
    assert verdict.headline == "GPU 2 loses 25 % of its speed"


def test_without_a_culprit_waiting_for_each_other_is_the_loss():
    wait = finding("comm-wait", Layer.CODE, 0.4, gpus=("G0", "G1"))
    both = [gpu([(LedgerKey.WAITING_PEERS, 0.4, "comm-wait")], [wait], index=i) for i in range(2)]
    assert verdict_of(*both).headline == "the GPUs wait 40 % of the time for each other"


def test_all_ranks_and_some_ranks_are_named():
    found = finding("a", share=0.4, gpus=("G0", "G1"))
    both = [gpu([(LedgerKey.WAITING, 0.4, "a")], [found], index=i) for i in range(2)]
    assert verdict_of(*both).headline.startswith("the GPUs wait")
    third = gpu([], [], index=2)
    assert verdict_of(*both, third).headline.startswith("GPUs 0 and 1 wait")


# -- states


@pytest.mark.parametrize(
    ("state", "fields", "headline"),
    [
        (JobState.STARTING, {"since_s": 988.0}, "the job is starting, 12 s"),
        (JobState.WARMUP, {"remaining_s": 34.2}, "warming up, 34 s"),
        (JobState.WARMUP, {}, "warming up"),
        (JobState.PAUSED, {"since_s": 940.0}, "the job pauses: no work on the GPU for 3 min"),
        (JobState.SERVING, {}, "serving: not judged"),
    ],
)
def test_a_state_is_the_verdict_until_the_job_is_steady(state, fields, headline):
    verdict = verdict_of(gpu([], [finding("a")], state=state, **fields))
    assert verdict.headline == headline
    assert verdict.layer is None


def test_the_state_furthest_on_speaks():
    gpus = [gpu([], [], index=0, state=JobState.NO_JOB), gpu([], [], index=1, state=JobState.WARMUP)]
    assert verdict_of(*gpus).headline == "warming up"


def test_one_steady_job_is_judged_whatever_the_others_do():
    idle = gpu([], [], index=1, state=JobState.NO_JOB)
    assert verdict_of(waits("a", 0.4), idle).headline == "GPU 0 waits 40 % of the time"


def test_no_driver_says_what_happened_and_what_to_do():
    driver = DriverStatus(DriverState.NO_LIBRARY, "libnvidia-ml.so.1 is missing", "install the driver")
    verdict = verdict_of(driver=driver)
    assert verdict.headline == "no NVIDIA driver on this machine"
    assert verdict.detail == "libnvidia-ml.so.1 is missing"
    assert verdict.action == "install the driver"
    assert verdict_of(driver=DriverStatus(DriverState.STARTING)).headline == "reading the GPUs"


def test_half_a_minute_is_needed_for_a_first_verdict_and_a_minute_for_a_firm_one():
    def at(steady_s):
        one = waits("a", 0.4)
        return verdict_of(GpuFacts(one.uuid, 0, one.status, steady_s, one.ledger, one.findings))

    assert at(12.0).headline == "watching the job, 18 s to a first verdict"
    assert (at(31.0).rule, at(31.0).preliminary) == ("a", True)
    assert (at(61.0).rule, at(61.0).preliminary) == ("a", False)


def test_visible_waiting_in_the_first_minute_is_being_looked_at():
    early = gpu([(LedgerKey.WAITING, 0.6, None)], [], steady_s=40.0)
    verdict = verdict_of(early)
    assert (verdict.headline, verdict.detail) == ("the GPU waits 60 % of the time", "looking for the cause")


@pytest.mark.parametrize(
    ("value", "text"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (-1, "0 s")]
)
def test_seconds(value, text):
    assert seconds(value) == text


# -- no flapping


def play(*steps):
    """[(verdict rule, since)] of a verdict maker fed with (seconds, gpu facts) one per second."""
    maker, now, shown = VerdictMaker(), 0.0, []
    for length, one in steps:
        for _ in range(length):
            now += 1.0
            verdict = maker.make(facts(one, now=now))
            if not shown or shown[-1][1] != verdict.rule:
                shown.append((now, verdict.rule))
    return shown


def both(first, second):
    return gpu(
        [(LedgerKey.WAITING, first, "a"), (LedgerKey.SLOWED, second, "b")],
        [finding("a", share=first), finding("b", Layer.HARDWARE, share=second)],
    )


def test_a_challenger_that_leads_by_less_than_ten_points_does_not_take_over():
    assert play((30, both(0.30, 0.1)), (100, both(0.20, 0.28))) == [(1.0, "a")]


def test_a_challenger_must_lead_by_ten_points_for_a_quarter_of_a_minute():
    assert play((30, both(0.30, 0.1)), (100, both(0.15, 0.30))) == [(1.0, "a"), (46.0, "b")]


def test_a_short_lead_is_forgotten():
    steps = [(30, both(0.30, 0.1))]
    for _ in range(5):
        steps += [(10, both(0.15, 0.30)), (5, both(0.30, 0.1))]
    assert play(*steps) == [(1.0, "a")]


def test_a_challenger_may_be_on_another_gpu_every_second():
    """Of several GPUs with the same cause another one is worst in each tick."""
    maker, found = VerdictMaker(), []
    hot = gpu([(LedgerKey.SLOWED, 0.2, "b")], [finding("b", Layer.HARDWARE, share=0.2)], index=9)
    for second in range(90):
        starved = [
            gpu(
                [(LedgerKey.WAITING, 0.6 + 0.01 * ((second + index) % 2), "a")],
                [finding("a", share=0.6)],
                index=index,
            )
            for index in (4, 5)
        ]
        now = [hot, *starved] if second >= 5 else [hot]
        found.append(maker.make(facts(*now, now=float(second))).rule)
    assert found[10] == "b"
    assert found[-1] == "a"


def test_a_verdict_lives_twenty_seconds():
    assert play((2, both(0.30, 0.1)), (60, both(0.10, 0.60)))[1][0] >= 21.0


def test_a_cause_that_is_gone_stays_half_a_minute():
    fixed = gpu([], [])
    assert play((40, waits("a", 0.4)), (60, fixed)) == [(1.0, "a"), (70.0, None)]


def test_the_cause_of_the_same_waiting_replaces_the_bare_one_at_once():
    bare = gpu([(LedgerKey.WAITING, 0.4, None)], [finding("gpu-starved", share=0.4)])
    assert play((5, bare), (5, waits("a", 0.4))) == [(1.0, "gpu-starved"), (6.0, "a")]


def test_a_job_that_ends_ends_its_verdict_at_once():
    assert play((40, waits("a", 0.4)), (3, gpu([], [], state=JobState.NO_JOB)))[-1] == (41.0, None)


def test_the_verdict_tells_since_when_it_holds():
    maker = VerdictMaker()
    assert maker.make(facts(waits("a", 0.4), now=100.0)).since_s == 100.0
    assert maker.make(facts(waits("a", 0.5), now=130.0)).since_s == 100.0


# -- end to end


def test_p01_end_to_end_one_change_from_looking_to_the_loader():
    util = square(0, 0.97, 1.4, 0.36)
    scene = Scene([Gpu(util=util)], [Process(100, cpu=lambda t: 0.97 if util(t) < 0.5 else 1.0)], jitter=0.3)
    bench = Bench(engine(STARVED, IN_MAIN))
    bench.run(scene, 120)
    named = [d.time_s - 10_000 for d in bench.log if d.verdict.rule == "loader-in-main-process"]
    assert named[0] <= 45
    assert len(named) == sum(d.time_s - 10_000 >= named[0] for d in bench.log)  # never lost again


def test_a_healthy_job_has_one_verdict_for_five_minutes():
    bench = Bench(engine(STARVED, IN_MAIN))
    bench.run(Scene(jitter=0.3), 300)
    assert all(not d.findings for d in bench.log)
    late = {d.verdict.headline for d in bench.log if d.time_s - 10_000 > 31}
    assert late == {"nothing outside the model slows this GPU"}


def test_heat_on_one_card_of_several_ranks_is_the_verdict():
    hot = {"clock": lambda t: 1400.0, "reasons": 0x20}
    gpus = [
        Gpu(uuid=f"GPU-{i}", index=i, pids=((100 + i, 20 * GIB),), **(hot if i == 2 else {}))
        for i in range(4)
    ]
    processes = [Process(100 + i, parent_pid=50, command=f"python t.py --rank {i}") for i in range(4)]
    heat = rule("thermal-throttle", when(lambda w: w.reading.index == 2, fires(0.25)))
    bench = Bench(engine(STARVED, heat))
    bench.run(Scene(gpus, processes), 60)
    verdict = bench.log[-1].verdict
    assert (verdict.layer, verdict.headline) == (Layer.HARDWARE, "GPU 2 loses 25 % of its speed")


def test_an_ended_finding_does_not_hold_the_verdict_for_ever():
    bench = Bench(engine(rule("disk", when(between(0, 60), fires(0.4)))))
    bench.run(Scene([Gpu(util=0.6)]), 120)
    changes = [d.time_s - 10_000 for d in bench.log if d.verdict.rule is None and d.time_s > 10_045]
    assert changes[0] == pytest.approx(90, abs=2)


def test_work_without_a_listed_process_is_not_told_to_start_training():
    working = gpu([], [], state=JobState.NO_JOB)  # busy all the time
    assert verdict_of(working).headline == "the GPU works, but no process is listed"
    resting = gpu([(LedgerKey.IDLE, 0.95, None)], [], state=JobState.NO_JOB)
    assert verdict_of(resting).headline == "no job on the GPU"
