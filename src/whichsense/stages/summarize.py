"""Summarize: one long answer over all readings, each sentence with the passages that support it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, ClassVar

from whichsense.errors import BadConfig
from whichsense.protocols import Summarizer, Support
from whichsense.stages.providers import (
    COMPACT,
    LLM,
    BuildContext,
    Factory,
    GeneratorStage,
    StageSettings,
    endpoint,
)
from whichsense.text.words import SUMMARY_STOP_WORDS, sentences, words
from whichsense.types import Case, Citation, LongAnswer, Passage, Reading

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.llm.talk import Talk

_SUPPORTED_OVER = 0.5


def _told(case: Case, citations: Iterable[Citation]) -> Case:
    return replace(case, long_answer=LongAnswer(case.question, tuple(citations)))


@dataclass(frozen=True)
class SeqSummarizer(GeneratorStage):
    """ASQA's T5: closed book, open book with K passages, or oracle, as `model` was trained."""

    tasks: ClassVar = ("long-answer",)

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        texts = self.write([self._input(case) for case in cases])
        summarized = []
        for case, text in zip(cases, texts, strict=True):
            passages = [hit.passage for hit in case.hits]
            cited = [(sentence, supporting(sentence, passages)) for sentence in sentences(text)]
            summarized.append(_told(case, starmap(Citation, cited)))
        return summarized

    def write(self, inputs: Sequence[str]) -> list[str]:
        """Return long answers for inputs in the model's own format."""
        from whichsense.models.seq2seq.formats import plain

        codec, most = self.generator.codec, self.generator.form.input_tokens
        return self.best_texts([plain(codec, text, most) for text in inputs])

    def _input(self, case: Case) -> str:
        from whichsense.models.seq2seq import formats

        mode = self.generator.options.get("mode", "open")
        if mode == "closed":
            return formats.closed_book(case.question)
        sources = [
            formats.SourceText(hit.passage.text, hit.passage.title)
            for hit in case.hits[: self.generator.form.passages]
        ]
        if mode == "open":
            return formats.open_book(case.question, sources)
        answers = [reading.answer for reading in case.readings]
        rewrites = [reading.question for reading in case.readings]
        first = [reading.evidence[0].passage for reading in case.readings if reading.evidence]
        contexts = [formats.SourceText(passage.text, passage.title) for passage in first]
        return formats.oracle(case.question, answers, rewrites, contexts, sources)


@dataclass(frozen=True)
class LLMSummarizer:
    """A language model writes from the readings and their evidence, with a citation on every sentence. A sentence whose
    citation does not support it is dropped.

    `on_sentence` is told of each sentence that stays, while the rest is still being written.
    """

    endpoint: Endpoint
    compact: Compact
    instead: Summarizer | None = None
    support: Support | None = None
    """Judges sentences; the compact model's judge without it."""
    on_sentence: Callable[[Citation], None] | None = None

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think

        instead = None if self.instead is None else self.instead.summarize
        return think(self.endpoint, "summarize", cases, self._write, instead)

    def _write(self, talk: Talk, case: Case) -> Case:
        from whichsense.models.llm.wording import left_out, write_supported

        if not case.readings:
            return replace(case, long_answer=None)
        holds = partial(self._holds, passages=[hit.passage for hit in case.hits])
        citations: list[Citation] = []
        for citation in write_supported(talk, case, holds):
            citations.append(citation)
            self._tell(citation)
        for reading in left_out(case.readings, citations):
            # An answer that the model forgot, in the words of its evidence.
            for citation in self._told_instead(case, reading):
                citations.append(citation)
                self._tell(citation)
        return _told(case, citations)

    def _tell(self, citation: Citation) -> None:
        if self.on_sentence is not None:
            self.on_sentence(citation)

    def _told_instead(self, case: Case, reading: Reading) -> tuple[Citation, ...]:
        """Return one sentence of the embedded summarizer for one reading; none without it."""
        if self.instead is None:
            return ()
        alone = replace(case, question=reading.question, readings=(reading,))
        (done,) = self.instead.summarize([alone])
        return done.long_answer.sentences[:1] if done.long_answer else ()

    def _holds(self, citation: Citation, passages: Sequence[Passage]) -> Citation | None:
        """Return a sentence with the passages that support it, its own or, where it cites none, others; None without
        any.
        """
        from whichsense.models.compact.support_judge import SupportJudge

        judge = self.support or SupportJudge(self.compact.model)
        cited = citation.passages or supporting(citation.sentence, passages)
        pairs = [(citation.sentence, f"{passage.title}\n{passage.text}") for passage in cited]
        supporters = [
            passage
            for passage, chance in zip(cited, judge.supports(pairs), strict=True)
            if chance >= _SUPPORTED_OVER
        ]
        if not supporters:
            return None
        return Citation(citation.sentence, tuple(supporters))


