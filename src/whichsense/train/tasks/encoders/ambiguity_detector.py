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
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.bert import EncoderModel

_TASK = "ambiguity-detector"


@dataclass(frozen=True, slots=True)
class DetectorTraining:
    """A recipe's `[detecting]`."""

    batch: int = 16
    passages: int = 0
    """Passages that are read with the question; 0: the question alone."""


@dataclass(frozen=True, slots=True)
class _AmbiguityDetectorOptions:
    model: EncoderModel = field(default_factory=EncoderModel)
    data: TrainingData = field(default_factory=TrainingData)
    detecting: DetectorTraining = field(default_factory=DetectorTraining)


class _AmbiguityDetectorTask(Task[AmbiguityClassifier, dict[str, Any]]):
    """A binary decision, selected by accuracy."""

    metric, higher_is_better = "accuracy", True

    def __init__(self, options: _AmbiguityDetectorOptions) -> None:
        self.options = options
        self.inputs = options.model.inputs()
        self.rows, self.labels = self._encode(options.data.training())
        self.dev_rows, self.dev_labels = self._encode(options.data.development())

    def _encode(
        self, questions: Sequence[Question]
    ) -> tuple[list[InputRow], list[bool]]:
        count = self.options.detecting.passages
        evidence = self.options.data.evidence(max(1, count))
        if count:
            evidence.search([question.text for question in questions])
        rows = []
        labels = []
        for question in questions:
            # Without passages there is no search at all.
            hits = evidence.hits(question.text)[:count] if count else []
            passages = [hit.passage for hit in hits]
            rows.append(detector_row(self.inputs, question.text, passages))
            labels.append(question.is_ambiguous)
        return rows, labels

    def build(self) -> AmbiguityClassifier:
        model = AmbiguityClassifier(self.options.model.encoder())
        return self.options.model.load_start(model, _TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        lengths = [len(row) for row in self.rows]
        size = self.options.detecting.batch
        batches = shuffle_batches(len(lengths), size, epoch, seed, lengths)
        return Lazy(batches, self._collate)

    def _collate(self, places: Sequence[int]) -> dict[str, Any]:
        rows = []
        labels = []
        for place in places:
            rows.append(self.rows[place])
            labels.append(float(self.labels[place]))
        pad = self.inputs.tokenizer.pad_token_id
        return {"rows": padded(rows, pad), "labels": torch.tensor(labels)}

    def loss(self, model: AmbiguityClassifier, batch: dict[str, Any]) -> Tensor:
        logits = model(batch["rows"])
        return functional.binary_cross_entropy_with_logits(logits, batch["labels"])

    def evaluate(self, model: AmbiguityClassifier) -> dict[str, float]:
        ambiguous = probabilities(model, self.inputs, self.dev_rows)
        decisions = [probability > 0.5 for probability in ambiguous]
        return asdict(detection(self.dev_labels, decisions))

    def save(self, model: AmbiguityClassifier, folder: Path) -> None:
        options = {"passages": self.options.detecting.passages}
        config = model.reader.config
        saved.save(
            folder, model, self.inputs, task=_TASK, config=config, options=options
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


SPEC = TaskSpec(_AmbiguityDetectorOptions, _AmbiguityDetectorTask)
