"""CAmbigNQ's tables 1 and 10 and figures 6 and 7: clarification questions, their categories and options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import ClarifiedQuestion
from whichsense.evaluation.report.tables import Bars, Table, mean, percent

# Table 1 of the paper: questions, words in the clarification question and its category, options, words in an option.
TABLE_1 = {
    "train": (4699, 13.6, 2.8, 2.9, 3.3),
    "dev": (461, 15.9, 2.5, 3.3, 3.8),
    "test": (493, 17.8, 2.8, 3.4, 4.1),
}
TABLE_10 = {
    "train": "version, year, type, information, time",
    "dev": "version, type, time, year, information",
    "test": "version, type, information, year, time",
}
_TOP = 50


def tables(
    name: str, questions: Sequence[ClarifiedQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All of it for one split."""
    split = name.rpartition("/")[2]
    counts = Counter(
        question.category.lower() for question in questions if question.category
    )
    ranked = counts.most_common(_TOP)
    return [_sizes(split, questions), _categories(split, counts, questions)], [
        Bars(
            f"Top {len(ranked)} categories (figure 6)",
            tuple((name, float(n)) for name, n in ranked),
            "questions",
        ),
        _options(questions),
    ]


def _sizes(split: str, questions: Sequence[ClarifiedQuestion]) -> Table:
    """Table 1. The category is counted with its "Which", as the released code parses it."""
    row = (
        split,
        len(questions),
        mean(len(question.clarification.split()) for question in questions),
        mean(
            len(_before_options(question).split())
            for question in questions
            if question.category
        ),
        mean(len(question.options) for question in questions),
        mean(
            len(option.split()) for question in questions for option in question.options
        ),
    )
    rows = [row, *([(f"paper, {split}", *TABLE_1[split])] if split in TABLE_1 else [])]
    columns = ("split", "#", "words", "words in category", "options", "words in option")
    return Table("Clarification questions (table 1)", columns, tuple(rows))


def _before_options(question: ClarifiedQuestion) -> str:
    return (
        question.clarification.partition(":")[0]
        if ":" in question.clarification
        else question.category
    )


def _categories(
    split: str, counts: Counter[str], questions: Sequence[ClarifiedQuestion]
) -> Table:
    """Table 10, and what section B.5 says about rare categories."""
    top = ", ".join(category for category, _ in counts.most_common(5))
    rows = (
        ("most frequent (table 10)", top, TABLE_10.get(split)),
        ("distinct", len(counts), None),
        ("that occur once", sum(count == 1 for count in counts.values()), None),
        (
            "questions without a category (invalid form)",
            sum(not q.category for q in questions),
            None,
        ),
        (
            "questions whose options match the answers in number",
            sum(_fits(q) for q in questions),
            None,
        ),
    )
    return Table(
        "Categories",
        ("", "here", "paper"),
        rows,
        "over all splits the paper has 593, 412 of them once",
    )


def _fits(question: ClarifiedQuestion) -> bool:
    return len(question.options) == len(question.clarified_answers)


def _options(questions: Sequence[ClarifiedQuestion]) -> Bars:
    counts = Counter(
        len(question.options) for question in questions if question.options
    )
    bars = tuple(
        (str(number), percent(counts[number], counts.total()))
        for number in sorted(counts)
    )
    return Bars("Options (figure 7)", bars, "% of questions")
