"""Task compact-asker: for a passage a writer learns to write an answer that the passage holds, and its question.

When training is over it writes synthetic questions for passages of the lists. Questions that the teacher answers
otherwise than they were meant, and copies of questions that are reserved for measuring, are dropped; compact-asked
trains the encoder on the rest.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whichsense.errors import BadConfig, BadInput
from whichsense.models.bert.running import best_device
from whichsense.models.compact.writer.net import WriterBatch, WriterNet
from whichsense.models.compact.writer.prompts import LONGEST_ASKED, WAYS
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.data.lists import load_lists
from whichsense.train.compact.data.questions import find_copies
from whichsense.train.compact.data.synthetic import (
    SYNTHETIC_FILE,
    SyntheticQuestions,
    build_synthetic_lists,
    own_slots,
)
from whichsense.train.compact.encoder.teacher_net import load_teacher
from whichsense.train.compact.writer.asker_examples import AskerExamples
from whichsense.train.compact.writer.base_task import (
    WRITER,
    BaseWriterTask,
    WriterModel,
    collate,
)
from whichsense.train.compact.writer.generate import (
    QuestionGeneration,
    generate_questions,
)
from whichsense.train.compact.writer.rewrite_examples import Example
from whichsense.train.compact.writer.roundtrip_filter import teacher_agrees
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.task import TaskSpec

_EVALUATION_BATCH = 256


@dataclass(frozen=True, slots=True)
class _AskerDraw:
    """A recipe's `[draw]`: what a batch holds."""

    batch: int = 512
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.35, "open": 0.4, "exact": 0.25}
    )
    """Shares of the ways of asking: SQuAD's, open questions, rewrites; one that the lists lack is left out."""
    said: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.4, "open": 0.55, "exact": 0.55}
    )
    """How much of a question its passage must contain, by the rarity of word pieces. If a question was asked without a
    passage, its answer may be in another one by accident."""


@dataclass(frozen=True, slots=True)
class _AskerTeacher:
    """A recipe's `[teacher]`: which questions pass the round trip."""

    model: str = ""
    """The model folder of compact-teacher; empty: all questions whose answers are in their passages are kept."""
    longest: int = 160
    """Tokens of a pair."""
    agreed: float = 0.6
    """How much the teacher's answer must share with the intended one: F1 of tokens."""
    relevance: float = -1.0
    """The teacher's score of the passage must be higher."""


@dataclass(frozen=True, slots=True)
class _AskerOptions:
    model: WriterModel = field(default_factory=WriterModel)
    data: DataConfig = field(default_factory=DataConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    teacher: _AskerTeacher = field(default_factory=_AskerTeacher)
    draw: _AskerDraw = field(default_factory=_AskerDraw)
    made: QuestionGeneration = field(default_factory=QuestionGeneration)


class AskerTask(BaseWriterTask):
    """The best model has the lowest loss of a token of answers and questions of `data.dev`."""

    metric = "asked"
    higher_is_better = False

    def __init__(self, options: _AskerOptions) -> None:
        self.options = options
        for name, ways in (("draw", options.draw.ways), ("made", options.made.ways)):
            if set(ways) - set(WAYS) or not sum(ways.values()) > 0:
                raise BadConfig(
                    f"{name}.ways are shares of {', '.join(WAYS)}, and not all are 0."
                )
        super().__init__(options.model)
        vocabulary = self.start.vocabulary
        train, dev = load_lists(options.data, options.lists, vocabulary)
        # Both need the same thresholds, or the metric would measure other questions.
        settings = options.data, len(vocabulary), options.draw.said
        self.examples = AskerExamples(train, *settings)
        self.dev_examples = AskerExamples(dev, *settings)
        if not self.ways or not self.dev_examples.spans:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a passage that says most of it."
            )

    @property
    def ways(self) -> list[str]:
        """The ways of asking that are learnt."""
        shares = self.options.draw.ways
        ways = []
        for way in self.examples.by_way:
            if shares.get(way, 0.0) > 0:
                ways.append(way)
        return ways

    def batches(self, epoch: int, seed: int) -> Any:
        # As many batches as would hold every span once.
        size = self.options.draw.batch
        count = max(1, len(self.examples.spans) // size)

        def build_batch(number: int) -> WriterBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}")
            return collate(self.draw_examples(rng), LONGEST_ASKED)

        return Lazy(range(count), build_batch)

    def draw_examples(self, rng: random.Random) -> list[Example]:
        """The examples of a batch."""
        draw = self.options.draw
        by_way = self.examples.by_way
        shares = [draw.ways[way] for way in self.ways]
        examples = []
        for way in rng.choices(self.ways, shares, k=draw.batch):
            span = rng.choice(by_way[way])
            examples.append(self.examples.example(span))
        return examples

    def evaluate(self, model: WriterNet) -> dict[str, float]:
        spans = self.dev_examples.spans
        sums = np.zeros(2)  # loss, tokens
        for start in range(0, len(spans), _EVALUATION_BATCH):
            part = spans[start : start + _EVALUATION_BATCH]
            examples = [self.dev_examples.example(span) for span in part]
            batch = to_device(collate(examples, LONGEST_ASKED), model.out_bias.device)
            _, loss, count = model.loss(batch)
            sums += [float(loss), float(count)]
        return {"asked": float(sums[0] / sums[1])}

    def data(self) -> list[Path]:
        return self.options.data.paths()

    def finish(self, folder: Path) -> None:
        """Write synthetic questions beside the model, unless they are there."""
        if (folder / SYNTHETIC_FILE).exists():
            return
        net = self.build()
        # The best checkpoint, not the last.
        weights = torch.load(folder / WRITER, map_location="cpu", weights_only=True)
        net.load_state_dict(weights)
        net = net.to(best_device()).eval()
        pack = self.examples.pack
        synthetic = generate_questions(net, pack, self.options.made, self.ways)
        self.filter(synthetic).save(folder, pack)

    def filter(self, synthetic: SyntheticQuestions) -> SyntheticQuestions:
        """Drop copies of questions that are reserved for measuring, and questions that fail the round trip."""
        vocabulary = self.start.vocabulary
        teacher = self.options.teacher
        copies = find_copies(synthetic.texts(vocabulary), self.options.data)
        rows = [row for row in range(len(synthetic)) if row not in copies]
        synthetic = synthetic.take(np.array(rows, np.int64))
        lists = build_synthetic_lists(self.examples.pack, synthetic, vocabulary)
        slots = own_slots(lists, synthetic)
        # An answer that its passage lacks was made up.
        passes = lists.slot_has_answer[slots]
        if teacher.model:
            net = load_teacher(Path(teacher.model)).to(best_device())
            passes = passes & teacher_agrees(
                net,
                lists,
                slots,
                teacher.longest,
                agreed=teacher.agreed,
                relevance=teacher.relevance,
            )
        return synthetic.take(np.flatnonzero(passes))


SPEC = TaskSpec(_AskerOptions, AskerTask)
