"""What training goes on from: a folder that a recipe wrote, any weights folder, or the model that is shipped."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whichsense.errors import BadInput
from whichsense.models.compact.encoder.net import CompactConfig, CompactNet
from whichsense.models.compact.encoder.runtime import WEIGHTS
from whichsense.models.compact.export import CONFIG, WORD_TOP, WRITER_LAYERS
from whichsense.models.compact.loading import load

SHIPPED = "shipped"
NET, SHAPE, VOCABULARY = "net.pt", "shape.json", "vocab.txt"
_WRITER = "writer."


@dataclass(frozen=True)
class Start:
    """A model, as it was left."""

    folder: Path
    shape: CompactConfig
    vocabulary: list[str]
    state: dict[str, Tensor] = field(repr=False)
    config: dict[str, Any] | None = None
    """What the weights folder says of itself; None where it is none."""

    @property
    def encoder(self) -> dict[str, Tensor]:
        """Its part with the heads."""
        return {
            name: value
            for name, value in self.state.items()
            if not name.startswith(_WRITER)
        }

    @property
    def writer(self) -> dict[str, Tensor]:
        """Its part that writes; empty where there is none yet."""
        return {
            name.removeprefix(_WRITER): value
            for name, value in self.state.items()
            if name.startswith(_WRITER)
        }

    def net(self, shape: CompactConfig) -> CompactNet:
        """Encoder and heads with these weights."""
        net = CompactNet(shape)
        own, kept = net.state_dict(), self.encoder
        odd = [
            name
            for name in kept
            if name not in own or own[name].shape != kept[name].shape
        ]
        odd += [name for name in own if name not in kept]
        if odd:
            raise BadInput(
                f"'{self.folder}' holds no compact model of this shape: '{min(odd)}' does not fit."
            )
        net.load_state_dict(kept)
        return net

    def mixed(self, net: CompactNet, share: float) -> CompactNet:
        """Between a net that grew out of this one and it, `share` of the way back."""
        found = CompactNet(net.config)
        grown = {name: value.detach().cpu() for name, value in net.state_dict().items()}
        found.load_state_dict(
            {name: value.lerp(self.state[name], share) for name, value in grown.items()}
        )
        return found


def rounded_words(words: Tensor) -> Tensor:
    """Word vectors as the weights folder holds them: the writer learns with what it will be run with."""
    steps = words.abs().amax(1, keepdim=True).clamp(min=1e-8) / WORD_TOP
    return torch.round(words / steps) * steps


def opened(name: str) -> Start:
    """`shipped`, or a folder. What a recipe left for training is preferred: it is not rounded."""
    folder = WEIGHTS if name == SHIPPED else Path(name)
    if not (folder / NET).exists():
        found = load(folder)
        state = {key: torch.tensor(array) for key, array in found.weights.items()}
        shape = {
            key: value for key, value in found.shape.items() if key != WRITER_LAYERS
        }
        return Start(
            folder, CompactConfig(**shape), found.vocabulary, state, found.config
        )
    try:
        sizes = CompactConfig(
            **json.loads((folder / SHAPE).read_text(encoding="utf-8"))
        )
        vocabulary = (
            (folder / VOCABULARY)
            .read_text(encoding="utf-8")
            .removesuffix("\n")
            .split("\n")
        )
        state = torch.load(folder / NET, map_location="cpu", weights_only=True)
        told = folder / CONFIG
        config = json.loads(told.read_text(encoding="utf-8")) if told.exists() else None
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
        RuntimeError,
        pickle.UnpicklingError,
    ) as error:
        raise BadInput(
            f"'{name}' holds no compact model that can be read: {error}"
        ) from None
    return Start(folder, sizes, vocabulary, state, config)


def keep(net: CompactNet, vocabulary: Sequence[str], folder: Path) -> None:
    """What another recipe starts from."""
    torch.save(
        {name: value.detach().cpu() for name, value in net.state_dict().items()},
        folder / NET,
    )
    (folder / SHAPE).write_text(json.dumps(asdict(net.config)) + "\n", encoding="utf-8")
    (folder / VOCABULARY).write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
