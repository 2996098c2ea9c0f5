"""What tasks over lists of passages share: the base, the model to start from, draws of lists."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.errors import BadConfig, BadInput
from whichsense.lab.compact.lists import Pack, PairTensors, load_lists
from whichsense.lab.compact.questions import DataConfig, ListConfig
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.compact.encoder import (
    BEGIN,
    END,
    LONGEST_QUESTION,
    LONGEST_TITLE,
    PAD,
    UNKNOWN,
    WEIGHTS,
)
from whichsense.models.compact.export import CONFIG, VERIFIER, WORD_TOP, WRITER_LAYERS, load
from whichsense.models.compact.nets import (
    UNLEARNT,
    CompactConfig,
    CompactNet,
    QuantizedLinear,
    from_bert,
)
from whichsense.types import frozen

# First scales of the int8 codes, taken from the activations of a batch.


def is_calibrated(net: nn.Module) -> bool:
    """Return whether the scales of a network were learnt or calibrated before."""
    return bool(_quantized_layers(net)[0].scale.item() != UNLEARNT)


def calibrate(net: CompactNet, pairs: PairTensors) -> None:
    """Set the scale of every quantized layer by what it is given when these pairs are read."""
    calibrate_layers(net, *pairs[:3], read=net.read)


def calibrate_layers(
    net: nn.Module, *inputs: Tensor, read: Callable[..., Any] | None = None
) -> None:
    """Set the scale of every quantized layer by what it is given when a network reads these inputs."""

    def calibrate_layer(layer: QuantizedLinear, inputs: tuple[Any, ...]) -> None:
        layer.calibrate(inputs[0])

    # A hook sees the inputs of its layer in a normal forward pass.
    hooks = [layer.register_forward_pre_hook(calibrate_layer) for layer in _quantized_layers(net)]
    # Dropout would change the range of activations.
    net.eval()
    with torch.no_grad():
        (read or net)(*inputs)
    for hook in hooks:
        hook.remove()


def _quantized_layers(net: nn.Module) -> list[QuantizedLinear]:
    return [part for part in net.modules() if isinstance(part, QuantizedLinear)]


# The model that training starts from: a folder that a recipe wrote, any weights folder, or the
# shipped model.

SHIPPED = "shipped"
NET = "net.pt"
_SHAPE = "shape.json"
_VOCABULARY = "vocab.txt"
_WRITER = "writer."
_NOT_ENCODER = (_WRITER, VERIFIER)
_UNREADABLE = (OSError, EOFError, ValueError, TypeError, RuntimeError, pickle.UnpicklingError)


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
        return {
            name: value for name, value in self.state.items() if not name.startswith(_NOT_ENCODER)
        }

    @property
    def writer(self) -> dict[str, Tensor]:
        """The weights of the writer; empty if there is no writer yet."""
        return {
            name.removeprefix(_WRITER): value
            for name, value in self.state.items()
            if name.startswith(_WRITER)
        }

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


def round_words(words: Tensor) -> Tensor:
    """Word vectors as the int8 weights folder holds them: the writer trains with the vectors that it will run with."""
    # Words × 1: each vector has a step of its own.
    steps = words.abs().amax(1, keepdim=True).clamp(min=1e-8) / WORD_TOP
    return torch.round(words / steps) * steps


def load_start(name: str) -> Start:
    """Load `shipped` or a folder. A checkpoint that a recipe left is preferred to int8 codes: it is not rounded."""
    folder = WEIGHTS if name == SHIPPED else Path(name)
    if not (folder / NET).exists():
        return _from_weights_folder(folder)
    try:
        return _from_checkpoint(folder)
    except _UNREADABLE as error:
        raise BadInput(f"'{name}' holds no compact model that can be read: {error}") from None


def _from_weights_folder(folder: Path) -> Start:
    exported = load(folder)
    sizes = dict(exported.shape)
    # The encoder's shape knows nothing of the writer.
    sizes.pop(WRITER_LAYERS, None)
    state = {name: torch.tensor(array) for name, array in exported.weights.items()}
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
    state = {name: value.detach().cpu() for name, value in net.state_dict().items()}
    torch.save(state, folder / NET)
    shape = json.dumps(asdict(net.config)) + "\n"
    (folder / _SHAPE).write_text(shape, encoding="utf-8")
    (folder / _VOCABULARY).write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


# The pre-trained BERT that the compact model grows out of: its vocabulary and its shape.

# The writer marks its prompts with pieces from [unused0] to [unused98].
_REQUIRED_PIECES = {
    PAD: "[PAD]",
    UNKNOWN: "[UNK]",
    BEGIN: "[CLS]",
    END: "[SEP]",
    1: "[unused0]",
    99: "[unused98]",
}


def load_vocabulary(base: str) -> list[str]:
    """Return the word pieces of a base, by id. Raise BadConfig unless they are BERT's uncased ones."""
    ids: dict[str, int] = load_tokenizer(located(base)).get_vocab()
    vocabulary = sorted(ids, key=ids.__getitem__)
    for place, piece in _REQUIRED_PIECES.items():
        if place >= len(vocabulary) or vocabulary[place] != piece:
            raise BadConfig(
                f"'{base}' does not have BERT's uncased vocabulary, whose unused word pieces are needed here."
            )
    return vocabulary


