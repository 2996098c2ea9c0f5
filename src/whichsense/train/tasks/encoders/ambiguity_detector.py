"""The ambiguity detector: BERT says whether a question has more than one reading (AmbigQA 6.1, CAmbigNQ 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from whichsense.datasets import Question
from whichsense.metrics.detection import detection
from whichsense.models.bert import saved
from whichsense.models.bert.detector import (
    AmbiguityClassifier,
    detector_row,
    probabilities,
)
from whichsense.models.bert.inputs import InputRow, padded
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.encoders.bert import Model
from whichsense.train.tasks.evidence import Data

TASK = "ambiguity-detector"


@dataclass(frozen=True, slots=True)
class Detecting:
    batch: int = 16
    passages: int = 0
    """Passages that are read with the question; 0: the question alone."""


@dataclass(frozen=True, slots=True)
class AmbiguityDetectorOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    detecting: Detecting = field(default_factory=Detecting)


class AmbiguityDetectorTask(Task[AmbiguityClassifier, dict[str, Any]]):
    """A yes-or-no decision, chosen by accuracy."""

    metric, higher_is_better = "accuracy", True

    def __init__(self, options: AmbiguityDetectorOptions) -> None:
        self.options, self.inputs = options, options.model.inputs()
        self.rows, self.labels = self._rows(options.data.training())
        self.dev_rows, self.dev_labels = self._rows(options.data.development())

    def _rows(self, questions: Sequence[Question]) -> tuple[list[InputRow], list[bool]]:
        count = self.options.detecting.passages
        evidence = self.options.data.evidence(max(1, count))
        if count:
            evidence.search([question.text for question in questions])
        rows = []
        for question in questions:
            passages = (
                [hit.passage for hit in evidence.hits(question.text)[:count]]
                if count
                else []
            )
            rows.append(detector_row(self.inputs, question.text, passages))
        return rows, [question.is_ambiguous for question in questions]

    def build(self) -> AmbiguityClassifier:
        return self.options.model.begun(
            AmbiguityClassifier(self.options.model.encoder()), TASK
        )

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        lengths = [len(row) for row in self.rows]
        return Lazy(
            shuffle_batches(
                len(lengths), self.options.detecting.batch, epoch, seed, lengths
            ),
            self._collated,
        )

    def _collated(self, places: Sequence[int]) -> dict[str, Any]:
        rows = padded(
            [self.rows[place] for place in places], self.inputs.tokenizer.pad_token_id
        )
        return {
            "rows": rows,
            "labels": torch.tensor([float(self.labels[place]) for place in places]),
        }

    def loss(self, model: AmbiguityClassifier, batch: dict[str, Any]) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            model(batch["rows"]), batch["labels"]
        )

    def evaluate(self, model: AmbiguityClassifier) -> dict[str, float]:
        likely = probabilities(model, self.inputs, self.dev_rows)
        return asdict(detection(self.dev_labels, [one > 0.5 for one in likely]))

    def save(self, model: AmbiguityClassifier, folder: Path) -> None:
        about = {"passages": self.options.detecting.passages}
        saved.save(
            folder,
            model,
            self.inputs,
            task=TASK,
            config=model.reader.config,
            options=about,
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


SPEC = TaskSpec(AmbiguityDetectorOptions, AmbiguityDetectorTask)
