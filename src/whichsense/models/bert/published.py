"""Imports published DPR checkpoints: their weight names are mapped to ours.

There are two layouts. Facebook Research's own `.cp` files hold `question_model.*` and `ctx_model.*` (retriever) or
`encoder.*`, `qa_outputs.*` and `qa_classifier.*` (reader) under `model_dict`. The hub's folders hold
`question_encoder.bert_model.*`, `ctx_encoder.bert_model.*` or `span_predictor.*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import dual_encoder, saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import Inputs

# Prefix of a name in a published file → prefix in ours.
_RETRIEVER = {
    "question_model.": "question.",
    "ctx_model.": "passage.",
    "question_encoder.bert_model.": "question.",
    "ctx_encoder.bert_model.": "passage.",
}
_READER = {
    "span_predictor.encoder.bert_model.": "encoder.",
    "span_predictor.qa_outputs.": "span.",
    "span_predictor.qa_classifier.": "relevance.",
    "encoder.": "encoder.",
    "qa_outputs.": "span.",
    "qa_classifier.": "relevance.",
}
# In published files but not needed: positions are counted, and the pooled vector is not used.
_UNUSED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")


def import_retriever(
    sources: Sequence[str | Path],
    base: str,
    folder: str | Path,
    passages: Sequence[tuple[str, str]],
    longest: int = 256,
) -> Path:
    """Write a dual encoder's folder from published weights: one `.cp` file, or the hub folders of both towers.

    `base` names the BERT that was trained (its config and tokenizer). `passages`, title and text of a few hundred from
    the corpus, serve to measure the norm of vectors.
    """
    model = dual_encoder.build(base)
    _fill(model, sources, _RETRIEVER)
    inputs = Inputs(load_tokenizer(base), longest)
    dual_encoder.save(Path(folder), model.eval(), inputs, passages)
    return Path(folder)


def import_reader(
    source: str | Path,
    base: str,
    folder: str | Path,
    *,
    longest: int = 350,
    gamma: float = 1.0,
) -> Path:
    """Write an extractive reader's folder from published weights. At γ = 1 it gives one answer, as trained."""
    model = CrossEncoder(saved.encoder(base), reads=True)
    _fill(model, [source], _READER)
    inputs = Inputs(load_tokenizer(base), longest)
    saved.save(
        Path(folder),
        model,
        inputs,
        task="extractive-reader",
        config=model.config,
        options={"gamma": gamma},
    )
    return Path(folder)


def _fill(
    model: nn.Module, sources: Sequence[str | Path], names: Mapping[str, str]
) -> None:
    weights: dict[str, Tensor] = {}
    for source in sources:
        weights |= _rename(_read_weights(Path(source)), names, source)
    missing, unknown = model.load_state_dict(weights, strict=False)
    if missing or unknown:
        problem = f"lacks {missing[0]}" if missing else f"holds unknown {unknown[0]}"
        shown = ", ".join(map(str, sources))
        raise BadInput(
            f"'{shown}' {problem}. Is it of the same size as the base, and are both towers given?"
        )


def _rename(
    weights: Mapping[str, Tensor], names: Mapping[str, str], source: str | Path
) -> dict[str, Tensor]:
    """Replace published prefixes by ours. Reject a name with another prefix."""
    renamed = {}
    for name, tensor in weights.items():
        prefix = next((prefix for prefix in names if name.startswith(prefix)), None)
        if prefix is None:
            raise BadInput(
                f"'{source}' holds '{name}': it is not a DPR checkpoint of this kind."
            )
        rest = name.removeprefix(prefix)
        if rest not in _UNUSED:
            renamed[names[prefix] + rest] = tensor
    return renamed


def _read_weights(source: Path) -> dict[str, Tensor]:
    """The tensors of a `.cp`, `.bin`, `.pt` or `.safetensors` file, or of the folder that holds one."""
    if source.is_dir():
        names = ("model.safetensors", "pytorch_model.bin")
        files = [source / name for name in names if (source / name).is_file()]
        if not files:
            raise BadInput(f"'{source}' holds neither of: {', '.join(names)}.")
        source = files[0]
    try:
        if source.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(source))
        body: Any = torch.load(source, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise BadInput(f"There is no file '{source}'. Check the path.") from None
    except Exception as error:
        why = str(error).strip().splitlines()[0]
        raise BadInput(f"'{source}' cannot be read as weights: {why}") from None
    return dict(body.get("model_dict", body))
