"""Task compact-label: layers over the encoder's first ones learn which words of the evidence name an answer's case.

The encoder itself stays as it is: it reads each pair once, before the training.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig
from whichsense.files import write_atomically
from whichsense.jobs.progress import show_progress
from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION, Pair, pair
from whichsense.models.compact.encoder.net import set_quantization
from whichsense.models.compact.encoder.quantized import QuantizedLinear
from whichsense.models.compact.encoder.runtime import CompactModel
from whichsense.models.compact.label.frames import FRAMES
from whichsense.models.compact.label.graph import frame, label
from whichsense.models.compact.label.labeller import (
    FRAME,
    LABEL,
    best_stretch,
    covering,
    mark,
    usable_tokens,
)
from whichsense.models.compact.label.net import LabelNet, mean_states
from whichsense.train.compact.data.config import DataConfig
from whichsense.train.compact.data.questions import find_copies
from whichsense.train.compact.data.topics import Topics
from whichsense.train.compact.encoder.start import load_start
from whichsense.train.compact.label.examples import Example
from whichsense.train.compact.label.sources import find_firms, read_firms, read_topics
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.task import Task, TaskSpec

NET = "label.pt"
_LABEL_WEIGHT = 20.0
_FRAME_WEIGHT = 0.2
_RARE = 3.0  # the weight of a token of the label, beside one that is not
_EVALUATED = 64  # pairs at once
_READ = 64  # pairs that the encoder reads between two signs of progress


@dataclass(frozen=True, slots=True)
class _LabelModel:
    """The network to train."""

    start: str = "shipped"
    """The model whose first layers read: a weights folder, or `shipped`."""
    layers: int = 2
    dropout: float = 0.1
    int8_from: int = 1
    """The epoch from which on the forward pass has the arithmetic of the exported int8 model."""


@dataclass(frozen=True, slots=True)
class LabelOptions:
    model: _LabelModel = field(default_factory=_LabelModel)
    data: DataConfig = field(default_factory=DataConfig)
    firms: tuple[str, ...] = ("firms",)
    """Folders of firms, or names of those that ship with the recipes."""
    batch: int = 32
    """Answers."""


class LabelBatch(NamedTuple):
    """Answers, each in its pair (answers × tokens)."""

    states: Tensor
    marks: Tensor
    mask: Tensor
    usable: Tensor
    wanted: Tensor
    places: Tensor
    """First and last token of the answer and of its label, and the frame or -1 (answers × 5)."""
    quantized: bool = False


class ReadExample(NamedTuple):
    """A pair that the encoder's first layers read, with its labelled answers."""

    pair: Pair
    states: NDArray[np.float16]
    places: tuple[tuple[int, int, int, int, int], ...]
    held_out: bool


