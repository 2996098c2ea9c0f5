"""Task compact-tag: a third late half of the encoder learns to mark every answer of a question in a passage."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig
from whichsense.files import read_jsonl, write_atomically
from whichsense.jobs.limits import show_progress
from whichsense.lab.compact.label_task import (
    Answer,
    Example,
    find_answers,
    find_firms,
    firm_passages,
    marks_in_firm,
    read_firm_corpora,
    read_rewrites,
    without_overlaps,
)
from whichsense.lab.compact.list_task import load_start
from whichsense.lab.compact.questions import (
    CorpusQuestions,
    DataConfig,
    build_corpus,
    find_copies,
    is_held_out,
    training_half_of_sample,
)
from whichsense.lab.compact.topics import Topics, split_topics, topic_of
from whichsense.lab.compact.trust_fitting import fit_answers
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import Lazy, Task, TaskSpec, shuffle_batches
from whichsense.models.compact.encoder import LONGEST_QUESTION, CompactModel, Pair, pair
from whichsense.models.compact.export import TRUST
from whichsense.models.compact.graphs import tag
from whichsense.models.compact.labeller import covering
from whichsense.models.compact.nets import QuantizedLinear, TagNet, set_quantization
from whichsense.models.compact.tagger import TAGGER, read_tags
from whichsense.text.words import SMALL_WORDS, words
from whichsense.types import Passage

NET = "tag.pt"
_HELD_OUT = 5  # one firm or topic in so many
_BESIDE = 1  # passages without an answer that are read for a question
_OF_UNANSWERED = 2  # passages that are read for a question without an answer
_TOKEN_WEIGHT = 20.0
_RARE = 2.0  # the weight of an answer's token beside one that is not
_FITTED = 60  # questions of a corpus on which the probabilities of answers are fitted, at most
_EVALUATED = 32  # pairs at once
_MOST_EVALUATED = 800  # pairs


@dataclass(frozen=True, slots=True)
class _TagModel:
    """The network to train."""

    start: str = "shipped"
    """The model whose first layers read: a weights folder, or `shipped`."""
    dropout: float = 0.0
    frozen: int = 0
    """Layers above the encoder's first ones that stay as they are."""
    int8_from: float = 0.75
    """The share of the steps after which the forward pass has the arithmetic of the exported int8 model."""
    longest: int = 208
    """Tokens of a pair."""


@dataclass(frozen=True, slots=True)
class TagOptions:
    model: _TagModel = field(default_factory=_TagModel)
    data: DataConfig = field(default_factory=DataConfig)
    firms: tuple[str, ...] = ("firms",)
    """Folders of firms, or names of those that ship with the recipes."""
    rewrites: float = 0.5
    """How many questions have one of their true rewrites asked beside them, with its answer alone."""
    topics: float = 1.0
    """How many of the topics' questions are learnt from."""
    batch: int = 16
    """Pairs."""


class TagBatch(NamedTuple):
    """Pairs (pairs × tokens)."""

    states: Tensor
    mask: Tensor
    usable: Tensor
    inside: Tensor
    first: Tensor
    answers: Tensor
    quantized: bool = False


class Marked(NamedTuple):
    """A pair with the first and last tokens of its answers."""

    pair: Pair
    spans: tuple[tuple[int, int], ...]


# Questions over passages in which every answer is marked: those of firms, and those of topics.


def mark_firms(folder: Path, rewrites: float) -> Iterator[Example]:
    """The questions of a folder of firms over passages with answers and some without; the near misses over the most
    similar passages."""
    for path in sorted(folder.glob("*.jsonl")):
        for _, firm in read_jsonl(path):
            passages = firm_passages(firm)
            held_out = is_held_out(firm["id"], _HELD_OUT)
            for row in firm["questions"]:
                marked = marks_in_firm(firm, passages, row)
                yield from _around(row["q"], passages, marked, held_out)
                rng = random.Random(row["q"])
                told = [one for one in row["a"] if one.get("r")]
                if told and not held_out and rng.random() < rewrites:
                    one = rng.choice(told)
                    alone = marks_in_firm(firm, passages, row | {"a": [one]})
                    yield from _around(one["r"], passages, alone, held_out)
            for text in firm["none"]:
                yield from _around(text, passages, {}, held_out, _OF_UNANSWERED)


def mark_topics(
    folders: Sequence[Path], left_out: Iterable[str], rewrites: float, share: float
) -> Iterator[Example]:
    """The questions of topics over their passages."""
    topics = Topics.read(folders)
    skipped = set(left_out)
    true = read_rewrites(folders)
    by_topic: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in topics.passages:
        by_topic[topic_of(passage.id)].append(passage)
    for question in topics.questions:
        topic = topic_of(question.id)
        held_out = is_held_out(topic, _HELD_OUT)
        rng = random.Random(question.id)
        if question.text in skipped or (not held_out and rng.random() >= share):
            continue
        passages = by_topic[topic]
        groups = question.annotations[0].answers if question.annotations else ()
        marked = _mark(passages, groups)
        yield from _around(question.text, passages, marked, held_out)
        own = true.get(question.id, {}).get("true", ())
        if own and not held_out and rng.random() < rewrites:
            one = rng.choice(own)
            alone = _mark(passages, [groups[one["answer"]]])
            yield from _around(one["question"], passages, alone, held_out)


