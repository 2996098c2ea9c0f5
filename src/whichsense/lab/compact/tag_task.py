"""Task compact-tag: an encoder of its own learns to mark every answer of a question, and what names its case."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.files import read_jsonl, write_atomically
from whichsense.jobs.limits import show_progress
from whichsense.lab.compact.list_task import calibrate_layers, is_calibrated
from whichsense.lab.compact.lists import stack_pairs
from whichsense.lab.compact.marked_answers import (
    Answer,
    Example,
    find_firms,
    mark_firms,
    mark_topics,
    read_firm_corpora,
)
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
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_base
from whichsense.models.compact.encoder import LONGEST_QUESTION, WEIGHTS, CompactModel, Pair, pair
from whichsense.models.compact.export import TRUST
from whichsense.models.compact.graphs import WEIGHT_TOP, frame, tag
from whichsense.models.compact.labeller import FRAMES, best_stretch, mark, usable_tokens
from whichsense.models.compact.nets import (
    QuantizedLinear,
    TagNet,
    from_mpnet,
    mean_states,
    set_quantization,
)
from whichsense.models.compact.tagger import (
    FRAME,
    LONGEST_TAGGED,
    TABLES,
    TAGGER,
    Tags,
    covering,
    read_tags,
)

NET, SHAPE = "tag.pt", "tag.json"
_HELD_OUT = 5  # one firm or topic in so many
_TOKEN_WEIGHT = 20.0
_FRAME_WEIGHT = 0.2
_RARE = 2.0  # the weight of an answer's or a label's token beside one that is not
_FITTED = 60  # questions of a corpus on which the probabilities of answers are fitted, at most
_EVALUATED = 64  # pairs at once
_MOST_EVALUATED = 1600  # pairs
_CALIBRATION = 128  # pairs from which the first steps of the int8 codes are taken
_EVEN = 8  # tokens of a batch's pairs are a multiple of it


@dataclass(frozen=True, slots=True)
class _TagModel:
    """The network to train."""

    base: str = "sentence-transformers/all-mpnet-base-v2"
    """An MPNet: a name on the hub, or a folder."""
    words: str = "shipped"
    """The model beside which the tagger works, and whose tokens it reads: a weights folder, or `shipped`."""
    dropout: float = 0.1
    int8_from: float = 0.82
    """The share of the steps after which the forward pass has the arithmetic of the exported int8 model."""
    longest: int = 208
    """Tokens of a pair."""


@dataclass(frozen=True, slots=True)
class TagOptions:
    model: _TagModel = field(default_factory=_TagModel)
    data: DataConfig = field(default_factory=DataConfig)
    firms: tuple[str, ...] = ("firms",)
    """Folders of firms, or names of those that ship with the recipes."""
    reading: tuple[str, ...] = ()
    """Files of other questions over texts, which are read first: in each line a question, a title, a text, and the
    spans of its answers ([first, last + 1] characters), or none."""
    rewrites: float = 0.5
    """How many questions have one of their true rewrites asked beside them, with its answer alone."""
    passes: int = 5
    """Times that the firms and topics are read."""
    batch: int = 96
    """Pairs."""


class TagBatch(NamedTuple):
    """Pairs (pairs × tokens)."""

    ids: Tensor
    types: Tensor
    marks: Tensor
    mask: Tensor
    usable: Tensor
    """Whether a token counts in the loss, for each of three marks (pairs × tokens × 3)."""
    wanted: Tensor
    answers: Tensor
    """Whether a pair holds an answer; -1: it is read for a label."""
    places: Tensor
    """First and last token of the marked answer and of its label, and the frame or -1 (pairs × 5)."""
    quantized: bool = False


class Marked(NamedTuple):
    """A pair with the first and last tokens of its answers, or with one marked answer and its label's."""

    pair: Pair
    spans: tuple[tuple[int, int], ...]
    place: tuple[int, int, int, int, int] | None = None
    """First and last token of the marked answer and of its label, and the frame or -1."""


