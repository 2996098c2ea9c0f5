"""AmbigQA's table 2 and figure 2: answers per question, the annotators' searches and edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import FullQuestion, Question
from whichsense.evaluation.report.tables import Bars, Table, percent, shares
from whichsense.evaluation.stats.agreement import ambiguity_kappa, answer_agreement
from whichsense.evaluation.stats.edits import count_edit_kinds, count_edits

# Table 2 of the paper: questions, then % with 1, 2, 3, 4+ question-answer pairs.
_TABLE_2 = {
    "train": (10036, 53, 24, 14, 10),
    "dev": (2002, 49, 23, 14, 13),
    "test": (2004, 44, 24, 16, 16),
}
# % of dev's edits covered by the 100 and the 1,000 most frequent ones, by the paper.
_COVERED = (36.0, 69.0)
# F1ans of two annotators before validation, by the paper; the release has only what passed validation.
_GENERATORS = 60.8
_MOST_SEARCHES = 6  # the last bar of figures 2a and 2b stands for as many or more


def count_annotations(
    name: str, questions: Sequence[Question]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    published = name in ("ambignq/dev", "ambignq-full/dev")
    tables, charts = count_answer_numbers(name, questions)
    edit_table, edit_chart = count_edits(questions, _COVERED if published else None)
    tables.append(edit_table)
    charts.extend((edit_chart, count_edit_kinds(questions)))
    if any(len(question.annotations) > 1 for question in questions):
        tables.append(_count_agreement(questions, published))
    full = [question for question in questions if isinstance(question, FullQuestion)]
    if len(full) == len(questions):
        charts.extend(_count_searches(full))
    return tables, charts


def count_answer_numbers(
    name: str, questions: Sequence[Question]
) -> tuple[list[Table], list[Bars]]:
    """Table 2 alone, for data whose annotators did not rewrite the question.

    A question with several annotations counts with the smallest of them.
    """
    family, _, split = name.rpartition("/")
    counts: Counter[int] = Counter()
    for question in questions:
        sizes = [len(annotation.pairs) for annotation in question.annotations]
        counts[min(4, *sizes)] += 1
    percentages = shares(list(map(counts.__getitem__, (1, 2, 3, 4))))
    rows: list[tuple[str | int | float | None, ...]] = [
        (split, len(questions), *percentages)
    ]
    if family.startswith("ambignq") and split in _TABLE_2:
        rows.append((f"paper, {split}", *_TABLE_2[split]))
    labels = ("1", "2", "3", "4+")
    table = Table(
        "Answers per question (table 2)",
        ("split", "# data", *labels),
        tuple(rows),
        "% of questions",
    )
    chart = Bars(
        "Answers per question",
        tuple(zip(labels, percentages, strict=True)),
        "% of questions",
    )
    return [table], [chart]


def _count_agreement(questions: Sequence[Question], published: bool) -> Table:
    score, compared = answer_agreement(questions)
    rows = (
        (
            "F1ans of each annotation against each other",
            100 * score,
            _GENERATORS if published else None,
        ),
        ("kappa: one answer or several", ambiguity_kappa(questions), None),
        ("questions with two annotations or more", compared, None),
    )
    return Table(
        "Agreement between annotations",
        ("", "here", "paper"),
        rows,
        "the paper compares annotators before validation; the release holds what passed it",
    )


def _count_searches(questions: Sequence[FullQuestion]) -> list[Bars]:
    """Figures 2a and 2b: pages viewed and queries used."""
    pages = []
    queries = []
    for question in questions:
        pages.append(len(set(question.viewed_titles)))
        queries.append(len(question.searches))
    return [
        _to_bars("Pages viewed (figure 2a)", pages),
        _to_bars("Search queries (figure 2b)", queries),
    ]


def _to_bars(title: str, numbers: Sequence[int]) -> Bars:
    counts: Counter[int] = Counter()
    for number in numbers:
        counts[min(number, _MOST_SEARCHES)] += 1
    bars = []
    for number in range(_MOST_SEARCHES + 1):
        label = f"{number}+" if number == _MOST_SEARCHES else str(number)
        bars.append((label, percent(counts[number], len(numbers))))
    return Bars(title, tuple(bars))
