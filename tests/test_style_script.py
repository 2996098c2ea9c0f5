"""scripts/style.py counts size and density of packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "style.py"
SOURCE = '''"""A module.

With a docstring of three lines."""

SIZE: int = 3  # a comment
_hidden = [n for n in range(SIZE)]


def double(values: list[int]) -> list[int]:
    """Twice each."""
    return [2 * value for value in values]


def _sign(n):
    return 1 if n > 0 else 0
'''


def run(*folders: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, folders)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_table_for_several_packages(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "module.py").write_text(SOURCE)
    (tmp_path / "two" / "inner" / "empty.py").write_text("")
    done = run(tmp_path / "one", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["one", "two"]
    rows = {line[:32].strip(): line[32:].split() for line in lines[1:]}
    assert rows["files"] == ["1", "2"]
    assert rows["lines of code"] == ["6", "6"]
    assert rows["public names"] == ["2", "2"]
    assert rows["comprehensions in 100 lines"] == ["33.3", "33.3"]
    assert rows["ternaries in 100 lines"] == ["16.7", "16.7"]
    assert rows["comments in 100 lines"] == ["16.7", "16.7"]
    assert rows["% of functions typed"] == ["50.0", "50.0"]
    assert rows["% of public functions documented"] == ["100.0", "100.0"]


def test_a_folder_without_python_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1 and "No Python files in" in done.stderr
    assert "Usage" in run().stderr
