"""An index is built, searched, extended and cut down, and says clearly what is wrong."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import pytest

from small_corpora import ANIMALS, Corpus
from whichsense import index
from whichsense.errors import BadInput, DamagedIndex, IndexBusy, NoIndex
from whichsense.index import Index
from whichsense.index.folder import writing
from whichsense.testing import FakeEncoder
from whichsense.types import Document, Passage


@pytest.fixture
def built(animals: Path, tmp_path: Path) -> Path:
    Index.build(animals, tmp_path / "index", encoder=None)
    return tmp_path / "index"


def titles(folder: Path, question: str, **options: object) -> list[str]:
    return [hit.passage.title for hit in Index.open(folder).search(question, **options)]  # type: ignore[arg-type]


def test_finds_the_right_passage_first(built: Path) -> None:
    assert titles(built, "Who founded Jaguar Cars?")[0] == "Jaguar Cars"
    assert titles(built, "which cat cannot roar")[0] == "Puma"


def test_scores_fall_and_k_holds(built: Path) -> None:
    hits = Index.open(built).search("cat of the Americas founded", k=3)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_passage_knows_where_it_stands(built: Path) -> None:
    passage = Index.open(built).search("shoes in Germany")[0].passage
    assert passage.text == ANIMALS[3][1]
    assert (passage.start, passage.end) == (0, len(ANIMALS[3][1]))
    assert Index.open(built).passage(passage.id) == passage


def test_question_words_alone_still_search(built: Path) -> None:
    assert titles(built, "What is it that has or had from?") == []
    assert len(titles(built, "has")) == 0


@pytest.mark.parametrize("question", ['AND ( " *', '+-&&||!(){}[]^"~*?:\\', "title:", "\x00"])
def test_operators_are_no_syntax(built: Path, question: str) -> None:
    assert titles(built, question) == []


@pytest.mark.parametrize("question", ["", "  \n", "x" * 1_000_000, "\udcff"])
def test_unusable_questions_are_named(built: Path, question: str) -> None:
    with pytest.raises(BadInput, match="question"):
        Index.open(built).search(question)


def test_many_questions_equal_one_by_one(built: Path) -> None:
    opened, questions = Index.open(built), ["Jaguar", "shoes", "roar"]
    assert opened.search_many(questions, 3) == [
        opened.search(question, 3) for question in questions
    ]


def test_add_and_delete(built: Path, make_corpus: Corpus) -> None:
    before = Index.open(built)
    more = make_corpus([("Ocelot", "The ocelot is a spotted cat."), *ANIMALS[:1]], "more.jsonl")
    manifest = index.add([more], built)
    assert (manifest.passages, manifest.generation) == (5, 2)  # the repeated jaguar was dropped
    assert titles(built, "ocelot")[0] == "Ocelot"
    manifest, gone = index.delete(built, ids=[Index.open(built).search("ocelot")[0].passage.id])
    assert (gone, manifest.passages) == (1, 4)
    assert "Ocelot" not in titles(built, "ocelot")
    assert before.search("jaguar")[0].passage.title.startswith(
        "Jaguar"
    )  # an opened index keeps its snapshot
    assert index.check(built).sound
    index.add([more], built)
    assert titles(built, "ocelot")[0] == "Ocelot"  # what was deleted may come back


def test_ids_stay_unique_over_files_of_one_name(built: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "more.jsonl").write_text(
            json.dumps({"title": "Cat", "text": f"A cat in folder {folder}."})
        )
        index.add([tmp_path / folder / "more.jsonl"], built)
    ids = [hit.passage.id for hit in Index.open(built).search("folder")]
    assert len(set(ids)) == len(ids) == 2


def test_a_new_build_heals_a_damaged_index(built: Path, animals: Path) -> None:
    (built / "manifest.json").write_text("{")
    Index.build(animals, built)
    assert index.check(built).sound
    assert titles(built, "puma shoes")[0] == "Puma (brand)"


def test_an_index_that_may_not_be_written_is_searched(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tantivy locks even to read; where it may not, the lock goes elsewhere."""
    for lock in built.rglob(".tantivy-*"):
        lock.unlink()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert titles(built, "shoes in Germany")[0] == "Puma (brand)"
    assert not list(built.rglob(".tantivy-*"))


