"""The layout is a rule: a file imports only from lower floors, and stages never import each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "whichsense"

# Read from the picture in docs/architecture.md, so that picture and rule cannot differ.
FLOOR_LINE = re.compile(
    r"^  (?P<names>[\w./ ]+?)\s+(?P<floor>\d)\s{2,}\S", re.MULTILINE
)
HEAVY = {"torch", "transformers", "onnxruntime", "onnx", "safetensors"}


def floors() -> dict[str, int]:
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = {}
    for line in FLOOR_LINE.finditer(picture):
        for name in line["names"].split():
            table[name.removesuffix("/").removesuffix(".py")] = int(line["floor"])
    return table


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def unit(path: Path) -> str:
    """The room a file stands in: its top-level module or package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms_used(path: Path) -> set[str]:
    table = floors()
    parts = (
        name.split(".") for name in imported(path) if name.startswith("whichsense.")
    )
    return {part[1] for part in parts if part[1] in table}


def test_every_room_has_a_floor() -> None:
    assert {unit(path) for path in modules()} - set(floors()) == set()


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_imports_point_down(path: Path) -> None:
    table, own = floors(), unit(path)
    upward = {room for room in rooms_used(path) - {own} if table[room] > table[own]}
    sideways = {
        room
        for room in rooms_used(path) - {own}
        if table[room] == table[own] and table[own] >= 3
    }
    assert not upward, f"{own} (floor {table[own]}) imports from above: {upward}"
    assert not sideways, f"{own} imports a neighbour: {sideways}"


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_model_runtimes_live_in_models(path: Path) -> None:
    required = re.findall(r'require\("(\w+)', path.read_text(encoding="utf-8"))
    used = {name.split(".")[0] for name in (*imported(path), *required)} & HEAVY
    assert not used or unit(path) in {"models", "train"}, f"{path.name} imports {used}"


def test_a_number_of_the_compact_model_is_said_once() -> None:
    """By what trains it, what writes it out and what runs it, which imports no torch for it."""
    said = []
    for path in (SOURCE / "models" / "compact").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                said += [
                    one.id
                    for one in node.targets
                    if isinstance(one, ast.Name) and not one.id.startswith("_")
                ]
    assert "FORMAT" in said and len(set(said)) == len(said)
    code = "import sys; from whichsense.models.compact import export, loading, resolving; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not set(loaded) & HEAVY


def test_public_face_is_exact() -> None:
    import whichsense

    assert len(whichsense.__all__) <= 15
    for name in whichsense.__all__:
        assert getattr(whichsense, name) is not None


def test_import_is_light() -> None:
    """`import whichsense` costs little more than Python itself, and pulls in nothing heavy."""
    code = (
        "import sys, time; t = time.perf_counter(); import json, argparse, dataclasses, logging;"
        "base = time.perf_counter() - t; t = time.perf_counter(); import whichsense;"
        "ours = time.perf_counter() - t; print(base, ours, *sys.modules)"
    )
    ratios, loaded = [], set()
    for _ in range(3):  # the best of three: other work on the machine must not decide
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        ratios.append(float(out[1]) / float(out[0]))
        loaded = set(out[2:])
    assert not loaded & {
        "torch",
        "transformers",
        "numpy",
        "tantivy",
        "rich",
        "onnxruntime",
    }
    assert min(ratios) < 5, (
        f"import whichsense takes {min(ratios):.1f} times as long as four standard modules"
    )


def test_the_model_begins_to_load_before_the_index_is_imported() -> None:
    """`whichsense ask` answers sooner for it."""
    code = (
        "import sys; from pathlib import Path; from whichsense.cli.ask import _begun;"
        "model = _begun(Path('none'), 1, 2); print(*sys.modules);"
        "from whichsense import compact; assert compact.load(model=model).reader.compact.parts is model.parts"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "whichsense.models.compact.scene" in loaded
    assert not set(loaded) & {"whichsense.compact", "whichsense.index", "tantivy"}


def test_the_command_ends_without_looking_for_cycles() -> None:
    """What was registered first is called last."""
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0));"
        "from whichsense.cli import main; main(['--version'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines()[-1] == "True"
