"""Encoder models: inputs, batches that change nothing, vectors that rank as inner products, published weight names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from whichsense.errors import BadInput
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import encoders
from whichsense.models.bert import inputs as inputs_module
from whichsense.models.bert import inputs as inputs_module_
from whichsense.models.bert.encoders import CrossEncoder, find_answers, over_threshold, relevances
from whichsense.models.bert.inputs import Inputs, by_length
from whichsense.stages.read import ExtractiveReader
from whichsense.types import Candidate, Case, Passage

PASSAGES = [
    Passage("1", "Dune (novel)", "Frank Herbert wrote the novel Dune, which came out in 1965."),
    Passage("2", "", "Sand."),
    Passage("3", "Dune (1984 film)", "The film Dune was made by David Lynch in 1984. " * 4),
    Passage("4", "Empty", ""),
]
QUESTION = "Who made Dune?"


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return Inputs(load_tokenizer(located("tiny-bert")), 48)


def seeded(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return inputs_module_.encoder(located("tiny-bert"))


def test_rows_hold_question_title_and_text(inputs: Inputs) -> None:
    tokens = inputs.tokenizer.convert_ids_to_tokens
    whole, untitled, cut, empty = inputs.pairs(QUESTION, PASSAGES)
    assert (
        tokens(whole.ids)[:12] == "[CLS] who made dune ? [SEP] dune ( novel ) [SEP] frank".split()
    )
    assert tokens(whole.ids)[-1] == "[SEP]" and whole.segments[:7] == (0, 0, 0, 0, 0, 0, 1)
    assert [PASSAGES[0].text[start:end] for start, end in whole.places][:3] == [
        "Frank",
        "Herbert",
        "wrote",
    ]
    assert tokens(untitled.ids) == "[CLS] who made dune ? [SEP] sand . [SEP]".split()
    assert len(cut) == 48 and tokens(cut.ids)[-1] == "[SEP]" and empty.places == ()
    assert inputs.tokenizer(QUESTION)["input_ids"] == list(inputs.single([QUESTION])[0].ids)
    assert len(inputs.pairs("why " * 500, PASSAGES)[2]) == 48
    assert inputs.pairs(QUESTION, []) == []


def test_batches_by_length_hold_everything_once(inputs: Inputs) -> None:
    rows = inputs.pairs(QUESTION, PASSAGES) * 5
    batches = list(by_length(rows, 150))
    assert sorted(place for batch in batches for place in batch) == list(range(20))
    assert all(len(batch) * max(len(rows[place]) for place in batch) <= 150 for batch in batches)


def test_relevance_one_by_one_equals_batched(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CrossEncoder(seeded(), reads=False)
    together = relevances(model, inputs, QUESTION, PASSAGES * 3)
    alone = [relevances(model, inputs, QUESTION, [passage])[0] for passage in PASSAGES] * 3
    assert together == pytest.approx(alone, abs=1e-5) and len(set(map(str, together[:4]))) == 4
    monkeypatch.setattr(inputs_module, "_CPU_TOKENS", 60)
    assert relevances(model, inputs, QUESTION, PASSAGES * 3) == pytest.approx(alone, abs=1e-5)
    assert relevances(model, inputs, QUESTION, []) == []


def test_spans_one_batch_equals_many(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CrossEncoder(seeded(), reads=True)
    torch.nn.init.normal_(model.span.weight)  # type: ignore[union-attr]
    found = find_answers(model, inputs, QUESTION, PASSAGES)
    monkeypatch.setattr(inputs_module, "_CPU_TOKENS", 1)
    again = find_answers(model, inputs, QUESTION, PASSAGES)
    assert [one.answer for one in found] == [one.answer for one in again]
    assert [one.score for one in found] == pytest.approx([one.score for one in again], rel=1e-4)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert 0 < sum(one.score for one in found) <= 1 + 1e-5
    for answer in found:
        assert all(span.passage.text[span.start : span.end] for span in answer.spans)
    assert find_answers(model, inputs, QUESTION, []) == []
    assert find_answers(model, inputs, QUESTION, PASSAGES[3:]) == []


def test_likelihood_is_that_of_the_definition(inputs: Inputs) -> None:
    """An answer's score equals P(passage) × P(start) × P(end), summed over its spans, in the plainest computation."""
    model = CrossEncoder(seeded(), reads=True).eval()
    two = PASSAGES[:2]
    rows = inputs.pairs(QUESTION, two)
    logits = []
    for row in rows:
        batch = {
            "input_ids": torch.tensor([row.ids]),
            "token_type_ids": torch.tensor([row.segments]),
        }
        with torch.no_grad():
            read = model(batch | {"attention_mask": torch.ones(1, len(row), dtype=torch.long)})
        inside = slice(row.text_start, row.text_start + len(row.places))
        logits.append(
            (
                float(read.relevance),
                read.starts[0, inside].softmax(-1),
                read.ends[0, inside].softmax(-1),
            )
        )
    passage = torch.tensor([one[0] for one in logits]).softmax(-1)
    text = "sand"
    place = [two[1].text[start:end].lower() for start, end in rows[1].places].index(text)
    # "Sand" and "Sand." say the same, so that both spans count.
    expected = float(passage[1]) * float(
        logits[1][1][place] * (logits[1][2][place] + logits[1][2][place + 1])
    )
    found = next(
        one
        for one in find_answers(model, inputs, QUESTION, two)
        if one.answer.lower().startswith(text)
    )
    assert found.score == pytest.approx(expected, rel=1e-4)