def _mark(
    passages: Sequence[Passage], groups: Iterable[Sequence[str]]
) -> dict[str, list[Answer]]:
    marked = {}
    names = [name for group in groups for name in group]
    for passage in passages:
        found = find_answers(passage.text, names)
        marked[passage.id] = [Answer(start, end) for start, end in found]
    return marked


def _around(
    question: str,
    passages: Sequence[Passage],
    marked: Mapping[str, Sequence[Answer]],
    held_out: bool,
    beside: int = _BESIDE,
) -> Iterator[Example]:
    """The question over all passages that hold an answer, and over those without one that are most like it."""
    without = []
    for passage in passages:
        own = without_overlaps(marked.get(passage.id, ()))
        if own:
            yield Example(question, passage.title, passage.text, own, held_out)
        else:
            without.append(passage)
    asked = set(words(question)) - SMALL_WORDS
    without.sort(
        key=lambda one: -len(asked.intersection(words(f"{one.title} {one.text}")))
    )
    for passage in without[:beside]:
        yield Example(question, passage.title, passage.text, (), held_out)


class TagTask(Task[TagNet, TagBatch]):
    """The best model's spans have most tokens in common with the answers of held-out firms and topics."""

    metric = "span_f1"
    higher_is_better = True

    def __init__(self, options: TagOptions) -> None:
        self.options = options
        self.start = load_start(options.model.start)
        if self.start.config is None:
            raise BadConfig(
                f"model.start: '{options.model.start}' is no weights folder, whose encoder could read."
            )
        self.reader = CompactModel(self.start.folder, threads=1)
        self.learnt: list[Marked] = []
        self.held_out: list[Marked] = []
        for example in list(self._examples()):
            built = self._build_pair(example)
            (self.held_out if example.held_out else self.learnt).append(built)
        chosen = random.Random(0).sample(
            self.held_out, min(len(self.held_out), _MOST_EVALUATED)
        )
        self.held_out = sorted(chosen, key=lambda one: len(one.pair))

    def _examples(self) -> Iterator[Example]:
        options = self.options
        folders = options.data.topic_folders
        texts = [question.text for question in Topics.read(folders).questions]
        copies = [texts[number] for number in find_copies(texts, options.data)]
        sources = [mark_topics(folders, copies, options.rewrites, options.topics)]
        for folder in find_firms(options.firms):
            sources.append(mark_firms(folder, options.rewrites))
        limit = options.data.limit or None
        with show_progress("marking answers", "pairs") as progress:
            for at, source in enumerate(sources):
                for number, example in enumerate(source):
                    if limit is not None and number >= limit:
                        break
                    yield example
                progress((at + 1) / len(sources), at + 1)

    def _build_pair(self, example: Example) -> Marked:
        ids = self.reader.tokenizer.ids(example.question, LONGEST_QUESTION)
        own = pair(
            self.reader.tokenizer,
            ids,
            example.title,
            example.text,
            self.options.model.longest,
        )
        spans = []
        for answer in example.answers:
            place = covering(own, own.text, answer.start, answer.end)
            if place is not None:
                spans.append(place)
        return Marked(own, tuple(spans))

    def build(self) -> TagNet:
        """The network; its layers begin as the verifier's."""
        shape = replace(self.start.shape, dropout=self.options.model.dropout)
        net = TagNet(shape)
        has_verifier = any(name.startswith("verifier.") for name in self.start.state)
        prefix = "verifier." if has_verifier else ""
        for number, layer in enumerate(net.layers):
            name = f"{prefix}encoder.layers.{shape.early + number}."
            layer.load_state_dict(
                {part: self.start.state[name + part] for part in layer.state_dict()}
            )
        for layer in net.layers[: self.options.model.frozen]:
            layer.requires_grad_(False)
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        sizes = [len(one.pair) for one in self.learnt]
        drawn = list(
            shuffle_batches(len(sizes), self.options.batch, epoch, seed, sizes)
        )
        quantized_from = int(len(drawn) * self.options.model.int8_from)

        def build(row: tuple[int, list[int]]) -> TagBatch:
            number, chosen = row
            batch = self._build_batch([self.learnt[place] for place in chosen])
            return batch._replace(quantized=epoch > 0 or number >= quantized_from)

        return Lazy(list(enumerate(drawn)), build)

    def _build_batch(self, marked: Sequence[Marked]) -> TagBatch:
        """The pairs as the encoder's first layers read them."""
        width = max(len(one.pair) for one in marked)
        read = self.reader.early([one.pair for one in marked])
        shape = (len(marked), width)
        states = np.zeros((*shape, read[0][0].shape[-1]), np.float32)
        mask, usable = np.zeros((2, *shape), bool)
        inside, first = np.zeros((2, *shape), np.float32)
        for row, (one, (own, _)) in enumerate(zip(marked, read, strict=True)):
            size = len(one.pair)
            states[row, :size] = own[0]
            mask[row, :size] = True
            usable[row, slice(*one.pair.text)] = True
            for begin, end in one.spans:
                inside[row, begin : end + 1] = 1
                first[row, begin] = 1
        answers = torch.tensor([float(bool(one.spans)) for one in marked])
        return TagBatch(
            torch.from_numpy(states),
            torch.from_numpy(mask),
            torch.from_numpy(usable),
            torch.from_numpy(inside),
            torch.from_numpy(first),
            answers,
        )

    def loss(
        self, model: TagNet, batch: TagBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        if batch.quantized:
            layers = [
                one for one in model.modules() if isinstance(one, QuantizedLinear)
            ]
            if not layers[0].quantize_weights:
                set_quantization(model, weights=True, activations=True)
        tags, answers = model(batch.states, batch.mask)
        wanted = torch.stack([batch.inside, batch.first], -1)
        each = F.binary_cross_entropy_with_logits(
            tags, wanted, reduction="none", pos_weight=tags.new_tensor(_RARE)
        )
        usable = batch.usable[..., None]
        tokens = (each * usable).sum() / (2 * usable.sum()).clamp(min=1)
        holds = F.binary_cross_entropy_with_logits(answers, batch.answers)
        total = _TOKEN_WEIGHT * tokens + holds
        return total, {"tokens": tokens.detach(), "holds": holds.detach()}

    @torch.no_grad()
    def evaluate(self, model: TagNet) -> dict[str, float]:
        """Of held-out pairs: F1 of their spans' tokens, and how often it is right whether there is an answer."""
        device = model.tag.weight.device
        common = found = gold = 0
        right = []
        for start in range(0, len(self.held_out), _EVALUATED):
            part = self.held_out[start : start + _EVALUATED]
            batch = to_device(self._build_batch(part), device)
            tags, answers = model(batch.states, batch.mask)
            for one, own, holds in zip(part, tags, answers.tolist(), strict=True):
                spans = read_tags(own.float().cpu().numpy(), holds, one.pair)
                said = {at for span in spans for at in range(span.first, span.last + 1)}
                true = {at for begin, end in one.spans for at in range(begin, end + 1)}
                common += len(said & true)
                found += len(said)
                gold += len(true)
                right.append((holds > 0) == bool(one.spans))
        return {
            "span_f1": 2 * common / max(1, found + gold),
            "holds_right": float(np.mean(right or [0.0])),
        }

    def save(self, model: TagNet, folder: Path) -> None:
        torch.save(model.state_dict(), folder / NET)

    def finish(self, folder: Path) -> None:
        """Export the network beside the model whose encoder it reads with."""
        for source in self.start.folder.iterdir():
            if source.is_file() and source.name != TAGGER:
                shutil.copyfile(source, folder / source.name)
        state = torch.load(folder / NET, map_location="cpu", weights_only=True)
        export_tagger(state, self.start.config or {}, folder)
        with show_progress("fitting the trust", "questions") as progress:
            trust = fit_answers(folder, self._fitting_corpora(), progress)
        trust.save(folder / TRUST)

    def _fitting_corpora(self) -> Iterator[CorpusQuestions]:
        """Topics that are held out, every second firm that is, and half of the embedded sample: the probabilities of
        answers are fitted on what the network has not seen."""
        for corpus in split_topics(self.options.data)[1].corpora():
            yield replace(corpus, questions=corpus.questions[:_FITTED])
        for folder in find_firms(self.options.firms):
            for passages, questions in read_firm_corpora(folder, held_out=True):
                firm = topic_of(questions[0].id)
                if is_held_out(firm, 2 * _HELD_OUT):
                    yield CorpusQuestions(build_corpus(passages), questions[:_FITTED])
        yield training_half_of_sample()

    def data(self) -> list[Path]:
        files = list(self.options.data.topic_files)
        for folder in find_firms(self.options.firms):
            files += sorted(folder.glob("*.jsonl"))
        return files


def export_tagger(
    state: Mapping[str, Tensor], config: Mapping[str, Any], folder: Path
) -> None:
    """Write the graph of a trained network."""
    weights = {name: value.float().numpy() for name, value in state.items()}
    shape: Mapping[str, Any] = config["shape"]
    write_atomically(folder / TAGGER, tag(weights, shape, int8=config["int8"]))


SPEC = TaskSpec(TagOptions, TagTask)
