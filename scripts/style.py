"""Size and density of Python packages, counted from their syntax trees and tokens.

    python scripts/style.py src/whichsense [PACKAGE_DIR …]

prints one table with a column for each package.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Tokens that are layout, not code.
_LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LONG_FILE = 300  # lines
_FULL_FOLDER = 14  # files


@dataclass
class Counts:
    """What is counted in the files of a package."""

    file_lines: list[int] = field(default_factory=list)
    function_lines: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    """Tokens in each line of code; docstrings and comments are not code."""
    folders: Counter[Path] = field(default_factory=Counter)
    comprehensions: int = 0
    ternaries: int = 0
    comments: int = 0
    public_names: int = 0
    public_functions: int = 0
    documented: int = 0
    typed: int = 0

    def add_file(self, path: Path) -> None:
        """Count one file."""
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        self.file_lines.append(len(text.splitlines()))
        self.folders[path.parent] += 1
        self._add_tokens(text, _string_lines(tree))
        for node in ast.walk(tree):
            if isinstance(node, _COMPREHENSIONS):
                self.comprehensions += 1
            elif isinstance(node, ast.IfExp):
                self.ternaries += 1
            elif isinstance(node, _FUNCTIONS):
                self._add_function(node)
        for name in _assigned_names(tree):
            self.public_names += not name.startswith("_")

    def _add_tokens(self, text: str, string_lines: set[int]) -> None:
        by_line: Counter[int] = Counter()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                self.comments += 1
            if token.type not in _LAYOUT and line not in string_lines:
                by_line[line] += 1
        self.tokens += by_line.values()

    def _add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        end = node.end_lineno or node.lineno
        self.function_lines.append(end - node.lineno + 1)
        self.typed += node.returns is not None
        if not node.name.startswith("_"):
            self.public_functions += 1
            self.documented += ast.get_docstring(node) is not None

    def rows(self) -> Iterator[tuple[str, str]]:
        """Each measure with its value, as the table shows them."""
        lines = len(self.tokens)
        functions = len(self.function_lines)
        long_files = sum(size > _LONG_FILE for size in self.file_lines)
        full_folders = sum(size > _FULL_FOLDER for size in self.folders.values())
        yield "files", f"{len(self.file_lines)}"
        yield "lines", f"{sum(self.file_lines):,}"
        yield "lines of code", f"{lines:,}"
        yield "file: median / p90 / longest", _spread(self.file_lines)
        yield f"files over {_LONG_FILE} lines", f"{long_files}"
        yield f"folders over {_FULL_FOLDER} files", f"{full_folders}"
        yield "functions", f"{functions:,}"
        yield "function: median / p90 / longest", _spread(self.function_lines)
        yield "tokens in a line of code: mean", f"{_mean(self.tokens):.2f}"
        yield "tokens in a line of code: p90", f"{_quantile(self.tokens, 0.9)}"
        yield "comprehensions in 100 lines", _per_hundred(self.comprehensions, lines)
        yield "ternaries in 100 lines", _per_hundred(self.ternaries, lines)
        yield "comments in 100 lines", _per_hundred(self.comments, lines)
        yield "public names", f"{self.public_names:,}"
        documented = _per_hundred(self.documented, self.public_functions)
        yield "% of public functions documented", documented
        yield "% of functions typed", _per_hundred(self.typed, functions)


def count_package(root: Path) -> Counts:
    """Count every Python file under a folder."""
    counts = Counts()
    for path in sorted(root.rglob("*.py")):
        counts.add_file(path)
    if not counts.file_lines:
        raise SystemExit(f"No Python files in '{root}'. Name a package's folder.")
    return counts


def _string_lines(tree: ast.Module) -> set[int]:
    """The lines of docstrings and other strings that stand alone."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            end = node.end_lineno or node.lineno
            lines.update(range(node.lineno, end + 1))
    return lines


def _assigned_names(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines at its top level."""
    for node in tree.body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id


def _quantile(values: Sequence[int], share: float) -> int:
    """The value that a share of the values does not exceed; 0 where there are none.

    >>> _quantile([3, 1, 2, 4], 0.5)
    3
    """
    if not values:
        return 0
    position = min(len(values) - 1, int(share * len(values)))
    return sorted(values)[position]


def _spread(values: Sequence[int]) -> str:
    median = statistics.median(values) if values else 0
    return f"{median:.0f} / {_quantile(values, 0.9)} / {max(values, default=0)}"


def _mean(values: Sequence[int]) -> float:
    return sum(values) / max(len(values), 1)


def _per_hundred(count: int, whole: int) -> str:
    return f"{100 * count / max(whole, 1):.1f}"


def table(folders: Sequence[str]) -> str:
    """One table for the packages in the folders."""
    columns = [dict(count_package(Path(folder)).rows()) for folder in folders]
    names = [Path(folder).resolve().name for folder in folders]
    width = max(20, *(len(name) + 2 for name in names))
    label = max(map(len, columns[0]))
    head = "".join(f"{name:>{width}}" for name in names)
    lines = [f"{'':<{label}}{head}"]
    for measure in columns[0]:
        cells = "".join(f"{column[measure]:>{width}}" for column in columns)
        lines.append(f"{measure:<{label}}{cells}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("Usage: python scripts/style.py PACKAGE_DIR …")
    sys.stdout.write(table(sys.argv[1:]))
