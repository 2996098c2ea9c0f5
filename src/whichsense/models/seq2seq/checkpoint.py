"""Models on disk and on the hub: any BART or T5 checkpoint to start from, and folders with a model of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadInput
from whichsense.files import read_json, write_atomically
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.seq2seq.codec import SEPARATOR, Codec, Form

ABOUT = "seq2seq.json"


def load_codec(source: str | Path, form: Form) -> Codec:
    """The tokenizer of a checkpoint, with the separator among its tokens."""
    tokenizer, config = load_tokenizer(source), load_config(source)
    if config.model_type not in ("bart", "t5"):
        raise BadInput(f"'{source}' is a '{config.model_type}' model. Take a BART or T5 checkpoint.")
    if tokenizer.convert_tokens_to_ids(SEPARATOR) in (None, tokenizer.unk_token_id):
        tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    _check_room(config, form, source)
    return Codec(tokenizer, config.model_type, form.lowercase)


def load_model(source: str | Path, codec: Codec) -> Any:
    """The weights of a checkpoint, by hub name or folder, with room for the separator."""
    model = load_base(source, "AutoModelForSeq2SeqLM")
    if not getattr(model.config, "scale_decoder_outputs", True):
        # T5 1.1 has an output matrix of its own. transformers 5 forgets that when it resizes or saves the model, unless
        # the config still says so.
        model.config.tie_word_embeddings = False
    if len(codec.tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(codec.tokenizer), mean_resizing=False)
    return model


def _check_room(config: Any, form: Form, source: str | Path) -> None:
    room = getattr(config, "max_position_embeddings", None)
    # Start, two ends and the separator between title and text stand beside question and passage.
    longest = form.question_tokens + form.passage_tokens + 4 if form.fusion else form.input_tokens
    if room is not None and max(longest, form.output_tokens + 2) > room:
        raise BadInput(
            f"'{source}' has positions for {room} tokens, and the recipe's form asks for {longest} in and "
            f"{form.output_tokens} out. Lower the form's token counts."
        )


def save(
    folder: Path, model: Any, codec: Codec, form: Form, *, task: str, options: Mapping[str, Any] | None = None
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
        raise BadInput(f"'{folder}' holds no trained sequence-to-sequence model: there is no {ABOUT}. Train one first.")
    about = read_json(path)
    return str(about["task"]), from_table(Form, about["form"], str(path)), dict(about.get("options", {}))
