"""whichsense score, end to end: exact keys, every input form, errors that name what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner

from whichsense.cli.score import command
from whichsense.errors import BadInput

AMBIG = [
    {
        "id": "1",
        "question": "Who wrote it?",
        "annotations": [{"type": "singleAnswer", "answer": ["Ann Lee", "Lee"]}],
    },
    {
        "id": "2",
        "question": "When did it open?",
        "annotations": [
            {
                "type": "multipleQAs",
                "qaPairs": [
                    {
                        "question": "When did the play open?|When was the play first shown?",
                        "answer": ["1953"],
                    },
                    {"question": "When did the film open?", "answer": ["1996"]},
                ],
            }
        ],
        "nq_answer": ["1953"],  # the full release has more keys
    },
]
PAIRS = {
    "1": [{"question": "Who wrote it?", "answer": "ann lee"}],
    "2": [
        {"question": "When did the play open?", "answer": "1953"},
        {"question": "When?", "answer": "2001"},
    ],
}
ASQA = {
    "dev": {
        "7": {
            "ambiguous_question": "When did it open?",
            "qa_pairs": [
                {"question": "When did the play open?", "short_answers": ["1953"]},
                {"question": "And the film?", "short_answers": ["1996", "in 1996"]},
            ],
            "annotations": [
                {"long_answer": "The play opened in 1953."},
                {"long_answer": "It opened in 1953, the film in 1996."},
            ],
        }
    }
}


def write(path: Path, body: Any) -> Path:
    text = (
        json.dumps(body) if path.suffix != ".jsonl" else "\n".join(json.dumps(one) for one in body)
    )
    if path.suffix == ".zst":
        path.write_bytes(zstandard.compress(json.dumps(body).encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object) -> Any:
    """A command's JSON; an error of ours goes through, a usage error fails the test."""
    result = CliRunner().invoke(
        command, [str(one) for one in (*arguments, "--json")], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.json", AMBIG)


def test_ambignq_pairs(gold: Path, tmp_path: Path) -> None:
    result = run("ambignq", gold, write(tmp_path / "p.json", PAIRS), "--per-question")
    assert (result["n"], result["n_multi"]) == (2, 1)
    assert result["f1_ans"] == pytest.approx(0.75)
    assert result["f1_ans_multi"] == pytest.approx(0.5)
    assert result["f1_bleu1"] == pytest.approx(0.5)
    assert result["f1_edit"] == pytest.approx(0.5)
    assert result["comb"] == pytest.approx(1.25)
    assert set(result["questions"]) == {"1", "2"}
    question = result["questions"]["2"]
    assert {"f1_ans", "f1_bleu1", "f1_bleu2", "f1_bleu3", "f1_bleu4", "f1_edit"} <= set(question)
    assert question["f1_ans"] == pytest.approx(0.5)
    assert result["intervals"]["f1_ans"][0] <= result["f1_ans"] <= result["intervals"]["f1_ans"][1]


def test_ambignq_answers_only(gold: Path, tmp_path: Path) -> None:
    result = run("ambignq", gold, write(tmp_path / "p.json", {"1": ["Lee"], "2": ["1953", "1996"]}))
    assert result["f1_ans"] == 1.0
    assert result["f1_bleu4"] is None
    assert "questions" not in result


@pytest.mark.parametrize("form", ["p.jsonl", "lines.jsonl", "p.json.zst", "one.json"])
def test_prediction_files_as_they_are(gold: Path, tmp_path: Path, form: str) -> None:
    body: Any = {"1": ["Lee"], "2": ["1953"]}
    if form == "p.jsonl":
        body = [{"id": key, "prediction": value} for key, value in body.items()]
    elif form == "lines.jsonl":
        body = [{key: value} for key, value in body.items()]
    elif form == "one.json":
        body = {"1": "Lee", "2": "1953"}
    assert run("ambignq", gold, write(tmp_path / form, body))["f1_ans"] == pytest.approx(
        (1 + 2 / 3) / 2
    )


def test_variants_have_names(gold: Path, tmp_path: Path) -> None:
    pred = write(tmp_path / "p.json", {"1": ["Lee", "Lee"], "2": ["1953"]})
    assert (
        run("ambignq", gold, pred, "--variant", "paper")["f1_ans"]
        > run("ambignq", gold, pred)["f1_ans"]
    )


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ({"1": ["x"]}, "missing ids: 1 ('2')"),
        ({"1": ["x"], "2": ["x"], "3": ["x"], "4": ["x"]}, "not in the gold file: 2 ('3', '4')"),
        ({"1": ["x"], "2": []}, "empty predictions: 1 ('2')"),
        ({"1": ["x"], "2": 5}, "wrong type: 1 ('2')"),
        ({"1": ["x"], "2": [{"question": "x"}]}, "wrong type: 1 ('2')"),
        ({"1": ["x"], "2": PAIRS["2"]}, "Some predictions have questions"),
        (["x", "y"], "an object with 'id'"),
        ("x", "not a text"),
    ],
)
def test_bad_predictions_are_named(
    gold: Path, tmp_path: Path, predictions: Any, message: str
) -> None:
    with pytest.raises(BadInput) as error:
        run("ambignq", gold, write(tmp_path / "p.json", predictions))
    assert message in str(error.value)