def encoder_shape(base: str, early: int) -> CompactConfig:
    """Return the shape of the compact encoder that starts from this BERT; `early` layers read every passage."""
    config = load_config(located(base))
    if config.model_type != "bert":
        raise BadConfig(
            f"model.base is a {config.model_type}; the compact model's encoder is a BERT."
        )
    return CompactConfig(
        vocabulary=config.vocab_size,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        inner=config.intermediate_size,
        positions=config.max_position_embeddings,
        layers=config.num_hidden_layers,
        # At least one layer is left for the best passages.
        early=min(early, config.num_hidden_layers - 1),
        epsilon=config.layer_norm_eps,
    )


def untrained(base: str, early: int = 1) -> Start:
    """Return a base as the compact encoder that it would become."""
    shape = encoder_shape(base, early)
    net = from_bert(load_base(located(base)).state_dict(), shape)
    return Start(Path(base), shape, load_vocabulary(base), net.state_dict())


# What the teacher and the encoder share as tasks: lists of passages to train on, and how batches are
# drawn.

_SHORTEST = LONGEST_QUESTION + LONGEST_TITLE + 5  # tokens; three are separators
_UNANSWERED_WEIGHT = 0.25  # of a list none of whose passages holds an answer


@frozen
class ListDraw:
    """A recipe's `[draw]`: what a batch holds."""

    lists: int = 40
    passages: int = 16


def load_training_lists(
    data: DataConfig, lists: ListConfig, vocabulary: Sequence[str], longest: int
) -> tuple[Pack, Pack]:
    """Return the lists to train on and those to evaluate on. `longest`: tokens of a pair."""
    if longest < _SHORTEST:
        raise BadConfig(
            f"model.longest must be {_SHORTEST} or more: question and title alone may need so many."
        )
    train, dev = load_lists(data, lists, vocabulary)
    if not train.has_answer.any():
        raise BadInput(
            "For no training question the index found a passage with its answer. Is it the right index?"
        )
    return train, dev


def draw_numbers(
    probabilities: NDArray[np.float64], size: int, epoch: int, seed: int
) -> list[tuple[int, list[int]]]:
    """Return an epoch's batches: the number of each and its lists. There are as many as would hold every list once."""
    rng = np.random.default_rng([seed, epoch])
    count = max(1, len(probabilities) // size)
    drawn = rng.choice(len(probabilities), (count, size), p=probabilities)
    return list(enumerate(drawn.tolist()))


def batch_rng(seed: int, epoch: int, number: int) -> np.random.Generator:
    """Return a batch's own generator: batches are built in any order, by any thread or process."""
    # The last number keeps it apart from the generator of `draw_numbers`.
    return np.random.default_rng([seed, epoch, number, 1])


def list_probabilities(lists: Pack, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Return how often each list is drawn, by the weight of its dataset."""
    by_source = np.array([_weight(one.source, weights) for one in lists.asked])
    # A list without an answer teaches only what to decline.
    by_answer = np.where(lists.has_answer, 1.0, _UNANSWERED_WEIGHT)
    return normalize_weights(1.0, by_source * by_answer)


def normalize_weights(share: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale weights so that their sum is `share`."""
    if weights.min() < 0 or (share and not weights.any()):
        raise BadConfig(
            "data.weights: 0 or more for each dataset, and not 0 for all from which something is drawn."
        )
    return share * weights / (weights.sum() or 1.0)


def _weight(source: str, weights: Mapping[str, float]) -> float:
    return weights.get(longest_prefix(source, weights), 1.0)


def longest_prefix(source: str, keys: Iterable[str]) -> str:
    """Return the longest key that a dataset's name, or a file's name without its folder, starts with; else the name
    itself.

    >>> longest_prefix("situatedqa/geo.dev", ["situatedqa", "squad"]), longest_prefix("data/mine.json", ["mine"])
    ('situatedqa', 'mine')
    """
    name = Path(source).name
    fits = [key for key in keys if source.startswith(key) or name.startswith(key)]
    return max(fits, key=len, default=source)
