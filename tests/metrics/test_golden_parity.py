"""The official scripts' own outputs, value by value.

Those over the embedded sample are in tests/golden/; those over datasets lie beside the checkout, not in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whichsense import datasets
from whichsense.files import read_json, read_jsonl
from whichsense.lab.evaluation.scoring import score
from whichsense.lab.metrics import ambignq
from whichsense.lab.metrics.asqa import length, rouge_l_best, str_em
from whichsense.lab.metrics.cambignq import option_overlap, parse_released
from whichsense.sample import QUESTIONS
from whichsense.text.ptb import tokenize_question

SAMPLE = Path(__file__).parents[1] / "golden" / "sample_official.json.zst"
SHARED = Path(__file__).parents[2].parent / "shared"
OFFICIAL = {"F1 answer": "f1_ans", "F1 edit-f1": "f1_edit"} | {
    f"F1 bleu{n}": f"f1_bleu{n}" for n in range(1, 5)
}


def golden(name: str) -> Any:
    path = SHARED / "golden" / f"{name}.json.zst"
    if not path.exists():
        pytest.skip(
            "needs the official outputs in ../shared/golden, which are not part of the project"
        )
    return read_json(path)


def records_of(name: str) -> dict[str, Any]:
    path = SHARED / "data" / f"{name}.json.zst"
    if not path.exists():
        pytest.skip("needs the datasets in ../shared/data, which are not part of the project")
    return {record["id"]: record for record in read_json(path)}


def test_the_sample_scores_as_the_official_script_scores_it() -> None:
    """Every metric of every question, to 15 digits: the last bit depends on the order of a sum."""
    official = read_json(SAMPLE)
    gold = list(datasets.load("sample/questions"))
    predictions = {key: expected["pred"] for key, expected in official.items()}
    questions = score("ambignq", gold, predictions).questions
    assert questions.keys() == official.keys()
    for key, expected in official.items():
        assert questions[key]["multi"] == expected["multi"]
        for theirs, ours in OFFICIAL.items():
            value = expected["scores"][theirs]
            assert questions[key][ours] == pytest.approx(value, abs=1e-15), (key, ours)


def test_the_official_scores_are_of_the_sample_as_it_is() -> None:
    """A change to the sample's questions needs new official scores."""
    official = read_json(SAMPLE)
    rows = {row["id"]: row for _, row in read_jsonl(QUESTIONS)}
    assert rows.keys() == official.keys()
    for key, row in rows.items():
        assert row["question"] == official[key]["question"]
        assert row["annotations"] == official[key]["annotations"]


def test_tokens_of_real_questions() -> None:
    table = golden("ptb_tokens")
    wrong = [text for text, tokens in table.items() if " ".join(tokenize_question(text)) != tokens]
    assert (len(table), wrong) == (4146, [])


def annotation(given: dict[str, Any]) -> ambignq.Annotation:
    if given["type"] == "singleAnswer":
        return ambignq.Annotation((tuple(given["answer"]),))
    pairs = given["qaPairs"]
    return ambignq.Annotation(
        tuple(tuple(p["answer"]) for p in pairs), tuple(p["question"] for p in pairs)
    )


def test_ambignq_every_question_and_metric() -> None:
    official, records = golden("ambignq_official"), records_of("ambignq/dev")
    for key, expected in official.items():
        annotations = [annotation(one) for one in records[key]["annotations"]]
        answers, questions = (
            tuple(pair[name] for pair in expected["pred"]) for name in ("answer", "question")
        )
        scores = ambignq.score_question(
            records[key]["question"], annotations, ambignq.Prediction(answers, questions)
        )
        assert not any(one.single for one in annotations) == expected["multi"]
        for theirs, ours in OFFICIAL.items():
            assert scores[ours] == pytest.approx(expected["scores"][theirs], abs=1e-9), (key, ours)
    assert len(official) == 1003


def test_ambignq_by_files(tmp_path: Path) -> None:
    """The whole way: gold as it lies there, predictions from a file."""
    official = golden("ambignq_official")
    (tmp_path / "pred.json").write_text(
        json.dumps({key: one["pred"] for key, one in official.items()})
    )
    gold = SHARED / "data" / "ambignq" / "dev.json.zst"
    questions = score("ambignq", gold, tmp_path / "pred.json").questions
    assert questions.keys() == official.keys()
    for key, expected in official.items():
        assert questions[key]["multi"] == expected["multi"]
        for theirs, ours in OFFICIAL.items():
            assert questions[key][ours] == pytest.approx(expected["scores"][theirs], abs=1e-9), (
                key,
                ours,
            )


def test_asqa_by_files(tmp_path: Path) -> None:
    records = records_of("asqa/dev")
    for system in golden("asqa_official").values():
        (tmp_path / "pred.json").write_text(
            json.dumps({key: one["prediction"] for key, one in system.items()})
        )
        (tmp_path / "gold.json").write_text(json.dumps([records[key] for key in system]))
        questions = score("asqa", tmp_path / "gold.json", tmp_path / "pred.json").questions
        for key, expected in system.items():
            assert questions[key]["rouge_l"] == pytest.approx(expected["rougeLsum"], abs=1e-9), key
            assert questions[key]["str_em"] == pytest.approx(expected["str_em"], abs=1e-9), key


def test_asqa_every_answer() -> None:
    official, records = golden("asqa_official"), records_of("asqa/dev")
    for system in official.values():
        for key, expected in system.items():
            references = [one["long_answer"] for one in records[key]["annotations"]]
            text = expected["prediction"]
            assert rouge_l_best(references, text) == pytest.approx(
                expected["rougeLsum"], abs=1e-9
            ), key
            aliases = [pair["short_answers"] for pair in records[key]["qa_pairs"]]
            assert str_em(aliases, text) == pytest.approx(expected["str_em"], abs=1e-9), key
            assert length(text) == expected["words"]


def test_clarification_questions_exactly() -> None:
    for record in golden("askcq_official"):
        for side in ("gold", "pred"):
            assert list(parse_released(record[side])) == record[f"{side}_parsed"]
        overlap = option_overlap(record["gold_parsed"][1], record["pred_parsed"][1])
        assert [overlap.precision_sum, overlap.recall_sum] == record["overlap_p_r"]
