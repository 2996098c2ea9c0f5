"""Killed at any moment, an index is the old one or the new one, and the same command goes on."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import LONGEST
from small_corpora import Corpus
from whichsense import corpus as files
from whichsense import index
from whichsense.errors import WhichsenseError
from whichsense.index import Index, folder, growth
from whichsense.index.lexical import LexicalWriter
from whichsense.index.store import PassagesWriter
from whichsense.index.write import build_index

OLD = [(f"Old {n}", f"An old text number {n} about pumas.") for n in range(40)]
NEW = [(f"New {n}", f"A new text number {n} about ocelots.") for n in range(60)]


class Crash(BaseException):
    """Stands for the power cut: nothing may catch it."""


def state_of(place: Path) -> str:
    """'old' or 'new', and nothing between: every answer is checked, not only the count."""
    opened = Index.open(place)
    old, new = (len(opened.search(word, 100, "bm25")) for word in ("pumas", "ocelots"))
    assert index.check(place).sound
    assert (old, new) in ((40, 0), (40, 60), (0, 60)), (old, new)
    return "new" if new else "old"


def crash_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> Callable[[], bool]:
    """Crash just before the moment-th step that touches the disk; tells whether it came to that."""
    count = 0

    def armed(step: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == moment:
                raise Crash
            return step(*arguments, **options)

        return wrapper

    for owner, name in (
        (os, "rename"),
        (os, "replace"),
        (shutil, "rmtree"),
        (folder, "write_atomically"),
        (folder, "_sync_folder"),
        (growth, "write_atomically"),
        (growth, "save_array"),
        (PassagesWriter, "flush"),
        (LexicalWriter, "commit"),
        (LexicalWriter, "close"),
    ):
        monkeypatch.setattr(owner, name, armed(getattr(owner, name)))
    return lambda: count >= moment


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a crash closes no files
@pytest.mark.parametrize("change", [build_index, index.add])
def test_crash_before_every_step(
    change: Callable[..., Any], tmp_path: Path, make_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = make_corpus(OLD, "old.jsonl"), make_corpus(NEW, "new.jsonl")
    built = tmp_path / "built"
    build_index([old], built)
    seen = set()
    for moment in range(1, 100):
        place = tmp_path / f"index-{moment}"
        shutil.copytree(built, place)
        with monkeypatch.context() as patch:
            crashed = crash_at(patch, moment)
            try:
                change([new], place)
            except Crash:
                pass
        gc.collect()  # a dead process holds no locks
        seen.add(state_of(place))
        if not crashed():
            break
        change([new], place)  # the next writer sweeps up and succeeds
        assert state_of(place) == "new"
        assert index.check(place).notes == ()
    assert moment > 8
    # the same again: nothing but duplicates
    assert change([new], place).passages == len(Index.open(place))
    assert state_of(place) == "new"
    assert seen == {"old", "new"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_stopped_build_resumes_exactly(
    tmp_path: Path, make_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoint at every record, crash at many points, resume: the same passages as without a crash."""
    source = make_corpus([*NEW[:6], NEW[3], *OLD[:6]])
    build_index([source], tmp_path / "whole", checkpoint_seconds=0)
    whole = {hit.passage for hit in Index.open(tmp_path / "whole").search("text number", 1000)}
    for moment in (1, 2, 3, 4, 5, 8, 14, 23, 41):
        place = tmp_path / f"resumed-{moment}"
        with monkeypatch.context() as patch:
            crash_at(patch, moment)
            try:
                build_index([source], place, checkpoint_seconds=0)
            except Crash:
                pass
        gc.collect()
        manifest = build_index([source], place, checkpoint_seconds=0)
        assert {hit.passage for hit in Index.open(place).search("text number", 1000)} == whole
        assert manifest.passages == len(whole) == 12
        assert manifest.report["duplicates"] == 1
        assert index.check(place).sound