def read_texts(paths: Iterable[str]) -> Iterator[Example]:
    """Other questions over texts."""
    for path in paths:
        for _, row in read_jsonl(Path(path)):
            answers = tuple(Answer(*span) for span in row["spans"])
            yield Example(row["question"], row["title"], row["text"], answers)


class TagTask(Task[TagNet, TagBatch]):
    """The best model's spans have most tokens in common with the answers of held-out firms and topics."""

    metric = "span_f1"
    higher_is_better = True

    def __init__(self, options: TagOptions) -> None:
        self.options = options
        name = options.model.words
        self.words = CompactModel(WEIGHTS if name == "shipped" else Path(name))
        data = options.data
        texts = [question.text for question in Topics.read(data.topic_folders).questions]
        copies = {texts[number] for number in find_copies(texts, data)}
        self.reading = self._read_texts()
        sources = [mark_topics(data.topic_folders, copies, options.rewrites)]
        sources += [mark_firms(folder, options.rewrites) for folder in find_firms(options.firms)]
        self.learnt: list[Marked] = []
        held_out: list[Marked] = []
        for example in self._limited(sources):
            rows = [self._tag_pair(example), *self._label_pairs(example)]
            (held_out if example.held_out else self.learnt).extend(rows)
        chosen = random.Random(0).sample(held_out, min(len(held_out), _MOST_EVALUATED))
        self.held_out = sorted(chosen, key=lambda one: len(one.pair))

    def _read_texts(self) -> list[Marked]:
        others = list(read_texts(self.options.reading))
        if not others:
            return []
        copies = find_copies([one.question for one in others], self.options.data)
        return [self._tag_pair(one) for at, one in enumerate(others) if at not in copies]

    def _limited(self, sources: Sequence[Iterator[Example]]) -> Iterator[Example]:
        limit = self.options.data.limit or None
        with show_progress("marking answers", "sources") as progress:
            for at, source in enumerate(sources):
                yield from islice(source, limit)
                progress((at + 1) / len(sources), at + 1)

    def _pair(self, example: Example) -> Pair:
        tokenizer = self.words.tokenizer
        ids = tokenizer.ids(example.question, LONGEST_QUESTION)
        return pair(tokenizer, ids, example.title, example.text, self.options.model.longest)

    def _tag_pair(self, example: Example) -> Marked:
        own = self._pair(example)
        spans = []
        for answer in example.answers:
            place = covering(own, own.text, answer.start, answer.end)
            if place is not None:
                spans.append(place)
        return Marked(own, tuple(spans))

    def _label_pairs(self, example: Example) -> Iterator[Marked]:
        """Yield a pair for each answer that has a label."""
        own = self._pair(example)
        places = list(_places(example, own))
        for place in places:
            others = tuple(other[:2] for other in places if other != place)
            yield Marked(own, others, place)

    def build(self) -> TagNet:
        model = self.options.model
        base = load_base(located(model.base))
        net = from_mpnet(base.state_dict())
        for part in net.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = model.dropout
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        size = self.options.batch
        drawn: list[tuple[list[Marked], list[int]]] = []
        rounds = [self.reading] if epoch == 0 else []
        rounds += [self.learnt] * self.options.passes
        for number, rows in enumerate(rounds):
            sizes = [len(one.pair) for one in rows]
            round_seed = epoch * len(rounds) + number
            for chosen in shuffle_batches(len(rows), size, round_seed, seed, sizes):
                drawn.append((rows, chosen))
        quantized_from = int(len(drawn) * self.options.model.int8_from)

        def build(item: tuple[int, tuple[list[Marked], list[int]]]) -> TagBatch:
            number, (rows, chosen) = item
            batch = build_batch([rows[place] for place in chosen])
            return batch._replace(quantized=epoch > 0 or number >= quantized_from)

        return Lazy(list(enumerate(drawn)), build)

    def loss(self, model: TagNet, batch: TagBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        if batch.quantized:
            self._quantize(model)
        tags, answers, states = model(batch.ids, batch.types, batch.marks, batch.mask)
        each = F.binary_cross_entropy_with_logits(
            tags, batch.wanted, reduction="none", pos_weight=tags.new_tensor(_RARE)
        )
        is_label = batch.answers < 0
        share = is_label.float().mean()
        usable = batch.usable.float()
        of_answers = _mean(each[..., :2], usable[..., :2]) * (1 - share)
        of_labels = _mean(each[..., 2], usable[..., 2]) * share
        total = _TOKEN_WEIGHT * (of_answers + of_labels)
        holds = F.binary_cross_entropy_with_logits(
            answers, batch.answers.clamp(min=0), reduction="none"
        )
        total = total + _mean(holds, (~is_label).float()) * (1 - share)
        framed = batch.places[:, 4] >= 0
        if framed.any():
            frames = model.frame(_edges(states[framed], batch.places[framed]))
            right = F.cross_entropy(frames, batch.places[framed, 4])
            total = total + _FRAME_WEIGHT * share * right
        return total, {"answers": of_answers.detach(), "labels": of_labels.detach()}

    def _quantize(self, model: TagNet) -> None:
        """Turn int8 arithmetic on, with the steps that a batch of pairs suggests."""
        layers = [one for one in model.modules() if isinstance(one, QuantizedLinear)]
        if layers[0].quantize_weights:
            return
        if not is_calibrated(model):  # a resumed run goes on with its learnt steps
            count = min(_CALIBRATION, len(self.learnt))
            rows = random.Random(0).sample(self.learnt, count)
            batch = to_device(build_batch(rows), model.tag.weight.device)
            was_training = model.training
            calibrate_layers(model, batch.ids, batch.types, batch.marks, batch.mask)
            model.train(was_training)
        set_quantization(model, weights=True, activations=True)

    @torch.no_grad()
    def evaluate(self, model: TagNet) -> dict[str, float]:
        """Of held-out pairs: F1 of their spans' tokens, how often it is right whether there is an answer, F1 of the
        labels' tokens, and how many frames are right."""
        device = model.tag.weight.device
        common = found = gold = 0
        holds, labels, frames = [False], [0.0], [False]
        for start in range(0, len(self.held_out), _EVALUATED):
            part = self.held_out[start : start + _EVALUATED]
            batch = to_device(build_batch(part), device)
            tags, answers, states = model(batch.ids, batch.types, batch.marks, batch.mask)
            framed = batch.places[:, 4] >= 0
            if framed.any():
                best = model.frame(_edges(states[framed], batch.places[framed]))
                frames += (best.argmax(-1) == batch.places[framed, 4]).tolist()
            logits = tags.float().cpu().numpy()
            for one, own, holds_one in zip(part, logits, answers.tolist(), strict=True):
                if one.place is not None:
                    usable = usable_tokens(one.pair, one.place[:2])
                    stretch = best_stretch(own[: len(one.pair), 2], usable)
                    labels.append(_token_f1(stretch, one.place[2:4]))
                    continue
                spans = read_tags(Tags(own, holds_one, own), one.pair)
                said = {at for span in spans for at in range(span.first, span.last + 1)}
                true = {at for begin, end in one.spans for at in range(begin, end + 1)}
                common += len(said & true)
                found += len(said)
                gold += len(true)
                holds.append((holds_one > 0) == bool(one.spans))
        return {
            "span_f1": 2 * common / max(1, found + gold),
            "holds_right": float(np.mean(holds)),
            "label_f1": float(np.mean(labels)),
            "frames": float(np.mean(frames)),
        }

    def save(self, model: TagNet, folder: Path) -> None:
        save_tagger(model, folder)

    def finish(self, folder: Path) -> None:
        """Export the network beside the model whose tokens it reads."""
        for source in self.words.folder.iterdir():
            # What this training wrote stays, if that folder is one of an earlier one.
            if source.is_file() and not (folder / source.name).exists():
                shutil.copyfile(source, folder / source.name)
        export_tagger(folder, folder)
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
        files = [*self.options.data.topic_files, *map(Path, self.options.reading)]
        for folder in find_firms(self.options.firms):
            files += sorted(folder.glob("**/*.jsonl"))
        return files


def build_batch(marked: Sequence[Marked]) -> TagBatch:
    """Pairs side by side; padded ones are a multiple of eight tokens wide, as attention likes it."""
    width = max(len(one.pair) for one in marked)
    ids, types, mask = stack_pairs([one.pair for one in marked], -(-width // _EVEN) * _EVEN)
    shape = tuple(ids.shape)
    marks = np.zeros(shape, np.int64)
    usable = np.zeros((*shape, 3), bool)
    wanted = np.zeros((*shape, 3), np.float32)
    places = np.full((len(marked), 5), -1)
    answers = np.full(len(marked), -1.0, np.float32)
    for row, one in enumerate(marked):
        size = len(one.pair)
        if one.place is not None:
            first, last, begin, end, _ = places[row] = one.place
            marks[row, :size] = mark(size, (first, last), one.spans)
            usable[row, :size, 2] = usable_tokens(one.pair, (first, last))
            wanted[row, begin : end + 1, 2] = 1
            continue
        answers[row] = bool(one.spans)
        usable[row, slice(*one.pair.text), :2] = True
        for first, last in one.spans:
            wanted[row, first : last + 1, 0] = 1
            wanted[row, first, 1] = 1
    return TagBatch(
        ids,
        types,
        torch.from_numpy(marks),
        mask,
        torch.from_numpy(usable),
        torch.from_numpy(wanted),
        torch.from_numpy(answers),
        torch.from_numpy(places),
    )


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (values * weights).sum() / weights.sum().clamp(min=1)


def _edges(states: Tensor, places: Tensor) -> Tensor:
    own = mean_states(states, places[:, 0], places[:, 1])
    labels = mean_states(states, places[:, 2], places[:, 3])
    return torch.cat([states[:, 0], own, labels], -1)


def _places(example: Example, own: Pair) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the tokens of each labelled answer and of its label, and the frame. A label that the question holds is
    none."""
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


def save_tagger(model: TagNet, folder: Path) -> None:
    """Write the weights and the shape of a network."""
    torch.save(model.state_dict(), folder / NET)
    shape = json.dumps(asdict(model.config)) + "\n"
    (folder / SHAPE).write_text(shape, encoding="utf-8")


def export_tagger(trained: Path, folder: Path, *, int8: bool = True) -> None:
    """Write the graphs and the tables of a trained network."""
    state = torch.load(trained / NET, map_location="cpu", weights_only=True)
    weights = {name: value.float().numpy() for name, value in state.items()}
    shape = json.loads((trained / SHAPE).read_text(encoding="utf-8"))
    graph = gzip.compress(tag(weights, shape, int8=int8), mtime=0)
    write_atomically(folder / TAGGER, graph)
    write_atomically(folder / FRAME, frame(weights, shape, int8=int8))
    vectors = weights["encoder.words.weight"]
    steps = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-8) / WEIGHT_TOP
    tables = io.BytesIO()
    np.savez_compressed(
        tables,
        codes=np.round(vectors / steps).astype(np.int8),
        steps=steps,
        places=weights["encoder.places.weight"][:LONGEST_TAGGED].astype(np.float16),
        types=weights["encoder.types.weight"],
        marks=weights["marks.weight"],
        relative=weights["encoder.relative.weight"],
        layers=np.int64(shape["layers"]),
    )
    write_atomically(folder / TABLES, tables.getvalue())


SPEC = TaskSpec(TagOptions, TagTask)
