"""A fake for each stage, without weights: test your own code over whichsense in milliseconds.

>>> from whichsense.pipeline import Pipeline
>>> hits = [passage_hit("Dexter aired on Showtime."), passage_hit("Tony Goldwyn plays Dr. Vogel's colleague.")]
>>> pipeline = Pipeline(FakeRetriever(hits), reader=FakeReader({"Goldwyn": "Tony Goldwyn"}),
...                     disambiguator=FakeDisambiguator())
>>> [reading.answer for reading in pipeline.ask("Who plays the doctor in Dexter?").readings]
['Tony Goldwyn']
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from whichsense.stages.clarify import offer_each
from whichsense.text.words import words
from whichsense.types import Candidate, Case, Citation, Hit, LongAnswer, Passage, Reading, Span


def passage_hit(text: str, title: str = "", score: float = 1.0) -> Hit:
    """Return a hit over a passage made on the spot."""
    return Hit(
        Passage(
            id=hashlib.blake2b(text.encode(), digest_size=4).hexdigest(), title=title, text=text
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

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        hits = tuple(self.hits[:k])
        retrieved = []
        for case in cases:
            self.asked.append(case.question)
            retrieved.append(replace(case, hits=hits))
        return retrieved


@dataclass(frozen=True)
class FakeReranker:
    """Orders hits by how many words they share with the question."""

    def rerank(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, hits=self._order(case)) for case in cases]

    @staticmethod
    def _order(case: Case) -> tuple[Hit, ...]:
        asked = set(words(case.question))

        def shared(hit: Hit) -> int:
            return len(asked & set(words(hit.passage.text)))

        return tuple(sorted(case.hits, key=shared, reverse=True))


@dataclass(frozen=True)
class FakeReader:
    """Answers scripted by a word to look for in the evidence: {"Goldwyn": "Tony Goldwyn"}."""

    answers: Mapping[str, str]

    def read(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, answers=self._find(case.hits)) for case in cases]

    def _find(self, hits: Sequence[Hit]) -> tuple[Candidate, ...]:
        candidates = []
        for cue, answer in self.answers.items():
            spans = []
            for hit in hits:
                start = hit.passage.text.find(answer)
                if cue in hit.passage.text and start >= 0:
                    end = start + len(answer)
                    spans.append(Span(hit.passage, start, end, hit.score))
            if spans:
                score = float(len(spans))
                candidates.append(Candidate(answer, score, tuple(spans)))
        return tuple(candidates)


@dataclass(frozen=True)
class FakeDetector:
    """A question is ambiguous if it has more than one answer."""

    def detect(self, cases: Sequence[Case]) -> list[Case]:
        detected = []
        for case in cases:
            is_ambiguous = len(case.answers) > 1
            detected.append(replace(case, is_ambiguous=is_ambiguous))
        return detected


@dataclass(frozen=True)
class FakeDisambiguator:
    """Appends the title of the evidence to the question: "Who wrote it (Dune)?".

    Answers that share a title keep the question, and give the title as their source. An answer's confidence is its
    share of all spans.
    """

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, readings=self._rewrite(case)) for case in cases]

    def _rewrite(self, case: Case) -> tuple[Reading, ...]:
        hints = Counter(self._hint(answer) for answer in case.answers)
        total = sum(self._weight(answer) for answer in case.answers)
        readings = []
        for answer in case.answers:
            question, hint, source = case.question, self._hint(answer), ""
            if hints[hint] > 1:
                source = hint
            elif len(case.answers) > 1:
                question = f"{question.rstrip('?')} ({hint})?"
            confidence = self._weight(answer) / total
            readings.append(Reading(question, answer.answer, answer.spans, confidence, source))
        return tuple(readings)

    @staticmethod
    def _hint(answer: Candidate) -> str:
        return answer.spans[0].passage.title if answer.spans else answer.answer

    @staticmethod
    def _weight(answer: Candidate) -> int:
        return max(1, len(answer.spans))


@dataclass(frozen=True)
class FakeVerifier:
    """Keeps readings that have evidence. For people, those with less confidence than `probable`, or than the policy's
    threshold, are merely possible; the best one is shown in any case."""

    probable: float = 0.0

    def verify(self, cases: Sequence[Case]) -> list[Case]:
        return [self._split(case) for case in cases]

    def _split(self, case: Case) -> Case:
        least = case.policy.threshold or self.probable
        held = [reading for reading in case.readings if reading.evidence]
        held.sort(key=lambda reading: -reading.confidence)
        shown = sum(reading.confidence >= least for reading in held)
        if not case.policy.careful:
            shown = len(held)
        count = max(shown, 1)
        possible = (*held[count:], *case.possible)
        return replace(case, readings=tuple(held[:count]), possible=possible)


@dataclass(frozen=True)
class FakeClarifier:
    """Offers each reading by its label, else its rewrite, else its source."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        return [
            replace(case, clarification=offer_each(case.readings, "Which reading", "reading"))
            for case in cases
        ]


@dataclass(frozen=True)
class FakeSummarizer:
    """One sentence for each reading, citing its evidence."""

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        return [replace(case, long_answer=self._write(case)) for case in cases]

    @staticmethod
    def _write(case: Case) -> LongAnswer:
        sentences = []
        for reading in case.readings:
            passages = tuple(span.passage for span in reading.evidence)
            text = f"{reading.question} {reading.answer}."
            sentences.append(Citation(text, passages))
        return LongAnswer(case.question, tuple(sentences))
