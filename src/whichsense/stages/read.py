"""Read: every plausible answer that the passages hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from whichsense.protocols import Reader
from whichsense.stages.providers import (
    COMPACT,
    LLM,
    BuildContext,
    Factory,
    GeneratorStage,
    StageSettings,
    build_stage,
    endpoint,
)
from whichsense.text.words import normalize, spans_of
from whichsense.types import Candidate, Case, Hit, Span

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.seq2seq.decoding import Output


@dataclass(frozen=True)
class SeqReader(GeneratorStage):
    """SpanSeqGen or Fusion-in-Decoder, whichever `model` was trained as: it writes all answers, one after another.

    With `threshold` it is the zero-shot reader of AmbigQA's section 6.3: a model that learnt to give one answer gives
    every output of its beam whose probability is above it, and the best one in any case.
    """

    tasks: ClassVar = ("answer-prediction", "verification", "clarified-reader")
    threshold: float = 0.0

    def read(self, cases: Sequence[Case]) -> list[Case]:
        return self.read_after(cases, None)

    def read_after(self, cases: Sequence[Case], known: Sequence[str] | None) -> list[Case]:
        """Return the same, where the model must begin with a known answer of each question (co-training)."""
        inputs = [self.composed([case.question], case.hits) for case in cases]
        # The tokens that each output must begin with.
        prefixes = None if known is None else list(map(self.generator.codec.ids, known))
        beams = self.outputs(inputs, prefixes)
        return [
            replace(case, answers=self._candidates(beam, case.hits))
            for case, beam in zip(cases, beams, strict=True)
        ]

    def _candidates(self, beam: Sequence[Output], hits: Sequence[Hit]) -> tuple[Candidate, ...]:
        probabilities: dict[str, float] = {}
        for rank, output in enumerate(beam):
            probability = math.exp(min(0.0, output.score))
            if rank and (not self.threshold or probability < self.threshold):
                break
            for answer in self.generator.codec.texts(output.tokens):
                probabilities.setdefault(answer, probability)
        candidates = []
        for answer, probability in probabilities.items():
            spans = spans_of(answer, hits)
            candidates.append(Candidate(self._cased(answer, spans), probability, spans))
        return tuple(candidates)

    def _cased(self, answer: str, spans: Sequence[Span]) -> str:
        """Return a model that writes small letters only: the answer as the best passage writes it."""
        if not spans or not self.generator.form.lowercase:
            return answer
        best = spans[0]
        return best.passage.text[best.start : best.end]


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
        from whichsense.models.bert import encoders

        return encoders.load_cross_encoder(
            self.model, "extractive-reader", reads=True, device=self.device
        )

    @cached_property
    def _options(self) -> Mapping[str, Any]:
        from whichsense.models.bert.inputs import described

        return described(self.model, "extractive-reader").options

    def read(self, cases: Sequence[Case]) -> list[Case]:
        """One by one: a question's passages fill a batch."""
        return [replace(case, answers=self._answers(case)) for case in cases]

    def _answers(self, case: Case) -> tuple[Candidate, ...]:
        from whichsense.models.bert.encoders import LONGEST_ANSWER, find_answers, over_threshold

        longest = int(self._options.get("longest_answer", LONGEST_ANSWER))
        passages = [hit.passage for hit in case.hits]
        spans = find_answers(*self._parts, case.question, passages, longest)
        gamma = self._options["gamma"] if self.gamma is None else self.gamma
        return tuple(over_threshold(spans, gamma))


@dataclass(frozen=True)
class VotingReader:
    """Several readers vote: the answers that the highest number of them gives are the answers (AmbigQA, appendix D)."""

    readers: Sequence[Reader]

    def read(self, cases: Sequence[Case]) -> list[Case]:
        ballots = [reader.read(cases) for reader in self.readers]
        return [
            replace(case, answers=self._elect([ballot[place].answers for ballot in ballots]))
            for place, case in enumerate(cases)
        ]

    def _elect(self, ballots: Sequence[Sequence[Candidate]]) -> tuple[Candidate, ...]:
        """Return the answers with the most votes, in the order in which they were first given."""
        votes: Counter[str] = Counter()
        first: dict[str, Candidate] = {}
        for ballot in ballots:
            # A reader has one vote for an answer, however often it gives it.
            forms = set()
            for candidate in ballot:
                form = normalize(candidate.answer)
                forms.add(form)
                first.setdefault(form, candidate)
            votes.update(forms)
        most = max(votes.values(), default=0)
        return tuple(
            Candidate(each.answer, most / len(self.readers), each.spans)
            for form, each in first.items()
            if votes[form] == most
        )


