"""The rules of the house, checked on the source: who may import whom, and what a name may do."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gpuwatch"


@dataclass(frozen=True)
class Module:
    name: str  # "gpuwatch.sources.nvml.poller"
    imports: frozenset[str]  # dotted names, with what "from x import y" takes appended
    strings: tuple[str, ...]
    only_for_types: frozenset[str]


def _imported(node: ast.AST, name: str, is_package: bool) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()
    base = node.module or ""
    if node.level:
        parts = name.split(".") if is_package else name.split(".")[:-1]
        parts = parts[: len(parts) - node.level + 1]
        base = ".".join([*parts, base] if base else parts)
    return {f"{base}.{alias.name}" for alias in node.names}


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE.parent).with_suffix("")
        is_package = relative.name == "__init__"
        parts = relative.parts[:-1] if is_package else relative.parts
        name = ".".join(parts)
        tree = ast.parse(path.read_text("utf-8"))
        typed = {
            imported
            for branch in ast.walk(tree)
            if isinstance(branch, ast.If) and _is_type_checking(branch.test)
            for statement in branch.body
            for imported in _imported(statement, name, is_package)
        }
        imports = {imported for node in ast.walk(tree) for imported in _imported(node, name, is_package)}
        strings = tuple(
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        found.append(Module(name, frozenset(imports), strings, frozenset(typed)))
    return tuple(found)


def inside(name: str, *rooms: str) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def room(name: str) -> str:
    """`gpuwatch.views.spark` is in `gpuwatch.views`."""
    return ".".join(name.split(".")[:2])


def importers(*packages: str) -> set[str]:
    return {m.name for m in modules() if any(inside(imported, *packages) for imported in m.imports)}


def test_the_checks_see_the_package():
    assert {"gpuwatch.model.sample", "gpuwatch.history.ring", "gpuwatch.cli.main"} <= {
        m.name for m in modules()
    }
    assert "gpuwatch.history.ring" in importers("gpuwatch.metrics")


def test_only_the_driver_rooms_import_pynvml():
    rooms = ("gpuwatch.sources.nvml", "gpuwatch.sources.simulated")
    assert [name for name in importers("pynvml") if not inside(name, *rooms)] == []


def test_only_the_screen_imports_textual():
    assert [name for name in importers("textual") if not inside(name, "gpuwatch.tui")] == []


def test_psutil_has_one_place():
    assert len(importers("psutil")) <= 1
    assert all(inside(name, "gpuwatch.sources") for name in importers("psutil"))


#: What each room may know of the package; itself always. Design, section 3.
MAY_KNOW: dict[str, tuple[str, ...]] = {
    "gpuwatch.model": (),
    "gpuwatch.clean": (),
    "gpuwatch.language": (),
    "gpuwatch.metrics": ("model",),
    "gpuwatch.history": ("model", "metrics"),
    "gpuwatch.diagnosis": ("model", "metrics", "history", "clean", "language"),
    "gpuwatch.sources": ("model", "metrics", "clean"),
    "gpuwatch.sampler": ("model", "sources"),
    "gpuwatch.state": ("model", "history"),
    "gpuwatch.session": ("model", "metrics", "history", "diagnosis", "state"),
    "gpuwatch.views": ("model", "metrics", "history", "state", "clean", "language"),
    "gpuwatch.report": ("model", "metrics", "history", "state", "clean", "views", "session"),
    "gpuwatch.scoring": ("model", "session", "state", "diagnosis", "clean"),
    "gpuwatch.tui": (
        "model",
        "metrics",
        "history",
        "state",
        "clean",
        "views",
        "report",
        "session",
        "sampler",
    ),
}


@pytest.mark.parametrize("name", MAY_KNOW)
def test_a_room_knows_only_what_it_may(name):
    allowed = [f"gpuwatch.{other}" for other in MAY_KNOW[name]] + [name, "gpuwatch.__version__"]
    wrong = {
        (module.name, imported)
        for module in modules()
        if room(module.name) == name
        for imported in module.imports - module.only_for_types
        if inside(imported, "gpuwatch") and not inside(imported, *allowed)
    }
    assert wrong == set()


def test_every_room_has_a_line_in_that_table():
    rooms = {room(module.name) for module in modules()} - {"gpuwatch"}
    assert rooms - set(MAY_KNOW) - {"gpuwatch.cli", "gpuwatch.__main__"} == set()


CLOCKS_AND_IO = ("time", "os", "io", "datetime", "pathlib", "subprocess", "socket", "threading", "select")


@pytest.mark.parametrize(
    "name", ["gpuwatch.model", "gpuwatch.metrics", "gpuwatch.history", "gpuwatch.diagnosis", "gpuwatch.views"]
)
def test_pure_rooms_have_no_clock_and_no_io(name):
    wrong = {
        (module.name, imported)
        for module in modules()
        if room(module.name) == name
        for imported in module.imports
        if inside(imported, *CLOCKS_AND_IO)
    }
    assert wrong == set()


def test_only_sources_name_files_of_the_kernel():
    wrong = {
        (module.name, string)
        for module in modules()
        if not inside(module.name, "gpuwatch.sources")
        for string in module.strings
        if string.startswith(("/proc/", "/sys/"))
    }
    assert wrong == set()


def test_only_the_command_line_wires_live_and_simulated_sources():
    live = ("gpuwatch.sources.live", "gpuwatch.sources.simulated")
    wrong = [name for name in importers(*live) if not inside(name, "gpuwatch.cli", *live)]
    assert wrong == []


@pytest.mark.parametrize("word", ["is_simulated", "is_live", "is_replay", "simulated: "])
def test_nobody_asks_where_data_come_from(word):
    rooms = (
        "gpuwatch.diagnosis",
        "gpuwatch.views",
        "gpuwatch.history",
        "gpuwatch.session",
        "gpuwatch.metrics",
    )
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if inside(name, *rooms):
            assert word not in path.read_text("utf-8"), name


def test_no_file_is_longer_than_one_sitting():
    longest = {
        str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in longest.items() if lines > 400} == {}


def loaded_after(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter that ran `code`."""
    script = f"{code}\nimport sys\nprint(*sorted(set(name.partition('.')[0] for name in sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        check=True,
        timeout=60,
    )
    return set(result.stdout.split())


HEAVY = {"textual", "rich", "plotext", "pynvml", "psutil", "numpy", "asyncio"}


def test_the_command_line_alone_is_light():
    assert loaded_after("import gpuwatch.cli.main") & HEAVY == set()


def test_sampling_and_diagnosis_need_no_screen():
    code = "import gpuwatch.sources.live, gpuwatch.sampler, gpuwatch.session, gpuwatch.report.snapshot"
    assert loaded_after(code) & (HEAVY - {"pynvml"}) == set()
