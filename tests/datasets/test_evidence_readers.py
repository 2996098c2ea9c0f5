"""The schemas of CAmbigNQ's part, QA-Feedback, RAMDocs, WiCE and ClapNQ, with small invented files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whichsense import datasets
from whichsense.errors import BadInput, DamagedData
from whichsense.lab.datasets import (
    Claim,
    ClarifiedQuestion,
    ConflictQuestion,
    Context,
    ErrorSpan,
    FeedbackQuestion,
    GroundedLongQuestion,
    LongQuestion,
    MissingInformation,
    Preference,
    SentencePassage,
)


def put(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".jsonl"):
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text(json.dumps(rows))


def change(row: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**row, **fields}


CLARIFIED = {
    "id": "7",
    "question": "When did the pier open?",
    "clarification_question": "As of which building: the old pier, or the new pier?",
    "category": "As of which building",
    "options": ["the old pier", "the new pier"],
    "clarification_answers": [
        {
            "question": "When did the old pier open?|When was the old pier opened?",
            "answer": ["1871"],
            "clarification": "the old pier",
        },
        {
            "question": "When did the new pier open?",
            "answer": ["1934", "in 1934"],
            "clarification": "the new pier",
        },
    ],
}


def test_the_part_of_cambignq(tmp_path: Path) -> None:
    unpaired = change(CLARIFIED, id="8", clarification_answers=[])
    put(tmp_path, "cambignq/part_dev.json", CLARIFIED, unpaired)
    one, two = datasets.load("cambignq/part_dev", ClarifiedQuestion, data_dir=tmp_path)
    assert one.clarification == CLARIFIED["clarification_question"]
    assert (one.category, one.options) == ("building", ("the old pier", "the new pier"))
    assert one.clarified_answers == one.answers == (("1871",), ("1934", "in 1934"))
    assert one.annotations[0].pairs[0].questions == (
        "When did the old pier open?",
        "When was the old pier opened?",
    )
    assert one.is_ambiguous
    assert (two.options, two.clarified_answers) == (one.options, ())


def test_options_that_do_not_match_their_answers(tmp_path: Path) -> None:
    wrong = change(CLARIFIED, options=["the new pier", "the old pier"])
    put(tmp_path, "cambignq/part_dev.json", wrong)
    with pytest.raises(DamagedData, match="are not those of 'options'"):
        list(datasets.load("cambignq/part_dev", data_dir=tmp_path))


ASQA_PART = {
    "id": "a1",
    "question": "Who dug it?",
    "split": "val",
    "long_answers": ["Ann dug it first, then Bob."],
    "passages": [{"content": "Ann and Bob dug.", "wikipage": "Digging"}],
    "qa_pairs": [
        {"question": "Who dug it first?", "short_answers": ["Ann"]},
        {"question": "Who dug it next?", "short_answers": ["Bob", "Robert"]},
    ],
}


def test_the_part_of_asqa(tmp_path: Path) -> None:
    put(tmp_path, "asqa/train_part.json", ASQA_PART)
    (question,) = datasets.load("asqa/train_part", LongQuestion, data_dir=tmp_path)
    assert (question.id, question.text, question.split) == ("a1", "Who dug it?", "val")
    assert question.answers == (("Ann",), ("Bob", "Robert"))
    assert question.long_answers[0].text == "Ann dug it first, then Bob."
    assert question.passages == (Context("Digging", "Ann and Bob dug."),)
    assert question.contexts == ("", "")


FEEDBACK = {
    "question": "Who dug it?",
    "passages": [["Digging", "Ann dug.", "Bob dug."], ["Moles", "Moles dig."]],
    "gold": "Ann and Bob dug it.",
    "prediction 1": "Ann dug. Moles dig.",
    "prediction 2": "Bob dug.",
    "prediction 3": "Nobody dug.",
    "prediction 4": "Ann dug.",
    "feedback": {
        "errors": [{"error type": "Irrelevant", "explanation": "", "start": 9, "end": 19}],
        "missing-info": [{"error type": "Missing-Answer", "passage_id": 1, "sentence_id": [2]}],
        "corrected-prediction": "Ann dug, and Bob.",
    },
    "preference": [1, 1, 0, 2, 1, 2],
}


def test_feedback(tmp_path: Path) -> None:
    put(tmp_path, "asqa/train_feedback.json", FEEDBACK)
    (question,) = datasets.load("asqa/train_feedback", FeedbackQuestion, data_dir=tmp_path)
    assert question.answers == (("Ann and Bob dug it.",),)
    assert question.passages[0] == SentencePassage("Digging", ("Ann dug.", "Bob dug."))
    assert question.predictions[3] == "Ann dug."
    assert question.errors == (ErrorSpan("Irrelevant", 9, 19),)
    assert question.predictions[0][9:19] == "Moles dig."
    assert question.missing == (MissingInformation("Missing-Answer", 1, (2,)),)
    assert question.corrected == "Ann dug, and Bob."
    assert question.preferences == (
        Preference(0, 1, 0),
        Preference(0, 2, 0),
        Preference(0, 3, None),
        Preference(1, 2, 2),
        Preference(1, 3, 1),
        Preference(2, 3, 3),
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"preference": [1, 1]}, "'preference' must be 6 numbers"),
        ({"preference": [1, 1, 1, 1, 1, 3]}, "each 0, 1 or 2"),
        ({"preference": [1, 1, 1, 1, 1, True]}, "a list of whole numbers"),
        (
            {"feedback": {**FEEDBACK["feedback"], "errors": [  # type: ignore[dict-item]
                {"error type": "x", "start": 5, "end": 20}]}},
            r"'start' and 'end' must lie in 0 … 19",
        ),
        (
            {"feedback": {**FEEDBACK["feedback"], "missing-info": [  # type: ignore[dict-item]
                {"error type": "x", "passage_id": 3, "sentence_id": [1]}]}},
            r"'passage_id' must lie in 1 … 2",
        ),
        (
            {"feedback": {**FEEDBACK["feedback"], "missing-info": [  # type: ignore[dict-item]
                {"error type": "x", "passage_id": 2, "sentence_id": [2]}]}},
            r"'sentence_id' must lie in 0 … 1",
        ),
    ],
)  # fmt: skip
def test_feedback_that_does_not_fit(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    put(tmp_path, "asqa/train_feedback.json", change(FEEDBACK, **fields))
    with pytest.raises(DamagedData, match=message):
        list(datasets.load("asqa/train_feedback", data_dir=tmp_path))


CONFLICT = {
    "question": "How long is the Mole?",
    "documents": [
        {"text": "The river Mole is 80 km long.", "type": "correct", "answer": "80 km"},
        {"text": "A mole is 15 cm long.", "type": "correct", "answer": "15 cm"},
        {"text": "A mole is 3 m long.", "type": "misinfo", "answer": "3 m"},
        {"text": "Worms are long.", "type": "noise", "answer": "unknown"},
    ],
    "disambig_entity": ["River Mole", "Mole (animal)"],
    "gold_answers": ["80 km", "15 cm"],
    "wrong_answers": ["3 m"],
}


def test_ramdocs(tmp_path: Path) -> None:
    single = change(CONFLICT, disambig_entity=["River Mole"], gold_answers=["80 km"])
    put(tmp_path, "ramdocs/open.jsonl", CONFLICT, single)
    one, two = datasets.load("ramdocs/open", ConflictQuestion, data_dir=tmp_path)
    assert one.answers == (("80 km",), ("15 cm",))
    assert one.entities == ("River Mole", "Mole (animal)")
    assert one.wrong_answers == ("3 m",)
    kinds = [document.kind for document in one.documents]
    assert kinds == ["correct", "correct", "misinfo", "noise"]
    assert one.documents[3].answer == "unknown"
    assert (one.is_ambiguous, two.is_ambiguous) == (True, False)
    assert two.id == f"{one.id}#2"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gold_answers": []}, "'gold_answers' is empty"),
        ({"disambig_entity": ["x"]}, "differ in number"),
        (
            {"documents": [{"text": "x", "type": "true", "answer": "x"}]},
            r"documents\[0\]: 'type' must be one of correct, misinfo, noise, not 'true'",
        ),
    ],
)
def test_ramdocs_that_do_not_fit(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    put(tmp_path, "ramdocs/open.jsonl", change(CONFLICT, **fields))
    with pytest.raises(DamagedData, match=message):
        list(datasets.load("ramdocs/open", data_dir=tmp_path))


CLAIM = {
    "label": "partially_supported",
    "supporting_sentences": [[0, 2], [2]],
    "claim": "The pier opened in 1871 and is the longest.",
    "evidence": ["The pier is old.", "It is red.", "It opened in 1871."],
    "meta": {
        "id": "w1",
        "claim_title": "Old pier",
        "claim_section": "History",
        "claim_context": "Work began in 1868.",
    },
}


def test_wice(tmp_path: Path) -> None:
    put(tmp_path, "wice/dev.jsonl", CLAIM)
    (claim,) = datasets.load("wice/dev", Claim, data_dir=tmp_path)
    assert claim == Claim(
        "w1",
        "The pier opened in 1871 and is the longest.",
        label="partially_supported",
        evidence=("The pier is old.", "It is red.", "It opened in 1871."),
        supporting=((0, 2), (2,)),
        title="Old pier",
        section="History",
        context="Work began in 1868.",
    )


def test_a_claim_is_not_a_question(tmp_path: Path) -> None:
    put(tmp_path, "wice/dev.jsonl", CLAIM)
    with pytest.raises(BadInput, match="holds Claim records, not Question"):
        list(datasets.load("wice/dev", data_dir=tmp_path))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "true"}, "'label' must be one of supported, partially_supported"),
        ({"supporting_sentences": [[3]]}, "'supporting_sentences' must be below 3"),
        ({"supporting_sentences": [1]}, "must be a list of whole numbers, not 1"),
        ({"supporting_sentences": 1}, "must be a list of lists of whole numbers"),
    ],
)
def test_claims_that_do_not_fit(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    put(tmp_path, "wice/dev.jsonl", change(CLAIM, **fields))
    with pytest.raises(DamagedData, match=message):
        list(datasets.load("wice/dev", Claim, data_dir=tmp_path))


META = {
    "annotator": [3, 4],
    "has_minimal_answer": True,
    "non_consecutive": False,
    "round": 2,
    "skip": False,
}
GROUNDED = {
    "id": "g1",
    "input": "why did the pier close",
    "passages": [
        {
            "title": "Old pier",
            "text": "A storm hit it . It closed .",
            "sentences": ["A storm hit it .", "It closed ."],
        }
    ],
    "output": [
        {
            "answer": "A storm hit the pier, and it closed.",
            "selected_sentences": ["A storm hit it .", "It closed ."],
            "meta": META,
        },
        {"answer": "", "selected_sentences": [], "meta": {**META, "skip": True}},
    ],
}


def test_clapnq(tmp_path: Path) -> None:
    nothing = {"answer": "", "selected_sentences": [], "meta": META}
    put(tmp_path, "clapnq/answerable.jsonl", GROUNDED)
    put(tmp_path, "clapnq/unanswerable.jsonl", change(GROUNDED, output=[nothing]))
    (question,) = datasets.load("clapnq/answerable", GroundedLongQuestion, data_dir=tmp_path)
    assert question.text == "why did the pier close"
    assert question.answers == (("A storm hit the pier, and it closed.",),)
    assert question.passages[0].gold
    assert question.sentences == (("A storm hit it .", "It closed ."),)
    first, second = question.long_answers
    assert first.sentences == ("A storm hit it .", "It closed .")
    assert (first.annotators, first.round, first.has_minimal_answer) == ((3, 4), 2, True)
    assert (first.skipped, second.skipped) == (False, True)
    (other,) = datasets.load("clapnq/unanswerable", data_dir=tmp_path)
    assert not other.is_answerable


def test_a_flag_must_be_a_flag(tmp_path: Path) -> None:
    wrong = {**GROUNDED["output"][0], "meta": {**META, "skip": "no"}}  # type: ignore[dict-item]
    put(tmp_path, "clapnq/answerable.jsonl", change(GROUNDED, output=[wrong]))
    with pytest.raises(DamagedData, match="'skip' must be true or false, not \"no\""):
        list(datasets.load("clapnq/answerable", data_dir=tmp_path))