def test_missing_and_empty_score_zero_if_allowed(gold: Path, tmp_path: Path) -> None:
    for predictions in ({"1": ["Lee"]}, {"1": ["Lee"], "2": []}):
        result = run("ambignq", gold, write(tmp_path / "p.json", predictions), "--allow-missing")
        assert result["f1_ans"] == 0.5
        assert result["f1_ans_multi"] == 0.0
    with pytest.raises(BadInput, match="not one of the 2 questions"):
        run("ambignq", gold, write(tmp_path / "p.json", {}), "--allow-missing")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "no questions"),
        ([{"question": "x"}], "record 1: no field 'id'"),
        ([AMBIG[0], AMBIG[0]], "more than once: 1 ('1')"),
        ([{"id": "1", "question": "x", "annotations": []}], "record 1: 'annotations' is empty"),
        (
            [{"id": "1", "question": "x", "annotations": [{"type": "y"}]}],
            "'type' must be 'singleAnswer' or 'multipleQAs', not 'y'",
        ),
        (
            [{"id": "1", "question": "x", "annotations": [{"type": "singleAnswer", "answer": []}]}],
            "'answer' is empty",
        ),
        ([{"id": "1", "annotations": []}], "no field 'question'"),
        (["x"], "record 1: an object was expected"),
    ],
)
def test_bad_gold_is_named(tmp_path: Path, records: Any, message: str) -> None:
    with pytest.raises(BadInput) as error:
        run(
            "ambignq", write(tmp_path / "g.json", records), write(tmp_path / "p.json", {"1": ["x"]})
        )
    assert message in str(error.value)


def test_nq(tmp_path: Path) -> None:
    gold = write(
        tmp_path / "g.jsonl",
        [{"question": "q1", "answer": ["A", "B"]}, {"question": "q2", "answer": ["C"]}],
    )
    result = run("nq", gold, write(tmp_path / "p.json", {"q1": "b", "q2": ["x", "c"]}))
    assert (result["em"], result["em_first"], result["em_oracle"], result["n"]) == (
        0.5,
        0.0,
        1.0,
        2,
    )
    assert run("nq", gold, write(tmp_path / "list.json", ["a", "c"]))["em"] == 1.0
    with pytest.raises(BadInput, match="3 predictions for 2 questions"):
        run("nq", gold, write(tmp_path / "list.json", ["a", "b", "c"]))
    with pytest.raises(BadInput, match="empty predictions"):
        run("nq", gold, write(tmp_path / "p.json", {"q1": "", "q2": "c"}))


def test_triviaqa_as_released(tmp_path: Path) -> None:
    answer = {
        "Value": "AC/DC",
        "Aliases": ["AC/DC", "Acca Dacca"],
        "NormalizedAliases": ["ac dc", "acca dacca"],
    }
    body = {
        "Data": [{"QuestionId": "tc_1", "Question": "Who?", "Answer": answer}],
        "Domain": "x",
        "Version": 1.0,
    }
    gold = write(tmp_path / "web-dev.json", body)
    for ours, expected in (("ac dc", (1.0, 0.0)), ("AC/DC", (1.0, 1.0)), ("abba", (0.0, 0.0))):
        result = run("nq", gold, write(tmp_path / "p.json", {"tc_1": ours}), "--per-question")
        assert (result["em"], result["em_first"]) == expected
    assert result["questions"]["tc_1"]["question"] == "Who?"
    del body["Data"][0]["Answer"]  # type: ignore[attr-defined, index]
    with pytest.raises(BadInput, match="record 1: no field 'answer'"):
        run("nq", write(tmp_path / "web-dev.json", body), tmp_path / "p.json")


