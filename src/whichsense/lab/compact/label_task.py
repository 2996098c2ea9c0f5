"""Task compact-label: layers over the encoder's first ones learn which words name an answer's case."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.corpus.cutting import cut
from whichsense.errors import BadConfig
from whichsense.files import read_jsonl, write_atomically
from whichsense.jobs.limits import show_progress
from whichsense.lab.compact.list_task import load_start
from whichsense.lab.compact.questions import DataConfig, find_copies, is_held_out
from whichsense.lab.compact.topics import Topics, topic_of
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.recipes import HOMES
from whichsense.lab.train.task import Lazy, Task, TaskSpec, shuffle_batches
from whichsense.models.compact.encoder import LONGEST_QUESTION, CompactModel, Pair, pair
from whichsense.models.compact.graphs import frame, label
from whichsense.models.compact.labeller import (
    FRAME,
    FRAMES,
    LABEL,
    NO_FRAME,
    best_stretch,
    covering,
    frame_between,
    mark,
    usable_tokens,
)
from whichsense.models.compact.nets import (
    LabelNet,
    QuantizedLinear,
    mean_states,
    set_quantization,
)
from whichsense.types import Document, Passage

# What labels are learnt from, as text: questions over passages, with the place of every answer and of
# its label.

_WORD = re.compile(r"\w+")
_LONGEST_LABEL = 8  # words
_LITTLE = frozenset(
    "a an the of in on at to for from by with and or is are was were be been do does did has have had as that which "
    "who when it its this their his her".split()
)


@dataclass(frozen=True, slots=True)
class Label:
    """The words that name an answer's case: characters of the title or of the text."""

    start: int
    end: int
    in_title: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's characters in the text, and what is known of its label."""

    start: int
    end: int
    label: Label | None = None
    frame: int = -1
    """The number of the frame that puts the label into the question; -1: not known."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question over one passage."""

    question: str
    title: str
    text: str
    answers: tuple[Answer, ...]
    held_out: bool = False
    """Whether it is not learnt from."""


def find_words(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where a string stands in a text as whole words, whatever its case."""
    if not wanted.strip():
        return []
    pattern = rf"(?<!\w){re.escape(wanted.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_answers(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Where any name of an answer stands, the longest where several overlap."""
    found = {span for name in names for span in find_words(text, name)}
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0] - span[1], span)):
        if all(end <= first or start >= last for first, last in kept):
            kept.append((start, end))
    return sorted(kept)


def find_label(title: str, text: str, label: str, near: int) -> Label | None:
    """A label's place: in the text, the nearest to a place in it, else in the title."""
    places = [match.start() for match in re.finditer(re.escape(label), text)]
    if places:
        start = min(places, key=lambda place: abs(place - near))
        return Label(start, start + len(label))
    start = title.find(label)
    return Label(start, start + len(label), in_title=True) if start >= 0 else None


def label_of_rewrite(question: str, rewrite: str, support: str) -> str:
    """The words of the support that a rewrite adds to its question; empty where they are no short phrase of it.

    >>> label_of_rewrite("what is promised", "what is promised on the basic plan", "99.5 per cent on Basic")
    'on Basic'
    """
    asked = {match.group().casefold() for match in _WORD.finditer(question)}
    added = set()
    for match in _WORD.finditer(rewrite):
        if match.group().casefold() not in asked:
            added.add(match.group().casefold())
    words = [
        (m.start(), m.end(), m.group().casefold()) for m in _WORD.finditer(support)
    ]
    telling = [at for at, word in enumerate(words) if word[2] in added - _LITTLE]
    if not telling or telling[-1] - telling[0] >= _LONGEST_LABEL:
        return ""
    first = telling[0]
    # A preposition before it belongs to it, if the rewrite has it too.
    if first and words[first - 1][2] in added and words[first - 1][2] in _LITTLE:
        first -= 1
    return support[words[first][0] : words[telling[-1]][1]]


# Where labelled answers come from: folders of firms, and topics with rewrites.

