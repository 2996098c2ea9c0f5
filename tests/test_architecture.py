"""The layout is a rule: a file imports only from lower floors, and stages never import each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "whichsense"

# Read from the picture in docs/architecture.md, so that picture and rule cannot differ.
FLOOR_LINE = re.compile(r"^  (?P<names>[\w./ ]+?)\s+(?P<floor>\d+)\s{2,}\S", re.MULTILINE)
HEAVY = {"torch", "transformers", "onnxruntime", "onnx", "safetensors", "openai"}


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
    """The room of a file: its top-level module or package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    """The dotted name below `whichsense`; a package's own file has the package's name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in modules()}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_imports(path: Path) -> set[str]:
    """Our modules that a file imports. A name that is no module counts as its package:
    `from whichsense import Index` is an import of the face."""
    own = set()
    for name in imported(path):
        if name.split(".")[0] != "whichsense":
            continue
        if name == "whichsense.__version__":  # the one name that is always there
            continue
        below = name.removeprefix("whichsense").lstrip(".")
        own.add(below if below in MODULES else below.rpartition(".")[0])
    return own


def rooms_used(path: Path) -> set[str]:
    return {name.split(".")[0] or "__init__" for name in own_imports(path)}


def test_every_room_has_a_floor() -> None:
    assert {unit(path) for path in modules()} == set(floors())


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    table, own = floors(), unit(path)
    others = rooms_used(path) - {own}
    upward = {room for room in others if table[room] > table[own]}
    sideways = {room for room in others if table[room] == table[own] >= 3}
    assert not upward, f"{own} (floor {table[own]}) imports from above: {upward}"
    assert not sideways, f"{own} imports a neighbour: {sideways}"


def test_stages_do_not_import_each_other() -> None:
    stages = {name for name in MODULES if name.startswith("stages.")} - {"stages.providers"}
    for stage in stages:
        assert not (own_imports(MODULES[stage]) & stages), f"{stage} imports a stage"


def test_nothing_that_answers_imports_the_laboratory() -> None:
    for path in modules():
        if unit(path) not in {"lab", "studio", "cli", "__init__"}:
            used = {name for name in own_imports(path) if name.startswith("lab")}
            assert not used, f"{module_name(path)} imports {used}"


def folders() -> list[str]:
    """Every package, as a dotted name; the top one is empty."""
    return sorted(name for name in MODULES if MODULES[name].name == "__init__.py")


def inside(folder: str) -> dict[str, set[str]]:
    """What imports what among a folder's direct children, files and folders alike."""
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        child = child_of(name, folder)
        if child is not None:
            used = {child_of(other, folder) for other in own_imports(path)}
            graph.setdefault(child, set()).update(used - {None, child})
    return graph


def child_of(name: str, folder: str) -> str | None:
    if name == folder:
        return "__init__"
    prefix = f"{folder}." if folder else ""
    return name.removeprefix(prefix).split(".")[0] if name.startswith(prefix) else None


@pytest.mark.parametrize("folder", folders())
def test_no_import_circles(folder: str) -> None:
    """Children without an import of another child are taken away until none is left."""
    graph = inside(folder)
    while free := [name for name, used in graph.items() if not used & set(graph)]:
        for name in free:
            del graph[name]
    assert not graph, f"these import each other in a circle: {graph}"


# What may only fall. A change that makes a figure smaller writes the smaller one here.
CEILINGS = {
    "modules": 234,
    "tokens of code": 437_000,
    "lines of the longest file": 768,
    "imports of paths with over four parts": 0,
    "basenames that repeat": 0,
    "functions over complexity 10": 0,
    "compiled regular expressions": 166,
    "modules that one question loads": 68,  # where the sample is indexed first
}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@cache
def nodes() -> tuple[ast.AST, ...]:
    """Every node of every module's syntax tree."""
    found: list[ast.AST] = []
    for path in modules():
        found += ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(found)


def count_modules() -> int:
    return len(modules())


def count_tokens() -> int:
    """Tokens that are neither comments nor layout. A docstring is one."""
    count = 0
    for path in modules():
        with path.open("rb") as file:
            tokens = tokenize.tokenize(file.readline)
            count += sum(token.type not in LAYOUT for token in tokens)
    return count