def test_cambignq(tmp_path: Path) -> None:
    gold = write(
        tmp_path / "g.json",
        [
            {
                "id": "1",
                "question": "q",
                "clarification_question": "Which one: the film, the book, or the musical?",
            }
        ],
    )
    result = run(
        "cambignq",
        gold,
        write(tmp_path / "p.json", {"1": "Which one: 2002 film, or book?"}),
        "--per-question",
    )
    assert result["category_em"] == 1.0
    assert result["category_bleu1"] == 1.0
    assert result["option_precision"] == pytest.approx(0.7778, abs=1e-4)
    assert result["option_recall"] == pytest.approx(0.375)
    assert result["option_f1"] == pytest.approx(0.5060, abs=1e-4)
    assert result["options_per_question"] == 2.0
    assert 0 <= result["bleu4"] < 1
    assert result["questions"]["1"]["option_f1"] == result["option_f1"]
    same = run(
        "cambignq",
        gold,
        write(tmp_path / "p.json", {"1": "Which one: the film, the book, or the musical?"}),
    )
    assert (same["bleu4"], same["option_f1"]) == (1.0, 1.0)
    with pytest.raises(BadInput, match="clarification_question"):
        run("cambignq", write(tmp_path / "g.json", [{"id": "1"}]), tmp_path / "p.json")


def test_asqa(tmp_path: Path) -> None:
    gold = write(tmp_path / "ASQA.json", ASQA)
    result = run(
        "asqa",
        gold,
        write(tmp_path / "p.json", {"7": "The play opened in 1953."}),
        "--per-question",
    )
    assert result["rouge_l"] == 1.0
    assert result["str_em"] == 0.5
    assert result["length"] == 5.0
    assert result["disambig_f1"] is None
    assert result["dr"] is None
    assert any("--reader" in note for note in result["notes"])
    assert result["questions"]["7"]["rouge_l"] == 1.0
    with pytest.raises(BadInput, match="'7'"):
        run("asqa", gold, write(tmp_path / "p.json", {"7": ["x"]}))
    with pytest.raises(BadInput, match=r"no 'train'\. It has: dev"):
        run("asqa", gold, tmp_path / "p.json", "--split", "train")


def test_asqa_list_forms_and_the_older_rule(tmp_path: Path) -> None:
    record = ASQA["dev"]["7"]
    pred = write(tmp_path / "p.json", {"7": "The play opened in 1953."})
    for name in ("id", "sample_id"):
        gold = write(tmp_path / "g.jsonl", [{**record, name: "7"}])
        assert run("asqa", gold, pred)["rouge_l"] == 1.0
    assert run("asqa", gold, pred, "--variant", "average")["rouge_l"] == 1.0


def test_asqa_with_the_readers_answers(tmp_path: Path) -> None:
    gold, pred = (
        write(tmp_path / "ASQA.json", ASQA),
        write(tmp_path / "p.json", {"7": "The play opened in 1953."}),
    )
    answers = write(tmp_path / "roberta.json", {"7_0": "1953", "7_1": "the 1953"})
    result = run("asqa", gold, pred, "--reader-answers", answers)
    assert (result["disambig_f1"], result["qa_em"], result["qa_hit"]) == (0.5, 0.5, 0.0)
    assert result["dr"] == pytest.approx(0.5**0.5)
    assert result["reader"] == str(answers)
    shown = (
        CliRunner()
        .invoke(command, ["asqa", str(gold), str(pred), "--reader-answers", str(answers)])
        .output
    )
    for metric in ("disambig_f1", "qa_em", "qa_hit", "dr"):
        assert f"\n{metric} (reader: {answers}) " in shown
    assert "rouge_l (" not in shown
    with pytest.raises(BadInput, match="7_1"):
        run("asqa", gold, pred, "--reader-answers", write(tmp_path / "x.json", {"7_0": "1953"}))


