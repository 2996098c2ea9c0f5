"""Reads texts that are given with a question, and documents of several passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whichsense.jobs.limits import check_limits
from whichsense.models.compact.conflicts import Statement, settle
from whichsense.models.compact.rewriting import candidates_of
from whichsense.models.compact.scene import Compact
from whichsense.types import Candidate, Case, Hit, Passage, Span

# Documents that disagree: each is read by itself, then what they say is settled.


def read_each(compact: Compact, case: Case, least: float, similar: float) -> list[Candidate]:
    """The answers that stand, those of most documents first. A document gives its best answer, if that is at least
    `least` probable; `similar` is what `settle` takes for documents about the same thing."""
    statements = []
    spans: dict[str, tuple[Span, ...]] = {}  # by document
    for hit in case.hits:
        best = _best_answer(compact, case.question, hit)
        if best is not None and best.score >= least:
            text = hit.passage.text
            statements.append(Statement(best.answer, best.score, text))
            spans[text] = best.spans
    answers = []
    for group in settle(statements, similar):
        own: list[Span] = []
        for statement in group:
            own += spans[statement.document]
        first = group[0]
        answers.append(Candidate(first.answer, first.confidence, tuple(own)))
    return answers


def _best_answer(compact: Compact, question: str, hit: Hit) -> Candidate | None:
    check_limits()
    scene = compact.over(1).read_given(question, [hit])
    best = candidates_of(scene, scene.apart[:1])
    return best[0] if best else None


# The compact model in the place of a SQuAD 2.0 reader: one answer from one text, or none.

_WINDOW, _OVERLAP = 100, 30  # words


@dataclass(frozen=True)
class CompactTextReader:
    """Answers questions from a text. A long one is read in windows of 100 words that overlap by 30.

    There is no answer where the best candidate is less probable than `least`. On 60 long answers of ASQA's train part
    0.3 keeps 98% of the answers to a text's own questions, and gives none to 95% of another text's questions.
    """

    compact: Compact = field(default_factory=Compact)
    least: float = 0.3

    @property
    def name(self) -> str:
        """What results call it: the weights, and that it is not the official reader."""
        return self.compact.folder.name

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """An answer for each (question, text) pair; the empty string if there is none."""
        return [self._read(question, text) for question, text in pairs]

    def _read(self, question: str, text: str) -> str:
        windows = split_windows(text)
        if not windows:
            return ""
        hits = []
        for number, window in enumerate(windows):
            hits.append(Hit(Passage(str(number), "", window), 1.0))
        scene = self.compact.over(len(hits)).read_given(question, hits)
        if not scene.apart:
            return ""
        best = scene.apart[0]
        if scene.probabilities[best] < self.least:
            return ""
        return scene.answers[best].text


def split_windows(text: str) -> list[str]:
    """The text in windows of 100 words.

    >>> [len(window.split()) for window in split_windows("word " * 150)]
    [100, 80]
    >>> split_windows("")
    []
    """
    words = text.split()
    windows = []
    start = 0
    while start < len(words):
        end = start + _WINDOW
        windows.append(" ".join(words[start:end]))
        # What is left is the overlap alone: it was read.
        start = end - _OVERLAP if end < len(words) else len(words)
    return windows
