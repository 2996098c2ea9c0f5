"""How much of what was asked for is found, in the search's order and in a reranker's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from whichsense import sample
from whichsense.cli.evaluate import command
from whichsense.errors import BadConfig, BadInput
from whichsense.evaluate import evaluate_retrieval
from whichsense.types import Hit


class Backwards:
    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        return list(reversed(hits))


def test_what_the_search_finds_and_what_a_reranker_makes_of_it() -> None:
    index = sample.index()
    found = evaluate_retrieval("sample/questions", index, limit=40)
    again = evaluate_retrieval("sample/questions", index, limit=40, reranker=Backwards())
    assert (found.questions, found.method, again.method) == (40, "bm25", "bm25, reranked")
    assert found.any_recall[1] >= 0.8 and found.mrr >= 0.9
    assert list(found.answer_recall.values()) == sorted(found.answer_recall.values())
    # A hundred passages are the same in any order; the worst of them seldom answer.
    assert again.answer_recall[100] == found.answer_recall[100]
    assert again.any_recall[1] <= 0.2 and again.mrr < found.mrr / 2


def test_the_command_reranks_with_the_compact_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    arguments = ["retrieval", "--dataset", "sample/questions", "--limit", "2", "--json"]
    done = CliRunner().invoke(command, [*arguments, "--rerank", "compact"], catch_exceptions=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["method"] == "bm25, reranked" and found["any_recall"]["5"] == 1.0
    fewer = CliRunner().invoke(command, [*arguments, "--rerank", "compact", "--keep", "1"], catch_exceptions=False)
    assert json.loads(fewer.stdout.splitlines()[-1])["any_recall"]["100"] == found["any_recall"]["100"]
    with pytest.raises(BadInput, match="--rerank compact"):
        CliRunner().invoke(command, [*arguments, "--keep", "1"], catch_exceptions=False)
    with pytest.raises(BadConfig, match="holds no trained model"):
        CliRunner().invoke(command, [*arguments, "--rerank", str(tmp_path)], catch_exceptions=False)


def test_a_dataset_without_answers_is_told() -> None:
    with pytest.raises(BadInput, match="no question with an answer"):
        evaluate_retrieval("sample/unanswerable", sample.index())
