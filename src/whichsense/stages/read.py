"""Read: every plausible answer that the passages hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whichsense.models.seq2seq.codec import Codec
from whichsense.protocols import Reader
from whichsense.text.spans import spans_of
from whichsense.text.words import normalize
from whichsense.types import Candidate, Hit, Span

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.seq2seq.decoding import Found
    from whichsense.models.seq2seq.generator import Generator


@dataclass(frozen=True)
class SeqReader:
    """SpanSeqGen or Fusion-in-Decoder, whichever `model` was trained as: it writes all answers, one after another.

    With `threshold` it is the zero-shot reader of AmbigQA's section 6.3: a model that learnt to give one answer gives
    every output of its beam whose probability is above it, and the best one in any case.
    """

    model: str | Path | Generator
    beams: int = 4
    threshold: float = 0.0
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(
            self.model,
            ("answer-prediction", "verification", "clarified-reader"),
            self.device,
        )

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        return self.read_many([question], [hits])[0]

    def read_many(
        self,
        questions: Sequence[str],
        hits: Sequence[Sequence[Hit]],
        known: Sequence[str] | None = None,
    ) -> list[list[Candidate]]:
        """Many questions at once. `known`: an answer of each that the model must begin with (co-training)."""
        from whichsense.models.seq2seq.decoding import Search
        from whichsense.models.seq2seq.inputs import composed

        codec, form = self.generator.codec, self.generator.form
        inputs = [
            composed(codec, form, [asked], found)
            for asked, found in zip(questions, hits, strict=True)
        ]
        prefixes = None if known is None else [codec.ids(answer) for answer in known]
        outputs = self.generator.generate(
            inputs, Search(self.beams, form.output_tokens), prefixes
        )
        return [
            self._candidates(codec, found, seen)
            for found, seen in zip(outputs, hits, strict=True)
        ]

    def _candidates(
        self, codec: Codec, outputs: Sequence[Found], hits: Sequence[Hit]
    ) -> list[Candidate]:
        scores: dict[str, float] = {}
        for number, output in enumerate(outputs):
            probability = math.exp(min(0.0, output.score))
            if number and (not self.threshold or probability < self.threshold):
                break
            for answer in codec.texts(output.tokens):
                scores.setdefault(answer, probability)
        return [
            self._as_written(answer, score, spans_of(answer, hits))
            for answer, score in scores.items()
        ]

    def _as_written(
        self, answer: str, score: float, spans: tuple[Span, ...]
    ) -> Candidate:
        """A model that writes small letters only: the answer as the best passage writes it."""
        if spans and self.generator.form.lowercase:
            first = spans[0]
            answer = first.passage.text[first.start : first.end]
        return Candidate(answer, score, spans)


@dataclass(frozen=True)
class ExtractiveReader:
    """DPR's reader with AmbigQA's threshold: every span likelier than γ is an answer, the likeliest one in any case.

    Without `gamma`, the one that was best on dev when `model` was trained.
    """

    model: str | Path
    gamma: float | None = None
    device: str = ""

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from whichsense.models.bert import cross_encoder

        return cross_encoder.opened(
            self.model, "extractive-reader", reads=True, device=self.device
        )

    @cached_property
    def _options(self) -> Mapping[str, Any]:
        from whichsense.models.bert.saved import described

        return described(self.model, "extractive-reader").options

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        from whichsense.models.bert.span_reader import (
            LONGEST_ANSWER,
            find_answers,
            over_threshold,
        )

        longest = int(self._options.get("longest_answer", LONGEST_ANSWER))
        found = find_answers(
            *self._parts, question, [hit.passage for hit in hits], longest
        )
        return over_threshold(
            found, self._options["gamma"] if self.gamma is None else self.gamma
        )

    def read_many(
        self, questions: Sequence[str], hits: Sequence[Sequence[Hit]]
    ) -> list[list[Candidate]]:
        """One by one: a question's passages fill a batch. Other stages get many questions at once this way."""
        return [
            self.read(question, seen)
            for question, seen in zip(questions, hits, strict=True)
        ]


@dataclass(frozen=True)
class VotingReader:
    """Several readers vote: the answers that the highest number of them gives are the answers (AmbigQA, appendix D)."""

    readers: Sequence[Reader]

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        first: dict[str, Candidate] = {}
        votes: Counter[str] = Counter()
        for reader in self.readers:
            own = {
                normalize(found.answer): found
                for found in reversed(reader.read(question, hits))
            }
            votes.update(own.keys())
            for form, found in reversed(own.items()):
                first.setdefault(form, found)
        most = max(votes.values(), default=0)
        return [
            Candidate(found.answer, votes[form] / len(self.readers), found.spans)
            for form, found in first.items()
            if votes[form] == most
        ]


@dataclass(frozen=True)
class CompactReader:
    """Spans of the compact model. Strings that mean the same are one answer; a learned scorer says how probable it is.

    Those are given that together have the highest expected F1, or all that reach `threshold`. Where the evidence holds
    no answer, none is given.
    """

    compact: Compact
    threshold: float | None = None
    cautious: bool = True
    """Whether a question that the evidence hardly answers gets no answer, and one that is hardly ambiguous a single
    one. Benchmarks reward neither."""

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        from whichsense.models.compact.rewrite.resolving import candidates_of

        scene = self.compact.scene(question, hits)
        if self.cautious and scene.answerable < self.compact.scorer.decline_under:
            return []
        given = scene.likely(self.threshold)
        if self.cautious and self.threshold is None and not scene.is_ambiguous:
            given = given[:1]
        return candidates_of(scene, given)