def test_scores_are_computed_in_full_under_bf16(inputs: Inputs) -> None:
    questions, passages = torch.randn(4, 64) * 3, torch.randn(5, 64) * 3
    with torch.autocast("cpu", torch.bfloat16):
        rounded, kept = (questions @ passages.T, encoders.similarity(questions, passages))
    assert torch.equal(kept, questions @ passages.T) and not torch.allclose(
        rounded.float(), kept, atol=1e-3
    )
    model = encoders.CrossEncoder(seeded(), reads=False).eval()
    row = inputs_module.padded(inputs.pairs(QUESTION, PASSAGES), inputs.tokenizer.pad_token_id)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        vectors, relevance, *_ = model(row)
    assert vectors.dtype == relevance.dtype == torch.float32


def test_threshold() -> None:
    answers = [Candidate("a", 0.5), Candidate("b", 0.3), Candidate("c", 0.1)]
    assert [one.answer for one in over_threshold(answers, 0.2)] == ["a", "b"]
    assert [one.answer for one in over_threshold(answers, 0.9)] == ["a"]
    assert over_threshold([], 0.1) == []


def test_detector_reads_passages(inputs: Inputs) -> None:
    model = encoders.AmbiguityClassifier(seeded())
    alone, beside = (
        encoders.detector_row(inputs, QUESTION, passages) for passages in ((), PASSAGES[:2])
    )
    assert len(alone) < len(beside) and beside.ids[: len(alone)] == alone.ids
    together = encoders.probabilities(model, inputs, [alone, beside])
    assert together == pytest.approx(
        [encoders.probabilities(model, inputs, [row])[0] for row in (alone, beside)], abs=1e-5
    )


