"""What a GPU does where its scenario says nothing: everything follows from `util`."""

from gpuwatch.sources.simulated.models import Model

_DEFAULTS = """
util = 0
mem_util = util*0.42
enc = 0
dec = 0
jpg = 0
ofa = 0
mem_reserved = reserved
mem_used = procs_mem
bar1_used = 5Mi
temp = t_idle + (t_load - t_idle)*lag(util, 12)/100 + noise(0.4)
mem_temp = temp + 6
hotspot = ERR:NOT_SUPPORTED
fan = clamp((temp - 42)*1.9, 0, 100)
fan_rpm = fan*33
power_limit = p_default
power = min(p_idle + (p_default*0.94 - p_idle)*util/100 + noise(2), power_limit)
energy = 0
violation = 0
clock_sm = if(avg(util, 4) > 0.5, sm_boost + noise(8), sm_idle)
clock_mem = if(avg(util, 4) > 0.5, mem_max, mem_idle)
clock_video = clock_sm*0.88
pstate = if(avg(util, 4) > 0.5, pstate_load, pstate_idle)
throttle = if(avg(util, 1) > 0.5, if(power >= power_limit*0.99, sw_power_cap, 0), idle)
pcie_tx = util*1.4M
pcie_rx = util*3.2M
pcie_counters = 0
pcie_gen = if(pstate > 5, 1, pcie_gen_max)
pcie_gen_max = gen
pcie_width = width
pcie_width_max = width
pcie_replay = 0
nvlink = links
nvlink_tx = 0
nvlink_rx = 0
nvlink_crc = 0
nvlink_replay = 0
nvlink_recovery = 0
ecc_mode = on
ecc_corr = 0
ecc_uncorr = 0
ecc_corr_agg = ecc_corr
ecc_uncorr_agg = ecc_uncorr
retired_sbe = 0
retired_dbe = 0
retired_pending = 0
remap_corr = 0
remap_uncorr = 0
remap_pending = 0
remap_failure = 0
gpm = 0
sm_active = util*0.86
sm_occupancy = util*0.38
tensor = util*0.47
dram = mem_util*1.1
fp64 = 0
fp32 = util*0.16
fp16 = util*0.04
integer = util*0.21
persistence = off
compute_mode = 0
display_active = off
display_mode = off
power_source = 0
procs = 0
proc_util = 0
samples = 0
fields = 0
telemetry = 0
device = 0
"""


def default_lines(model: Model) -> str:
    """What every GPU of a model does where the scenario says nothing: it follows from `util`."""
    lines = [_DEFAULTS]

    def unsupported(*metrics: str) -> None:
        lines.extend(f"{metric} = ERR:NOT_SUPPORTED" for metric in metrics)

    if not model.fan_count:
        unsupported("fan", "fan_rpm")
    if not model.memory_temperature:
        unsupported("mem_temp")
    if model.power[0] <= 0:
        unsupported("power_limit")
        lines.append("throttle = if(avg(util, 1) > 0.5, 0, idle)")
    if not model.gpm:
        unsupported("gpm")
    if model.ecc is None:
        unsupported("ecc_mode")
    elif not model.ecc:
        lines.append("ecc_mode = off")
    if not model.remaps_rows:
        unsupported("remap_corr", "remap_uncorr", "remap_pending", "remap_failure")
    if not model.retires_pages:
        unsupported("retired_sbe", "retired_dbe", "retired_pending")
    if not model.links_up:
        lines.append("nvlink = 0")
    if not model.geforce and not model.unified:
        lines.append("persistence = on")
    return "\n".join([*lines, model.lines])
