"""Which rewrite is good: learnt from how near those that the model writes for gold answers come to the annotators'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whichsense.datasets import Question
from whichsense.metrics.ambignq import question_scores
from whichsense.models.compact.rewrite.resolving import target
from whichsense.models.compact.rewrite.rewriting import written
from whichsense.models.compact.rewrite.support import support
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import of_rewrites
from whichsense.models.compact.scorer.scorer import Net
from whichsense.train.compact.scorer.linear import fit_within
from whichsense.types import Candidate

_ORDER = 0.5  # what BLEU-4 counts beside EDIT-F1


@dataclass
class Judged:
    """Rewrites that may be given: what speaks for each, how good it is, and which answer it is for."""

    rows: list[dict[str, float]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def add(self, scene: Scene, question: Question) -> None:
        """All rewrites for the gold answers of a question with several readings; nothing of another question."""
        annotation = question.several
        if annotation is None:
            return
        targets = [
            target(scene, Candidate(pair.answers[0], 1.0)) for pair in annotation.pairs
        ]
        told = [support(scene, one, cautious=False) for one in targets]
        for pair, some in zip(
            annotation.pairs, written(scene, targets, told), strict=True
        ):
            self.rows += of_rewrites(question.text, some.options, some.drawn)
            self.values += [
                goodness(question.text, pair.questions, option.question)
                for option in some.options
            ]
            self.answers += [self.answers[-1] + 1 if self.answers else 0] * len(
                some.options
            )

    def join(self, other: Judged) -> None:
        first = self.answers[-1] + 1 if self.answers else 0
        self.rows += other.rows
        self.values += other.values
        self.answers += [first + answer for answer in other.answers]

    def net(self) -> Net | None:
        """None where there was nothing to learn from."""
        return fit_within(self.rows, self.values, self.answers) if self.rows else None


def goodness(question: str, references: Sequence[str], rewrite: str) -> float:
    """EDIT-F1 with a little of BLEU-4, between 0 and 1."""
    *order, edits = question_scores(question, "|".join(references), rewrite)
    return (edits + _ORDER * order[3]) / (1 + _ORDER)
