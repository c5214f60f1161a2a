"""The GPU models a scenario can name. Plausible inventories after public data sheets, no authority."""

from dataclasses import dataclass

MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Model:
    """One board. Clocks in MHz, power in W, temperatures in °C; 0 or None: it has no such thing.

    `architecture`, `brand`, and `link_version` are NVML's numbers; `lines` are more scenario lines.
    """

    name: str
    architecture: int
    brand: int
    compute_capability: tuple[int, int]
    core_count: int
    sm_count: int
    memory_mib: int
    reserved_mib: int
    bus_bits: int
    bar1_mib: int
    memory_clocks: tuple[int, int]  # highest, idle
    sm_clocks: tuple[int, int, int, int]  # highest, boost, base, idle
    video_clock: int
    power: tuple[float, float, float, float]  # default limit (0: no limit API), lowest, highest, idle
    temperatures: tuple[int, int, int, int, int]  # shutdown, slowdown, GPU max, memory max, target
    idle_and_load_c: tuple[int, int]
    p_states: tuple[int, int]  # idle, load
    pci_ids: tuple[int, int]
    vbios: str
    pcie: tuple[int, int] = (4, 16)
    averages_power: bool = True  # the power reading is a mean over a second
    fan_count: int = 0
    ecc: bool | None = None  # None: not available
    mig: bool = False
    gpm: bool = False
    serial: bool = False
    memory_temperature: bool = False
    geforce: bool = False
    unified: bool = False
    remaps_rows: bool = False
    retires_pages: bool = False
    link_count: int = 0
    link_version: int = 0
    link_mb_per_s: int = 0
    links_up: bool = False
    part: str | None = None
    lines: str = ""

    def constants(self) -> dict[str, float]:
        """What expressions may ask about the model."""
        _, slowdown, gpu_max, _, _ = self.temperatures
        return {
            "p_default": self.power[0],
            "p_min": self.power[1],
            "p_max": self.power[2],
            "p_idle": self.power[3],
            "t_idle": self.idle_and_load_c[0],
            "t_load": self.idle_and_load_c[1],
            "t_slowdown": slowdown,
            "t_gpu_max": gpu_max,
            "sm_max": self.sm_clocks[0],
            "sm_boost": self.sm_clocks[1],
            "sm_base": self.sm_clocks[2],
            "sm_idle": self.sm_clocks[3],
            "mem_max": self.memory_clocks[0],
            "mem_idle": self.memory_clocks[1],
            "mem_total": self.memory_mib * MIB,
            "reserved": self.reserved_mib * MIB,
            "gen": self.pcie[0],
            "width": self.pcie[1],
            "links": self.link_count,
            "pstate_idle": self.p_states[0],
            "pstate_load": self.p_states[1],
        }


_NO_PCIE_BYTES = "pcie_counters = ERR:NOT_SUPPORTED\nfan_rpm = ERR:NOT_SUPPORTED\n"

