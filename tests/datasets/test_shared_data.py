"""The real files, where they lie beside the checkout: counts, every record, checksums, the papers' numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from whichsense import datasets
from whichsense.datasets import ClarifiedQuestion, FullQuestion, LongQuestion
from whichsense.evaluation.stats import statistics

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the data folder {DATA} is not here"
)

COUNTS = {
    "ambignq/train": 8477,
    "ambignq/val": 1038,
    "ambignq/dev": 1003,
    "asqa/dev": 477,
    "asqa/dev_original_schema": 258,
    "cambignq/four_examples": 4,
    "condambigqa/open": 114,
    "multihop/hotpotqa_train": 100,
    "multihop/musique_train": 100,
    "nq_open/dev": 3608,
    "nq_open/efficientqa_dev": 1800,
    "nq_open/efficientqa_test": 1769,
    "nq_open/gold_passages": 2653,
    "popqa/test_sample": 1000,
    "situatedqa/geo.train": 3548,
    "situatedqa/geo.dev": 1398,
    "situatedqa/geo.test": 506,
    "situatedqa/temp.train": 5932,
    "situatedqa/temp.dev": 3386,
    "situatedqa/temp.test": 2795,
    "squad/1.1": 10570,
    "squad/2.0": 11873,
    "triviaqa/test_sample": 1000,
    "webquestions/train": 2834,
    "webquestions/val": 755,
    "webquestions/test": 2032,
}


@pytest.mark.parametrize("name", COUNTS)
def test_every_record_parses_and_the_checksum_matches(name: str) -> None:
    report = datasets.check(name, DATA)
    assert report.problem == ""
    assert (report.count, report.checksum) == (COUNTS[name], "matches")


def test_nothing_that_lies_there_is_overlooked() -> None:
    found = {datasets.find(datasets.entry(name), DATA) for name in datasets.names()}
    ours = {path for path in DATA.glob("*/*") if path.parent.name != "wikipedia"}
    assert ours <= found


def test_ambignq_looks_as_the_paper_says() -> None:
    """Table 2, within two points: here are half of dev and 84% of train."""
    for name in ("ambignq/train", "ambignq/dev"):
        found = statistics(name, DATA)
        ours, paper = next(
            table.rows for table in found.tables if "table 2" in table.title
        )
        for here, printed in zip(ours[2:], paper[2:], strict=True):
            assert here == pytest.approx(printed, abs=2), name


def test_the_most_frequent_edits_cover_what_the_paper_says() -> None:
    """36% for the top 100 does not depend on size; 69% for the top 1,000 does: half a set covers more."""
    found = statistics("ambignq/dev", DATA)
    rows = {
        row[0]: row[1]
        for table in found.tables
        if "2c" in table.title
        for row in table.rows
    }
    assert rows["% covered by the top 100"] == pytest.approx(36, abs=1)
    assert rows["% covered by the top 1,000"] == pytest.approx(69, abs=5)


def test_asqa_looks_as_the_paper_says() -> None:
    found = statistics("asqa/dev", DATA)
    rows = {row[0]: row[1] for table in found.tables for row in table.rows}
    assert rows["words in a long answer"] == pytest.approx(64.8, abs=1)
    assert rows["ROUGE-L of two answers"] == pytest.approx(49.6, abs=1.5)
    whole = statistics("asqa/dev_original_schema", DATA)
    rows = {row[0]: row[1] for table in whole.tables for row in table.rows}
    assert rows["% of answer tokens in it"] == pytest.approx(92, abs=2.5)
    assert rows["% of tokens in that"] == pytest.approx(78, abs=3)


def test_records_that_know_more() -> None:
    four = list(
        datasets.load("cambignq/four_examples", ClarifiedQuestion, data_dir=DATA)
    )
    assert all(
        len(question.options) == len(question.clarified_answers) for question in four
    )
    assert all(
        isinstance(question, FullQuestion) and question.searches for question in four
    )
    long = list(datasets.load("asqa/dev", LongQuestion, data_dir=DATA))
    assert all(len(question.long_answers) == 2 for question in long)
    unanswerable = sum(
        not question.is_answerable
        for question in datasets.load("squad/2.0", data_dir=DATA)
    )
    assert unanswerable == 5945


def test_training_without_what_is_tested() -> None:
    held_out = ("ambignq/dev", "ambignq/val")
    train = list(datasets.load("ambignq/train", data_dir=DATA, without=held_out))
    others = [
        question.text
        for name in held_out
        for question in datasets.load(name, data_dir=DATA)
    ]
    assert 8000 < len(train) < 8477
    assert datasets.near_duplicates([question.text for question in train], others) == {}
