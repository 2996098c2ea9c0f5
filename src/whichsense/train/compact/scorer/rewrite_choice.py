"""Fitting the choice of rewrites: how close those that the model writes for gold answers come to the annotators'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whichsense.datasets import Question
from whichsense.metrics.ambignq import question_scores
from whichsense.models.compact.rewrite.rewriting import written
from whichsense.models.compact.rewrite.support import support
from whichsense.models.compact.rewrite.targets import locate
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import of_rewrites
from whichsense.models.compact.scorer.scorer import Net
from whichsense.train.compact.scorer.linear import fit_within
from whichsense.types import FOR_BENCHMARKS, Candidate

_BLEU_WEIGHT = 0.5  # of BLEU-4; EDIT-F1 counts 1


@dataclass
class RewriteData:
    """Rewrites that may be given: the features of each, its quality, and the number of its answer."""

    rows: list[dict[str, float]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def add(self, scene: Scene, question: Question) -> None:
        """Add all rewrites for the gold answers of a question with several readings; ignore any other question."""
        annotation = question.several
        if annotation is None:
            return
        targets = []
        for pair in annotation.pairs:
            candidate = Candidate(pair.answers[0], 1.0)
            targets.append(locate(scene, candidate))
        supports = [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
        by_answer = written(scene, targets, supports)
        for pair, rewrites in zip(annotation.pairs, by_answer, strict=True):
            # Rewrites are compared within an answer only.
            answer = self._next_answer()
            self.rows += of_rewrites(question.text, rewrites.options, rewrites.drawn)
            for option in rewrites.options:
                quality = _rewrite_quality(
                    question.text, pair.questions, option.question
                )
                self.values.append(quality)
                self.answers.append(answer)

    def extend(self, other: RewriteData) -> None:
        # Answers of the other part are numbered from 0 again.
        first = self._next_answer()
        self.rows += other.rows
        self.values += other.values
        self.answers += [first + answer for answer in other.answers]

    def _next_answer(self) -> int:
        return self.answers[-1] + 1 if self.answers else 0

    def fit(self) -> Net | None:
        """None if there is nothing to learn from."""
        if not self.rows:
            return None
        return fit_within(self.rows, self.values, self.answers)


def _rewrite_quality(question: str, references: Sequence[str], rewrite: str) -> float:
    """EDIT-F1 with some BLEU-4, between 0 and 1."""
    *bleu, edit_f1 = question_scores(question, "|".join(references), rewrite)
    return (edit_f1 + _BLEU_WEIGHT * bleu[3]) / (1 + _BLEU_WEIGHT)