def longest_file() -> int:
    return max(len(path.read_text(encoding="utf-8").splitlines()) for path in modules())


def count_long_paths() -> int:
    """Imports from `whichsense.a.b.c.d` or deeper."""
    count = 0
    for node in nodes():
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            count += parts[0] == "whichsense" and len(parts) > 4
    return count


def count_repeated_basenames() -> int:
    names = Counter(path.stem for path in modules())
    return sum(count > 1 for name, count in names.items() if name != "__init__")


def count_complex_functions() -> int:
    """Functions over 10 by McCabe, where `and`, `or` and a condition in an expression count as well."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return sum(isinstance(node, functions) and complexity(node) > 10 for node in nodes())


def complexity(function: ast.AST) -> int:
    branches = (
        ast.If,
        ast.IfExp,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.ExceptHandler,
        ast.comprehension,
        ast.match_case,
    )
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, branches)
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += len(node.ifs)
    return count


def count_compiled_patterns() -> int:
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile" for node in nodes()
    )


def count_loaded_by_a_question() -> int:
    loaded = loaded_by(
        "import sys, whichsense; whichsense.load().ask('Who played the Joker?');print(*sys.modules)"
    )
    return sum(name.split(".")[0] == "whichsense" for name in loaded)


MEASURES = {
    "modules": count_modules,
    "tokens of code": count_tokens,
    "lines of the longest file": longest_file,
    "imports of paths with over four parts": count_long_paths,
    "basenames that repeat": count_repeated_basenames,
    "functions over complexity 10": count_complex_functions,
    "compiled regular expressions": count_compiled_patterns,
    "modules that one question loads": count_loaded_by_a_question,
}


@pytest.mark.parametrize("figure", CEILINGS)
def test_no_figure_rises(figure: str) -> None:
    measured = MEASURES[figure]()
    assert measured <= CEILINGS[figure], f"{figure}: {measured}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_model_runtimes_live_in_models(path: Path) -> None:
    required = re.findall(r'require\("(\w+)', path.read_text(encoding="utf-8"))
    used = {name.split(".")[0] for name in (*imported(path), *required)} & HEAVY
    homes = ("models.", *map("lab.{}.".format, ("train", "tasks", "compact", "fused")))
    name = module_name(path)
    is_home = f"{name}.".startswith(homes) or name == "lab.evaluation.metric_models"
    assert not used or is_home, f"{name} imports {used}"


def test_a_number_of_the_compact_model_is_said_once() -> None:
    """Training, export and runtime share each constant; the runtime loads no torch for it."""
    names = []
    for path in (SOURCE / "models" / "compact").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                targets = [one.id for one in node.targets if isinstance(one, ast.Name)]
                names += [name for name in targets if not name.startswith("_")]
    assert "FORMAT" in names and len(set(names)) == len(names)
    code = (
        "import sys; from whichsense.models.compact import export, export as loading;"
        "from whichsense.models.compact import rewriting as resolving; print(*sys.modules)"
    )
    assert not loaded_by(code) & HEAVY


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded, as its code prints them."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_public_face_is_exact() -> None:
    import whichsense

    assert len(whichsense.__all__) <= 16  # a service is asked like a pipeline: Client
    for name in whichsense.__all__:
        assert getattr(whichsense, name) is not None


def test_import_is_light() -> None:
    """`import whichsense` loads nothing of ours but the version, and nothing heavy."""
    loaded = loaded_by("import sys; import whichsense; print(*sys.modules)")
    own = {name for name in loaded if name.startswith("whichsense")}
    assert own == {"whichsense"}
    assert not loaded & {*HEAVY, "numpy", "tantivy", "rich", "click"}


def test_the_command_loads_no_index_before_the_model_begins_to_load() -> None:
    """`whichsense ask` answers sooner for it."""
    loaded = loaded_by(
        "import sys; from whichsense.cli.ask import command;"
        "from whichsense.models.compact.scene import Compact; print(*sys.modules)"
    )
    assert not loaded & {"whichsense.systems", "whichsense.index", "tantivy"}


def test_the_command_ends_without_looking_for_cycles() -> None:
    """What was registered first is called last."""
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0));"
        "from whichsense.cli import main; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
