"""QA-Feedback: errors of model answers, information that they miss, and people's preferences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import FeedbackQuestion
from whichsense.evaluation.report.tables import Bars, Table, mean, percent


def count_feedback(
    name: str, questions: Sequence[FeedbackQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    errors: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for question in questions:
        for error in question.errors:
            errors[error.kind] += 1
        for item in question.missing:
            missing[item.kind] += 1
    tables = [_count_predictions(questions), _count_preferences(questions)]
    charts = [
        _to_bars("Errors in a prediction", errors, "error spans"),
        _to_bars("Missing information", missing, "mentions"),
    ]
    return tables, charts


def _to_bars(title: str, counts: Counter[str], unit: str) -> Bars:
    bars = [(kind, float(count)) for kind, count in counts.most_common()]
    return Bars(title, tuple(bars), unit)


def _count_predictions(questions: Sequence[FeedbackQuestion]) -> Table:
    """Errors, missing information and corrections are about the first prediction."""
    totals: Counter[str] = Counter()  # over all questions, by row
    marked_shares = []  # % of each prediction's characters
    flawless = 0
    for question in questions:
        prediction = question.predictions[0]
        totals["predictions of a question"] += len(question.predictions)
        totals["passages of a question"] += len(question.passages)
        totals["words in the first prediction"] += len(prediction.split())
        totals["words in its correction"] += len(question.corrected.split())
        totals["error spans"] += len(question.errors)
        totals["mentions of missing information"] += len(question.missing)
        marked: set[int] = set()  # characters; error spans may overlap
        for error in question.errors:
            marked.update(range(error.start, error.end))
        marked_shares.append(percent(len(marked), len(prediction)))
        if not question.errors and not question.missing:
            flawless += 1
    rows: list[tuple[str, float]] = []
    for label, total in totals.items():
        rows.append((label, total / len(questions)))
    rows.append(("% of its characters in error spans", mean(marked_shares)))
    rows.append(("% without either", percent(flawless, len(questions))))
    return Table("Feedback on the first prediction", ("", "here"), tuple(rows))


def _count_preferences(questions: Sequence[FeedbackQuestion]) -> Table:
    comparisons = undecided = first_wins = 0
    for question in questions:
        for preference in question.preferences:
            comparisons += 1
            undecided += preference.better is None
            first_wins += preference.better == preference.first
    rows = (
        ("comparisons", comparisons),
        ("% without a preference", percent(undecided, comparisons)),
        ("% that prefer the first of the two", percent(first_wins, comparisons)),
    )
    return Table("Preferences", ("", "here"), rows)
