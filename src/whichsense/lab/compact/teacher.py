"""Task compact-teacher: a large encoder learns to rank and read lists of passages, and gives soft labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.files import sha256
from whichsense.jobs.limits import show_progress
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import (
    TEACHER_TOKENS,
    ListBatch,
    TeacherScores,
    build_list_batch,
    sample_slots,
)
from whichsense.lab.compact.list_task import (
    ListDraw,
    batch_rng,
    draw_numbers,
    list_probabilities,
    load_training_lists,
    load_vocabulary,
)
from whichsense.lab.compact.lists import CachedTokenizer, Pack, PairTensors, to_passage_places
from whichsense.lab.compact.losses import evaluate_lists, start_end
from whichsense.lab.compact.questions import DataConfig, ListConfig
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import BatchT, Lazy, ModelT, Task, TaskSpec, prefetch
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import inputs
from whichsense.models.bert.inputs import WEIGHTS, Inputs, best_device, compile_layers
from whichsense.models.compact.encoder import BEGIN, END, PAD
from whichsense.models.compact.nets import Score
from whichsense.types import frozen

# The teacher's network: a large encoder of transformers with the compact model's heads.

TASK = "compact-teacher"
_MAX_UNKNOWN = 0.01  # the share of word pieces that a teacher may lack


class TeacherNet(nn.Module):
    """`numbers` maps ids of BERT's uncased word pieces to the teacher's own ids."""

    def __init__(self, encoder: nn.Module, numbers: Tensor) -> None:
        super().__init__()
        config: Any = encoder.config
        self.encoder = encoder
        self.numbers: Tensor
        self.register_buffer("numbers", numbers)
        # MPNet has no token types.
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        self.relevance = Score(config.hidden_size)
        self.span = nn.Linear(config.hidden_size, 2)

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def forward(self, pairs: PairTensors) -> dict[str, Tensor]:
        """Scores of passages (pairs) and of their tokens as first and last of an answer (pairs × tokens × 2)."""
        inputs = {"input_ids": self.numbers[pairs.ids], "attention_mask": pairs.mask.long()}
        if self.typed:
            inputs["token_type_ids"] = pairs.types
        states = self.encoder(**inputs).last_hidden_state
        return {"relevance": self.relevance(states).float(), "span": self.span(states).float()}


def infer(net: TeacherNet, pairs: PairTensors) -> dict[str, Tensor]:
    """The network's output without gradients, in bfloat16 on a GPU."""
    device = pairs.ids.device
    on_gpu = device.type == "cuda"
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        output: dict[str, Tensor] = net(pairs)
    return output


def map_vocabulary(tokenizer: Any, vocabulary: Sequence[str]) -> Tensor:
    """A tokenizer's id of every word piece. MPNet has BERT's pieces under other ids, with other special tokens."""
    ids: dict[str, int] = tokenizer.get_vocab()
    unknown = [piece for piece in vocabulary if piece not in ids and not piece.startswith("[")]
    if len(unknown) > _MAX_UNKNOWN * len(vocabulary):
        raise BadConfig(
            f"The teacher does not know {len(unknown):,} of BERT's uncased word pieces, such as '{unknown[0]}'. "
            "Choose one with that vocabulary: all-mpnet-base-v2, bert-large-uncased, …"
        )
    numbers = torch.tensor([ids.get(piece, tokenizer.unk_token_id) for piece in vocabulary])
    # Special tokens have other names in other vocabularies.
    numbers[PAD] = tokenizer.pad_token_id
    numbers[BEGIN] = tokenizer.cls_token_id
    numbers[END] = tokenizer.sep_token_id
    return numbers


def load_teacher(folder: Path) -> TeacherNet:
    """A trained teacher, ready for inference."""
    vocabulary = load_vocabulary(str(inputs.described(folder, TASK).options["pieces"]))
    numbers = map_vocabulary(load_tokenizer(folder), vocabulary)
    net = TeacherNet(inputs.empty_encoder(folder), numbers)
    inputs.fill(net, folder)
    return net.eval()


