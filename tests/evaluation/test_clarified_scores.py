"""Clarified answers, collapse, detection and answer sets, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whichsense.errors import BadInput
from whichsense.lab.datasets.readers import read_ramdocs
from whichsense.lab.datasets.rows import ParsedJson, Rows
from whichsense.lab.evaluation.scoring import score
from whichsense.lab.metrics.cambignq import distinct_answers, distinct_answers_released

GOLD = [
    {
        "id": "1",
        "question": "Who won?",
        "clarification_question": "Which year: 2012, or 2016?",
        "clarification_answers": [["Ann"], ["Bo", "Bo Lee"]],
    },
    {
        "id": "2",
        "question": "When was it built?",
        "clarification_question": "Which one: the tower, or the wall?",
        "clarification_answers": [{"answer": ["1901"]}, {"answer": ["1455"]}],
    },
]


def answered(asked: bool, options: list[str], direct: list[str]) -> dict[str, object]:
    return {
        "asked": asked,
        "clarification": "Which one: …?",
        "options": [{"option": "x", "answer": answer} for answer in options],
        "answers": direct,
    }


def test_by_hand() -> None:
    predictions = {
        # Both right. Without asking, one of two.
        "1": answered(True, ["Ann", "Bo"], ["Ann"]),
        # The same answer twice: collapse. Not asked.
        "2": answered(False, ["1901", "1901"], ["1901", "1455"]),
    }
    metrics = score("cambignq-answers", GOLD, predictions).metrics
    # Per option, question 2: the second "1901" has one letter of "1455" in common.
    assert metrics["answer_precision"] == pytest.approx((2 + 1 + 1 / 4) / 4)
    assert metrics["answer_recall"] == pytest.approx((2 + 1 + 1 / 4) / 4)
    # Who is not asked has no answer; a list of no answers counts as one.
    assert metrics["end_to_end_precision"] == pytest.approx(2 / 3)
    assert metrics["end_to_end_recall"] == pytest.approx(2 / 4)
    # … or is told all answers at once: two of two, as from the options of question 1.
    assert metrics["served_precision"] == metrics["served_recall"] == 1.0
    assert metrics["direct_precision"] == pytest.approx(3 / 3)
    assert metrics["direct_recall"] == pytest.approx(3 / 4)
    assert metrics["accuracy"] == pytest.approx(3 / 4)  # options with their own answer
    assert metrics["options"] == 2.0
    assert metrics["distinct_answers"] == 1.5  # (2 + 1) / 2
    assert metrics["distinct_answers_released"] == 1.5
    assert metrics["asked"] == 0.5


def test_collapse_as_released_and_by_question() -> None:
    answers = [["Ann", "the Ann"], ["ann", "Bo"], ["", "Bo"]]
    assert distinct_answers_released(answers) == pytest.approx(2 / 3)
    assert list(map(distinct_answers, answers)) == [1, 2, 1]


def test_lists_of_answers_will_do() -> None:
    metrics = score("cambignq-answers", GOLD, {"1": ["Ann", "Bo"], "2": ["1901", "1455"]}).metrics
    assert metrics["answer_f1"] == metrics["end_to_end_f1"] == metrics["accuracy"] == 1.0
    assert metrics["direct_f1"] == 0.0


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="missing ids: 1 \\('2'\\)"):
        score("cambignq-answers", GOLD, {"1": ["Ann", "Bo"]})
    with pytest.raises(BadInput, match="not in the gold file"):
        score("cambignq-answers", GOLD, {"9": ["Ann"]}, allow_missing=True)
    with pytest.raises(BadInput, match="an 'answer'"):
        score("cambignq-answers", GOLD, {"1": {"options": [{}]}}, allow_missing=True)
    unknown = [GOLD[0] | {"clarification_answers": []}]
    with pytest.raises(BadInput, match="No question has answers"):
        score("cambignq-answers", unknown, {"1": ["Ann"]})
    path = tmp_path / "gold.json"
    path.write_text(json.dumps([*GOLD, unknown[0] | {"id": "3"}]))
    result = score("cambignq-answers", path, {"1": ["Ann"]}, allow_missing=True)
    assert result.counts["n"] == 2 and "without known answers: 1" in result.notes[0]


def test_detection_over_a_dataset() -> None:
    several = {"type": "multipleQAs", "qaPairs": [{"question": "a?", "answer": ["a"]}] * 2}
    single = {"type": "singleAnswer", "answer": ["a"]}
    gold = [
        {"id": "1", "question": "A?", "annotations": [several]},
        {"id": "2", "question": "B?", "annotations": [several]},
        {"id": "3", "question": "C?", "annotations": [single]},
    ]
    predictions = {"1": True, "2": {"ambiguous": False}, "3": True}
    metrics = score("ambiguity", gold, predictions).metrics
    assert metrics == {"accuracy": pytest.approx(1 / 3), "precision": 0.5, "recall": 0.5, "f1": 0.5}
    with pytest.raises(BadInput, match="true or false"):
        score("ambiguity", gold, {"1": "yes"}, allow_missing=True)


def test_ramdocs() -> None:
    gold = [
        {
            "question": "When was it built?",
            "documents": [{"text": "In 1902.", "type": "correct", "answer": "1902"}],
            "disambig_entity": ["Iowa", "Ohio"],
            "gold_answers": ["1902", "3,559 people"],
            "wrong_answers": ["1885"],
        }
    ]
    (question,) = read_ramdocs(Rows(ParsedJson(gold, "gold"), ""))
    key = question.id

    def exact(answers: list[str]) -> tuple[float | None, ...]:
        metrics = score("ramdocs", gold, {key: answers}).metrics
        names = ("exact_match", "exact_match_listed", "wrong_answer")
        return tuple(metrics[name] for name in names)

    assert exact(["3,559", "1902"]) == (1, 1, 0)
    assert exact(["3,559", "1902", "1777"]) == (0, 1, 0)  # not listed as wrong
    assert exact(["3,559", "1902", "1885"]) == (0, 0, 1)
    assert exact(["1902"]) == (0, 0, 0)
    readings = [{"question": "?", "answer": "1902"}]
    assert score("ramdocs", gold, {key: readings}).metrics["answer_recall"] == 0.5
