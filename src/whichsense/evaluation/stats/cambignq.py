"""CAmbigNQ's tables 1 and 10 and figures 6 and 7: clarification questions, their categories and options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import ClarifiedQuestion
from whichsense.evaluation.report.tables import Bars, Cell, Table, mean, percent

# Table 1 of the paper: questions, words in the clarification question and its category, options, words in an option.
_TABLE_1 = {
    "train": (4699, 13.6, 2.8, 2.9, 3.3),
    "dev": (461, 15.9, 2.5, 3.3, 3.8),
    "test": (493, 17.8, 2.8, 3.4, 4.1),
}
_TABLE_10 = {
    "train": "version, year, type, information, time",
    "dev": "version, type, time, year, information",
    "test": "version, type, information, year, time",
}
_TOP = 50  # categories in figure 6


def count_clarifications(
    name: str, questions: Sequence[ClarifiedQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    split = name.rpartition("/")[2]
    categories: Counter[str] = Counter()
    for question in questions:
        if question.category:
            categories[question.category.lower()] += 1
    ranked = categories.most_common(_TOP)
    bars = tuple((category, float(count)) for category, count in ranked)
    tables = [
        _count_sizes(split, questions),
        _count_categories(split, categories, questions),
    ]
    charts = [
        Bars(f"Top {len(ranked)} categories (figure 6)", bars, "questions"),
        _count_options(questions),
    ]
    return tables, charts


def _count_sizes(split: str, questions: Sequence[ClarifiedQuestion]) -> Table:
    """Table 1. The category is counted with its "Which", as the released code parses it."""
    words = []
    category_words = []
    option_counts = []
    option_words = []
    for question in questions:
        words.append(len(question.clarification.split()))
        if question.category:
            category_words.append(len(_heading(question).split()))
        option_counts.append(len(question.options))
        for option in question.options:
            option_words.append(len(option.split()))
    row = (
        split,
        len(questions),
        mean(words),
        mean(category_words),
        mean(option_counts),
        mean(option_words),
    )
    rows: list[tuple[Cell, ...]] = [row]
    if split in _TABLE_1:
        rows.append((f"paper, {split}", *_TABLE_1[split]))
    columns = ("split", "#", "words", "words in category", "options", "words in option")
    return Table("Clarification questions (table 1)", columns, tuple(rows))


def _heading(question: ClarifiedQuestion) -> str:
    """The part of a clarification question before its options."""
    heading, colon, _ = question.clarification.partition(":")
    return heading if colon else question.category


def _count_categories(
    split: str, categories: Counter[str], questions: Sequence[ClarifiedQuestion]
) -> Table:
    """Table 10, and what section B.5 says about rare categories."""
    top = ", ".join(category for category, _ in categories.most_common(5))
    once = list(categories.values()).count(1)
    invalid = 0
    matching = 0
    for question in questions:
        if not question.category:
            invalid += 1
        if len(question.options) == len(question.clarified_answers):
            matching += 1
    rows = (
        ("most frequent (table 10)", top, _TABLE_10.get(split)),
        ("distinct", len(categories), None),
        ("that occur once", once, None),
        ("questions without a category (invalid form)", invalid, None),
        ("questions whose options match the answers in number", matching, None),
    )
    return Table(
        "Categories",
        ("", "here", "paper"),
        rows,
        "over all splits the paper has 593, 412 of them once",
    )


def _count_options(questions: Sequence[ClarifiedQuestion]) -> Bars:
    counts: Counter[int] = Counter()
    for question in questions:
        if question.options:
            counts[len(question.options)] += 1
    bars = []
    for number in sorted(counts):
        bars.append((str(number), percent(counts[number], counts.total())))
    return Bars("Options (figure 7)", tuple(bars), "% of questions")