# The teacher's scores of every slot of the lists: computed once, stored beside the lists.

_PART = 1000  # lists in one file: what a stop loses at most
_BATCH = 1024  # slots
_LEAST_LOG = -30.0  # log probabilities are stored as float16


def score_lists(teacher: Path, pack: Pack, folder: str, longest: int) -> TeacherScores:
    """Scores of all slots; parts that were stored before are read. `longest`: tokens of a pair.

    `folder` belongs to these lists: stored scores of another teacher or length are kept apart in it.
    """
    scoring = _Scoring(teacher, pack, longest)
    numbers = range(len(pack))
    if not folder:
        return scoring.score(numbers)
    weights = sha256(teacher / WEIGHTS)
    parts = Parts[int, TeacherScores](
        Path(folder) / f"scores-{weights[:12]}-{longest}",
        "lists",
        {"teacher": weights, "longest": longest, "lists": len(pack)},
        size=_PART,
        codec=PartCodec(".npz", _encode, _decode),
    )

    def work(part: Part[int]) -> TeacherScores:
        return scoring.score(part.items)

    with show_progress("asking the teacher", "lists") as progress:
        parts.complete(numbers, work, progress=progress, wait=True)
    return TeacherScores.concatenate(list(parts))


@dataclass(frozen=True)
class _Scoring:
    """The teacher at work. Its weights are loaded when the first part needs them."""

    teacher: Path
    pack: Pack
    longest: int

    @cached_property
    def net(self) -> TeacherNet:
        net = load_teacher(self.teacher).to(best_device())
        # Compiling needs Triton, which does not come with every torch.
        if best_device() == "cuda" and find_spec("triton"):
            net.compile()
        return net

    def score(self, numbers: Sequence[int]) -> TeacherScores:
        """Scores of the slots of consecutive lists."""
        pack = self.pack
        first_slot = pack.slot_range(numbers[0]).start
        slots = range(first_slot, pack.slot_range(numbers[-1]).stop)
        # The list that each slot belongs to.
        rows = np.array(numbers)
        lists = np.repeat(rows, pack.slots.sizes(rows))
        scores = TeacherScores.zeros(len(slots))
        parts = _equal_slices(len(slots), _BATCH)

        def build_batch(part: slice) -> ListBatch:
            single = [[slot] for slot in slots[part]]
            return build_list_batch(pack, lists[part].tolist(), single, self.longest)

        device = next(self.net.parameters()).device
        batches = prefetch(Lazy(parts, build_batch))
        for part, batch in zip(parts, batches, strict=True):
            best = _score_batch(self.net, to_device(batch, device))
            scores.relevance[part] = best.relevance
            scores.places[part] = best.places
            scores.chances[part] = best.chances
        return scores


def _score_batch(net: TeacherNet, batch: ListBatch) -> TeacherScores:
    output = infer(net, batch.pairs)
    # Pairs × 2 × tokens: log probabilities to be an answer's first and last token.
    first, last = start_end(output["span"], batch.pairs.region)
    best = torch.stack([first, last], 1).topk(TEACHER_TOKENS, dim=2)
    title_start = batch.pairs.heads[:, :1, None]
    title_size = batch.pairs.heads[:, 1:, None]
    places = to_passage_places(best.indices, title_start, title_size)
    return TeacherScores(
        output["relevance"].cpu().numpy(),
        places.clamp(0, 255).cpu().numpy(),  # stored as uint8
        best.values.clamp(min=_LEAST_LOG).cpu().numpy(),
    )


def _equal_slices(count: int, size: int) -> list[slice]:
    """Slices of one size, for which layers are compiled, over `count` items: the last overlaps the one before.

    >>> _equal_slices(5, 2), _equal_slices(1, 2), _equal_slices(0, 2)
    ([slice(0, 2, None), slice(2, 4, None), slice(3, 5, None)], [slice(0, 1, None)], [])
    """
    if not count:
        return []
    return [slice(max(0, end - size), end) for end in (*range(size, count, size), count)]


