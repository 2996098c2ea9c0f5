"""The real files, where they lie beside the checkout: counts, every record, checksums, the papers' numbers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from whichsense import datasets
from whichsense.lab.datasets import (
    Claim,
    ClarifiedQuestion,
    ConflictQuestion,
    FeedbackQuestion,
    FullQuestion,
    GroundedLongQuestion,
    LongQuestion,
)

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the data folder {DATA} is not here")

COUNTS = {
    "ambignq/train": 8477,
    "ambignq/val": 1038,
    "ambignq/dev": 1003,
    "asqa/dev": 477,
    "asqa/dev_original_schema": 258,
    "asqa/train_feedback": 467,
    "asqa/train_part": 467,
    "cambignq/four_examples": 4,
    "cambignq/part_dev": 24,
    "cambignq/part_train": 499,
    "cambignq/part_val": 58,
    "clapnq/answerable": 147,
    "clapnq/unanswerable": 150,
    "condambigqa/open": 114,
    "multihop/hotpotqa_train": 100,
    "multihop/musique_train": 100,
    "nq_open/dev": 3608,
    "nq_open/efficientqa_dev": 1800,
    "nq_open/efficientqa_test": 1769,
    "nq_open/gold_passages": 2653,
    "popqa/test_sample": 1000,
    "ramdocs/open": 248,
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
    "wice/dev": 349,
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


@pytest.mark.parametrize(
    ("name", "paper"), [("ambignq/train", (53, 24, 14, 10)), ("ambignq/dev", (49, 23, 14, 13))]
)
def test_ambignq_looks_as_the_paper_says(name: str, paper: tuple[int, ...]) -> None:
    """Table 2: % of questions with 1, 2, 3, 4+ answers, within two points: here are half of dev and 84% of train."""
    sizes: Counter[int] = Counter()
    for question in datasets.load(name, data_dir=DATA):
        sizes[min(4, *(len(one.pairs) for one in question.annotations))] += 1
    shares = [100 * sizes[size] / sizes.total() for size in (1, 2, 3, 4)]
    assert shares == pytest.approx(paper, abs=2)


def test_asqa_looks_as_the_paper_says() -> None:
    lengths = [
        len(answer.text.split())
        for question in datasets.load("asqa/dev", LongQuestion, data_dir=DATA)
        for answer in question.long_answers
    ]
    assert sum(lengths) / len(lengths) == pytest.approx(64.8, abs=1)


def test_records_that_know_more() -> None:
    four = list(datasets.load("cambignq/four_examples", ClarifiedQuestion, data_dir=DATA))
    assert all(len(question.options) == len(question.clarified_answers) for question in four)
    assert all(isinstance(question, FullQuestion) and question.searches for question in four)
    long = list(datasets.load("asqa/dev", LongQuestion, data_dir=DATA))
    assert all(len(question.long_answers) == 2 for question in long)
    unanswerable = sum(
        not question.is_answerable for question in datasets.load("squad/2.0", data_dir=DATA)
    )
    assert unanswerable == 5945


def test_the_part_of_cambignq_pairs_options_with_answers() -> None:
    categories: Counter[str] = Counter()
    unpaired = 0
    for split in ("train", "val", "dev"):
        name = f"cambignq/part_{split}"
        for question in datasets.load(name, ClarifiedQuestion, data_dir=DATA):
            categories[question.category] += 1
            unpaired += not question.clarified_answers
            assert question.is_answerable == bool(question.clarified_answers)
            assert question.options
    assert categories["one"] > categories["year"] > categories["location"]
    assert unpaired == 4


def test_feedback_is_about_the_questions_of_the_train_part() -> None:
    part = list(datasets.load("asqa/train_part", LongQuestion, data_dir=DATA))
    judged = list(datasets.load("asqa/train_feedback", FeedbackQuestion, data_dir=DATA))
    assert {one.text for one in part} == {one.text for one in judged}
    assert Counter(one.split for one in part) == {"train": 412, "val": 55}
    assert not datasets.find_near_duplicates(
        [one.text for one in part],
        [one.text for one in datasets.load("asqa/dev", data_dir=DATA)],
        threshold=1,
    )
    assert sum(len(one.errors) for one in judged) == 1281
    assert sum(len(one.missing) for one in judged) == 793


def test_the_datasets_about_evidence() -> None:
    documents: Counter[str] = Counter()
    for conflict in datasets.load("ramdocs/open", ConflictQuestion, data_dir=DATA):
        answers = [aliases[0] for aliases in conflict.annotations[0].answers]
        for document in conflict.documents:
            documents[document.kind] += 1
            assert (document.answer in answers) == (document.kind == "correct")
    assert documents == {"correct": 933, "misinfo": 150, "noise": 280}
    labels = Counter(one.label for one in datasets.load("wice/dev", Claim, data_dir=DATA))
    assert labels == {"supported": 115, "partially_supported": 191, "not_supported": 43}
    answerable = datasets.load("clapnq/answerable", GroundedLongQuestion, data_dir=DATA)
    for question in answerable:
        for answer in question.long_answers:
            assert set(answer.sentences) <= set(question.sentences[0])
    unanswerable = datasets.load("clapnq/unanswerable", data_dir=DATA)
    assert all(question.is_answerable for question in answerable)
    assert not any(question.is_answerable for question in unanswerable)


def test_training_without_what_is_tested() -> None:
    held_out = ("ambignq/dev", "ambignq/val")
    train = list(datasets.load("ambignq/train", data_dir=DATA, without=held_out))
    others = [question.text for name in held_out for question in datasets.load(name, data_dir=DATA)]
    assert 8000 < len(train) < 8477
    assert datasets.find_near_duplicates([question.text for question in train], others) == {}
