"""Reads texts that are given with a question, and documents of several passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from whichsense.jobs.limits import check_limits
from whichsense.models.compact.rewriting import candidates_of
from whichsense.models.compact.scene import Compact
from whichsense.text.answers import same_answer
from whichsense.text.words import SUMMARY_STOP_WORDS, words
from whichsense.types import Candidate, Case, Hit, Passage

# Documents that disagree: each is read by itself, then what they say is settled.
#
# Answers of documents about different things may all be right. Documents that share most of their words
# are about the same thing: if their answers differ, one of them is false, and what more documents say
# wins.


def read_each(compact: Compact, case: Case, least: float, similar: float) -> list[Candidate]:
    """Return the answers that stand, those of most documents first. A document gives its best answer, if that is at
    least `least` probable; `similar` is what `settle` takes for documents about the same thing."""
    found = []
    for hit in case.hits:
        best = _best_answer(compact, case.question, hit)
        if best is not None and best.score >= least:
            found.append(best)
    answers = []
    for group in settle(found, similar):
        spans = tuple(span for one in group for span in one.spans)
        answers.append(replace(group[0], spans=spans))
    return answers


def settle(answers: Sequence[Candidate], similar: float) -> list[list[Candidate]]:
    """Return the answers that stand, each of one document's, grouped where they mean the same: those of most documents
    first.

    Two documents are about the same thing where they share at least `similar` of the shorter one's content words.
    """
    groups: list[list[Candidate]] = []
    for answer in sorted(answers, key=lambda one: -one.score):
        same = (group for group in groups if same_answer(answer.answer, group[0].answer))
        group = next(same, None)
        if group is None:
            groups.append([answer])
        else:
            group.append(answer)
    groups.sort(key=lambda group: (-len(group), -group[0].score))
    standing: list[list[Candidate]] = []
    for group in groups:
        others = [one for other in standing for one in other]
        pairs = product(group, others)
        if all(_similarity(one, other) < similar for one, other in pairs):
            standing.append(group)
    return standing


def _similarity(one: Candidate, other: Candidate) -> float:
    """Return the share of the shorter document's content words that the other one has, too."""
    sets = []
    for answer in (one, other):
        sets.append(set(words(answer.spans[0].passage.text)) - SUMMARY_STOP_WORDS)
    short, long = sorted(sets, key=len)
    return len(short & long) / len(short) if short else 0.0


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
        """Return an answer for each (question, text) pair; the empty string if there is none."""
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
    """Return the text in windows of 100 words.

    >>> [len(window.split()) for window in split_windows("word " * 150)]
    [100, 80]
    >>> split_windows("")
    []
    """
    row = text.split()
    starts = range(0, max(len(row) - _OVERLAP, min(len(row), 1)), _WINDOW - _OVERLAP)
    return [" ".join(row[start : start + _WINDOW]) for start in starts]
