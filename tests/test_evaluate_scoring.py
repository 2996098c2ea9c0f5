"""Scoring from Python: gold and predictions as objects, with the same scores as from files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from whichsense.errors import BadInput
from whichsense.lab.datasets import Annotation, ClarifiedQuestion, QAPair, Question, load
from whichsense.lab.evaluation.scoring import score
from whichsense.types import Reading

AMBIGNQ = [
    {
        "id": "1",
        "question": "When did it open?",
        "annotations": [
            {
                "type": "multipleQAs",
                "qaPairs": [
                    {"question": "When did the play open?", "answer": ["1953"]},
                    {"question": "When did the film open?", "answer": ["1996"]},
                ],
            }
        ],
    },
    {
        "id": "2",
        "question": "Who wrote it?",
        "annotations": [{"type": "singleAnswer", "answer": ["Arthur Miller"]}],
    },
]
ASQA = {
    "dev": {
        "7": {
            "ambiguous_question": "When did it open?",
            "qa_pairs": [{"question": "The play?", "short_answers": ["1953"]}],
            "annotations": [{"long_answer": "The play opened in 1953."}],
        }
    }
}
CLARIFICATION = "Which one: the play, or the film?"
GOLDS: dict[str, Any] = {
    "ambignq": AMBIGNQ,
    "asqa": ASQA,
    "cambignq": {"1": CLARIFICATION},
    "nq": [{"id": "1", "question": "Who wrote it?", "answer": ["Miller"]}],
}
PREDICTIONS: dict[str, Any] = {
    "ambignq": {"1": ["1953"], "2": ["Miller"]},
    "asqa": {"7": "It opened in 1953."},
    "cambignq": {"1": "Which one: the play, or the book?"},
    "nq": {"1": ["miller", "Lee"]},
}


@dataclass(frozen=True)
class Answered:
    """Anything with readings, for example a case."""

    readings: tuple[Reading, ...]


@pytest.mark.parametrize("benchmark", GOLDS)
def test_objects_score_as_files_do(benchmark: str, tmp_path: Path) -> None:
    gold, predictions = tmp_path / "gold.json", tmp_path / "predictions.json"
    gold.write_text(json.dumps(GOLDS[benchmark]))
    predictions.write_text(json.dumps(PREDICTIONS[benchmark]))
    result = score(benchmark, GOLDS[benchmark], PREDICTIONS[benchmark])
    assert result == score(benchmark, gold, predictions)
    assert result.name == "predictions" and result.dataset == benchmark


def test_cases_and_readings() -> None:
    readings = (
        Reading("When did the play open?", "1953"),
        Reading("When did the film open?", "1996"),
    )
    cases = [Answered(readings), Answered((Reading("Who wrote it?", "Lee"),))]
    result = score("ambignq", AMBIGNQ, cases)
    by_id = {"1": cases[0], "2": list(cases[1].readings)}
    assert result == score("ambignq", AMBIGNQ, by_id)
    assert result.metrics["f1_ans"] == 0.5 and result.metrics["f1_edit"] == 1.0
    with pytest.raises(BadInput, match="1 predictions for 2 questions"):
        score("ambignq", AMBIGNQ, cases[:1])
    with pytest.raises(BadInput, match="empty predictions: 1"):
        score("ambignq", AMBIGNQ, [cases[0], Answered(())])
    answers = score("nq", GOLDS["nq"], [Answered((Reading("?", "Miller"),))])
    assert answers.metrics["em"] == 1.0


def test_records() -> None:
    questions = [question for question in load("sample/questions")][:5]
    firsts = {one.id: [one.answers[0][0]] for one in questions}
    assert score("nq", questions, firsts).metrics["em"] == 1.0
    asked = ClarifiedQuestion("1", "When?", clarification=CLARIFICATION)
    assert score("cambignq", [asked], {"1": CLARIFICATION}).metrics["bleu4"] == 1.0


def test_mistakes() -> None:
    with pytest.raises(BadInput, match=r"No benchmark 'ambigqn'\. Did you mean 'amb"):
        score("ambigqn", [], {})
    with pytest.raises(BadInput, match="'gold' holds no questions"):
        score("ambignq", [], {})
    with pytest.raises(BadInput, match="'gold', record 1: no field 'annotations'"):
        score("ambignq", [{"id": "1", "question": "Who?"}], {})
    with pytest.raises(BadInput, match=r"'predictions': missing ids: 1 .*allow_missing"):
        score("ambignq", AMBIGNQ, {"1": ["1953"]})
    plain = Question("1", "Who?", (Annotation("singleAnswer", (QAPair(("A",)),)),))
    with pytest.raises(BadInput, match="must hold LongQuestion records, not Question"):
        score("asqa", [plain], {"1": "A"})
    with pytest.raises(BadInput, match="Gold question '1' has no annotation"):
        score("ambignq", [Question("1", "Who?")], {"1": ["A"]})