@dataclass(frozen=True)
class CompactReader:
    """Spans of the compact model. Strings that mean the same are one answer; a learned scorer says how probable it is.

    Those are given that together have the highest expected F1, or all that reach the policy's threshold. Under a
    careful policy the tagger reads for them, too; all that are not improbable are given, or none where the
    evidence hardly holds an answer.
    """

    compact: Compact

    def read(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact.people import choose_answers
        from whichsense.models.compact.rewriting import candidates_of

        read = []
        for case in cases:
            judged = self.compact.judge(case)
            scene = self.compact.scene_of(judged)
            if case.policy.careful:
                answers = choose_answers(scene, case.policy)
            else:
                policy = case.policy
                places = scene.likely(policy.threshold, policy.least)
                answers = candidates_of(scene, places)
            read.append(replace(judged, answers=tuple(answers)))
        return read


@dataclass(frozen=True)
class LLMReader:
    """A language model reads each of the best passages for answers. What does not stand in its passage is not given;
    for people, the compact model's encoder has a word in how probable an answer is."""

    endpoint: Endpoint
    compact: Compact

    def read(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think
        from whichsense.models.llm.thinking import read_answers

        thought = partial(read_answers, compact=self.compact)
        instead = CompactReader(self.compact).read
        return think(self.endpoint, "read", cases, thought, instead)


@dataclass(frozen=True)
class DocumentReader:
    """The compact model over each hit by itself, for documents that disagree: at most one answer from each, and of
    documents about the same thing the answer that most of them give."""

    compact: Compact
    least: float
    """An answer that is less probable is none."""
    similar: float
    """Documents are about the same thing where they share this part of the shorter one's content words."""

    def read(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact.text_reader import read_each

        return [
            replace(case, answers=tuple(read_each(self.compact, case, self.least, self.similar)))
            for case in cases
        ]


@dataclass(frozen=True, slots=True)
class ReaderSettings(StageSettings):
    """A system's `[reader]`."""

    models: tuple[str, ...] = ()
    """Several, which vote."""
    beams: int = 4
    threshold: float | None = None
    """γ of an extractive reader (otherwise its own), the zero-shot threshold of a sequence-to-sequence one, or the
    least probability of an answer from one document (otherwise 0.3)."""
    similar: float = 0.6
    """Of "documents": two that share this part of the shorter one's content words are about the same thing."""


def _seq2seq(settings: ReaderSettings, context: BuildContext) -> Reader:
    threshold = settings.threshold or 0.0
    return SeqReader(settings.model, settings.beams, context.device, threshold)


def _vote(settings: ReaderSettings, context: BuildContext) -> Reader:
    voters = [
        build_stage(
            "reader", replace(settings, provider="", model=model, models=()), PROVIDERS, context
        )
        for model in settings.models
    ]
    return VotingReader(voters)


def _documents(settings: ReaderSettings, context: BuildContext) -> Reader:
    least = 0.3 if settings.threshold is None else settings.threshold
    return DocumentReader(context.compact, least, settings.similar)


PROVIDERS: Mapping[str, Factory[ReaderSettings, Reader]] = {
    COMPACT: lambda settings, context: CompactReader(context.compact),
    LLM: lambda settings, context: LLMReader(endpoint(context, "reader"), context.compact),
    "documents": _documents,
    "extractive-reader": lambda settings, context: ExtractiveReader(
        settings.model, settings.threshold, context.device
    ),
    "answer-prediction": _seq2seq,
    "verification": _seq2seq,
    "clarified-reader": _seq2seq,
    "vote": _vote,
}
