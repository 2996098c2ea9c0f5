"""Statistics of a dataset: the numbers that papers print, computed from the file at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from whichsense import datasets
from whichsense.datasets import (
    Claim,
    ClarifiedQuestion,
    ConditionalQuestion,
    ConflictQuestion,
    FeedbackQuestion,
    GroundedLongQuestion,
    LongQuestion,
    Question,
    Record,
)
from whichsense.datasets.folder import matching_releases
from whichsense.evaluation.report.tables import Bars, Statistics, Table, mean, percent
from whichsense.evaluation.stats import ambignq, asqa, cambignq, evidence, feedback
from whichsense.evaluation.stats.edits import iterate_rewrites

__all__ = ["Bars", "Statistics", "Table", "statistics"]

_TOP = 20  # kinds of questions in the chart
_STEP = 3  # words in a bar of the chart of lengths
_LONG = 19  # words; the last bar stands for as many or more

_Counted = tuple[list[Table], list[Bars]]

# The first type that a dataset has records of decides. A condition is not a rewrite, so that there are no edits to
# count for ConditionalQuestion.
_COUNTERS: tuple[
    tuple[type[Question], Callable[[str, Sequence[Any]], _Counted]], ...
] = (
    (ClarifiedQuestion, cambignq.count_clarifications),
    (LongQuestion, asqa.count_long_answers),
    (FeedbackQuestion, feedback.count_feedback),
    (ConflictQuestion, evidence.count_conflicts),
    (GroundedLongQuestion, evidence.count_grounded_answers),
    (ConditionalQuestion, ambignq.count_answer_numbers),
)


def statistics(name: str, data_dir: str | Path | None = None) -> Statistics:
    """All statistics of one dataset."""
    dataset = datasets.load(name, Record, data_dir=data_dir)
    records = list(dataset)
    questions = []
    claims = []
    for record in records:
        if isinstance(record, Question):
            questions.append(record)
        elif isinstance(record, Claim):
            claims.append(record)
    if claims:
        tables, charts = evidence.count_claims(claims)
        charts.append(_count_words("Words in a claim", "% of claims", records))
    else:
        tables, charts = _count_family(name, questions)
        tables.insert(0, _count_answers(questions))
        charts.append(_count_words("Words in a question", "% of questions", records))
        charts.extend(_count_kinds(questions))
    release = _name_release(dataset.about, dataset.path, len(records))
    return Statistics(name, release, tuple(tables), tuple(charts))


def _count_family(name: str, questions: list[Question]) -> _Counted:
    """The statistics that belong to the dataset's family."""
    for kind, count in _COUNTERS:
        chosen = [question for question in questions if isinstance(question, kind)]
        if chosen:
            return count(name, chosen)
    if not questions:
        return ambignq.count_answer_numbers(name, questions)
    if any(any(iterate_rewrites(question)) for question in questions):
        return ambignq.count_annotations(name, questions)
    return [], []


def _name_release(about: datasets.Entry, path: Path, count: int) -> str:
    """The release with this file name and count. `data check` also verifies the checksum."""
    for release in matching_releases(about, path):
        if release.count in (None, count):
            return f"{release.name}: {release.note}" if release.note else release.name
    return "unknown"


def _count_answers(questions: list[Question]) -> Table:
    question_words = []
    answer_counts = []  # distinct answers of each answerable question
    alias_counts = []
    alias_words = []
    ambiguous = 0
    for question in questions:
        question_words.append(len(question.text.split()))
        ambiguous += question.is_ambiguous
        if not question.is_answerable:
            continue
        answers = question.answers
        answer_counts.append(len(answers))
        for aliases in answers:
            alias_counts.append(len(aliases))
            for alias in aliases:
                alias_words.append(len(alias.split()))
    rows = (
        ("questions", len(questions)),
        ("without an answer", len(questions) - len(answer_counts)),
        (
            "% ambiguous (no annotator gave one answer)",
            percent(ambiguous, len(questions)),
        ),
        ("words in a question", mean(question_words)),
        ("distinct answers of a question", mean(answer_counts)),
        ("aliases of an answer", mean(alias_counts)),
        ("words in an answer", mean(alias_words)),
    )
    return Table("In general", ("", "here"), rows)


def _count_kinds(questions: list[Question]) -> list[Bars]:
    """The dataset's own labels of its questions, where it has them."""
    counts: Counter[str] = Counter()
    for question in questions:
        counts.update(question.kinds)
    if not counts:
        return []
    bars = []
    for kind, count in counts.most_common(_TOP):
        bars.append((kind, percent(count, len(questions))))
    return [Bars("Kinds of questions", tuple(bars), "% of questions")]


def _count_words(title: str, unit: str, records: Sequence[Record]) -> Bars:
    counts: Counter[int] = Counter()  # by the smallest length of a bar
    for record in records:
        length = len(record.text.split())
        low = 1 + (length - 1) // _STEP * _STEP
        counts[min(low, _LONG)] += 1
    bars = []
    for low in range(1, _LONG, _STEP):
        label = f"{low}–{low + _STEP - 1}"
        bars.append((label, percent(counts[low], len(records))))
    bars.append((f"{_LONG}+", percent(counts[_LONG], len(records))))
    return Bars(title, tuple(bars), unit)