MODELS = {
    "rtx3090": Model(
        name="NVIDIA GeForce RTX 3090",
        architecture=7,
        brand=5,
        compute_capability=(8, 6),
        core_count=10496,
        sm_count=82,
        memory_mib=24576,
        reserved_mib=315,
        bus_bits=384,
        bar1_mib=256,
        memory_clocks=(9751, 405),
        sm_clocks=(2100, 1815, 1395, 210),
        video_clock=1950,
        power=(350, 100, 366, 22),
        temperatures=(98, 95, 93, 0, 83),
        idle_and_load_c=(34, 74),
        p_states=(8, 2),
        pci_ids=(0x220410DE, 0x147D10DE),
        vbios="94.02.42.00.A9",
        fan_count=2,
        geforce=True,
        link_count=4,
        link_version=5,
        link_mb_per_s=14062,
    ),
    "rtx4090": Model(
        name="NVIDIA GeForce RTX 4090",
        architecture=8,
        brand=5,
        compute_capability=(8, 9),
        core_count=16384,
        sm_count=128,
        memory_mib=24564,
        reserved_mib=408,
        bus_bits=384,
        bar1_mib=32768,
        memory_clocks=(10501, 405),
        sm_clocks=(3105, 2640, 2235, 210),
        video_clock=2415,
        power=(450, 150, 600, 18),
        temperatures=(100, 97, 90, 0, 84),
        idle_and_load_c=(33, 68),
        p_states=(8, 2),
        pci_ids=(0x268410DE, 0x167C10DE),
        vbios="95.02.18.80.5F",
        fan_count=2,
        ecc=False,
        geforce=True,
    ),
    "a100-sxm4-80gb": Model(
        name="NVIDIA A100-SXM4-80GB",
        architecture=7,
        brand=14,
        compute_capability=(8, 0),
        core_count=6912,
        sm_count=108,
        memory_mib=81920,
        reserved_mib=667,
        bus_bits=5120,
        bar1_mib=131072,
        memory_clocks=(1593, 1593),
        sm_clocks=(1410, 1410, 1275, 210),
        video_clock=1290,
        power=(400, 100, 400, 61),
        temperatures=(92, 89, 85, 95, 0),
        idle_and_load_c=(31, 62),
        p_states=(0, 0),
        pci_ids=(0x20B210DE, 0x147F10DE),
        vbios="92.00.45.00.05",
        averages_power=False,
        ecc=True,
        mig=True,
        serial=True,
        memory_temperature=True,
        remaps_rows=True,
        link_count=12,
        link_version=4,
        link_mb_per_s=25781,
        links_up=True,
        part="692-2G506-0212-002",
    ),
    "h100-sxm": Model(
        name="NVIDIA H100 80GB HBM3",
        architecture=9,
        brand=14,
        compute_capability=(9, 0),
        core_count=16896,
        sm_count=132,
        memory_mib=81559,
        reserved_mib=606,
        bus_bits=5120,
        bar1_mib=131072,
        memory_clocks=(2619, 2619),
        sm_clocks=(1980, 1755, 1590, 345),
        video_clock=1545,
        power=(700, 200, 700, 71),
        temperatures=(95, 92, 87, 95, 0),
        idle_and_load_c=(28, 61),
        p_states=(0, 0),
        pci_ids=(0x233010DE, 0x16C110DE),
        vbios="96.00.74.00.0D",
        pcie=(5, 16),
        ecc=True,
        mig=True,
        gpm=True,
        serial=True,
        memory_temperature=True,
        remaps_rows=True,
        link_count=18,
        link_version=6,
        link_mb_per_s=26562,
        links_up=True,
        part="692-2G520-0200-000",
    ),
    "h200": Model(
        name="NVIDIA H200",
        architecture=9,
        brand=14,
        compute_capability=(9, 0),
        core_count=16896,
        sm_count=132,
        memory_mib=143771,
        reserved_mib=620,
        bus_bits=6144,
        bar1_mib=262144,
        memory_clocks=(3201, 3201),
        sm_clocks=(1980, 1755, 1590, 345),
        video_clock=1545,
        power=(700, 200, 700, 76),
        temperatures=(95, 92, 87, 95, 0),
        idle_and_load_c=(29, 63),
        p_states=(0, 0),
        pci_ids=(0x233510DE, 0x18BE10DE),
        vbios="96.00.A9.00.01",
        pcie=(5, 16),
        ecc=True,
        mig=True,
        gpm=True,
        serial=True,
        memory_temperature=True,
        remaps_rows=True,
        link_count=18,
        link_version=6,
        link_mb_per_s=26562,
        links_up=True,
        part="692-2G520-0235-000",
    ),
    "t4": Model(
        name="Tesla T4",
        architecture=6,
        brand=14,
        compute_capability=(7, 5),
        core_count=2560,
        sm_count=40,
        memory_mib=15360,
        reserved_mib=451,
        bus_bits=256,
        bar1_mib=256,
        memory_clocks=(5001, 405),
        sm_clocks=(1590, 1350, 585, 300),
        video_clock=1470,
        power=(70, 60, 70, 10),
        temperatures=(96, 93, 85, 0, 0),
        idle_and_load_c=(38, 72),
        p_states=(8, 0),
        pci_ids=(0x1EB810DE, 0x12A210DE),
        vbios="90.04.84.00.06",
        pcie=(3, 16),
        averages_power=False,
        ecc=True,
        serial=True,
        retires_pages=True,
        part="900-2G183-0000-001",
    ),
    "rtx4060-laptop": Model(
        name="NVIDIA GeForce RTX 4060 Laptop GPU",
        architecture=8,
        brand=5,
        compute_capability=(8, 9),
        core_count=3072,
        sm_count=24,
        memory_mib=8188,
        reserved_mib=215,
        bus_bits=128,
        bar1_mib=8192,
        memory_clocks=(8001, 405),
        sm_clocks=(3105, 2250, 1545, 210),
        video_clock=2415,
        power=(0, 0, 0, 4),
        temperatures=(105, 102, 105, 0, 87),
        idle_and_load_c=(42, 78),
        p_states=(8, 0),
        pci_ids=(0x28E010DE, 0x14541043),
        vbios="95.07.37.00.8D",
        pcie=(4, 8),
        geforce=True,
        lines="power = p_idle + 92*util/100 + noise(0.8)\nenergy = ERR:NOT_SUPPORTED\n"
        "violation = ERR:NOT_SUPPORTED\n" + _NO_PCIE_BYTES,
    ),
    "gb10": Model(
        name="NVIDIA GB10",
        architecture=10,
        brand=14,
        compute_capability=(12, 1),
        core_count=6144,
        sm_count=48,
        memory_mib=0,
        reserved_mib=0,
        bus_bits=0,
        bar1_mib=0,
        memory_clocks=(0, 0),
        sm_clocks=(3003, 2405, 2405, 208),
        video_clock=2184,
        power=(0, 0, 0, 4),
        temperatures=(0, 0, 0, 0, 0),
        idle_and_load_c=(38, 71),
        p_states=(8, 0),
        pci_ids=(0x2E1210DE, 0x000010DE),
        vbios="9A.0B.10.00.00",
        pcie=(5, 1),
        unified=True,
        lines="power = p_idle + 80*util/100 + noise(0.5)\nmem_used = ERR:NOT_SUPPORTED\n"
        "bar1_used = ERR:NOT_SUPPORTED\nclock_mem = ERR:NOT_SUPPORTED\npcie_tx = ERR:NOT_SUPPORTED\n"
        "pcie_rx = ERR:NOT_SUPPORTED\npcie_replay = ERR:NOT_SUPPORTED\n" + _NO_PCIE_BYTES,
    ),
}
ALIASES = {
    "3090": "rtx3090",
    "4090": "rtx4090",
    "a100": "a100-sxm4-80gb",
    "h100": "h100-sxm",
    "laptop": "rtx4060-laptop",
    "unified": "gb10",
}
