"""The model that training starts from: a folder that a recipe wrote, any weights folder, or the shipped model."""

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
from whichsense.models.compact.export import CONFIG, VERIFIER, WORD_TOP, WRITER_LAYERS
from whichsense.models.compact.loading import load

SHIPPED = "shipped"
NET = "net.pt"
_SHAPE = "shape.json"
_VOCABULARY = "vocab.txt"
_WRITER = "writer."
_NOT_ENCODER = (_WRITER, VERIFIER)
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    RuntimeError,
    pickle.UnpicklingError,
)


@dataclass(frozen=True)
class Start:
    """A model as its last training left it."""

    folder: Path
    shape: CompactConfig
    vocabulary: list[str]
    state: dict[str, Tensor] = field(repr=False)
    config: dict[str, Any] | None = None
    """The settings of a weights folder; None for a folder of another kind."""

    @property
    def encoder(self) -> dict[str, Tensor]:
        """The weights of the encoder and its heads."""
        weights = {}
        for name, value in self.state.items():
            if not name.startswith(_NOT_ENCODER):
                weights[name] = value
        return weights

    @property
    def writer(self) -> dict[str, Tensor]:
        """The weights of the writer; empty if there is no writer yet."""
        weights = {}
        for name, value in self.state.items():
            if name.startswith(_WRITER):
                weights[name.removeprefix(_WRITER)] = value
        return weights

    def net(self, shape: CompactConfig) -> CompactNet:
        """Encoder and heads with these weights."""
        net = CompactNet(shape)
        expected = net.state_dict()
        weights = self.encoder
        # Every misfit is collected, so that the error names the same one each time.
        misfits = []
        for name in {*expected, *weights}:
            if name not in expected or name not in weights:
                misfits.append(name)
            elif expected[name].shape != weights[name].shape:
                misfits.append(name)
        if misfits:
            raise BadInput(
                f"'{self.folder}' holds no compact model of this shape: '{min(misfits)}' does not fit."
            )
        net.load_state_dict(weights)
        return net

    def averaged(self, net: CompactNet, share: float) -> CompactNet:
        """The mean of a network that was trained from this one and this one, which counts `share`."""
        # A network of its own: `net` may go on training.
        mean = CompactNet(net.config)
        weights = {}
        for name, value in net.state_dict().items():
            trained = value.detach().cpu()
            weights[name] = trained.lerp(self.state[name], share)
        mean.load_state_dict(weights)
        return mean


def round_words(words: Tensor) -> Tensor:
    """Word vectors as the int8 weights folder holds them: the writer trains with the vectors that it will run with."""
    # Words × 1: each vector has a step of its own.
    largest = words.abs().amax(1, keepdim=True)
    steps = largest.clamp(min=1e-8) / WORD_TOP
    return torch.round(words / steps) * steps


def load_start(name: str) -> Start:
    """Load `shipped` or a folder. A checkpoint that a recipe left is preferred to int8 codes: it is not rounded."""
    folder = WEIGHTS if name == SHIPPED else Path(name)
    if not (folder / NET).exists():
        return _from_weights_folder(folder)
    try:
        return _from_checkpoint(folder)
    except _UNREADABLE as error:
        raise BadInput(
            f"'{name}' holds no compact model that can be read: {error}"
        ) from None


def _from_weights_folder(folder: Path) -> Start:
    exported = load(folder)
    sizes = dict(exported.shape)
    # The encoder's shape knows nothing of the writer.
    sizes.pop(WRITER_LAYERS, None)
    state = {}
    for name, array in exported.weights.items():
        state[name] = torch.tensor(array)
    shape = CompactConfig(**sizes)
    return Start(folder, shape, exported.vocabulary, state, exported.config)


def _from_checkpoint(folder: Path) -> Start:
    sizes = json.loads((folder / _SHAPE).read_text(encoding="utf-8"))
    pieces = (folder / _VOCABULARY).read_text(encoding="utf-8")
    state = torch.load(folder / NET, map_location="cpu", weights_only=True)
    # Only a weights folder has settings.
    config = None
    if (folder / CONFIG).exists():
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    vocabulary = pieces.removesuffix("\n").split("\n")
    return Start(folder, CompactConfig(**sizes), vocabulary, state, config)


def save_start(net: CompactNet, vocabulary: Sequence[str], folder: Path) -> None:
    """Write what `load_start` reads."""
    state = {}
    for name, value in net.state_dict().items():
        state[name] = value.detach().cpu()
    torch.save(state, folder / NET)
    shape = json.dumps(asdict(net.config)) + "\n"
    (folder / _SHAPE).write_text(shape, encoding="utf-8")
    pieces = "\n".join(vocabulary) + "\n"
    (folder / _VOCABULARY).write_text(pieces, encoding="utf-8")