_HELD_OUT = 5  # one firm or topic in so many
_Places = defaultdict[str, list[Answer]]


def read_firms(folder: Path) -> Iterator[Example]:
    """The questions of a folder of firms, over the passages of their firm that hold labelled answers."""
    for path in sorted(folder.glob("*.jsonl")):
        for _, firm in read_jsonl(path):
            yield from _firm_examples(firm)


def read_firm_corpora(
    folder: Path, *, held_out: bool = False
) -> Iterator[tuple[list[Passage], list[Question]]]:
    """The passages and the questions of each firm that is held out, or of each that is not."""
    for path in sorted(folder.glob("**/*.jsonl")):
        for _, firm in read_jsonl(path):
            if is_held_out(firm["id"], _HELD_OUT) == held_out:
                yield firm_passages(firm), list(_firm_questions(firm))


def _firm_questions(firm: Mapping[str, Any]) -> Iterator[Question]:
    for number, row in enumerate(firm["questions"]):
        # One value for two cases is one answer.
        distinct = {
            answer["x"][0].casefold(): tuple(answer["x"]) for answer in row["a"]
        }
        pairs = [QAPair(names) for names in distinct.values()]
        several = len(pairs) > 1
        annotation = Annotation(
            "multipleQAs" if several else "singleAnswer", tuple(pairs)
        )
        yield Question(f"{firm['id']}-q{number}", row["q"], (annotation,))
    for number, text in enumerate(firm["none"]):
        yield Question(f"{firm['id']}-n{number}", text, ())


def firm_passages(firm: Mapping[str, Any]) -> list[Passage]:
    """The documents of a firm, cut as an index cuts them."""
    passages: list[Passage] = []
    for row in firm["documents"]:
        passages += cut(
            Document(f"{firm['id']}-{row['id']}", row["title"], row["text"])
        )
    return passages


def _firm_examples(firm: Mapping[str, Any]) -> Iterator[Example]:
    passages = firm_passages(firm)
    held_out = is_held_out(firm["id"], _HELD_OUT)
    for row in firm["questions"]:
        marked = marks_in_firm(firm, passages, row)
        for passage in passages:
            own = without_overlaps(marked.get(passage.id, ()))
            if _has_label(own):
                yield Example(row["q"], passage.title, passage.text, own, held_out)


def marks_in_firm(
    firm: Mapping[str, Any], passages: Sequence[Passage], row: Mapping[str, Any]
) -> _Places:
    """The places of a question's answers in each passage of its firm."""
    marked: _Places = defaultdict(list)
    for answer in row["a"]:
        for passage, place in _find_in_firm(firm, passages, row["q"], answer):
            marked[passage.id].append(place)
    return marked


def _has_label(answers: Iterable[Answer]) -> bool:
    return any(answer.label is not None for answer in answers)


def _find_in_firm(
    firm: Mapping[str, Any],
    passages: Sequence[Passage],
    question: str,
    answer: Mapping[str, Any],
) -> Iterator[tuple[Passage, Answer]]:
    """An answer's place in the passage that holds it, with its label where the passage holds that, too."""
    document = next(row for row in firm["documents"] if row["id"] == answer["d"])
    text = document["text"]
    first = text.find(answer["s"]) if answer.get("s") else 0
    places = [
        span for span in find_answers(text, answer["x"][:1]) if span[0] >= max(first, 0)
    ]
    if not places:
        return
    start, end = places[0]
    for passage in passages:
        # A document of one passage has no number in its passage's id.
        if passage.id.partition("#")[0] != f"{firm['id']}-{answer['d']}":
            continue
        if passage.start <= start and end <= passage.end:
            at = start - passage.start
            label = frame = None
            if answer.get("l"):
                label = find_label(passage.title, passage.text, answer["l"], at)
                if label and not label.in_title and _overlap(label, at, end - start):
                    label = None
            if label is not None:
                frame = NO_FRAME
                if answer.get("r"):
                    frame = frame_between(question, answer["r"], answer["l"])
            length = end - start
            yield (
                passage,
                Answer(at, at + length, label, -1 if frame is None else frame),
            )
            return