def test_files_are_readable_for_everybody_whom_the_folder_lets_in(built: Path) -> None:
    assert all(
        path.stat().st_mode & 0o044 == 0o044
        for path in built.rglob("*")
        if path.is_file() and "lock" not in path.name
    )


@pytest.mark.parametrize("name", ["generation-2024", "staging"])
def test_folders_that_only_look_like_ours_are_left_alone(
    tmp_path: Path, animals: Path, name: str
) -> None:
    kept = tmp_path / "home" / name / "letter.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("dear")
    with pytest.raises(BadInput, match="holds other files"):
        Index.build(animals, tmp_path / "home")
    assert kept.read_text() == "dear"


def test_the_filler_is_no_word(built: Path) -> None:
    assert titles(built, "0z") == titles(built, "zz") == []


def test_threads_share_an_index(built: Path) -> None:
    opened, asked = Index.open(built), ["puma", "jaguar", "shoes", "cat"] * 25
    alone = [opened.search(question) for question in asked]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opened.search, asked)) == alone
        assert list(pool.map(opened.senses, asked)) == [[]] * len(asked)


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_checked(built: Path, k: int) -> None:
    with pytest.raises(BadInput, match="at least one"):
        Index.open(built).search("puma", k=k)


def test_k_may_exceed_the_corpus(built: Path) -> None:
    assert len(Index.open(built).search("puma jaguar", k=10**12)) == 4


def test_names_of_one_checksum_are_told_apart(tmp_path: Path) -> None:
    first, second = "plumless", "buckeroo"
    assert crc32(first.encode()) == crc32(second.encode())
    opened = Index.build(
        [
            Document(first, "Puma", "The puma screams.", source=first),
            Document(second, "Lynx", "A lynx has tufted ears.", source="cats"),
        ],
        tmp_path / "index",
    )
    assert opened.passage(first).title == "Puma"
    assert opened.passage(second).title == "Lynx"
    assert index.delete(tmp_path / "index", sources=[second])[1] == 0
    assert index.delete(tmp_path / "index", ids=[first])[1] == 1
    assert len(Index.open(tmp_path / "index")) == 1


def test_what_was_deleted_has_no_id_any_more(built: Path) -> None:
    first, second = (
        Index.open(built).search(question)[0].passage.id
        for question in ("shoes in Germany", "cat roar")
    )
    for gone, left in ((first, second), (second, None)):
        index.delete(built, ids=[gone])
        with pytest.raises(BadInput, match="No passage"):
            Index.open(built).passage(gone)
        assert left is None or Index.open(built).passage(left).id == left
        assert index.check(built).sound


def test_an_index_of_another_format_is_refused(built: Path) -> None:
    path = built / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(DamagedIndex, match=r"format 1.*Build it again"):
        Index.open(built)


def test_delete_by_document_and_source(built: Path) -> None:
    assert index.delete(built, ids=["nobody"])[1] == 0
    source = Index.open(built).search("puma")[0].passage.source
    assert index.delete(built, sources=[source])[1] == len(ANIMALS)
    assert titles(built, "puma") == []
    assert index.check(built).sound


def test_refreshed_follows_the_newest_generation(built: Path, make_corpus: Corpus) -> None:
    opened = Index.open(built)
    assert opened.refreshed() is opened
    index.add([make_corpus([("Lynx", "A lynx has tufted ears.")], "lynx.jsonl")], built)
    assert opened.search("lynx") == []
    assert opened.refreshed().search("lynx")[0].passage.title == "Lynx"


def test_rebuilding_replaces(built: Path, make_corpus: Corpus) -> None:
    Index.build(
        make_corpus([("Lynx", "A lynx has tufted ears.")], "lynx.jsonl"), built, encoder=None
    )
    assert titles(built, "lynx jaguar puma") == ["Lynx"]
    assert [path.name for path in built.glob("generation-*")] == ["generation-2"]


