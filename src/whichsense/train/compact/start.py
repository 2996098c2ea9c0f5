"""What training goes on from: a folder that a recipe wrote, any weights folder, or the model that is shipped."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.models.compact.export import CONFIG
from whichsense.models.compact.loading import load
from whichsense.models.compact.net import CompactConfig, CompactNet
from whichsense.models.compact.runtime import WEIGHTS

SHIPPED = "shipped"
NET, SHAPE, VOCABULARY = "net.pt", "shape.json", "vocab.txt"
_SILENT = (
    "self_attention.output",
    "cross_attention.output",
    "narrow",
)  # what a layer adds to its input comes from these


@dataclass(frozen=True)
class Start:
    """A model, as it was left."""

    folder: Path
    shape: CompactConfig
    vocabulary: list[str]
    state: dict[str, Tensor] = field(repr=False)
    config: dict[str, Any] | None = None
    """What the weights folder says of itself; None where it is none, and the steps of the int8 codes are not learnt."""

    def net(self, shape: CompactConfig) -> CompactNet:
        """With these weights. Decoder layers that are new pass on what they are given, until they have learnt."""
        net = CompactNet(shape)
        own = net.state_dict()
        new = {name for name in own if name not in self.state}
        odd = [name for name in self.state if name not in own or own[name].shape != self.state[name].shape]
        odd += [name for name in new if not name.startswith("decoder.layers.")]
        if odd:
            raise BadInput(f"'{self.folder}' holds no compact model of this shape: '{min(odd)}' does not fit.")
        net.load_state_dict(own | self.state | {name: self._new(name, own[name]) for name in new})
        return net

    def mixed(self, net: CompactNet, share: float) -> CompactNet:
        """Between a net that grew out of this one and it, `share` of the way back; what it did not have stays."""
        found = CompactNet(net.config)
        grown = {name: value.detach().cpu() for name, value in net.state_dict().items()}
        found.load_state_dict(grown | {name: grown[name].lerp(own, share) for name, own in self.state.items()})
        return found

    def _new(self, name: str, value: Tensor) -> Tensor:
        layer = name.split(".", 3)[3].rpartition(".")[0]
        if name.endswith(".scale"):
            return self.state["decoder.copy_key.scale"]
        if layer in _SILENT:
            return torch.zeros_like(value)
        return nn.init.normal_(value, std=0.02) if value.ndim > 1 else value


def opened(name: str) -> Start:
    """`shipped`, or a folder. What a recipe left for training is preferred: it is not rounded."""
    folder = WEIGHTS if name == SHIPPED else Path(name)
    if not (folder / NET).exists():
        found = load(folder)
        state = {key: torch.tensor(array) for key, array in found.weights.items()}
        return Start(folder, CompactConfig(**found.shape), found.vocabulary, state, found.config)
    try:
        shape = CompactConfig(**json.loads((folder / SHAPE).read_text(encoding="utf-8")))
        vocabulary = (folder / VOCABULARY).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        state = torch.load(folder / NET, map_location="cpu", weights_only=True)
        told = folder / CONFIG
        config = json.loads(told.read_text(encoding="utf-8")) if told.exists() else None
    except (OSError, ValueError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
        raise BadInput(f"'{name}' holds no compact model that can be read: {error}") from None
    return Start(folder, shape, vocabulary, state, config)


def keep(net: CompactNet, vocabulary: Sequence[str], folder: Path) -> None:
    """What another recipe starts from."""
    torch.save({name: value.detach().cpu() for name, value in net.state_dict().items()}, folder / NET)
    (folder / SHAPE).write_text(json.dumps(asdict(net.config)) + "\n", encoding="utf-8")
    (folder / VOCABULARY).write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
