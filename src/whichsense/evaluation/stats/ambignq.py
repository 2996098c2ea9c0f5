"""AmbigQA's table 2 and figure 2: answers per question, how annotators searched, what they edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import FullQuestion, Question
from whichsense.evaluation.report.tables import Bars, Table, percent, shares
from whichsense.evaluation.stats.agreement import answer_agreement, multi_kappa
from whichsense.evaluation.stats.edits import edit_table, kinds_chart

# Table 2 of the paper: questions, then % with 1, 2, 3, 4+ question-answer pairs.
TABLE_2 = {
    "train": (10036, 53, 24, 14, 10),
    "dev": (2002, 49, 23, 14, 13),
    "test": (2004, 44, 24, 16, 16),
}
COVERED = (36.0, 69.0)
"""% of dev's edits covered by the 100 and the 1,000 most frequent ones, by the paper."""
GENERATORS = 60.8
"""F1ans of two annotators before validation, by the paper; the release has only what passed validation."""


def tables(name: str, questions: Sequence[Question]) -> tuple[list[Table], list[Bars]]:
    """All of it for one split."""
    published = name in ("ambignq/dev", "ambignq-full/dev")
    edited, frequent = edit_table(questions, COVERED if published else None)
    found_tables, charts = sizes(name, questions)
    found_tables, charts = (
        [*found_tables, edited],
        [*charts, frequent, kinds_chart(questions)],
    )
    if any(len(question.annotations) > 1 for question in questions):
        found_tables.append(_agreement(questions, published))
    if all(isinstance(question, FullQuestion) for question in questions):
        charts += _searches(
            [question for question in questions if isinstance(question, FullQuestion)]
        )
    return found_tables, charts


def sizes(name: str, questions: Sequence[Question]) -> tuple[list[Table], list[Bars]]:
    """Table 2 alone, for data whose annotators did not rewrite the question."""
    family, _, split = name.rpartition("/")
    paper = TABLE_2.get(split) if family.startswith("ambignq") else None
    table, chart = pairs_per_question(split, questions, paper)
    return [table], [chart]


def smallest(question: Question) -> int:
    """The number of question-answer pairs, the minimum where there are several annotations."""
    return min(len(annotation.pairs) for annotation in question.annotations)


def pairs_per_question(
    split: str, questions: Sequence[Question], paper: tuple[int, ...] | None
) -> tuple[Table, Bars]:
    """Table 2: the share of questions with 1, 2, 3 and 4 or more pairs."""
    counts = Counter(min(smallest(question), 4) for question in questions)
    percentages = shares([counts[number] for number in (1, 2, 3, 4)])
    rows: list[tuple[str | int | float | None, ...]] = [
        (split, len(questions), *percentages)
    ]
    if paper:
        rows.append((f"paper, {split}", *paper))
    labels = ("1", "2", "3", "4+")
    return (
        Table(
            "Answers per question (table 2)",
            ("split", "# data", *labels),
            tuple(rows),
            "% of questions",
        ),
        Bars(
            "Answers per question",
            tuple(zip(labels, percentages, strict=True)),
            "% of questions",
        ),
    )


def _agreement(questions: Sequence[Question], published: bool) -> Table:
    score, compared = answer_agreement(questions)
    rows = (
        (
            "F1ans of each annotation against each other",
            100 * score,
            GENERATORS if published else None,
        ),
        ("kappa: one answer or several", multi_kappa(questions), None),
        ("questions with two annotations or more", compared, None),
    )
    return Table(
        "Agreement between annotations",
        ("", "here", "paper"),
        rows,
        "the paper compares annotators before validation; the release holds what passed it",
    )


def _searches(questions: Sequence[FullQuestion]) -> list[Bars]:
    """Figures 2a and 2b: pages viewed and queries used."""
    pages = Counter(min(len(set(question.viewed_titles)), 6) for question in questions)
    queries = Counter(min(len(question.searches), 6) for question in questions)
    return [
        Bars(
            title,
            tuple(
                (f"{n}+" if n == 6 else str(n), percent(counts[n], len(questions)))
                for n in range(7)
            ),
        )
        for title, counts in (
            ("Pages viewed (figure 2a)", pages),
            ("Search queries (figure 2b)", queries),
        )
    ]
