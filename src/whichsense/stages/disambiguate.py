"""Disambiguate: for each answer, the question that has this answer and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from whichsense.protocols import Disambiguator, QuestionRewriter
from whichsense.stages.providers import (
    COMPACT,
    LLM,
    Factory,
    GeneratorStage,
    StageSettings,
    endpoint,
)
from whichsense.text.words import words
from whichsense.types import Candidate, Case, Reading

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.seq2seq.decoding import Output
    from whichsense.models.seq2seq.formats import TokenSequences


@dataclass(frozen=True)
class SeqDisambiguator(GeneratorStage):
    """AmbigQA's or REFUEL's question disambiguation model: one rewrite for each answer, from prompt and passages."""

    tasks: ClassVar = ("question-disambiguation",)

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        """Rewrite for each answer; a question with one answer is not ambiguous and stays as it is."""
        inputs = []
        for case in cases:
            if len(case.answers) > 1:
                for answer in case.answers:
                    inputs.append(self._input(case, answer))
        beams = map(self._scored, self.outputs(inputs))
        disambiguated = []
        for case in cases:
            rewrites = [case.question] * len(case.answers)
            if len(case.answers) > 1:
                choices = [next(beams) for _ in case.answers]
                rewrites = distinct(case.question, choices)
            disambiguated.append(_with_rewrites(case, rewrites))
        return disambiguated

    def _input(self, case: Case, answer: Candidate) -> TokenSequences:
        from whichsense.models.seq2seq.formats import rewriter_parts

        options = self.generator.options
        others = [other.answer for other in case.answers if other is not answer]
        parts = rewriter_parts(
            case.question,
            answer.answer,
            others,
            prompt=options.get("prompt", True),
            with_others=options.get("others", True),
        )
        return self.composed(parts, case.hits, answer.answer)

    def _scored(self, beam: Sequence[Output]) -> list[tuple[str, float]]:
        """Return the texts of a beam, best first, with their log probabilities for each token."""
        text = self.generator.codec.text
        return [(text(one.tokens), one.score / (len(one.tokens) + 1)) for one in beam]


def _with_rewrites(case: Case, rewrites: Sequence[str]) -> Case:
    """Return the case with a reading for each answer."""
    readings = [
        Reading(rewrite, answer.answer, answer.spans, answer.score)
        for rewrite, answer in zip(rewrites, case.answers, strict=True)
    ]
    return replace(case, readings=tuple(readings))


def distinct(question: str, choices: Sequence[Sequence[tuple[str, float]]]) -> list[str]:
    """Return one of its texts for each answer, so that no two of them are the same, and none is the question as it
    was asked.

    Where two answers want the same text, the one to which it is likelier keeps it, and the other takes its next best.
    What has nothing of its own keeps its best.

    >>> distinct("who won?", [[("who won?", -0.1), ("who won in 2012?", -0.3)], [("who won in 2012?", -0.2)]])
    ['who won?', 'who won in 2012?']
    """
    ranked = [
        (-score, place, text)
        for place, texts in enumerate(choices)
        for text, score in texts
        if text
    ]
    taken, chosen = {_plain(question)}, dict[int, str]()
    for _, place, text in sorted(ranked):
        if place not in chosen and _plain(text) not in taken:
            taken.add(_plain(text))
            chosen[place] = text
    return [chosen.get(place) or _first(texts) or question for place, texts in enumerate(choices)]


def _first(texts: Sequence[tuple[str, float]]) -> str:
    """Return the first text that is not empty."""
    return next((text for text, _ in texts if text), "")


def _plain(text: str) -> str:
    """Return what makes two questions the same to a person."""
    return " ".join(words(text))


@dataclass(frozen=True)
class PromptCopy:
    """The papers' baseline that rewrites nothing: every answer gets the question as it was asked."""

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        return [_with_rewrites(case, [case.question] * len(case.answers)) for case in cases]


@dataclass(frozen=True)
class FirstRewriter(GeneratorStage):
    """Rewrites before any answer is known, from the question alone: the middle of AmbigQA's DISAMBIG-FIRST."""

    tasks: ClassVar = ("disambiguate-first",)

    def rewrite(self, questions: Sequence[str]) -> list[list[str]]:
        """Return the readings that the model thinks of, as questions; the question itself where it thinks of none."""
        beams = self.outputs([self.composed([question], ()) for question in questions])
        rewrites = []
        for question, beam in zip(questions, beams, strict=True):
            texts = self.generator.codec.texts(beam[0].tokens) if beam else []
            rewrites.append(texts or [question])
        return rewrites


@dataclass(frozen=True)
class CompactDisambiguator:
    """Rewrites that the compact model's writer draws for each answer beside its evidence.

    Several are written for each answer; those are chosen that differ, hold what the evidence holds and do not give the
    answer away. Under a careful policy forms that the evidence fills compete with the writer, and the verifier asks
    every candidate again.
    """

    compact: Compact

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact import people as for_people
        from whichsense.models.compact.rewriting import rewrite_answers

        disambiguated = []
        for case in cases:
            scene = self.compact.scene_of(case)
            if case.policy.careful:
                readings = for_people.rewrite_answers(scene, case.answers, policy=case.policy)
            else:
                readings = rewrite_answers(scene, case.answers)
            disambiguated.append(replace(case, readings=tuple(readings), scratch=scene))
        return disambiguated


@dataclass(frozen=True)
class LLMDisambiguator:
    """Rewrites of a language model for each answer, with all answers and their evidence beside it.

    Several are drawn. For people they compete with the compact model's, which asks each of them again.
    """

    endpoint: Endpoint
    compact: Compact

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think
        from whichsense.models.llm.thinking import rewrite_answers

        thought = partial(rewrite_answers, compact=self.compact)
        instead = CompactDisambiguator(self.compact).disambiguate
        return think(self.endpoint, "disambiguate", cases, thought, instead)


@dataclass(frozen=True, slots=True)
class DisambiguatorSettings(StageSettings):
    """A system's `[disambiguator]` or `[rewriter]`."""

    beams: int = 4


PROVIDERS: Mapping[str, Factory[DisambiguatorSettings, Disambiguator]] = {
    COMPACT: lambda settings, context: CompactDisambiguator(context.compact),
    LLM: lambda settings, context: LLMDisambiguator(
        endpoint(context, "disambiguator"), context.compact
    ),
    "question-disambiguation": lambda settings, context: SeqDisambiguator(
        settings.model, settings.beams, context.device
    ),
    "prompt-copy": lambda settings, context: PromptCopy(),
}
REWRITERS: Mapping[str, Factory[DisambiguatorSettings, QuestionRewriter]] = {
    "disambiguate-first": lambda settings, context: FirstRewriter(
        settings.model, settings.beams, context.device
    )
}