def results(gold: Path, tmp_path: Path) -> tuple[Path, Path]:
    paths = []
    for name, predictions in (
        ("a", {"1": ["x"], "2": ["1953"]}),
        ("b", {"1": ["Lee"], "2": ["1953", "1996"]}),
    ):
        result = run(
            "ambignq",
            gold,
            write(tmp_path / "p.json", predictions),
            "--per-question",
            "--name",
            name,
        )
        paths.append(write(tmp_path / f"{name}.json", result))
    return paths[0], paths[1]


def test_compare(gold: Path, tmp_path: Path) -> None:
    a, b = results(gold, tmp_path)
    comparison = run("compare", a, b)
    test = comparison["metrics"]["f1_ans"]
    assert test["difference"] == pytest.approx(test["b"] - test["a"])
    assert test["difference"] > 0
    assert (test["better"], test["worse"]) == (2, 0)
    assert test["verdict"] == "may be luck"  # two questions prove nothing
    shown = CliRunner().invoke(command, ["compare", str(a), str(b)], catch_exceptions=False).output
    assert "f1_ans_multi" in shown


def test_numbers_of_two_readers_are_not_compared(tmp_path: Path) -> None:
    one = {"disambig_f1": 0.5, "rouge_l": 0.5, "question": "?", "gold": [], "predicted": []}
    body = {"dataset": "asqa", "name": "x", "intervals": {}, "questions": {"1": one, "2": one}}
    a, b, c = (
        write(tmp_path / f"{i}.json", {**body, "reader": reader})
        for i, reader in enumerate(["r", "r", "other"])
    )
    assert set(run("compare", a, b)["metrics"]) == {"disambig_f1", "rouge_l"}
    assert set(run("compare", a, c)["metrics"]) == {"rouge_l"}


@pytest.mark.parametrize("bad", ["[" * 200_000, "7" * 5_000], ids=["deep", "long"])
@pytest.mark.parametrize("place", ["gold", "predictions", "result"])
def test_json_made_to_break_parsers(gold: Path, tmp_path: Path, place: str, bad: str) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(f'{{"1":\n{bad}', encoding="utf-8")
    calls = {
        "gold": ("ambignq", broken, gold),
        "predictions": ("ambignq", gold, broken),
        "result": ("compare", broken, broken),
    }
    with pytest.raises(BadInput, match=r"broken\.json'"):
        run(*calls[place])


def test_compare_needs_the_same_questions(gold: Path, tmp_path: Path) -> None:
    a, b = results(gold, tmp_path)
    body = json.loads(a.read_text())
    write(tmp_path / "c.json", {**body, "questions": {"1": body["questions"]["1"]}})
    with pytest.raises(BadInput, match=r"only one of them has 1 \('2'\)"):
        run("compare", tmp_path / "c.json", b)
    with pytest.raises(BadInput, match="--per-question"):
        run("compare", write(tmp_path / "c.json", {**body, "questions": {}}), b)
    with pytest.raises(BadInput, match="is not a result"):
        run("compare", gold, b)


def test_human_output_and_usage(gold: Path, tmp_path: Path) -> None:
    pred = write(tmp_path / "p.json", PAIRS)
    shown = CliRunner().invoke(command, ["ambignq", str(gold), str(pred)], catch_exceptions=False)
    assert "f1_ans_multi" in shown.output
    assert "[" in shown.output
    early = CliRunner().invoke(
        command, ["ambignq", str(gold), str(tmp_path / "none"), "--per-question"]
    )
    assert early.exit_code == 2, "refused before a file is opened"
    assert "--per-question needs --json" in early.output
    assert CliRunner().invoke(command, ["ambignq", str(gold)]).exit_code == 2


def test_errors_end_the_process_in_one_line(gold: Path, tmp_path: Path) -> None:
    call = [
        sys.executable,
        "-m",
        "whichsense",
        "score",
        "ambignq",
        str(gold),
        str(tmp_path / "none.json"),
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: There is no file")
    assert len(done.stderr.splitlines()) == 1
