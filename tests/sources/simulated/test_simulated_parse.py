"""Scenario files: sections, faults, processes, host lines, and mistakes with file and line."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.sources.simulated import Scenario, ScenarioError, load
from gpuwatch.sources.simulated.language import METRICS, Number
from gpuwatch.sources.simulated.parse import parse_scenario
from gpuwatch.sources.simulated.scenario import COMPUTE, GRAPHICS, MPS


def test_models_and_counts() -> None:
    found = parse_scenario("gpus = 2 x t4, h200, 3090")
    assert [gpu.model.name for gpu in found.gpus] == [
        "Tesla T4",
        "Tesla T4",
        "NVIDIA H200",
        "NVIDIA GeForce RTX 3090",
    ]
    assert parse_scenario("gpus = none").gpus == []


def test_sections_choose_gpus() -> None:
    text = "gpus = 4 x a100\nutil = 1\n[gpu 1,3]\nutil = 2\n[all]\ntemp = 5\n[gpu 0-1]\nfan = 9\n"
    gpus = parse_scenario(text).gpus
    assert [gpu.metrics["util"].wave for gpu in gpus] == [Number(1), Number(2), Number(1), Number(2)]
    assert all(gpu.metrics["temp"].wave == Number(5) for gpu in gpus)
    assert [gpu.metrics["fan"].wave == Number(9) for gpu in gpus] == [True, True, False, False]


def test_faults_with_spans_and_probability() -> None:
    text = "gpus = rtx3090\ntemp = 70 ; ERR:NO_PERMISSION@15..25 ; delay=300ms@30%50\npower = hang@5\n"
    metrics = parse_scenario(text).gpus[0].metrics
    error, delay = metrics["temp"].faults
    assert (error.error, error.start_s, error.end_s) == (4, 15, 25)
    assert (delay.delay_s, delay.start_s, delay.end_s, delay.probability) == (0.3, 30, math.inf, 0.5)
    assert metrics["power"].faults[0].delay_s > 600
    assert metrics["power"].wave != Number(0)  # a fault alone keeps the wave


def test_a_bare_delay_is_milliseconds() -> None:
    found = parse_scenario("gpus = rtx3090\ncall.nvmlDeviceGetFanSpeed = delay=5 ; ERR:UNKNOWN\n")
    delay, error = found.call_faults["nvmlDeviceGetFanSpeed"]
    assert delay.delay_s == pytest.approx(0.005)
    assert error.always


def test_processes() -> None:
    text = (
        "gpus = 2 x h100\n[proc]\npid = gpu + 4101\ngpu = *\nmem = 40Gi\ntype = C+G\nstart = 5\n"
        "[proc]\npid = 77\nmem = na\ntype = MPS\ngi = 2\nsm = 30\n"
    )
    first, second = parse_scenario(text).processes
    assert (first.gpus, first.kinds, first.start_s) == ({0, 1}, COMPUTE | GRAPHICS, 5)
    assert (second.pid, second.memory, second.kinds, second.gpu_instance) == (77, None, MPS, 2)


def test_globals_and_identity() -> None:
    text = (
        "gpus = a100\nseed = 7\ndriver = 535.54\ncuda = 12.2\npcie_counter_bits = 32\n"
        "util_sample_ms = 200\nname = My card\nbus_id = 00000001:0B:00.0\nxid = 31:13, 20:79\n"
        "mig = 3g.40gb, 1g.10gb\n"
    )
    found = parse_scenario(text)
    gpu = found.gpus[0]
    assert (found.seed, found.driver, found.nvml, found.cuda) == (7, "535.54", "12.535.54", 12020)
    assert (found.pcie_counter_bits, found.util_sample_s) == (32, 0.2)
    assert (gpu.name, gpu.pci, gpu.xids) == ("My card", (1, 0x0B), [(20.0, 79), (31.0, 13)])
    assert gpu.mig is not None
    assert [(part.profile, part.gpu_instance) for part in gpu.mig] == [("3g.40gb", 1), ("1g.10gb", 2)]


def test_host_lines_go_where_they_stand() -> None:
    text = (
        "gpus = 2 x rtx3090\n#host cores = 32\n#host W = 4\n[gpu 1]\n#host W = 0\n[proc]\npid = 9\n"
        "#host main.cpu = if(util < 50, 0.9, 1)\n#host others.cpu = 3\n#host [process]\n#host name = ffmpeg\n"
        "#host cpu = 2\n"
    )
    found = parse_scenario(text)
    assert found.host.machine["cores"] == Number(32)
    assert found.host.jobs[0]["W"] == Number(4)
    assert found.host.jobs[1]["W"] == Number(0)
    assert set(found.processes[0].host) == {"main.cpu"}
    assert "others.cpu" in found.host.machine
    assert found.host.processes == [{"name": "ffmpeg", "cpu": Number(2)}]


def test_description_and_truth() -> None:
    found = parse_scenario("# One sentence.\n# Another line.\n#truth period_s = 1.4\ngpus = t4\n# later\n")
    assert found.description == "One sentence."
    assert found.truth == {"period_s": "1.4"}


def test_includes_are_found_beside_the_file(tmp_path) -> None:
    (tmp_path / "common.inc").write_text("util = 50\n")
    (tmp_path / "main.scn").write_text("gpus = t4\ninclude = common.inc\n")
    found = load(str(tmp_path / "main.scn"))
    assert found.name == "main"
    assert found.gpus[0].metrics["util"].wave == Number(50)


def test_a_mistake_in_an_include_names_that_file(tmp_path) -> None:
    (tmp_path / "common.inc").write_text("\nutil = bogus\n")
    (tmp_path / "main.scn").write_text("gpus = t4\ninclude = common.inc\n")
    with pytest.raises(ScenarioError) as raised:
        load(str(tmp_path / "main.scn"))
    assert raised.value.file.endswith("common.inc")
    assert raised.value.line == 2


def test_includes_that_never_end(tmp_path) -> None:
    (tmp_path / "main.scn").write_text("include = main.scn\n")
    with pytest.raises(ScenarioError, match="nest too deep"):
        load(str(tmp_path / "main.scn"))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("util = 3", 1, 'comes before "gpus'),
        ("gpus = rtx9999", 1, 'unknown model "rtx9999" (known: rtx3090'),
        ("gpus = t4\n\nutil 3", 3, "expected name = value"),
        ("gpus = t4\nbogus = 3", 2, 'unknown setting "bogus"'),
        ("gpus = t4\nutil = 3 ; ERR:NONSENSE", 2, 'unknown error "NONSENSE"'),
        ("gpus = t4\n[gpu 3]", 2, "there is no GPU 3"),
        ("gpus = t4\n[gpu x]", 2, "bad GPU list"),
        ("gpus = t4\n[disk]", 2, "unknown section [disk]"),
        ("gpus = t4\n[proc", 2, "missing ]"),
        ("gpus = t4\n[proc]\ncolour = 3", 3, 'unknown process setting "colour"'),
        ("gpus = t4\nmig = 1g.10gb", 2, "has no MIG"),
        ("gpus = a100\nmig = huge", 2, "mig wants slices"),
        ("gpus = t4\nxid = soon", 2, "xid wants seconds:code"),
        ("gpus = t4\nbus_id = 3", 2, "bus_id wants"),
        ("gpus = t4\ncuda = new", 2, "cannot read"),
        ("gpus = t4\ninclude = nowhere.inc", 2, "cannot open"),
        ("gpus = t4\n#host colour = 3", 2, 'unknown host setting "colour"'),
        ("gpus = t4\n#host W", 2, "expected name = value"),
        ("gpus = t4\n#host [disk]", 2, "unknown section [disk] behind #host"),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(text, "my.scn")
    assert str(raised.value).startswith(f"my.scn:{line}: ")
    assert reason in str(raised.value)


WORDS = st.sampled_from(
    ["gpus", "util", "[proc]", "[gpu 0]", "pid", "mem", "#host W", "#truth a", "seed", "xid"]
)
LINES = st.tuples(WORDS | st.text(max_size=8), st.sampled_from([" = ", "=", " "]), st.text(max_size=16))


@given(st.lists(LINES.map("".join), max_size=6))
@settings(max_examples=200)
def test_any_text_is_a_scenario_or_a_reason(lines: list[str]) -> None:
    try:
        found = parse_scenario("gpus = t4\n" + "\n".join(lines))
    except ScenarioError as error:
        found = error
    assert isinstance(found, Scenario) or (found.reason and found.line > 0)


def test_every_metric_has_a_default_on_every_model() -> None:
    for gpu in parse_scenario("gpus = rtx3090, rtx4090, a100, h100, h200, t4, laptop, gb10").gpus:
        assert set(gpu.metrics) == set(METRICS)
