"""Recall of gold answers in the search's order and in a reranker's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from whichsense import sample
from whichsense.cli.evaluate import command
from whichsense.errors import BadConfig, BadInput
from whichsense.lab.evaluation.components import evaluate_retrieval
from whichsense.models.compact.encoder import WEIGHTS
from whichsense.types import Case


class Backwards:
    def rerank(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, hits=case.hits[::-1]) for case in cases]


def test_what_the_search_finds_and_what_a_reranker_makes_of_it() -> None:
    index = sample.index()
    result = evaluate_retrieval("sample/questions", index, limit=40)
    again = evaluate_retrieval("sample/questions", index, limit=40, reranker=Backwards())
    assert (result.questions, result.method, again.method) == (40, "hybrid", "hybrid, reranked")
    assert result.any_recall[1] >= 0.8 and result.mrr >= 0.9
    assert list(result.answer_recall.values()) == sorted(result.answer_recall.values())
    # A hundred passages are the same in any order; the worst of them seldom answer.
    assert again.answer_recall[100] == result.answer_recall[100]
    assert again.any_recall[1] <= 0.2 and again.mrr < result.mrr / 2


class Failing(Backwards):
    """Gives up after some questions; counts those that it was asked."""

    def __init__(self, after: int) -> None:
        self.after, self.asked = after, 0

    def rerank(self, cases: Sequence[Case]) -> list[Case]:
        if self.asked == self.after:
            raise RuntimeError("broken")
        self.asked += 1
        return super().rerank(cases)


def test_goes_on_after_a_failure_and_not_with_another_reranker(tmp_path: Path) -> None:
    index, out = sample.index(), tmp_path / "result.json"
    with pytest.raises(RuntimeError):
        evaluate_retrieval(
            "sample/questions",
            index,
            limit=20,
            reranker=Failing(12),
            out=out,
            about={"reranker": "a"},
        )
    assert not out.exists()
    with pytest.raises(BadInput, match="begun by another system"):
        evaluate_retrieval(
            "sample/questions",
            index,
            limit=20,
            reranker=Backwards(),
            out=out,
            about={"reranker": "b"},
        )
    rest = Failing(20)
    result = evaluate_retrieval(
        "sample/questions", index, limit=20, reranker=rest, out=out, about={"reranker": "a"}
    )
    whole = evaluate_retrieval("sample/questions", index, limit=20, reranker=Backwards())
    assert rest.asked == 8 and [path.name for path in tmp_path.iterdir()] == ["result.json"]
    assert (result.answer_recall, result.annotated_recall, result.any_recall, result.mrr) == (
        whole.answer_recall, whole.annotated_recall, whole.any_recall, whole.mrr,
    )  # fmt: skip
    written = json.loads(out.read_text())
    assert written["mrr"] == result.mrr and written["provenance"]["reranker"] == "a"


def test_the_command_reranks_with_the_compact_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    arguments = ["retrieval", "--dataset", "sample/questions", "--limit", "2", "--json"]
    done = CliRunner().invoke(command, [*arguments, "--rerank", "compact"], catch_exceptions=False)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["method"] == "hybrid, reranked" and result["any_recall"]["5"] == 1.0
    asked = [
        *arguments,
        "--rerank",
        "compact",
        "--keep",
        "1",
        "--out",
        str(tmp_path / "result.json"),
    ]
    fewer = CliRunner().invoke(command, asked, catch_exceptions=False)
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(
        fewer.stdout.splitlines()[-1]
    )
    assert (
        json.loads(fewer.stdout.splitlines()[-1])["any_recall"]["100"]
        == result["any_recall"]["100"]
    )
    where = json.loads(fewer.stdout.splitlines()[-1])["provenance"]
    assert (where["reranker"], where["keep"], result["provenance"]["keep"]) == (WEIGHTS.name, 1, 40)
    with pytest.raises(BadInput, match="--rerank compact"):
        CliRunner().invoke(command, [*arguments, "--keep", "1"], catch_exceptions=False)
    with pytest.raises(BadConfig, match="holds no trained model"):
        CliRunner().invoke(command, [*arguments, "--rerank", str(tmp_path)], catch_exceptions=False)


def test_a_dataset_without_answers_is_told() -> None:
    with pytest.raises(BadInput, match="no question with an answer"):
        evaluate_retrieval("sample/unanswerable", sample.index())
