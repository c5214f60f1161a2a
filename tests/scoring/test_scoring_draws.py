"""Draws: within their spread, the same for a seed, and the scenario stays what it is."""

from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.scoring.draws import factors
from gpuwatch.sources.simulated.parse import parse_scenario
from gpuwatch.sources.simulated.settings import Reader
from gpuwatch.sources.simulated.truth import idle_ratios
from gpuwatch.sources.simulated.vary import DUTY_MAX, DUTY_MIN, varied, without_samples
from gpuwatch.sources.simulated.waveforms import Compiler, Noise

TEXT = """gpus = rtx3090
util = square(0, 90, period=2, duty=0.5) + noise(0)
[proc]
pid = 4242
gpu = 0
mem = 8Gi
#host cores = 16
#host W = 4
#host w.cpu = 0.9
"""


@given(st.integers(1, 10**6), st.floats(0.01, 0.5))
def test_factors_stay_within_their_spread_and_come_again(seed, spread):
    found = factors("case", seed, {"period": spread, "duty": spread})
    assert all(1 - spread - 1e-9 <= factor <= 1 + spread + 1e-9 for factor in found.values())
    more = factors("case", seed, {"cores": spread, "period": spread, "duty": spread})
    assert found == {name: more[name] for name in found}
    assert factors("case", seed, {"period": spread})["period"] == found["period"]


def test_seed_0_is_the_file_as_written():
    assert factors("case", 0, {"period": 0.3}) == {}


@given(st.floats(0.3, 3.0))
def test_duty_sets_how_long_the_gpu_idles(factor):
    scenario = varied(parse_scenario(TEXT), {"duty": factor})
    duty = min(DUTY_MAX, max(DUTY_MIN, 0.5 * factor))
    assert abs(idle_ratios(scenario, 0.0, 20.0)[0] - (1 - duty)) < 0.03


def test_counts_stay_whole_and_a_core_is_not_overdrawn():
    scenario = varied(parse_scenario(TEXT), {"cores": 1.23, "w.cpu": 1.3, "W": 0.1})
    host, job = scenario.host, scenario.processes[0].host
    compiler = Compiler(seed=1, noise=Noise(1))
    # In a [proc] section the settings of the job are the process' own, those of the machine are not.
    assert Reader(host.machine, compiler).number("cores", "0") == 20
    assert Reader(job, compiler).number("W", "0") == 1
    assert Reader(job, compiler).number("w.cpu", "0") == 1.0


def test_without_samples_only_that_call_fails():
    assert set(without_samples(parse_scenario(TEXT)).call_faults) == {"nvmlDeviceGetSamples"}
