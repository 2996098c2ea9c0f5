"""QA-Feedback: errors of model answers, information that they miss, and people's preferences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from whichsense.datasets import FeedbackQuestion, Preference
from whichsense.evaluation.report.tables import Bars, Table, mean, percent


def count_feedback(
    name: str, questions: Sequence[FeedbackQuestion]
) -> tuple[list[Table], list[Bars]]:
    """All statistics of one split."""
    errors: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for question in questions:
        errors.update(error.kind for error in question.errors)
        missing.update(item.kind for item in question.missing)
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
    prediction_words = []
    corrected_words = []
    marked_shares = []
    for question in questions:
        prediction = question.predictions[0]
        prediction_words.append(len(prediction.split()))
        corrected_words.append(len(question.corrected.split()))
        marked: set[int] = set()  # characters; error spans may overlap
        for error in question.errors:
            marked.update(range(error.start, error.end))
        marked_shares.append(percent(len(marked), len(prediction)))
    flawless = sum(not (one.errors or one.missing) for one in questions)
    rows = (
        ("predictions of a question", mean(len(one.predictions) for one in questions)),
        ("passages of a question", mean(len(one.passages) for one in questions)),
        ("words in the first prediction", mean(prediction_words)),
        ("words in its correction", mean(corrected_words)),
        ("% of its characters in error spans", mean(marked_shares)),
        ("error spans", mean(len(one.errors) for one in questions)),
        (
            "mentions of missing information",
            mean(len(one.missing) for one in questions),
        ),
        ("% without either", percent(flawless, len(questions))),
    )
    return Table("Feedback on the first prediction", ("", "here"), rows)


def _count_preferences(questions: Sequence[FeedbackQuestion]) -> Table:
    comparisons: list[Preference] = []
    for question in questions:
        comparisons.extend(question.preferences)
    undecided = sum(one.better is None for one in comparisons)
    first_wins = sum(one.better == one.first for one in comparisons)
    rows = (
        ("comparisons", len(comparisons)),
        ("% without a preference", percent(undecided, len(comparisons))),
        ("% that prefer the first of the two", percent(first_wins, len(comparisons))),
    )
    return Table("Preferences", ("", "here"), rows)
