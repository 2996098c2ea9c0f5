"""The two metrics that need a model, with tiny random ones made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

from whichsense.errors import BadInput
from whichsense.lab.evaluation.metric_models import SquadReader, TokenVectors, best_answer
from whichsense.lab.metrics.cambignq import bert_score

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] who wrote it when did open ann lee play in 1953 the by and bo".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with a vocabulary of 21 words, as a question answering checkpoint."""
    torch, transformers = (pytest.importorskip("torch"), pytest.importorskip("transformers"))
    path = tmp_path_factory.mktemp("tiny")
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(path / "vocab.txt")).save_pretrained(path)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertForQuestionAnswering(config).save_pretrained(path)
    return path


def test_reader_gives_spans_of_the_text(folder: Path) -> None:
    reader = SquadReader(folder, batch=2)
    text = "ann lee wrote the play in 1953 and bo did open it " * 60  # several windows
    answers = reader([("who wrote it", text), ("when did it open", "in 1953"), ("who", "")])
    assert reader.name == str(folder)
    assert len(answers) == 3
    assert answers[0] in text
    assert answers[1] in "in 1953"
    assert answers[2] == ""
    assert len(answers[0].split()) <= 30


def test_no_answer_wins_by_its_score() -> None:
    windows = [(2.0, [(1.5, 0, 3)]), (3.0, [(1.0, 4, 7)])]
    assert best_answer("ann lee", windows) == ""
    assert best_answer("ann lee", [(1.0, [(1.5, 0, 3)])]) == "ann"


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"config\.json"):
        SquadReader(tmp_path)
    with pytest.raises(BadInput, match=r"config\.json"):
        TokenVectors(tmp_path)


def test_bert_score(folder: Path) -> None:
    scores = bert_score(
        ["who wrote it", "ann lee", "in 1953"], ["who wrote it", "bo", ""], TokenVectors(folder)
    )
    assert scores[0] == pytest.approx(1.0, abs=1e-5)
    assert scores[1] < 1
    assert scores[2] == 0.0
    assert bert_score(["a b"], ["a b"], TokenVectors(folder, layer=1))[0] == pytest.approx(
        1.0, abs=1e-5
    )
    with pytest.raises(BadInput, match="layers 1 to 2"):
        bert_score(["x"], ["x"], TokenVectors(folder, layer=3))
    with pytest.raises(BadInput, match="pairs"):
        bert_score(["x"], [], TokenVectors(folder))
