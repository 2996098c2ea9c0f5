"""A fake for each stage, without weights: test your own code over whichsense in milliseconds.

>>> from whichsense.pipeline import Pipeline
>>> hits = [passage_hit("Dexter aired on Showtime."), passage_hit("Tony Goldwyn plays Dr. Vogel's colleague.")]
>>> pipeline = Pipeline(FakeRetriever(hits), reader=FakeReader({"Goldwyn": "Tony Goldwyn"}),
...                     disambiguator=FakeDisambiguator())
>>> [reading.answer for reading in pipeline.readings(["Who plays the doctor in Dexter?"])[0]]
['Tony Goldwyn']
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whichsense.text.words import words
from whichsense.types import (
    Candidate,
    Citation,
    Clarification,
    Hit,
    LongAnswer,
    Passage,
    Reading,
    Span,
)


def passage_hit(text: str, title: str = "", score: float = 1.0) -> Hit:
    """A hit over a passage made on the spot."""
    return Hit(
        Passage(
            id=hashlib.blake2b(text.encode(), digest_size=4).hexdigest(),
            title=title,
            text=text,
        ),
        score,
    )


@dataclass(frozen=True)
class FakeEncoder:
    """Words hashed into a few dimensions: texts that share words have near vectors, the same on every machine."""

    dimensions: int = 64
    name: str = "fake"

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                seed = int.from_bytes(digest, "little")
                vectors[row] += np.random.default_rng(seed).standard_normal(
                    self.dimensions, dtype=np.float32
                )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms == 0, 1, norms), dtype=np.float32)

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_passages(questions)


@dataclass(frozen=True)
class FakeRetriever:
    """Always the same hits, whatever is asked; `asked` records the questions."""

    hits: Sequence[Hit]
    asked: list[str] = field(default_factory=list)

    def retrieve(self, questions: Sequence[str], k: int) -> list[list[Hit]]:
        self.asked.extend(questions)
        return [list(self.hits[:k]) for _ in questions]


@dataclass(frozen=True)
class FakeReranker:
    """Orders hits by how many words they share with the question."""

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        asked = set(words(question))
        return sorted(hits, key=lambda hit: -len(asked & set(words(hit.passage.text))))


@dataclass(frozen=True)
class FakeReader:
    """Answers scripted by a word to look for in the evidence: {"Goldwyn": "Tony Goldwyn"}."""

    answers: Mapping[str, str]

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        found = []
        for cue, answer in self.answers.items():
            spans = tuple(
                Span(hit.passage, start, start + len(answer), hit.score)
                for hit in hits
                if cue in hit.passage.text
                and (start := hit.passage.text.find(answer)) >= 0
            )
            if spans:
                found.append(Candidate(answer, score=float(len(spans)), spans=spans))
        return found


@dataclass(frozen=True)
class FakeDisambiguator:
    """Appends the title of the evidence to the question: "Who wrote it (Dune)?"."""

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]:
        if len(answers) == 1:
            return [
                Reading(question, answers[0].answer, answers[0].spans, confidence=1.0)
            ]
        return [
            Reading(
                f"{question.rstrip('?')} ({self._hint(answer)})?",
                answer.answer,
                answer.spans,
                1 / len(answers),
            )
            for answer in answers
        ]

    @staticmethod
    def _hint(answer: Candidate) -> str:
        return answer.spans[0].passage.title if answer.spans else answer.answer


@dataclass(frozen=True)
class FakeVerifier:
    """Keeps readings that have evidence."""

    def verify(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> list[Reading]:
        return [reading for reading in readings if reading.evidence]


@dataclass(frozen=True)
class FakeClarifier:
    """Offers the rewrites themselves as options."""

    def clarify(self, question: str, readings: Sequence[Reading]) -> Clarification:
        return Clarification(
            "Which reading",
            tuple(reading.question for reading in readings),
            tuple(readings),
        )


@dataclass(frozen=True)
class FakeSummarizer:
    """One sentence for each reading, citing its evidence."""

    def summarize(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> LongAnswer:
        return LongAnswer(
            question,
            tuple(
                Citation(
                    f"{reading.question} {reading.answer}.",
                    tuple(span.passage for span in reading.evidence),
                )
                for reading in readings
            ),
        )
