"""The index and search commands as a person uses them, with what people and the world throw at them."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def whichsense(*words: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "whichsense", *map(str, words)],
        capture_output=True,
        text=True,
        input=stdin,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def index(animals: Path, tmp_path: Path) -> Path:
    done = whichsense("index", "build", animals, "--out", tmp_path / "index")
    assert done.returncode == 0, done.stderr
    return tmp_path / "index"


def test_build_search_add_delete_check(index: Path, tmp_path: Path) -> None:
    found = json.loads(
        whichsense("search", "Who founded Puma?", "--index", index, "--k", "1", "--json").stdout
    )
    assert found["method"] == "hybrid"
    assert found["hits"][0]["title"] == "Puma (brand)"
    more = tmp_path / "notes"
    more.mkdir()
    (more / "lynx.md").write_text("# Lynx\n\nA lynx has tufted ears.")
    assert "5 passages" in whichsense("index", "add", index, more).stdout
    shown = whichsense("search", "tufted ears", "--index", index).stdout
    assert "Lynx" in shown
    assert "tufted" in shown
    deleted = json.loads(
        whichsense("index", "delete", index, "--source", "corpus", "--json").stdout
    )
    assert deleted["deleted"] == 4
    table = json.loads(whichsense("index", "info", index, "--json").stdout)
    assert (table["passages"], table["generation"]) == (1, 3)
    assert whichsense("index", "check", index).stdout.splitlines()[-1] == "sound"


def test_search_reads_standard_input(index: Path) -> None:
    assert (
        "Jaguar Cars"
        in whichsense("search", "-", "--index", index, stdin="who founded jaguar cars\n").stdout
    )


def test_check_names_the_damage(index: Path) -> None:
    victim = next(index.rglob("*.store"))
    victim.write_bytes(b"\0" * victim.stat().st_size)
    done = whichsense("index", "check", index)
    assert done.returncode == 1
    assert victim.name in done.stdout
    assert json.loads(whichsense("index", "check", index, "--json").stdout)["sound"] is False


def test_senses(tmp_path: Path) -> None:
    page = "<title>{}</title><ns>0</ns><id>{}</id><revision><text>{}</text></revision>"
    pages = [
        page.format("Mercury (planet)", 1, "'''Mercury''' is the first [[planet]] from the Sun."),
        page.format(
            "Mercury",
            2,
            "May refer to:\n* [[Mercury (planet)]], the first planet\n{{disambiguation}}",
        ),
    ]
    body = "<mediawiki>" + "".join(f"<page>{body}</page>" for body in pages) + "</mediawiki>"
    dump = tmp_path / "wiki-pages-articles.xml.bz2"
    dump.write_bytes(bz2.compress(body.encode()))
    assert whichsense("index", "build", dump, "--out", tmp_path / "index").returncode == 0
    listed = json.loads(
        whichsense("index", "senses", "mercury", "--index", tmp_path / "index", "--json").stdout
    )
    assert listed[0]["title"] == "Mercury (planet)"
    assert "first planet" in listed[0]["gloss"]


def _empty(path: Path) -> Path:
    (path / "empty.jsonl").touch()
    return path / "empty.jsonl"


def _binary(path: Path) -> Path:
    (path / "noise.jsonl").write_bytes(os.urandom(4096) + b"\0" * 64)
    return path / "noise.jsonl"


def _latin(path: Path) -> Path:
    (path / "latin.txt").write_bytes("Über den Fluß".encode("latin-1"))
    return path / "latin.txt"


def _cut_short(path: Path) -> Path:
    whole = gzip.compress(b'{"title": "T", "text": "some text"}\n' * 5000)
    (path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    return path / "cut.jsonl.gz"


def _not_compressed(path: Path) -> Path:
    (path / "fake.jsonl.zst").write_text('{"title": "T", "text": "some text"}\n')
    return path / "fake.jsonl.zst"


@pytest.mark.parametrize("make", [_empty, _binary, _latin, _cut_short, _not_compressed])
def test_unusable_files_are_clear_errors(tmp_path: Path, make: object) -> None:
    source = make(tmp_path)  # type: ignore[operator]
    done = whichsense("index", "build", source, "--out", tmp_path / "index")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
    assert source.name in done.stderr
    assert "There is no index" in whichsense("search", "x", "--index", tmp_path / "index2").stderr


def test_one_huge_line_is_passed_over(tmp_path: Path) -> None:
    source = tmp_path / "lines.jsonl"
    with open(source, "wb") as out:
        out.write(b'{"title": "Small", "text": "A small record."}\n')
        for _ in range(200):
            out.write(b"x" * 2**20)
        out.write(b'\n{"title": "Last", "text": "The last record."}\n')
    done = whichsense("index", "build", source, "--out", tmp_path / "index", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert (report["documents"], report["broken"]) == (2, 1)
    assert "line 2" in str(report["named"])


@pytest.mark.parametrize("question", ["", "   ", "x" * 100_000])
def test_unusable_questions(index: Path, question: str) -> None:
    done = whichsense("search", question, "--index", index)
    assert done.returncode == 1
    assert done.stderr.startswith("error: The question")


def test_a_megabyte_of_question(index: Path) -> None:
    done = whichsense("search", "-", "--index", index, stdin="why " * 250_000)
    assert done.returncode == 1
    assert "characters" in done.stderr


def test_only_operators(index: Path) -> None:
    done = whichsense("search", '( " *', "--index", index)
    assert (done.returncode, done.stdout) == (0, "")
    assert "No passage matches" in done.stderr


def test_mistyped_command_is_helped() -> None:
    done = whichsense("serach", "x")
    assert done.returncode == 2
    assert "Did you mean 'search'?" in done.stderr