@dataclass(frozen=True)
class CompactSummarizer:
    """One paragraph of sentences of the evidence, each in its context and cited, without a language model."""

    least: int = 60
    most: int = 100

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact.story import Length, write_story

        length = Length(self.least, self.most)
        return [replace(case, long_answer=write_story(case, length)) for case in cases]


@dataclass(frozen=True, slots=True)
class QuestionRepeated:
    """ASQA's first baseline: the question, eight times over."""

    times: int = 8

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        return [_told(case, [Citation(case.question, ())] * self.times) for case in cases]


@dataclass(frozen=True, slots=True)
class BestPassages:
    """ASQA's other baselines: the best passage, or the best few, word by word. Every sentence cites its passage."""

    passages: int = 1

    def summarize(self, cases: Sequence[Case]) -> list[Case]:
        summarized = []
        for case in cases:
            citations = [
                Citation(sentence, (hit.passage,))
                for hit in case.hits[: self.passages]
                for sentence in sentences(hit.passage.text)
            ]
            summarized.append(_told(case, citations))
        return summarized


@dataclass(frozen=True, slots=True)
class SummarizerSettings(StageSettings):
    """A system's `[summarizer]`."""

    beams: int = 4
    times: int = 8
    """How often "question" repeats the question."""
    passages: int = 1
    """How many passages "passages" gives."""
    least: int = 60
    """Words that a long answer of the compact model has at least, where the evidence has as many to say."""
    most: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise BadConfig(
                f"[summarizer]: least = {self.least} and most = {self.most} are no range of words. "
                "Give 1 or more, and most not below least."
            )


def _compact(settings: SummarizerSettings, context: BuildContext) -> Summarizer:
    return CompactSummarizer(settings.least, settings.most)


PROVIDERS: Mapping[str, Factory[SummarizerSettings, Summarizer]] = {
    COMPACT: _compact,
    LLM: lambda settings, context: LLMSummarizer(
        endpoint(context, "summarizer"), context.compact, _compact(settings, context)
    ),
    "long-answer": lambda settings, context: SeqSummarizer(
        settings.model, settings.beams, context.device
    ),
    "question": lambda settings, context: QuestionRepeated(settings.times),
    "passages": lambda settings, context: BestPassages(settings.passages),
}


def supporting(
    sentence: str, passages: Sequence[Passage], most: int = 2, least: float = 0.5
) -> tuple[Passage, ...]:
    """Return the passages that hold most of a sentence's words, best first; none where all hold less than `least` of
    them.
    """
    content_words = set(words(sentence)) - SUMMARY_STOP_WORDS
    if not content_words:
        return ()
    ranked = []
    for passage in passages:
        shared = content_words & set(words(f"{passage.title} {passage.text}"))
        ranked.append((len(shared) / len(content_words), passage))
    ranked.sort(key=lambda pair: -pair[0])
    return tuple(passage for share, passage in ranked[:most] if share >= least)