def test_cosine_ranks_as_the_inner_product(tmp_path: Path, inputs: Inputs) -> None:
    model = encoders.DualEncoder(seeded(0), seeded(1))
    for tower, factor in ((model.question, 1.0), (model.passage, 2.0)):
        with torch.no_grad():
            tower.encoder.layer[-1].output.LayerNorm.weight.mul_(factor).add_(torch.randn(64))
    texts = [
        (f"title {n}", f"{word} sand dune film novel " * (n % 5 + 1))
        for n, word in enumerate("abcdefghij")
    ]
    encoders.save(tmp_path, model, inputs, texts)
    encoder = encoders.DPR(str(tmp_path))
    passages = encoder.encode_passages([f"{title}\n{text}" for title, text in texts])
    questions = encoder.encode_questions([QUESTION, "sand?", "Which film?"])
    assert passages.shape == (10, 65) == (10, encoder.dimensions)
    assert np.allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(questions, axis=1), 1, atol=1e-5)
    pad = inputs.tokenizer.pad_token_id
    plain = encoders.encode(model, "passage", inputs.passages(texts), pad)
    asked = encoders.encode(
        model, "question", inputs.single([QUESTION, "sand?", "Which film?"]), pad
    )
    assert len({round(float(length), 3) for length in np.linalg.norm(plain, axis=1)}) > 3
    products = asked @ plain.T
    assert (np.argsort(-products, axis=1) == np.argsort(-(questions @ passages.T), axis=1)).all()
    alone = encoder.encode_passages([f"{texts[4][0]}\n{texts[4][1]}"])
    assert np.allclose(alone[0], passages[4], atol=1e-5)


def test_folders_of_another_kind_are_told(tmp_path: Path, inputs: Inputs) -> None:
    model = CrossEncoder(seeded(), reads=False)
    inputs_module_.save(tmp_path, model, inputs, task="reranker", config=model.config, options={})
    with pytest.raises(BadInput, match="trained as 'reranker', and 'extractive-reader' is needed"):
        ExtractiveReader(tmp_path).read([Case(QUESTION)])
    with pytest.raises(BadInput, match="no trained model"):
        encoders.load_cross_encoder(tmp_path / "none", "reranker", reads=False)
    with pytest.raises(BadInput, match="does not fit"):
        encoders.load_cross_encoder(tmp_path, "reranker", reads=True)
    about = json.loads((tmp_path / "bert.json").read_text())
    assert about == {"task": "reranker", "longest": 48, "options": {}}


OTHERS = {
    "roberta": (
        "RobertaConfig",
        {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 0},
    ),
    "mpnet": ("MPNetConfig", {"max_position_embeddings": 66, "pad_token_id": 0}),
    "distilbert": ("DistilBertConfig", {"dim": 32, "hidden_dim": 64, "n_layers": 1, "n_heads": 2}),
    "electra": ("ElectraConfig", {"embedding_size": 32}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_architectures(kind: str, tmp_path: Path) -> None:
    """Any encoder of transformers will do: two separators between the parts, no segments, no pooler."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        "who",
        "made",
        "dune",
        "?",
        "frank",
        "herbert",
        "wrote",
        "a",
        "novel",
    ]
    raw = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>")
    )
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 1), trim_offsets=False, add_prefix_space=False
    )
    names = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=64, **names
    )
    config, rest = OTHERS[kind]
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    settings = (shape if kind != "distilbert" else {}) | rest
    made = transformers.AutoModel.from_config(
        getattr(transformers, config)(vocab_size=len(words), **settings)
    )
    made.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    inputs = Inputs(load_tokenizer(tmp_path / "base"), 24)
    row = inputs.pairs("who made dune ?", [Passage("1", "dune", "frank herbert wrote dune")])[0]
    said = inputs.tokenizer.convert_ids_to_tokens(row.ids)
    assert said == "<s> who made dune ? </s> </s> dune </s> frank herbert wrote dune </s>".split()
    assert set(row.segments) == {0}
    model = CrossEncoder(inputs_module_.encoder(tmp_path / "base"), reads=True)
    scores = relevances(model, inputs, "who made dune ?", PASSAGES)
    inputs_module_.save(
        tmp_path / "ours", model, inputs, task="reranker", config=model.config, options={}
    )
    again, read_inputs = encoders.load_cross_encoder(tmp_path / "ours", "reranker", reads=True)
    assert relevances(again, read_inputs, "who made dune ?", PASSAGES) == pytest.approx(
        scores, abs=1e-5
    )
