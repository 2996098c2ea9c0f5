"""Loads BART, T5 and decoder-only checkpoints from the hub or a folder; saves and describes trained models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from whichsense.config import from_table
from whichsense.errors import BadInput
from whichsense.files import read_json, write_atomically
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.seq2seq.codec import SEPARATOR, Codec, InputForm

_ABOUT = "seq2seq.json"


def load_codec(source: str | Path, form: InputForm) -> Codec:
    """The tokenizer of a checkpoint, with the separator among its tokens."""
    tokenizer = load_tokenizer(source)
    config = load_config(source)
    kind = _kind(config, source)
    if kind == "causal" and form.fusion:
        raise BadInput(
            f"'{source}' is a '{config.model_type}' model, which reads one input: set form.fusion = false."
        )
    if tokenizer.convert_tokens_to_ids(SEPARATOR) in (None, tokenizer.unk_token_id):
        tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    _check_room(config, form, source)
    return Codec(tokenizer, kind, form.lowercase)


def _kind(config: Any, source: str | Path) -> Literal["bart", "t5", "causal"]:
    if config.model_type in ("bart", "t5"):
        kind: Literal["bart", "t5"] = config.model_type
        return kind
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    # Encoders are in both lists, since transformers can turn them into decoders.
    causal = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()
    decoders = causal - MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys()
    is_pair = getattr(config, "is_encoder_decoder", False)
    if config.model_type in decoders and not is_pair:
        return "causal"
    raise BadInput(
        f"'{source}' is a '{config.model_type}' model. Take a BART or T5 checkpoint, or a decoder-only one (Llama, …)."
    )


def load_model(source: str | Path, codec: Codec) -> Any:
    """The weights of a checkpoint, by hub name or folder, with room for the separator."""
    if codec.kind == "causal":
        return _load_causal(source, codec)
    model = load_base(source, "AutoModelForSeq2SeqLM")
    if not getattr(model.config, "scale_decoder_outputs", True):
        # T5 1.1 has an output matrix of its own. transformers 5 would tie it to the embedding when it resizes or saves
        # the model, unless the config forbids it.
        model.config.tie_word_embeddings = False
    if len(codec.tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(codec.tokenizer), mean_resizing=False)
    return model


def _load_causal(source: str | Path, codec: Codec) -> Any:
    model = load_base(source, "AutoModelForCausalLM", attn_implementation="sdpa")
    if len(codec.tokenizer) > model.config.vocab_size:
        # The product over the vocabulary is much faster with a multiple of 64 rows.
        model.resize_token_embeddings(
            len(codec.tokenizer), pad_to_multiple_of=64, mean_resizing=False
        )
    # Some checkpoints have several end tokens, or no padding token. Outputs here have one end.
    model.config.eos_token_id = codec.end
    if model.config.pad_token_id is None:
        model.config.pad_token_id = codec.end
    return model


def _check_room(config: Any, form: InputForm, source: str | Path) -> None:
    """Reject a form with longer sequences than the model has positions."""
    room = getattr(config, "max_position_embeddings", None)
    longest = form.input_tokens
    if form.fusion:
        # Start, two ends and the separator between title and text stand beside question and passage.
        longest = form.question_tokens + form.passage_tokens + 4
    if not config.is_encoder_decoder:
        longest += form.output_tokens + 1
    if room is not None and max(longest, form.output_tokens + 2) > room:
        raise BadInput(
            f"'{source}' has positions for {room} tokens, and the recipe's form asks for {longest} in and "
            f"{form.output_tokens} out. Lower the form's token counts."
        )


def save(
    folder: Path,
    model: Any,
    codec: Codec,
    form: InputForm,
    *,
    task: str,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write weights and tokenizer in transformers' layout, and beside them the task, form and options."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    codec.tokenizer.save_pretrained(folder)
    about = {"task": task, "form": asdict(form), "options": dict(options or {})}
    write_atomically(folder / _ABOUT, json.dumps(about, indent=2) + "\n")


def describe(folder: str | Path) -> tuple[str, InputForm, dict[str, Any]]:
    """The task, form and options of a saved model."""
    path = Path(folder) / _ABOUT
    if not path.is_file():
        raise BadInput(
            f"'{folder}' holds no trained sequence-to-sequence model: there is no {_ABOUT}. Train one first."
        )
    about = read_json(path)
    form = from_table(InputForm, about["form"], str(path))
    return str(about["task"]), form, dict(about.get("options", {}))
