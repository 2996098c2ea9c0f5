"""Every schema, with small invented files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from whichsense import datasets
from whichsense.lab.datasets import (
    ClarifiedQuestion,
    ConditionalQuestion,
    EntityQuestion,
    FullQuestion,
    GroundedQuestion,
    JudgedQuestion,
    LongQuestion,
    SituatedQuestion,
)


def put(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if ".jsonl" in name:
        body = "".join(json.dumps(item) + "\n" for item in value).encode()
    else:
        body = json.dumps(value).encode()
    if name.endswith(".zst"):
        body = zstandard.ZstdCompressor().compress(body)
    if name.endswith(".gz"):
        body = gzip.compress(body)
    path.write_bytes(body)
    return path


SINGLE = {
    "id": "1",
    "question": "Who dug it?",
    "annotations": [{"type": "singleAnswer", "answer": ["Ann", "A. Mole"]}],
}
PAIRS = [
    {"question": "Who dug it in 1901?|Who was the digger of 1901?", "answer": ["Ann"]},
    {"question": "Who dug it in 1902?", "answer": ["Bob", "Robert"]},
]
MULTI = {
    "id": "2",
    "question": "Who dug it?",
    "annotations": [{"type": "multipleQAs", "qaPairs": PAIRS}],
}
MIXED = {
    "id": "3",
    "question": "Who dug it?",
    "annotations": [*SINGLE["annotations"], *MULTI["annotations"]],
}  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["ambignq/dev.json", "ambignq/dev_light.json.zst", "dev_light.json.gz"]
)
def test_ambignq_light_under_every_name(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, [SINGLE, MULTI, MIXED])
    one, two, three = datasets.load("ambignq/dev", data_dir=tmp_path)
    assert one.answers == (("Ann", "A. Mole"),)
    assert [one.is_ambiguous, two.is_ambiguous, three.is_ambiguous] == [False, True, False]
    first = two.annotations[0].pairs[0]
    assert first.questions == ("Who dug it in 1901?", "Who was the digger of 1901?")
    assert first.question == "Who dug it in 1901?"
    assert three.answer_sets == ((("Ann", "A. Mole"),), (("Ann",), ("Bob", "Robert")))
    assert three.answers == (("Ann", "A. Mole"), ("Bob", "Robert"))


def test_ambignq_in_hugging_face_columns(tmp_path: Path) -> None:
    columns = {
        "type": ["singleAnswer", "multipleQAs"],
        "answer": [["Ann"], []],
        "qaPairs": [
            {"question": [], "answer": []},
            {"question": ["Who in 1?", "Who in 2?"], "answer": [["A"], ["B"]]},
        ],
    }
    put(tmp_path, "ambignq/train.json", [{"id": "1", "question": "Who?", "annotations": columns}])
    (question,) = datasets.load("ambignq/train", data_dir=tmp_path)
    assert [annotation.is_single for annotation in question.annotations] == [True, False]
    assert question.annotations[1].answers == (("A",), ("B",))


def test_ambignq_full(tmp_path: Path) -> None:
    more = {
        "viewed_doc_titles": ["Tunnel"],
        "used_queries": [
            {"query": "tunnel", "results": [{"title": "Tunnel", "snippet": "A <b>tunnel</b>"}]}
        ],
        "nq_answer": ["Ann"],
        "nq_doc_title": "Tunnels",
    }
    put(tmp_path, "ambignq-full/dev.json", [{**MULTI, **more}])
    (question,) = datasets.load("ambignq-full/dev", FullQuestion, data_dir=tmp_path)
    assert question.viewed_titles == ("Tunnel",)
    assert question.searches[0].results[0].title == "Tunnel"
    assert (question.nq_answers, question.nq_title) == (("Ann",), "Tunnels")


CLARIFIED = {
    "id": "7",
    "question": "When did it open?",
    "clarification_question": "Which day: July 4, 1976, or August 2, 1977?",
    "clarification_answers": [["noon"], ["dusk", "in the evening"]],
}


def test_cambignq_as_released_and_with_annotations(tmp_path: Path) -> None:
    released = {
        **CLARIFIED,
        "dqs": ["when did it open in 1976 ?", "when did it open in 1977 ?"],
        "nq_doc_title": "x",
    }
    put(
        tmp_path,
        "cq_train.json",
        [released, {**CLARIFIED, "id": "8", "annotations": MULTI["annotations"]}],
    )
    one, two = datasets.load("cambignq/train", ClarifiedQuestion, data_dir=tmp_path)
    assert (one.category, one.options) == ("day", ("July 4, 1976", "August 2, 1977"))
    assert one.answers == one.clarified_answers == (("noon",), ("dusk", "in the evening"))
    assert one.annotations[0].pairs[0].question == "when did it open in 1976 ?"
    assert two.answers == (("Ann",), ("Bob", "Robert"))


ASQA = {
    "ambiguous_question": "Who dug it?",
    "qa_pairs": [
        {
            "question": "Who in 1901?",
            "short_answers": ["Ann"],
            "context": "No context provided",
            "wikipage": None,
        },
        {
            "question": "Who in 1902?",
            "short_answers": ["Bob"],
            "context": "Bob dug.",
            "wikipage": "Digging",
        },
    ],
    "wikipages": [{"title": "Digging", "url": "https://example.org/Digging"}],
    "annotations": [
        {
            "long_answer": "Ann, then Bob.",
            "knowledge": [{"content": "Ann dug.", "wikipage": None}, {"content": None}],
        }
    ],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASQA.json", {"train": {"x": ASQA}, "dev": {"a1": ASQA}}),
        ("asqa/dev.jsonl.zst", [{**ASQA, "sample_id": "a1"}]),
        ("asqa/dev.json", [{**ASQA, "id": "a1", "question": "Who dug it?"}]),
    ],
)
def test_asqa_in_all_its_forms(tmp_path: Path, name: str, value: Any) -> None:
    put(tmp_path, name, value)
    (question,) = datasets.load("asqa/dev", LongQuestion, data_dir=tmp_path)
    assert (question.id, question.text) == ("a1", "Who dug it?")
    assert question.answers == (("Ann",), ("Bob",))
    assert question.contexts == ("", "Bob dug.")
    assert question.pages == ("Digging",)
    assert question.long_answers[0].text == "Ann, then Bob."
    assert [piece.text for piece in question.long_answers[0].knowledge] == ["Ann dug."]


def test_asqa_as_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    (tmp_path / "asqa").mkdir()
    parquet.write_table(
        pyarrow.Table.from_pylist([{**ASQA, "sample_id": "a1"}]), tmp_path / "asqa" / "dev.parquet"
    )
    (question,) = datasets.load("asqa/dev", data_dir=tmp_path)
    assert question.answers == (("Ann",), ("Bob",))


def test_nq_open_has_ids_that_survive_reordering(tmp_path: Path) -> None:
    rows = [
        {"question": "who dug", "answer": ["Ann"]},
        {"question": "who", "answer": ["B"]},
        {"question": "who", "answer": ["C"]},
    ]
    put(tmp_path, "NQ-open.dev.jsonl", rows)
    first = [question.id for question in datasets.load("nq_open/dev", data_dir=tmp_path)]
    put(tmp_path, "NQ-open.dev.jsonl", rows[::-1])
    again = {
        question.text: question.id for question in datasets.load("nq_open/dev", data_dir=tmp_path)
    }
    assert len(set(first)) == 3
    assert again["who dug"] == first[0]


def test_efficientqa_test_keeps_what_people_judged(tmp_path: Path) -> None:
    row = {"question": "who", "answer": ["A"], "def_correct_predictions": ["a."], "poss_correct_predictions": [],
           "def_incorrect_predictions": ["z"], "answer_and_def_correct_predictions": ["A", "a."]}  # fmt: skip
    put(tmp_path, "nq_open/efficientqa_test.jsonl.zst", [row])
    (question,) = datasets.load("nq_open/efficientqa_test", JudgedQuestion, data_dir=tmp_path)
    assert (question.surely_correct, question.incorrect, question.answers) == (
        ("a.",),
        ("z",),
        (("A",),),
    )


def test_gold_passages(tmp_path: Path) -> None:
    row = {
        "question": "who",
        "answers": ["A"],
        "ctxs": [{"title": "T", "text": "A did.", "isgold": True}],
    }
    put(tmp_path, "nq_open/gold_passages.jsonl", [row])
    (question,) = datasets.load("nq_open/gold_passages", GroundedQuestion, data_dir=tmp_path)
    assert question.passages[0].gold
    assert question.passages[0].text == "A did."


def test_triviaqa_official_and_sample(tmp_path: Path) -> None:
    data = {
        "Data": [
            {
                "QuestionId": "tc_1",
                "Question": "Who?",
                "Answer": {"Value": "Ann", "Aliases": ["Ann", "Anna"]},
            }
        ]
    }
    put(tmp_path, "triviaqa/unfiltered-web-dev.json", data)
    put(
        tmp_path,
        "triviaqa/unfiltered-web-test-without-answers.json",
        {"Data": [{"QuestionId": "t", "Question": "?"}]},
    )
    put(
        tmp_path,
        "triviaqa/test_sample.jsonl",
        [{"id": "test_1", "question": "Who?", "golden_answers": ["Ann"]}],
    )
    (official,) = datasets.load("triviaqa/dev", data_dir=tmp_path)
    assert (official.id, official.answers) == ("tc_1", (("Ann", "Anna"),))
    assert not next(iter(datasets.load("triviaqa/test", data_dir=tmp_path))).is_answerable
    assert next(iter(datasets.load("triviaqa/test_sample", data_dir=tmp_path))).id == "test_1"


def test_situatedqa_makes_ids_distinct(tmp_path: Path) -> None:
    row = {"question": "who leads", "id": -5, "edited_question": "who leads as of 1999", "date": "1999",
           "answer": ["Ann"], "any_answer": ["Ann", "Bob"]}  # fmt: skip
    put(
        tmp_path,
        "situatedqa/temp.dev.jsonl",
        [row, {**row, "date": "2000", "edited_question": "who leads in 2000"}],
    )
    one, two = datasets.load("situatedqa/temp.dev", SituatedQuestion, data_dir=tmp_path)
    assert (one.id, two.id, two.prompt_id) == ("-5", "-5#2", "-5")
    assert (two.date, two.place, two.rewrite) == ("2000", "", "who leads in 2000")


def test_squad_official_and_plain(tmp_path: Path) -> None:
    answers = [{"text": "Ann", "answer_start": 0}, {"text": "Ann", "answer_start": 0}]
    qas = [
        {"id": "q1", "question": "Who?", "answers": answers, "is_impossible": False},
        {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True},
    ]
    article = {"title": "Big_dig", "paragraphs": [{"context": "Ann dug.", "qas": qas}]}
    put(tmp_path, "dev-v2.0.json", {"version": "v2.0", "data": [article]})
    plain = {
        "title": "Big_dig",
        "paragraphs": [{"context": "Ann dug.", "qas": [{**qas[0], "answers": ["Ann", "Ann"]}]}],
    }
    put(tmp_path, "squad/dev_1.1.json", [plain])
    one, two = datasets.load("squad/2.0", GroundedQuestion, data_dir=tmp_path)
    assert (one.answers, two.is_answerable) == ((("Ann",),), False)
    assert (one.passages[0].title, one.passages[0].text) == ("Big dig", "Ann dug.")
    assert next(iter(datasets.load("squad/1.1", data_dir=tmp_path))).answers == one.answers


def test_webquestions_in_both_forms(tmp_path: Path) -> None:
    put(tmp_path, "webquestions/train.json", [{"qId": "w1", "qText": "who?", "answers": ["Ann"]}])
    target = '(list (description "Ann \\"A\\" Mole") (description Bob))'
    put(
        tmp_path,
        "webquestions.examples.test.json",
        [{"utterance": "who?", "targetValue": target, "url": "x"}],
    )
    assert next(iter(datasets.load("webquestions/train", data_dir=tmp_path))).id == "w1"
    (original,) = datasets.load("webquestions/test", data_dir=tmp_path)
    assert original.answers == (('Ann \\"A\\" Mole', "Bob"),)


def test_popqa(tmp_path: Path) -> None:
    metadata = {"subj": "Tunnel", "prop": "digger", "s_pop": 42}
    put(
        tmp_path,
        "popqa/test_sample.jsonl",
        [{"id": "1", "question": "Who?", "golden_answers": ["A"], "metadata": metadata}],
    )
    (question,) = datasets.load("popqa/test_sample", EntityQuestion, data_dir=tmp_path)
    assert (question.subject, question.kinds, question.popularity) == ("Tunnel", ("digger",), 42)


def test_condambigqa_and_its_nested_list(tmp_path: Path) -> None:
    first = {
        "condition": "in 1901",
        "groundtruth": ["Ann dug.", "Alone."],
        "citations": [{"title": "1. T", "text": "x"}],
    }
    second = {"condition": "in 1902", "groundtruth": ["Bob dug."], "citations": [], "reason": ""}
    row = {
        "id": "c1",
        "question": "Who?",
        "properties": [first, [second]],
        "ctxs": [{"title": "T", "text": "x"}],
    }
    put(tmp_path, "condambigqa/open.json", [row])
    (question,) = datasets.load("condambigqa/open", ConditionalQuestion, data_dir=tmp_path)
    assert [condition.condition for condition in question.conditions] == ["in 1901", "in 1902"]
    assert question.conditions[0].statements == ("Ann dug.", "Alone.")
    assert question.is_ambiguous


def test_multihop(tmp_path: Path) -> None:
    hotpot = {"_id": "h", "question": "Who?", "answer": "Ann", "supporting_facts": [["T", 0]],
              "context": [["T", ["Ann dug.", " Bob did not."]], ["U", ["x"]]]}  # fmt: skip
    musique = {"id": "m", "question": "Who?", "answer": "Ann", "answer_aliases": ["Anna"],
               "paragraphs": [{"title": "T", "paragraph_text": "Ann dug.", "is_supporting": True}]}  # fmt: skip
    put(tmp_path, "multihop/hotpotqa_train.json", [hotpot])
    put(tmp_path, "multihop/musique_train.json", [musique])
    (one,) = datasets.load("multihop/hotpotqa_train", GroundedQuestion, data_dir=tmp_path)
    (two,) = datasets.load("multihop/musique_train", GroundedQuestion, data_dir=tmp_path)
    assert [(p.text, p.gold) for p in one.passages] == [
        ("Ann dug. Bob did not.", True),
        ("x", False),
    ]
    assert two.answers == (("Ann", "Anna"),)


def test_sample_form_has_kinds_and_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whichsense.lab.datasets.catalog._PACKAGE", tmp_path)
    pairs = [{**PAIRS[0], "evidence": ["p1"]}, {**PAIRS[1], "evidence": ["p2", "p3"]}]
    row = {
        "id": "s1",
        "question": "Who?",
        "kinds": ["time"],
        "annotations": [{"type": "multipleQAs", "qaPairs": pairs}],
    }
    one = {"id": "s2", "question": "Why?", "kinds": [],
           "annotations": [{"type": "singleAnswer", "answer": ["fun"], "evidence": ["p4"]}]}  # fmt: skip
    put(tmp_path, "sample/questions.jsonl", [row, one])
    put(tmp_path, "sample/unanswerable.jsonl", [{"id": "u1", "question": "How?"}])
    first, second = datasets.load("sample/questions", data_dir=tmp_path)
    assert (first.kinds, first.annotations[0].pairs[1].evidence) == (("time",), ("p2", "p3"))
    assert second.annotations[0].pairs[0].evidence == ("p4",)
    assert [q.is_answerable for q in datasets.load("sample/unanswerable", data_dir=tmp_path)] == [
        False
    ]
