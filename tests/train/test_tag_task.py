"""Task compact-tag: marked and labelled answers of firms and topics, and the network that learns them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiny_compact import exported, scored, trusted
from whichsense.errors import BadConfig
from whichsense.models.compact.labeller import FRAMES, NO_FRAME
from whichsense.models.compact.tagger import FRAME, TABLES, TAGGER, Tagger

torch = pytest.importorskip("torch")

from whichsense.lab.compact import tag_task
from whichsense.lab.compact.marked_answers import (
    find_answers,
    find_firms,
    label_of_rewrite,
    mark_firms,
    mark_topics,
    read_firm_corpora,
)
from whichsense.lab.train.chain import train_recipe
from whichsense.lab.train.recipes import HOMES
from whichsense.models.compact.encoder import CompactModel

FIRM: dict[str, Any] = {
    "id": "film-house",
    "documents": [
        {
            "id": "a",
            "title": "Dune",
            "text": "The film was released in 1984. It was directed by david lynch.",
        },
        {
            "id": "b",
            "title": "Dune novel",
            "text": "The novel was released in 1978 and 1984 in mexico.",
        },
    ],
    "questions": [
        {
            "q": "when was it released",
            "a": [
                {"d": "a", "x": ["1984"], "l": "film", "r": "when was it released film"},
                {"d": "b", "x": ["1978"], "l": "Dune novel"},
                {
                    "d": "b",
                    "x": ["1984"],
                    "s": "1984 in mexico",
                    "l": "in mexico",
                    "r": "when was it released in mexico",
                },
            ],
        }
    ],
    "none": ["who wrote it"],
}


@pytest.fixture
def firms(tmp_path: Path) -> Path:
    folder = tmp_path / "firms"
    folder.mkdir()
    (folder / "one.jsonl").write_text(json.dumps(FIRM) + "\n", encoding="utf-8")
    return folder


def test_answers_of_a_firm_are_marked_where_they_stand(firms: Path) -> None:
    first, second, *without = mark_firms(firms)
    assert {one.question for one in without} == {"who wrote it"}
    marked = {
        one.title: [one.text[a.start : a.end] for a in one.answers] for one in (first, second)
    }
    assert marked == {"Dune": ["1984"], "Dune novel": ["1978", "1984"]}
    in_mexico = second.answers[1]
    assert in_mexico.label is not None
    assert second.text[in_mexico.label.start : in_mexico.label.end] == "in mexico"
    assert FRAMES[in_mexico.frame] == ""  # the label has its own preposition
    by_title = second.answers[0]
    assert by_title.label is not None and by_title.label.in_title
    assert by_title.frame == NO_FRAME  # nobody wrote a rewrite for it


def test_firms_are_corpora_to_measure_on(firms: Path) -> None:
    ((passages, questions),) = read_firm_corpora(firms)
    assert [passage.title for passage in passages] == ["Dune", "Dune novel"]
    # One value for two cases is one answer.
    assert questions[0].answers == (("1984",), ("1978",))
    assert not questions[1].is_answerable
    assert list(read_firm_corpora(firms, held_out=True)) == []


def test_a_true_rewrite_gives_the_label_of_its_answer() -> None:
    folder = next(home / "topics" for home in HOMES if (home / "topics").exists())
    example = next(one for one in mark_topics([folder]) if any(a.label for a in one.answers))
    labels = [one.label for one in example.answers if one.label]
    assert labels
    for label in labels:
        source = example.title if label.in_title else example.text
        assert source[label.start : label.end].strip()


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(BadConfig, match="no folder 'nowhere'"):
        find_firms(("nowhere",))


def test_small_things() -> None:
    assert find_answers("Rome, not Romeo; rome.", ["Rome"]) == [(0, 4), (17, 21)]
    support = "won the cup in 1990"
    assert label_of_rewrite("who won", "who won in 1990", support) == "in 1990"
    assert label_of_rewrite("who won", "who won", support) == ""


def test_a_tiny_run_learns_and_exports(
    tmp_path: Path, firms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    half = tag_task.training_half_of_sample()
    few = replace(half, questions=half.questions[:24])
    monkeypatch.setattr(tag_task, "training_half_of_sample", lambda: few)
    start = scored(trusted(exported(tmp_path / "start", for_people=True)))
    (start / TAGGER).write_bytes(b"of a former run")
    text = "The gate is shut at noon."
    first = text.index("noon")
    row = {"question": "when is it shut", "title": "Gate", "text": text}
    reading = tmp_path / "reading.jsonl"
    reading.write_text(
        json.dumps(row | {"spans": [[first, first + 4]]})
        + "\n"
        + json.dumps(row | {"question": "who built it", "spans": []})
        + "\n"
    )
    changes = (f"model.words={start}", f'reading=["{reading}"]', "data.held=0")
    done = train_recipe("compact-tag", tmp_path / "run", changes, tiny=True)
    folder = tmp_path / "run" / "model"
    assert done.steps > 2
    names = {path.name for path in start.iterdir()} | {TAGGER, FRAME, TABLES}
    assert names <= {path.name for path in folder.iterdir()}
    Tagger(CompactModel(folder)).prepare()
    log = (tmp_path / "run" / "log.csv").read_text(encoding="utf-8")
    assert "span_f1" in log and "label_f1" in log