def test_hybrid_and_dense(animals: Path, tmp_path: Path, make_corpus: Corpus) -> None:
    folder, encoder = tmp_path / "dense", FakeEncoder()
    Index.build(animals, folder, encoder=encoder)
    index.add(
        [make_corpus([("Lynx", "A lynx has tufted ears.")], "lynx.jsonl")], folder, encoder=encoder
    )
    opened = Index.open(folder, encoder)
    for method in ("dense", "hybrid"):
        assert opened.search("tufted ears", k=2, method=method)[0].passage.title == "Lynx"  # type: ignore[arg-type]
    index.delete(folder, ids=[opened.search("lynx")[0].passage.id])
    found = Index.open(folder, encoder).search("tufted ears", method="dense")
    assert "Lynx" not in {hit.passage.title for hit in found}
    assert len(found) == len(ANIMALS)
    assert index.check(folder).sound


def test_dense_search_needs_vectors(built: Path) -> None:
    with pytest.raises(BadInput, match="--no-dense"):
        Index.open(built).search("puma", method="dense")


def test_no_index_says_how_to_build(tmp_path: Path) -> None:
    with pytest.raises(NoIndex, match="whichsense index build"):
        Index.open(tmp_path / "nowhere")
    with pytest.raises(NoIndex):
        index.add(["x.jsonl"], tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_foreign_folders_are_left_alone(tmp_path: Path, animals: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(BadInput, match="letter"):
        Index.build(animals, tmp_path / "home")
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"


def test_second_writer_is_told(built: Path, animals: Path) -> None:
    with writing(built, "a test"), pytest.raises(IndexBusy, match=r"process \d+ \(a test"):
        index.add([animals], built)


def test_damage_is_found_and_named(built: Path) -> None:
    victim = next(path for path in built.rglob("*.store"))
    body = bytearray(victim.read_bytes())
    body[len(body) // 2] ^= 0xFF
    victim.write_bytes(body)
    health = index.check(built)
    assert not health.sound
    assert victim.name in health.problems[0]
    victim.write_bytes(body[:-1])
    with pytest.raises(DamagedIndex, match=victim.name):
        Index.open(built)
    victim.unlink()
    assert "missing" in index.check(built).problems[0]


def test_broken_and_foreign_manifests(built: Path) -> None:
    path = built / "manifest.json"
    table = json.loads(path.read_text())
    for body, why in (
        ("{", "not a manifest"),
        ("[]", "lacks"),
        (json.dumps(table | {"format": 99}), "format 99"),
    ):
        path.write_text(body)
        with pytest.raises(DamagedIndex, match=why):
            Index.open(built)
        assert not index.check(built).sound


def test_records_in_memory_leave_no_files() -> None:
    records = [
        {"title": "Jaguar", "text": "The jaguar is a large cat.", "id": "j"},
        Document("p", "Puma", "The puma screams."),
        Passage("l#3", "Lynx", "A lynx has tufted ears.", "book", "Ears"),
    ]
    opened = Index.of(records)
    assert len(opened) == 3
    assert opened.search("Which cat is large?")[0].passage.id == "j"
    (hit,) = opened.search("tufted ears", 1)
    passage = hit.passage
    assert (passage.id, passage.source, passage.section) == ("l#3", "book", "Ears")
    folder = opened.folder
    assert folder.is_dir()
    opened.close()
    assert not folder.exists()
    collected = Index.of(records)
    folder = collected.folder
    del collected
    gc.collect()
    assert not folder.exists()


def test_records_are_a_source_of_an_index_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    built = Index.build([{"title": "Puma", "text": "It screams."}], folder, encoder=None)
    assert len(built) == 1
    index.add([{"title": "Lynx", "text": "It has tufted ears."}], folder)
    assert titles(folder, "tufted ears") == ["Lynx"]


def test_records_that_cannot_be_used_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    good, bad = {"text": "It screams."}, {"title": "Puma"}
    opened = Index.of([bad, good, {"text": 7}, 3])
    assert opened.manifest.report["broken"] == 3
    named = [" ".join(broken[1:]) for broken in opened.manifest.report["named"]]
    assert named[0].startswith("1 no text.") and named[2].startswith("4 not a record.")
    opened.close()
    with pytest.raises(BadInput, match=r"None of 1 records could be used\. First: "):
        Index.of([bad])
    with pytest.raises(BadInput, match="paths or records, not both"):
        Index.build([good, "notes"], tmp_path / "mixed")
    with pytest.raises(BadInput, match="No source given"):
        Index.of([])
    assert not list(tmp_path.iterdir())
