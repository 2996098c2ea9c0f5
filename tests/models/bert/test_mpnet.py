"""An encoder that knows no segments and counts its places from two (MPNet): read as any other, compiled by layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from whichsense.lab.train.tiny import wordpiece
from whichsense.models.bert import inputs as inputs_module
from whichsense.models.bert.encoders import CrossEncoder, find_answers, load_cross_encoder
from whichsense.models.bert.inputs import Inputs, padded
from whichsense.types import Passage

PASSAGES = [
    Passage("1", "Dune", "Dune is a novel by Frank Herbert."),
    Passage(
        "2", "Film", "David Lynch made a film of it in 1984, and others made more of them later on."
    ),
]


@pytest.fixture
def parts() -> tuple[Any, Inputs]:
    tokenizer = wordpiece()
    ids = {name: tokenizer.convert_tokens_to_ids(f"[{name}]") for name in ("CLS", "SEP", "PAD")}
    # MPNet's own frame: <s> question </s></s> passage </s>
    tokenizer.backend_tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
        ("[SEP]", ids["SEP"]), ("[CLS]", ids["CLS"]), add_prefix_space=False
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    config = transformers.MPNetConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=80, pad_token_id=ids["PAD"], initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    encoder = transformers.MPNetModel(config, add_pooling_layer=False)
    return CrossEncoder(encoder, reads=True).eval(), Inputs(tokenizer, 64)


def test_rows_do_not_depend_on_each_other(parts: tuple[Any, Inputs]) -> None:
    model, inputs = parts
    rows = inputs.pairs("who made dune", PASSAGES)
    assert rows[0].ids.count(inputs.tokenizer.sep_token_id) == 4 and len(rows[0]) < len(rows[1])
    pad = inputs.tokenizer.pad_token_id
    with torch.inference_mode():
        together = model(padded(rows, pad)).starts
        for number, row in enumerate(rows):
            alone = model(padded([row], pad)).starts
            assert (together[number, : len(row)] - alone[0]).abs().max() < 1e-4


def test_saved_and_opened(parts: tuple[Any, Inputs], tmp_path: Path) -> None:
    model, inputs = parts
    inputs_module.save(
        tmp_path, model, inputs, task="extractive-reader", config=model.config, options={}
    )
    again, read = load_cross_encoder(tmp_path, "extractive-reader", reads=True, device="cpu")
    found = [
        find_answers(*pair, "who made dune", PASSAGES)[:5]
        for pair in ((model, inputs), (again, read))
    ]
    assert [one.answer for one in found[0]] == [one.answer for one in found[1]]
    for one in found[0]:
        assert one.spans[0].passage.text[one.spans[0].start : one.spans[0].end] == one.answer


def test_every_layer_is_compiled_and_keeps_its_name(
    parts: tuple[Any, Inputs], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = parts
    names, compiled = list(model.state_dict()), []
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self, *_, **__: compiled.append(type(self).__name__)
    )
    model.compile()
    assert compiled == ["MPNetLayer"] * 2 and list(model.state_dict()) == names
