"""ALCE's citation recall and precision, counted by hand from its released rules."""

from __future__ import annotations

import pytest

from whichsense.errors import BadInput
from whichsense.lab.evaluation.scoring import score
from whichsense.lab.metrics.asqa import CitedDocument, citation_scores

DOCUMENTS = [
    CitedDocument("Film", "alpha"),
    CitedDocument("Play", "beta"),
    CitedDocument("Book", "alpha beta"),
    CitedDocument("Song", "gamma"),
]


def holds_words(passage: str, sentence: str) -> bool:
    """A judge: every word of the sentence stands in the passage."""
    return set(sentence.lower().rstrip(".").split()) <= set(passage.lower().split())


def scores(text: str) -> tuple[float, float]:
    found = citation_scores(text, DOCUMENTS, holds_words)
    assert found is not None
    return found.recall, found.precision


@pytest.mark.parametrize(
    ("text", "recall", "precision"),
    [
        ("Alpha [1].", 1, 1),
        ("Alpha [2].", 0, 0),  # the only citation is wrong
        ("Alpha.", 0, 0),  # no citation
        ("Alpha [1][9].", 0, 0),  # out of range: the sentence fails, nothing is counted
        ("Alpha beta [1][2].", 1, 1),  # only together, so neither can be left out
        ("Alpha beta [1][2][4].", 1, 2 / 3),  # the fourth can be left out
        ("Alpha beta [3][1].", 1, 1 / 2),  # [3] alone is enough: [1] is needless
        ("Alpha [1][3].", 1, 1),  # each is enough alone: both count
        ("Gamma [1][2][3][4].", 0, 0),  # the fourth citation does not count
        ("Alpha [1][2][3][4].", 1, 2 / 3),  # … nor in the denominator
        ("Alpha [1]. Beta [1]. Gamma.", 1 / 3, 1 / 2),
        ("Film [1].", 1, 1),  # the passage begins with "Title: Film"
        ("Alpha [1].\nBeta [1].", 1, 1),  # only the first line is read
    ],
)
def test_released_rules(text: str, recall: float, precision: float) -> None:
    assert scores(text) == (pytest.approx(recall), pytest.approx(precision))


def test_an_answer_without_sentences_is_left_out() -> None:
    assert citation_scores("", DOCUMENTS, holds_words) is None


def test_the_documents_are_joined_with_their_titles() -> None:
    seen = []

    def judge(passage: str, sentence: str) -> bool:
        seen.append((passage, sentence))
        return False

    citation_scores("Alpha beta [1][2].", DOCUMENTS, judge)
    assert seen == [("Title: Film\nalpha\nTitle: Play\nbeta", "Alpha beta.")]


GOLD = [
    {
        "id": key,
        "question": "Who?",
        "qa_pairs": [
            {"question": "Who one?", "short_answers": ["alpha"], "wikipage": None},
            {"question": "Who two?", "short_answers": ["beta"], "wikipage": None},
        ],
        "annotations": [{"long_answer": "Alpha and beta.", "knowledge": []}] * 2,
        "wikipages": [],
    }
    for key in ("a", "b", "c")
]


def test_over_a_dataset() -> None:
    documents = [{"title": one.title, "text": one.text} for one in DOCUMENTS]
    predictions = {
        "a": {
            "text": "Alpha. Beta.",
            "sentences": [
                {"sentence": "Alpha.", "citations": [1]},
                {"sentence": "Beta.", "citations": [1]},
            ],
            "documents": documents,
        },
        "b": {"text": "", "sentences": [], "documents": []},
        "c": "Alpha.",
    }
    result = score("asqa", GOLD, predictions, judge=holds_words)
    # b has no sentence and does not count; c cites nothing.
    assert result.metrics["citation_recall"] == pytest.approx((0.5 + 0) / 2)
    assert result.metrics["citation_precision"] == pytest.approx((0.5 + 0) / 2)
    assert result.metrics["sentences_cited"] == 0.5
    assert result.label("citation_recall") == "citation_recall (judge: own)"
    assert set(result.intervals) >= {"citation_recall", "citation_precision"}
    assert result.metrics["str_em"] == pytest.approx((1 + 0 + 0.5) / 3)


def test_wrong_form_is_refused() -> None:
    wrong = {"a": {"text": "x", "sentences": [{"sentence": "x"}]}}
    with pytest.raises(BadInput, match="needs 'text', 'sentences'"):
        score("asqa", GOLD, wrong, allow_missing=True)
