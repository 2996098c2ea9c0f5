"""Disambiguate: for each answer, the question that has this answer and no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from whichsense.text.words import words
from whichsense.types import Candidate, Hit, Reading

if TYPE_CHECKING:
    from whichsense.models.compact.scene import Compact
    from whichsense.models.seq2seq.generator import Generator


@dataclass(frozen=True)
class SeqDisambiguator:
    """AmbigQA's or REFUEL's question disambiguation model: one rewrite for each answer, from prompt and passages."""

    model: str | Path | Generator
    beams: int = 4
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(self.model, ("question-disambiguation",), self.device)

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]:
        return self.disambiguate_many([question], [answers], [hits])[0]

    def disambiguate_many(
        self,
        questions: Sequence[str],
        answers: Sequence[Sequence[Candidate]],
        hits: Sequence[Sequence[Hit]],
    ) -> list[list[Reading]]:
        """Many questions at once. A question with one answer is not ambiguous and stays as it is."""
        from whichsense.models.seq2seq.inputs import composed, rewriter_parts

        codec, form, options = (
            self.generator.codec,
            self.generator.form,
            self.generator.options,
        )
        wanted = [place for place, found in enumerate(answers) if len(found) > 1]
        inputs = [
            composed(
                codec,
                form,
                rewriter_parts(
                    questions[place],
                    one.answer,
                    [other.answer for other in answers[place] if other is not one],
                    prompt=options.get("prompt", True),
                    with_others=options.get("others", True),
                ),
                hits[place],
                one.answer,
            )
            for place in wanted
            for one in answers[place]
        ]
        outputs = iter(self._generated(inputs))
        found = [
            [Reading(asked, c.answer, c.spans, c.score) for c in own]
            for asked, own in zip(questions, answers, strict=True)
        ]
        for place in wanted:
            rewrites = distinct(
                questions[place], [next(outputs) for _ in answers[place]]
            )
            found[place] = [
                Reading(rewrite, one.answer, one.spans, one.score)
                for rewrite, one in zip(rewrites, answers[place], strict=True)
            ]
        return found

    def _generated(
        self, inputs: Sequence[list[list[int]]]
    ) -> list[list[tuple[str, float]]]:
        """For each input the texts of its beam, best first, with their log probabilities for each token."""
        from whichsense.models.seq2seq.decoding import Search

        outputs = self.generator.generate(
            inputs, Search(self.beams, self.generator.form.output_tokens)
        )
        return [
            [
                (
                    self.generator.codec.text(one.tokens),
                    one.score / (len(one.tokens) + 1),
                )
                for one in found
            ]
            for found in outputs
        ]


def distinct(
    question: str, choices: Sequence[Sequence[tuple[str, float]]]
) -> list[str]:
    """One of its texts for each answer, so that no two of them are the same, and none is the question as it was asked.

    Where two answers want the same text, the one to which it is likelier keeps it, and the other takes its next best.
    What has nothing of its own keeps its best.

    >>> distinct("who won?", [[("who won?", -0.1), ("who won in 2012?", -0.3)], [("who won in 2012?", -0.2)]])
    ['who won?', 'who won in 2012?']
    """
    best = [next((text for text, _ in texts if text), question) for texts in choices]
    taken, found = {_plain(question)}, dict[int, str]()
    ranked = [
        (-score, place, text)
        for place, texts in enumerate(choices)
        for text, score in texts
        if text
    ]
    for _, place, text in sorted(ranked):
        if place not in found and _plain(text) not in taken:
            taken.add(_plain(text))
            found[place] = text
    return [found.get(place, own) for place, own in enumerate(best)]


def _plain(text: str) -> str:
    """What makes two questions the same to a person."""
    return " ".join(words(text))


@dataclass(frozen=True)
class PromptCopy:
    """The papers' baseline that rewrites nothing: every answer gets the question as it was asked."""

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]:
        return [Reading(question, one.answer, one.spans, one.score) for one in answers]


@dataclass(frozen=True)
class FirstRewriter:
    """Rewrites before any answer is known, from the question alone: the middle of AmbigQA's DISAMBIG-FIRST."""

    model: str | Path | Generator
    beams: int = 4
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(self.model, ("disambiguate-first",), self.device)

    def rewrites(self, question: str) -> list[str]:
        return self.rewrites_many([question])[0]

    def rewrites_many(self, questions: Sequence[str]) -> list[list[str]]:
        """The readings that the model thinks of, as questions; the question itself where it thinks of none."""
        from whichsense.models.seq2seq.decoding import Search
        from whichsense.models.seq2seq.inputs import composed

        codec, form = self.generator.codec, self.generator.form
        inputs = [composed(codec, form, [question], ()) for question in questions]
        outputs = self.generator.generate(
            inputs, Search(self.beams, form.output_tokens)
        )
        return [
            (codec.texts(found[0].tokens) if found else []) or [question]
            for question, found in zip(questions, outputs, strict=True)
        ]


@dataclass(frozen=True)
class CompactDisambiguator:
    """Rewrites that the compact model's writer draws for each answer beside its evidence.

    Several are written for each answer; those are chosen that differ, hold what the evidence holds and do not give the
    answer away.
    """

    compact: Compact
    cautious: bool = False
    """Whether rewrites that are not well put, or not called for, give way: for a reader, not for a benchmark."""

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]:
        from whichsense.models.compact.rewrite.resolving import resolved

        if not answers:
            return []
        found = resolved(
            self.compact.scene(question, hits), answers, cautious=self.cautious
        )
        return [
            Reading(
                one.question,
                one.candidate.answer,
                one.candidate.spans,
                one.candidate.score,
            )
            for one in found
        ]