class LabelTask(Task[LabelNet, LabelBatch]):
    """The best model's labels have most words in common with those of held-out firms and topics (F1 of tokens)."""

    metric = "label_f1"
    higher_is_better = True

    def __init__(self, options: LabelOptions) -> None:
        self.options = options
        self.start = load_start(options.model.start)
        if self.start.config is None:
            raise BadConfig(
                f"model.start: '{options.model.start}' is no weights folder, whose encoder could read."
            )
        read = list(self._read(list(self._examples())))
        self.learnt = [one for one in read if not one.held_out]
        self.held_out = [one for one in read if one.held_out]
        self.answers = _answers_of(self.learnt)

    def _examples(self) -> Iterator[Example]:
        data = self.options.data
        folders = data.topic_folders
        texts = [question.text for question in Topics.read(folders).questions]
        copies = [texts[number] for number in find_copies(texts, data)]
        limit = data.limit or None
        for number, example in enumerate(read_topics(folders, copies)):
            if limit is None or number < limit:
                yield example
        for folder in find_firms(self.options.firms):
            for number, example in enumerate(read_firms(folder)):
                if limit is None or number < limit:
                    yield example

    def _read(self, examples: Sequence[Example]) -> Iterator[ReadExample]:
        """The examples as the encoder's first layers read them."""
        model = CompactModel(self.start.folder)
        tokenizer = model.tokenizer
        with show_progress("reading examples", "pairs") as progress:
            for start in range(0, len(examples), _READ):
                part = examples[start : start + _READ]
                pairs = []
                for example in part:
                    ids = tokenizer.ids(example.question, LONGEST_QUESTION)
                    pairs.append(pair(tokenizer, ids, example.title, example.text))
                read = model.early(pairs)
                for example, own, (states, _) in zip(part, pairs, read, strict=True):
                    places = tuple(_places(example, own))
                    if places:
                        yield ReadExample(
                            own, states[0].astype(np.float16), places, example.held_out
                        )
                progress(start / len(examples), start)

    def build(self) -> LabelNet:
        """The network; its layers begin as those that follow in the encoder."""
        model = self.options.model
        shape = replace(self.start.shape, dropout=model.dropout)
        net = LabelNet(shape, model.layers)
        state = self.start.state
        for number, layer in enumerate(net.layers):
            name = f"encoder.layers.{shape.early + number}."
            layer.load_state_dict(
                {part: state[name + part] for part in layer.state_dict()}
            )
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        sizes = [len(self.learnt[number].pair) for number, _ in self.answers]
        drawn = shuffle_batches(
            len(self.answers), self.options.batch, epoch, seed, sizes
        )
        quantized = epoch >= self.options.model.int8_from

        def build(numbers: list[int]) -> LabelBatch:
            chosen = [self.answers[number] for number in numbers]
            return build_batch(self.learnt, chosen)._replace(quantized=quantized)

        return Lazy(list(drawn), build)

    def loss(
        self, model: LabelNet, batch: LabelBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        if batch.quantized:
            self._quantize(model)
        logits, states = model(batch.states, batch.marks, batch.mask)
        each = F.binary_cross_entropy_with_logits(
            logits, batch.wanted, reduction="none", pos_weight=logits.new_tensor(_RARE)
        )
        labels = (each * batch.usable).sum() / batch.usable.sum().clamp(min=1)
        total = _LABEL_WEIGHT * labels
        framed = batch.places[:, 4] >= 0
        if framed.any():
            frames = model.frame(_edges(states[framed], batch.places[framed]))
            total = total + _FRAME_WEIGHT * F.cross_entropy(
                frames, batch.places[framed, 4]
            )
        return total, {"labels": labels.detach()}

    def _quantize(self, model: LabelNet) -> None:
        """Turn int8 arithmetic on. The layers' steps are those of the encoder, until they are learnt anew."""
        layers = [part for part in model.modules() if isinstance(part, QuantizedLinear)]
        if not layers[0].quantize_weights:
            set_quantization(model, weights=True, activations=True)

    @torch.no_grad()
    def evaluate(self, model: LabelNet) -> dict[str, float]:
        """Of held-out answers: F1 of the label's tokens, how many labels overlap, and how many frames are right."""
        device = model.label.weight.device
        answers = _answers_of(self.held_out)
        scores, overlaps, frames = [0.0], [False], [False]
        for start in range(0, len(answers), _EVALUATED):
            chosen = answers[start : start + _EVALUATED]
            batch = to_device(build_batch(self.held_out, chosen), device)
            logits, states = model(batch.states, batch.marks, batch.mask)
            rows = zip(
                logits.cpu().numpy(),
                batch.usable.cpu().numpy(),
                batch.places.tolist(),
                strict=True,
            )
            for own, usable, (_, _, first, last, _) in rows:
                found = best_stretch(own, usable)
                score = _token_f1(found, (first, last))
                scores.append(score)
                overlaps.append(score > 0)
            chosen_frames = model.frame(_edges(states, batch.places)).argmax(-1)
            known = batch.places[:, 4] >= 0
            right = chosen_frames[known] == batch.places[known, 4]
            frames += right.tolist()
        return {
            "label_f1": float(np.mean(scores)),
            "label_overlap": float(np.mean(overlaps)),
            "frames": float(np.mean(frames)),
        }

    def save(self, model: LabelNet, folder: Path) -> None:
        torch.save(model.state_dict(), folder / NET)

    def finish(self, folder: Path) -> None:
        """Export the network beside the model whose encoder it reads with."""
        for source in self.start.folder.iterdir():
            if source.is_file() and source.name not in (LABEL, FRAME):
                shutil.copyfile(source, folder / source.name)
        state = torch.load(folder / NET, map_location="cpu", weights_only=True)
        export_label(state, self.start.config or {}, self.options.model.layers, folder)

    def data(self) -> list[Path]:
        files = list(self.options.data.topic_files)
        for folder in find_firms(self.options.firms):
            files += sorted(folder.glob("*.jsonl"))
        return files


def export_label(
    state: dict[str, Tensor], config: dict[str, Any], layers: int, folder: Path
) -> None:
    """Write the graphs of a trained network."""
    weights = {name: value.float().numpy() for name, value in state.items()}
    shape = config["shape"] | {"label_layers": layers}
    for name, build in ((LABEL, label), (FRAME, frame)):
        write_atomically(folder / name, build(weights, shape, int8=config["int8"]))


def build_batch(
    examples: Sequence[ReadExample], answers: Sequence[tuple[int, int]]
) -> LabelBatch:
    """Answers by the number of their example and of their place in it."""
    width = max(len(examples[number].pair) for number, _ in answers)
    count = len(answers)
    states = np.zeros((count, width, examples[0].states.shape[1]), np.float32)
    marks = np.zeros((count, width), np.int64)
    mask, usable = np.zeros((2, count, width), bool)
    wanted = np.zeros((count, width), np.float32)
    places = np.zeros((count, 5), np.int64)
    for row, (number, place) in enumerate(answers):
        one = examples[number]
        size = len(one.pair)
        first, last, begin, end, _ = one.places[place]
        others = [
            (other[0], other[1]) for at, other in enumerate(one.places) if at != place
        ]
        states[row, :size] = one.states
        marks[row, :size] = mark(size, (first, last), others)
        mask[row, :size] = True
        usable[row, :size] = usable_tokens(one.pair, (first, last))
        wanted[row, begin : end + 1] = 1
        places[row] = one.places[place]
    return LabelBatch(
        torch.from_numpy(states),
        torch.from_numpy(marks),
        torch.from_numpy(mask),
        torch.from_numpy(usable),
        torch.from_numpy(wanted),
        torch.from_numpy(places),
    )


def _answers_of(examples: Sequence[ReadExample]) -> list[tuple[int, int]]:
    return [
        (number, place)
        for number, example in enumerate(examples)
        for place in range(len(example.places))
    ]


def _edges(states: Tensor, places: Tensor) -> Tensor:
    own = mean_states(states, places[:, 0], places[:, 1])
    labels = mean_states(states, places[:, 2], places[:, 3])
    return torch.cat([states[:, 0], own, labels], -1)


def _places(example: Example, own: Pair) -> Iterator[tuple[int, int, int, int, int]]:
    """The tokens of each labelled answer and of its label, and the frame. A label that the question holds is none."""
    asked = example.question.casefold()
    for answer in example.answers:
        if answer.label is None:
            continue
        source = example.title if answer.label.in_title else example.text
        if source[answer.label.start : answer.label.end].casefold() in asked:
            continue
        area = own.title if answer.label.in_title else own.text
        place = covering(own, own.text, answer.start, answer.end)
        named = covering(own, area, answer.label.start, answer.label.end)
        if place and named:
            yield (*place, *named, min(answer.frame, len(FRAMES)))


def _token_f1(found: tuple[int, int, float] | None, gold: tuple[int, int]) -> float:
    if found is None:
        return 0.0
    first, last, _ = found
    both = max(0, min(last, gold[1]) - max(first, gold[0]) + 1)
    return 2 * both / (last - first + gold[1] - gold[0] + 2)


SPEC = TaskSpec(LabelOptions, LabelTask)
