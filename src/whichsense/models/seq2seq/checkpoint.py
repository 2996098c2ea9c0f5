"""Models on disk and on the hub: BART, T5 and decoder-only checkpoints to start from, and folders with one of ours."""

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
from whichsense.models.seq2seq.codec import SEPARATOR, Codec, Form

ABOUT = "seq2seq.json"


def load_codec(source: str | Path, form: Form) -> Codec:
    """The tokenizer of a checkpoint, with the separator among its tokens."""
    tokenizer, config = load_tokenizer(source), load_config(source)
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
        found: Literal["bart", "t5"] = config.model_type
        return found
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    # Encoders are in both lists, as transformers can turn them into decoders; of other pairs it would take the decoder.
    alone = (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()
        - MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys()
    )
    if config.model_type in alone and not getattr(config, "is_encoder_decoder", False):
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
        # T5 1.1 has an output matrix of its own. transformers 5 forgets that when it resizes or saves the model, unless
        # the config still says so.
        model.config.tie_word_embeddings = False
    if len(codec.tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(codec.tokenizer), mean_resizing=False)
    return model


def _load_causal(source: str | Path, codec: Codec) -> Any:
    model = load_base(source, "AutoModelForCausalLM", attn_implementation="sdpa")
    if len(codec.tokenizer) > model.config.vocab_size:
        # A round number of rows: the matrix product over the vocabulary is much faster so.
        model.resize_token_embeddings(
            len(codec.tokenizer), pad_to_multiple_of=64, mean_resizing=False
        )
    # Some checkpoints name several ends, or no padding: outputs here have one end.
    model.config.eos_token_id = codec.end
    if model.config.pad_token_id is None:
        model.config.pad_token_id = codec.end
    return model


def _check_room(config: Any, form: Form, source: str | Path) -> None:
    room = getattr(config, "max_position_embeddings", None)
    # Start, two ends and the separator between title and text stand beside question and passage.
    longest = (
        form.question_tokens + form.passage_tokens + 4
        if form.fusion
        else form.input_tokens
    )
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
    form: Form,
    *,
    task: str,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Weights and tokenizer in transformers' own layout, and beside them what the model is for."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    codec.tokenizer.save_pretrained(folder)
    about = {"task": task, "form": asdict(form), "options": dict(options or {})}
    write_atomically(folder / ABOUT, json.dumps(about, indent=2) + "\n")


def describe(folder: str | Path) -> tuple[str, Form, dict[str, Any]]:
    """The task, form and options of a saved model."""
    path = Path(folder) / ABOUT
    if not path.is_file():
        raise BadInput(
            f"'{folder}' holds no trained sequence-to-sequence model: there is no {ABOUT}. Train one first."
        )
    about = read_json(path)
    return (
        str(about["task"]),
        from_table(Form, about["form"], str(path)),
        dict(about.get("options", {})),
    )
