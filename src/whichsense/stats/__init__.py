"""Statistics of a dataset: what the papers print about theirs, computed from the file that is here."""

from __future__ import annotations

from pathlib import Path

from whichsense import datasets
from whichsense.datasets import ClarifiedQuestion, LongQuestion, Question

from . import ambignq, asqa, cambignq
from .agreement import kappa
from .draw import to_html, to_svg
from .shape import Bars, Statistics, Table, mean, percent

__all__ = ["Bars", "Statistics", "Table", "kappa", "statistics", "to_html", "to_svg"]


def statistics(name: str, data_dir: str | Path | None = None) -> Statistics:
    """Everything that is counted about one dataset."""
    questions = list(datasets.load(name, data_dir=data_dir))
    tables, charts = [_general(questions)], [_words(questions)]
    clarified = [question for question in questions if isinstance(question, ClarifiedQuestion)]
    long = [question for question in questions if isinstance(question, LongQuestion)]
    if clarified:
        more = cambignq.tables(name, clarified)
    elif long:
        more = asqa.tables(name, long)
    elif any(pair.question for q in questions for a in q.annotations for pair in a.pairs):
        more = ambignq.tables(name, questions)
    else:
        more = ([], [])
    return Statistics(name, _release(name, len(questions)), (*tables, *more[0]), (*more[1], *charts))


def _release(name: str, count: int) -> str:
    """Which release has this many records: not proved by a checksum here, only told."""
    for release in datasets.entry(name).releases:
        if release.count == count:
            return f"{release.name}: {release.note}" if release.note else release.name
    return "unknown"


def _general(questions: list[Question]) -> Table:
    answerable = [question for question in questions if question.is_answerable]
    answers = [aliases for question in answerable for aliases in question.answers]
    rows = (
        ("questions", len(questions)),
        ("without an answer", len(questions) - len(answerable)),
        ("% ambiguous (no annotator gave one answer)", percent(sum(q.is_ambiguous for q in questions), len(questions))),
        ("words in a question", mean(len(question.text.split()) for question in questions)),
        ("distinct answers of a question", mean(len(question.answers) for question in answerable)),
        ("aliases of an answer", mean(len(aliases) for aliases in answers)),
        ("words in an answer", mean(len(alias.split()) for aliases in answers for alias in aliases)),
    )
    return Table("In general", ("", "here"), rows)


def _words(questions: list[Question]) -> Bars:
    lengths = [len(question.text.split()) for question in questions]
    bars = []
    for low in range(1, 20, 3):
        high = low + 2 if low < 19 else 10**9
        inside = sum(low <= length <= high for length in lengths)
        bars.append((f"{low}–{high}" if low < 19 else "19+", percent(inside, len(lengths))))
    return Bars("Words in a question", tuple(bars), "% of questions")
