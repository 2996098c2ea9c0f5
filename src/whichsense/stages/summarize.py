"""Summarize: one long answer over all readings, each sentence with the passages that support it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from whichsense.text.function_words import SUMMARY_STOP_WORDS
from whichsense.text.sentences import sentences
from whichsense.text.words import words
from whichsense.types import Citation, Hit, LongAnswer, Passage, Reading

if TYPE_CHECKING:
    from whichsense.models.seq2seq.generator import Generator


@dataclass(frozen=True)
class SeqSummarizer:
    """ASQA's T5: closed book, open book with K passages, or oracle, as `model` was trained."""

    model: str | Path | Generator
    beams: int = 4
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(self.model, ("long-answer",), self.device)

    def summarize(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> LongAnswer:
        text = self.write_many([self._input(question, readings, hits)])[0]
        passages = [hit.passage for hit in hits]
        return LongAnswer(
            question,
            tuple(Citation(one, supporting(one, passages)) for one in sentences(text)),
        )

    def write_many(self, inputs: Sequence[str]) -> list[str]:
        """Long answers for inputs in the model's own format."""
        from whichsense.models.seq2seq.decoding import Search
        from whichsense.models.seq2seq.inputs import plain

        codec, form = self.generator.codec, self.generator.form
        tokens = [plain(codec, text, form.input_tokens) for text in inputs]
        outputs = self.generator.generate(
            tokens, Search(self.beams, form.output_tokens)
        )
        return [codec.text(found[0].tokens) if found else "" for found in outputs]

    def _input(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> str:
        from whichsense.models.seq2seq import formats

        mode = self.generator.options.get("mode", "open")
        if mode == "closed":
            return formats.closed_book(question)
        found = [
            formats.Source(hit.passage.text, hit.passage.title)
            for hit in hits[: self.generator.form.passages]
        ]
        if mode == "open":
            return formats.open_book(question, found)
        spans = [next(iter(one.evidence), None) for one in readings]
        contexts = [
            formats.Source(span.passage.text, span.passage.title)
            for span in spans
            if span is not None
        ]
        return formats.oracle(
            question,
            [r.answer for r in readings],
            [r.question for r in readings],
            contexts,
            found,
        )


def supporting(
    sentence: str, passages: Sequence[Passage], most: int = 2, least: float = 0.5
) -> tuple[Passage, ...]:
    """The passages that hold most of a sentence's words, best first; none where all hold less than `least` of them."""
    said = {word for word in words(sentence) if word not in SUMMARY_STOP_WORDS}
    if not said:
        return ()
    shares = [
        len(said & set(words(f"{one.title} {one.text}"))) / len(said)
        for one in passages
    ]
    ranked = sorted(range(len(passages)), key=lambda place: -shares[place])
    return tuple(passages[place] for place in ranked[:most] if shares[place] >= least)
