"""Docs cannot go stale: their Python runs, their commands exist, their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("src/**/README.md")),
    *sorted(ROOT.glob("recipes/**/README.md")),
]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    return [
        m["body"]
        for m in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if m["language"] in languages
    ]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=page_name)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python blocks of a page, in order, in one fresh folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = "\n".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def commands() -> list[str]:
    lines = (
        line
        for page in PAGES
        for body in blocks(page, "bash", "console", "sh")
        for line in body.splitlines()
    )
    calls = (re.sub(r"^\$ |^\.venv/bin/|\s+#.*$", "", line.strip()) for line in lines)
    return sorted({call for call in calls if call.startswith("whichsense ")})


@pytest.mark.parametrize("line", commands())
def test_commands_exist(line: str) -> None:
    """Each command line in the docs names a command and options that there are."""
    from whichsense.cli import command

    words = shlex.split(line.split("|", maxsplit=1)[0].split(">", maxsplit=1)[0])[1:]
    context = None
    current = command
    while words and hasattr(current, "get_command"):
        found = current.get_command(context, words[0])  # type: ignore[arg-type]
        assert found is not None, f"no command '{words[0]}'"
        current = found
        words = words[1:]
    known = {
        option
        for parameter in current.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    used = {word.split("=")[0] for word in words if word.startswith("--")}
    assert used <= known | {"--help"}, f"unknown options {used - known}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [
        link
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not missing


def anchors(page: Path) -> set[str]:
    """The names that headings get: lower case, without punctuation, hyphens for spaces."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = (title.lower().replace(" ", "-") for title in HEADING.findall(text))
    return {re.sub(r"[^\w-]", "", title) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_anchors_lead_to_headings(page: Path) -> None:
    missing = []
    for link, anchor in ANCHOR.findall(page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        if target.suffix == ".md" and anchor not in anchors(target):
            missing.append(f"{link}#{anchor}")
    assert not missing


def test_command_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import commands; print(commands.page(), end='')"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == done.stdout, (
        "run: python scripts/commands.py"
    )
