"""Statistics of a dataset: what the papers print about theirs, computed from the file that is here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from whichsense import datasets
from whichsense.datasets import (
    ClarifiedQuestion,
    ConditionalQuestion,
    LongQuestion,
    Question,
)
from whichsense.datasets.folder import claimed
from whichsense.evaluation.report.tables import Bars, Statistics, Table, mean, percent
from whichsense.evaluation.stats import ambignq, asqa, cambignq
from whichsense.evaluation.stats.edits import rewrites

__all__ = ["Bars", "Statistics", "Table", "statistics"]


_TOP = 20


def statistics(name: str, data_dir: str | Path | None = None) -> Statistics:
    """Everything that is counted about one dataset."""
    dataset = datasets.load(name, data_dir=data_dir)
    questions = list(dataset)
    tables, charts = [_general(questions)], [_words(questions)]
    clarified = [
        question for question in questions if isinstance(question, ClarifiedQuestion)
    ]
    long = [question for question in questions if isinstance(question, LongQuestion)]
    if clarified:
        more = cambignq.tables(name, clarified)
    elif long:
        more = asqa.tables(name, long)
    elif all(
        isinstance(question, ConditionalQuestion) for question in questions
    ):  # conditions are no rewrites
        more = ambignq.sizes(name, questions)
    elif any(rewrite for question in questions for rewrite in rewrites(question)):
        more = ambignq.tables(name, questions)
    else:
        more = ([], [])
    charts += _kinds(questions)
    return Statistics(
        name,
        _release(dataset.about, dataset.path, len(questions)),
        (*tables, *more[0]),
        (*more[1], *charts),
    )


def _release(about: datasets.Entry, path: Path, count: int) -> str:
    """Which release has this name and this many records: told, not proved by a checksum (`data check` does that)."""
    for release in claimed(about, path):
        if release.count in (None, count):
            return f"{release.name}: {release.note}" if release.note else release.name
    return "unknown"


def _general(questions: list[Question]) -> Table:
    answerable = [question for question in questions if question.is_answerable]
    answers = [aliases for question in answerable for aliases in question.answers]
    rows = (
        ("questions", len(questions)),
        ("without an answer", len(questions) - len(answerable)),
        (
            "% ambiguous (no annotator gave one answer)",
            percent(sum(q.is_ambiguous for q in questions), len(questions)),
        ),
        (
            "words in a question",
            mean(len(question.text.split()) for question in questions),
        ),
        (
            "distinct answers of a question",
            mean(len(question.answers) for question in answerable),
        ),
        ("aliases of an answer", mean(len(aliases) for aliases in answers)),
        (
            "words in an answer",
            mean(len(alias.split()) for aliases in answers for alias in aliases),
        ),
    )
    return Table("In general", ("", "here"), rows)


def _kinds(questions: list[Question]) -> list[Bars]:
    """What the dataset itself says about its questions, where it does."""
    counts = Counter(kind for question in questions for kind in question.kinds)
    bars = tuple(
        (kind, percent(count, len(questions)))
        for kind, count in counts.most_common(_TOP)
    )
    return [Bars("Kinds of questions", bars, "% of questions")] if bars else []


def _words(questions: list[Question]) -> Bars:
    lengths = [len(question.text.split()) for question in questions]
    bars = []
    for low in range(1, 20, 3):
        high = low + 2 if low < 19 else 10**9
        inside = sum(low <= length <= high for length in lengths)
        bars.append(
            (f"{low}–{high}" if low < 19 else "19+", percent(inside, len(lengths)))
        )
    return Bars("Words in a question", tuple(bars), "% of questions")
