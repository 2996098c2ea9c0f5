"""Small inputs with the results of the official functions, as the design notes list them."""

from __future__ import annotations

import pytest

from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.lab.metrics.cambignq import answer_overlap, option_overlap, ratio
from whichsense.text.overlap import edit_f1, sentence_bleu
from whichsense.text.words import normalize

PROMPT = "Who made the play the crucible?"
GOLD = "Who wrote the play the crucible?"


def words(text: str) -> tuple[str, ...]:
    return tuple(normalize(text).split())


@pytest.mark.parametrize(
    ("prediction", "bleu", "edit"),
    [
        ("Who made the play the crucible in 2012?", (0.5, 0.316228), 0.0),
        (PROMPT, (0.75, 0.5), 0.0),
        (
            "Who wrote the play crucible in 1953?",
            (0.666667, 0.632456, 0.584804, 0.508133),
            0.666667,
        ),
    ],
)
def test_questions(prediction: str, bleu: tuple[float, ...], edit: float) -> None:
    scores = sentence_bleu([words(GOLD)], words(prediction))
    assert scores[: len(bleu)] == pytest.approx(bleu, abs=1e-6)
    assert edit_f1(words(PROMPT), words(GOLD), words(prediction)) == pytest.approx(edit, abs=1e-6)


def test_short_exact_match_has_no_four_grams() -> None:
    assert sentence_bleu([("a", "b", "c")], ("a", "b", "c"))[3] == pytest.approx(0.0316, abs=1e-4)


def test_closest_reference_counts_for_length() -> None:
    long, short = tuple("abcdefgh"), tuple("ab")
    assert sentence_bleu([long, short], short)[0] == pytest.approx(1.0)
    assert sentence_bleu([long], short)[0] < 0.1


def test_normal_forms() -> None:
    assert [normalize(text) for text in ("A.B. & C-D", "St. John's", "the")] == [
        "ab cd",
        "st johns",
        "",
    ]


def test_answers() -> None:
    assert f1_answers([["S5"], ["S7"]], ["S5", "S5", "S7"]) == 0.8
    assert f1_answers([["a", "b"], ["a"]], ["a", "b"]) == 0.5
    assert f1_answers([["a"], ["a", "b"]], ["a", "b"]) == 1.0


def test_options() -> None:
    result = ratio([option_overlap(["the film", "the book", "the musical"], ["2002 film", "book"])])
    assert (result.precision, result.recall, result.f1) == pytest.approx(
        (0.7778, 0.375, 0.5060), abs=1e-4
    )
    overlap = option_overlap(["ab", "abcdef"], ["abcdefgh", "ab"])
    assert (overlap.precision_sum, overlap.recall_sum) == (1.75, 2.0)


def test_clarified_answers() -> None:
    overlap = answer_overlap([["mj", "michael jordan"], ["lebron"]], ["jordan"])
    assert (overlap.precision_sum, overlap.recall_sum) == pytest.approx((1.0, 0.428571), abs=1e-6)
