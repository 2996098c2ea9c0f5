"""Model folders: an encoder's config, tokenizer and weights, with its trained heads."""

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

ABOUT = "bert.json"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Described:
    """A folder, the task that its model was trained for, and that task's options."""

    folder: Path
    task: str
    options: Mapping[str, Any]


def encoder(base: str | Path) -> nn.Module:
    """A pretrained encoder without a pooler: nothing here uses it."""
    try:
        model: nn.Module = load_base(base, add_pooling_layer=False)
    except TypeError:  # the architecture has no pooler
        model = load_base(base)
    return model


def save(
    folder: Path,
    model: nn.Module,
    inputs: Inputs,
    *,
    task: str,
    config: Any,
    options: Mapping[str, Any],
) -> None:
    """Write a model's folder. `config` is the encoder's own."""
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    inputs.tokenizer.save_pretrained(folder)
    weights = {}
    for name, tensor in model.state_dict().items():
        weights[name] = tensor.detach().to("cpu").contiguous()
    save_file(weights, folder / WEIGHTS)
    about = {"task": task, "longest": inputs.longest, "options": dict(options)}
    write_atomically(folder / ABOUT, json.dumps(about, indent=2) + "\n")


def described(folder: str | Path, task: str = "") -> Described:
    """Describe a folder. Reject one without a trained model, or with a model for another task."""
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
    """The inputs that a folder's model was trained with."""
    longest = int(read_json(folder / ABOUT)["longest"])
    return Inputs(load_tokenizer(folder), longest)


def empty_encoder(folder: Path) -> nn.Module:
    """The encoder of a folder's config, without its weights."""
    transformers = require("transformers", "train")
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng():
        try:
            model: nn.Module = transformers.AutoModel.from_config(
                config, add_pooling_layer=False
            )
        except TypeError:  # the architecture has no pooler
            model = transformers.AutoModel.from_config(config)
    return model.to(torch.float32)


def fill(model: nn.Module, folder: Path) -> None:
    """Load the trained weights of a folder into a model. Every name must fit."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError) as error:
        why = str(error).strip().splitlines()[0]
        raise BadInput(
            f"'{folder / WEIGHTS}' does not fit its config: {why}. Train it again."
        ) from None
