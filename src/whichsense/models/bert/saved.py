"""Model folders: an encoder's config, tokenizer and weights, with the heads that were trained on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from whichsense.errors import BadInput, require
from whichsense.files import read_json, write_atomically
from whichsense.models.bases import load_base, load_tokenizer
from whichsense.models.bert.inputs import Inputs

ABOUT, WEIGHTS = "bert.json", "model.safetensors"


@dataclass(frozen=True, slots=True)
class Described:
    """What a folder holds: the task that it was trained for, and that task's options."""

    folder: Path
    task: str
    options: Mapping[str, Any]


def encoder(base: str | Path) -> nn.Module:
    """A pretrained encoder without the pooler that some have: nothing here uses it."""
    try:
        found: nn.Module = load_base(base, add_pooling_layer=False)
    except TypeError:  # the architecture knows no pooler
        found = load_base(base)
    return found


def save(
    folder: Path,
    model: nn.Module,
    inputs: Inputs,
    *,
    task: str,
    config: Any,
    options: Mapping[str, Any],
) -> None:
    """Everything that `opened` needs, in one folder. `config` is the encoder's own."""
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    inputs.tokenizer.save_pretrained(folder)
    weights = {
        name: tensor.detach().to("cpu").contiguous()
        for name, tensor in model.state_dict().items()
    }
    save_file(weights, folder / WEIGHTS)
    about = {"task": task, "longest": inputs.longest, "options": dict(options)}
    write_atomically(folder / ABOUT, json.dumps(about, indent=2) + "\n")


def described(folder: str | Path, task: str = "") -> Described:
    """What is in a folder; an error if it is not a model of ours, or was trained for something else."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise BadInput(
            f"'{folder}' holds no trained model: there is no {ABOUT}. Train one first: whichsense train …"
        )
    about = read_json(folder / ABOUT)
    if task and about["task"] != task:
        raise BadInput(
            f"'{folder}' was trained as '{about['task']}', and '{task}' is needed here."
        )
    return Described(folder, about["task"], about["options"])


def tokenizer_of(folder: Path) -> Inputs:
    return Inputs(load_tokenizer(folder), int(read_json(folder / ABOUT)["longest"]))


def empty_encoder(folder: Path) -> nn.Module:
    """The encoder that a folder's config describes, before its weights are filled in."""
    transformers = require("transformers", "train")
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng():
        try:
            found: nn.Module = transformers.AutoModel.from_config(
                config, add_pooling_layer=False
            )
        except TypeError:
            found = transformers.AutoModel.from_config(config)
    return found.to(torch.float32)


def fill(model: nn.Module, folder: Path) -> None:
    """The trained weights; every name must fit."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError) as error:
        why = str(error).strip().splitlines()[0]
        raise BadInput(
            f"'{folder / WEIGHTS}' does not fit its config: {why}. Train it again."
        ) from None