@pytest.mark.parametrize(
    "victim",
    [
        "state.json",
        "seen-*.npy",
        "content/names.sqlite",
        "content/lexical/*.idx",
        "content/passages/*.keys",
    ],
)
def test_damaged_staging_begins_anew(
    tmp_path: Path, make_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """A power cut may leave anything half-written; the same command must still come to an end."""
    source, place = make_corpus(NEW), tmp_path / "index"
    with monkeypatch.context() as patch:
        patch.setattr(folder, "publish", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            build_index([source], place)
    gc.collect()
    path = next((place / "staging").glob(victim))
    path.write_bytes(b"\xff" * (path.stat().st_size // 2))
    assert build_index([source], place).passages == len(NEW)
    assert index.check(place).sound


@pytest.mark.parametrize("damage", [False, True])
def test_a_generation_that_was_not_served_yet_is(
    tmp_path: Path, make_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, damage: bool
) -> None:
    """Killed between the move and the manifest, a build has little left to do, unless what it moved is not whole."""
    old, new, place = (
        make_corpus(OLD, "old.jsonl"),
        make_corpus(NEW, "new.jsonl"),
        tmp_path / "index",
    )
    build_index([old], place)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "_served", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            build_index([new], place)
    gc.collect()
    assert state_of(place) == "old"
    if damage:
        next((place / "generation-2").rglob("*.idx")).write_bytes(b"")
    else:
        monkeypatch.setattr(files.Corpus, "records", None)  # nothing is read again
    assert build_index([new], place).generation == (3 if damage else 2)
    assert state_of(place) == "new"
    assert index.check(place).notes == ()


def run(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "whichsense", *map(str, arguments)], text=True, **options
    )


def bytes_below(folder: Path) -> int:
    """The size of all files in a folder, which a writer may move or remove meanwhile."""
    size = 0
    for place, _, names in os.walk(folder):  # a folder that is gone by now is passed over
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += (Path(place) / name).stat().st_size
    return size


@pytest.mark.slow
def test_kill_9_at_random_moments(tmp_path: Path, make_corpus: Corpus) -> None:
    texts = [
        f"A new text number {n} about ocelots. " + "Padding that takes time. " * 60
        for n in range(1500)
    ]
    old, new = (
        make_corpus(OLD, "old.jsonl"),
        make_corpus([("New", text) for text in texts], "new.jsonl"),
    )
    chance = random.Random(7)
    whole = Index.build(new, tmp_path / "whole").manifest
    size = sum(record.size for record in whole.files.values())
    place, built = tmp_path / "index", tmp_path / "built"
    build_index([old], built)
    for attempt in range(10):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(built, place)
        words = (
            ("index", "build", new, "--out", place) if attempt % 2 else ("index", "add", place, new)
        )
        writer = run(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        enough = chance.uniform(0, 1.2) * size
        while writer.poll() is None and bytes_below(place) < enough:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        opened = Index.open(place)
        before, after = (
            len(opened.search(word, 10_000, method="bm25")) for word in ("pumas", "ocelots")
        )
        assert (before, after > 0) in ((40, False), (40, True), (0, True))
        assert after == 0 or len(opened) == opened.manifest.passages >= 1500
        assert index.check(place).sound


WRITER = """
import contextlib, sys, time
from whichsense.cli import main
from whichsense.corpus import Corpus
from whichsense.index import write
read, stop_requested = Corpus.records, write.stop_requested
stops = []

@contextlib.contextmanager
def noted():
    with stop_requested() as stop:
        stops.append(stop)
        yield stop

def records(*arguments, **options):
    for number, record in enumerate(read(*arguments, **options)):
        if number == 200:  # in the middle: here it waits for the signal
            print("reading", flush=True)
            while not stops[0]():
                time.sleep(0.01)
        yield record

Corpus.records, write.stop_requested = records, noted
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_resumes(tmp_path: Path, make_corpus: Corpus, number: int) -> None:
    text = "words that fill a passage " * 400
    source = make_corpus([(f"Title {n}", f"{text} {n}") for n in range(400)])
    words = ("index", "build", str(source), "--out", str(tmp_path / "index"))
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    state = tmp_path / "index" / "staging"
    assert writer.stdout is not None and writer.stdout.readline() == "reading\n"
    writer.send_signal(number)
    _, said = writer.communicate(timeout=LONGEST)
    assert writer.returncode == 130, said
    assert "it resumes" in said
    assert (state / "state.json").exists()
    with pytest.raises(WhichsenseError, match="never finished"):
        Index.open(tmp_path / "index")
    manifest = build_index([source], tmp_path / "index")
    assert manifest.report["documents"] == 400
    assert index.check(tmp_path / "index").sound
