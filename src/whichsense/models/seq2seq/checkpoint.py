"""Models on disk and on the hub: any BART or T5 checkpoint to start from, and folders with a model of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadInput, require
from whichsense.files import read_json, write_atomically
from whichsense.models.seq2seq.codec import SEPARATOR, Codec, Form

ABOUT = "seq2seq.json"


def load_base(source: str | Path, form: Form) -> tuple[Any, Codec]:
    """A transformers model and its tokenizer, by hub name or folder, with the separator among its tokens."""
    transformers, torch = require("transformers", "train"), require("torch", "train")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source))
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(source), dtype=torch.float32)
    except (OSError, ValueError) as error:
        why = str(error).strip().splitlines()[0]
        raise BadInput(
            f"'{source}' could not be loaded as a sequence-to-sequence model: {why} "
            "Give a folder or a name on the hub, such as facebook/bart-large or t5-large."
        ) from None
    kind = model.config.model_type
    if kind not in ("bart", "t5"):
        raise BadInput(f"'{source}' is a '{kind}' model. Take a BART or T5 checkpoint.")
    if tokenizer.convert_tokens_to_ids(SEPARATOR) in (None, tokenizer.unk_token_id):
        tokenizer.add_special_tokens({"additional_special_tokens": [SEPARATOR]})
    if len(tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    _check_room(model, form, source)
    return model, Codec(tokenizer, kind, form.lowercase)


def _check_room(model: Any, form: Form, source: str | Path) -> None:
    room = getattr(model.config, "max_position_embeddings", None)
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