def _overlap(label: Label, start: int, length: int) -> bool:
    return label.start < start + length and start < label.end


def without_overlaps(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    kept: list[Answer] = []
    for answer in sorted(answers, key=lambda one: (one.start, -one.end)):
        if not kept or answer.start >= kept[-1].end:
            kept.append(answer)
    return tuple(kept)


def read_topics(
    folders: Sequence[Path], left_out: Iterable[str] = ()
) -> Iterator[Example]:
    """The questions of topics over their own passages; a true rewrite and its support give an answer's label. Questions
    among `left_out` are left out."""
    topics = Topics.read(folders)
    skipped = set(left_out)
    rewrites = read_rewrites(folders)
    by_topic: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in topics.passages:
        by_topic[topic_of(passage.id)].append(passage)
    for question in topics.questions:
        lines = rewrites.get(question.id)
        if question.text in skipped or lines is None or not question.annotations:
            continue
        topic = topic_of(question.id)
        held_out = is_held_out(topic, _HELD_OUT)
        groups = question.annotations[0].answers
        marked = _mark_topic(question.text, by_topic[topic], groups, lines["true"])
        for passage in by_topic[topic]:
            own = without_overlaps(marked.get(passage.id, ()))
            if _has_label(own):
                yield Example(question.text, passage.title, passage.text, own, held_out)


def _mark_topic(
    question: str,
    passages: Sequence[Passage],
    groups: Sequence[Sequence[str]],
    rewrites: Sequence[Mapping[str, Any]],
) -> _Places:
    """The places of the answers in each passage; a true rewrite with its support gives the label."""
    marked: _Places = defaultdict(list)
    for passage in passages:
        for number, names in enumerate(groups):
            spans = find_answers(passage.text, names)
            supported = [
                line
                for line in rewrites
                if line["answer"] == number and line.get("passage") == passage.id
            ]
            labelled = _label_answer(question, passage, spans, supported)
            for start, end in spans:
                plain = Answer(start, end)
                marked[passage.id].append(labelled.get(start, plain))
    return marked


def _label_answer(
    question: str,
    passage: Passage,
    spans: Sequence[tuple[int, int]],
    rewrites: Sequence[Mapping[str, Any]],
) -> dict[int, Answer]:
    """The answer next to a rewrite's support, with the label that the rewrite took from it."""
    labelled = {}
    for line in rewrites[:1]:
        text = label_of_rewrite(question, line["question"], line.get("support", ""))
        at = passage.text.find(line.get("support", ""))
        if not text or not spans:
            continue
        start, end = min(spans, key=lambda span: abs(span[0] - max(at, 0)))
        label = find_label(passage.title, passage.text, text, max(at, 0))
        if label and (label.in_title or not _overlap(label, start, end - start)):
            frame = frame_between(question, line["question"], text)
            labelled[start] = Answer(start, end, label, frame)
    return labelled


def read_rewrites(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    rewrites = {}
    for folder in folders:
        for name in ("rewrites.jsonl", "rewrites.jsonl.xz"):
            if (folder / name).exists():
                for _, row in read_jsonl(folder / name):
                    rewrites[row["id"]] = row
    return rewrites


def find_firms(names: Sequence[str]) -> list[Path]:
    """Folders by name. Raise BadConfig for one that is not there."""
    found = []
    for name in names:
        homes = [home / name for home in (Path(), *HOMES)]
        folder = next((one for one in homes if any(one.glob("*.jsonl"))), None)
        if folder is None:
            raise BadConfig(
                f"firms: there is no folder '{name}' with .jsonl files. 'firms' ships with the recipes."
            )
        found.append(folder)
    return found


# Task compact-label: layers over the encoder's first ones learn which words of the evidence name an
# answer's case.
#
# The encoder itself stays as it is: it reads each pair once, before the training.

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