def _encode(scores: TeacherScores) -> bytes:
    body = io.BytesIO()
    np.savez(body, **scores._asdict())
    return body.getvalue()


def _decode(body: bytes) -> TeacherScores:
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return TeacherScores(file["relevance"], file["places"], file["chances"])


# Task compact-teacher: a large encoder learns to rank the passages of a list and to mark answers in
# them.

_SPAN_WEIGHT = 0.7  # of the span loss; the loss of relevance counts 1


@frozen
class _TeacherModel:
    """The encoder to train, and the word pieces that the lists are tokenized with."""

    base: str = "sentence-transformers/all-mpnet-base-v2"
    """Any encoder over BERT's uncased word pieces, whatever their ids: BERT, MPNet, …"""
    pieces: str = "thenlper/gte-small"
    """The student's base."""
    longest: int = 160
    """Tokens of a pair."""


@frozen
class _TeacherOptions:
    model: _TeacherModel = _TeacherModel()
    data: DataConfig = DataConfig()
    lists: ListConfig = ListConfig()
    draw: ListDraw = ListDraw(24, 12)


class ListTask(Task[ModelT, BatchT]):
    """A task over lists of passages. The best model's best string of a list is most often a gold answer."""

    metric = "exact"
    higher_is_better = True

    def __init__(self, options: Any, vocabulary: list[str]) -> None:
        self.options = options
        self.vocabulary = vocabulary
        self.tokenizer = CachedTokenizer.of(vocabulary)
        self.train, self.dev = load_training_lists(
            options.data, options.lists, vocabulary, options.model.longest
        )

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How often each list is drawn."""
        return list_probabilities(self.train, self.options.data.weights)

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> BatchT:
        """Make a batch of some slots of these lists."""
        raise NotImplementedError

    def batches(self, epoch: int, seed: int) -> Any:
        size = self.options.draw.lists
        return Lazy(
            draw_numbers(self.probabilities, size, epoch, seed),
            lambda item: self.make_batch(item[1], batch_rng(seed, epoch, item[0])),
        )

    def read(self, model: ModelT, batch: ListBatch) -> dict[str, Tensor]:
        raise NotImplementedError

    def evaluate(self, model: ModelT) -> dict[str, float]:
        return evaluate_lists(
            partial(self.read, model),
            self.dev,
            self.tokenizer,
            self.options.model.longest,
            next(model.parameters()).device,
        )


class TeacherTask(ListTask[TeacherNet, ListBatch]):
    def __init__(self, options: _TeacherOptions) -> None:
        super().__init__(options, load_vocabulary(options.model.pieces))
        # Lists have BERT's ids; the teacher's tokenizer is saved beside its weights.
        self.own_tokenizer = load_tokenizer(located(options.model.base))

    def build(self) -> TeacherNet:
        encoder = inputs.encoder(located(self.options.model.base))
        return TeacherNet(encoder, map_vocabulary(self.own_tokenizer, self.vocabulary))

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> ListBatch:
        count, longest = self.options.draw.passages, self.options.model.longest
        slots = [sample_slots(self.train, one, count, rng) for one in numbers]
        return build_list_batch(self.train, numbers, slots, longest)

    def read(self, model: TeacherNet, batch: ListBatch) -> dict[str, Tensor]:
        found: dict[str, Tensor] = model(batch.pairs)
        return found

    def loss(self, model: TeacherNet, batch: ListBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        # The teacher has no early exit and no head for ambiguity: it learns two parts.
        parts = losses.read(model(batch.pairs), batch)
        total = parts["relevance"] + _SPAN_WEIGHT * parts["span"]
        logged: dict[str, float | Tensor] = {name: part.detach() for name, part in parts.items()}
        return total, logged

    def save(self, model: TeacherNet, folder: Path) -> None:
        config: Any = model.encoder.config
        inputs.save(
            folder,
            model,
            Inputs(self.own_tokenizer, self.options.model.longest),
            task=TASK,
            config=config,
            options={"pieces": self.options.model.pieces},
        )


SPEC = TaskSpec(_TeacherOptions, TeacherTask)
