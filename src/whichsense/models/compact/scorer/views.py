"""What the features look at: a question with its candidates, one of the candidates, and the question as a whole.

A value that several features or candidates share is computed once here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.reader.candidates import (
    Answer,
    Evidence,
    Mention,
    passage_probabilities,
)
from whichsense.text.answers import parse_answer
from whichsense.text.function_words import SURROUNDING_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.sentences import sentence_at
from whichsense.text.words import words

LEAST = 1e-6  # of a probability, so that its logarithm is finite
ANSWER_KINDS = ("year", "date", "number", "name", "other")
_ASKED = {
    "who": r"who|whom|whose",
    "when": r"when|what (?:year|date|day|month|time)|which (?:year|date)|in what year",
    "where": r"where|(?:what|which) (?:country|city|state|place|town|county|continent)",
    "how many": r"how (?:many|much|old|long|far|tall|big|high|fast|deep|often)|what (?:number|percentage|age)",
    "which": r"which|what|name",
}
QUESTION_KINDS = (*_ASKED, "other")
_MENTIONS = 4  # best mentions whose surroundings are compared with the question


def _kind_of(answer: str) -> str:
    """Classify an answer as year, date, number, name or other.

    >>> [_kind_of(answer) for answer in ("1953", "29 May 1953", "twelve", "8,849 m", "Edmund Hillary", "by boat")]
    ['year', 'date', 'number', 'number', 'name', 'other']
    """
    parsed = parse_answer(answer)
    if parsed.date:
        is_year = parsed.date.year is not None and parsed.date.known_parts == 1
        return "year" if is_year else "date"
    if any(parsed.capitals):
        return "name"
    return "number" if parsed.numbers else "other"


def asked_for(question: str) -> str:
    """Classify a question by its first question word.

    >>> [asked_for(question) for question in ("Who wrote it?", "In what year did it end?", "how many are there", "so")]
    ['who', 'when', 'how many', 'other']
    """
    lowered = question.lower()
    best = "other"
    first = len(lowered)
    for kind, pattern in _ASKED.items():
        match = re.search(rf"\b(?:{pattern})\b", lowered)
        # Of two kinds that begin at one place, the one listed first wins.
        if match and match.start() < first:
            best = kind
            first = match.start()
    return best


@dataclass(frozen=True)
class SceneView:
    """A question's evidence and its candidates, most supported first."""

    evidence: Evidence
    answers: Sequence[Answer]

    @cached_property
    def _probabilities(self) -> tuple[Floats, float]:
        return passage_probabilities(self.evidence.read)

    @property
    def shares(self) -> Floats:
        """The probability of each passage to hold the answer."""
        return self._probabilities[0]

    @property
    def null(self) -> float:
        """The probability that no passage holds the answer."""
        return self._probabilities[1]

    @cached_property
    def total_mass(self) -> float:
        return sum(answer.mass for answer in self.answers) or LEAST

    @cached_property
    def best_mass(self) -> float:
        return max(answer.mass for answer in self.answers) or LEAST

    @cached_property
    def mean_ambiguity(self) -> float:
        return float(np.mean([one.ambiguity for one in self.evidence.read]))

    @cached_property
    def question_kind(self) -> str:
        return asked_for(self.evidence.question)

    @cached_property
    def question_words(self) -> set[str]:
        """The question's words without stop words."""
        return set(words(self.evidence.question)) - SURROUNDING_WORDS

    @cached_property
    def texts(self) -> list[str]:
        """Each passage's text as its words, with a space before, between and behind them."""
        texts = []
        for passage in self.evidence.passages:
            spaced = " ".join(words(passage.text))
            texts.append(f" {spaced} ")
        return texts

    @cached_property
    def titles(self) -> set[str]:
        """The distinct titles of the passages."""
        return {passage.title for passage in self.evidence.passages}

    def count_titles(self) -> int:
        return len(self.titles)


class AnswerView:
    """One candidate of a context."""

    def __init__(self, place: int, context: SceneView) -> None:
        self.place = place
        self.context = context
        self.evidence = context.evidence
        self.answer = context.answers[place]
        self.mentions = self.answer.mentions
        self.better = context.answers[:place]
        self.words = words(self.answer.text)
        self.question_words = context.question_words
        self.question_kind = context.question_kind
        self.answer_kind = _kind_of(self.answer.text)
        # Places of the passages with a mention, in reading order; and (rank, score) of each in the search.
        self.passages = sorted({mention.passage for mention in self.mentions})
        self.searched = [self.evidence.found[place] for place in self.passages]

    def count_titles(self) -> int:
        titles = set()
        for place in self.passages:
            titles.add(self.evidence.passages[place].title)
        return len(titles)

    def best_relevance(self) -> float:
        return max(self.evidence.read[place].relevance for place in self.passages)

    def count_holding(self) -> int:
        """The number of passages whose text contains the answer's words in a row."""
        answer = f" {' '.join(self.words)} "
        count = 0
        for text in self.context.texts:
            if answer in text:
                count += 1
        return count

    def shares_sentence(self) -> bool:
        """Whether the best mention shares its sentence with that of a better candidate, without overlap."""
        best = self.mentions[0]
        sentence = self._sentence(best)
        for answer in self.better:
            other = answer.mentions[0]
            same_text = (other.passage, other.in_title) == (best.passage, best.in_title)
            if not same_text or other.overlaps(best):
                continue
            if self._sentence(other) == sentence:
                return True
        return False

    @cached_property
    def question_overlap(self) -> tuple[float, float]:
        """The share of the question's stems in a mention's sentence and title, and of a title's stems in the question:
        the highest of each over the best mentions."""
        # Without a content word the question counts as one stem that no text has.
        question = set(map(porter_stem, self.question_words)) or {""}
        in_sentence = 0.0
        in_title = 0.0
        for mention in self.mentions[:_MENTIONS]:
            title = _stems(self.evidence.passages[mention.passage].title)
            around = title
            if not mention.in_title:
                around = title | _stems(self._sentence(mention))
            in_sentence = max(in_sentence, len(question & around) / len(question))
            in_title = max(in_title, len(question & title) / max(len(title), 1))
        return in_sentence, in_title

    def _sentence(self, mention: Mention) -> str:
        text = self.evidence.passages[mention.passage].text
        start, end = sentence_at(text, mention.start)
        return text[start:end]


class QuestionView:
    """A question as a whole, with the probabilities of its candidates and the log odds of the two probes."""

    def __init__(
        self,
        context: SceneView,
        probabilities: Sequence[float],
        wording: float,
        alone: float,
    ) -> None:
        self.context = context
        self.evidence = context.evidence
        self.question_kind = context.question_kind
        self.ordered = [*sorted(probabilities, reverse=True), 0.0, 0.0, 0.0]
        self.masses = np.array([answer.mass for answer in context.answers]) + LEAST
        self.wording = wording
        self.alone = alone

    def entropy(self) -> float:
        """Of the candidates' masses, in nats."""
        shares = self.masses / self.masses.sum()
        return float(-(shares * np.log(shares)).sum())


def _stems(text: str) -> set[str]:
    return set(map(porter_stem, words(text)))
