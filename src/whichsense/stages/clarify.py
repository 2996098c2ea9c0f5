"""Clarify: one question that asks which reading is meant, and the answer to each option of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from whichsense.models.seq2seq.formats import clarified
from whichsense.protocols import Reader, Reranker
from whichsense.text.assignment import best_assignment
from whichsense.text.clarification import parse
from whichsense.text.words import words
from whichsense.types import Clarification, Hit, Reading

if TYPE_CHECKING:
    from whichsense.models.seq2seq.generator import Generator


@dataclass(frozen=True)
class SeqClarifier:
    """CAmbigNQ's generator of clarification questions, with or without the answers, as the model was trained."""

    model: str | Path | Generator
    beams: int = 4
    device: str = ""

    @cached_property
    def generator(self) -> Generator:
        from whichsense.models.seq2seq.generator import opened

        return opened(self.model, ("clarification",), self.device)

    def clarify(self, question: str, readings: Sequence[Reading]) -> Clarification:
        """What the model asks; where that is no list of options, the rewrites themselves are offered."""
        text = self.ask_many(
            [question], [[one.answer for one in readings]], [evidence_of(readings)]
        )[0]
        found = parse(text, expected=len(readings) or None)
        if found is None:
            return Clarification(
                "one", tuple(one.question for one in readings), tuple(readings)
            )
        return matched(found, question, readings)

    def ask_many(
        self,
        questions: Sequence[str],
        answers: Sequence[Sequence[str]],
        hits: Sequence[Sequence[Hit]],
    ) -> list[str]:
        """The clarification questions as the model writes them."""
        from whichsense.models.seq2seq.decoding import Search
        from whichsense.models.seq2seq.inputs import clarifier_parts, composed

        codec, form = self.generator.codec, self.generator.form
        with_answers = self.generator.options.get("answers", "none") != "none"
        inputs = [
            composed(
                codec,
                form,
                clarifier_parts(question, own if with_answers else ()),
                seen,
            )
            for question, own, seen in zip(questions, answers, hits, strict=True)
        ]
        outputs = self.generator.generate(
            inputs, Search(self.beams, form.output_tokens)
        )
        return [codec.text(found[0].tokens) if found else "" for found in outputs]


def evidence_of(readings: Sequence[Reading]) -> list[Hit]:
    """The passages that readings rest on, each once, the first of every reading before any second one."""
    most = max((len(one.evidence) for one in readings), default=0)
    spans = [
        one.evidence[rank]
        for rank in range(most)
        for one in readings
        if rank < len(one.evidence)
    ]
    return list(
        {
            span.passage.id: Hit(span.passage, span.score) for span in reversed(spans)
        }.values()
    )[::-1]


def matched(
    found: Clarification, question: str, readings: Sequence[Reading]
) -> Clarification:
    """Each option with the reading whose rewrite and answer share most words with it; what fits no reading goes."""
    asked = set(words(question))
    rows = [set(words(option)) for option in found.options]
    columns = [
        (set(words(one.question)) - asked) | set(words(one.answer)) for one in readings
    ]
    if not rows or not columns:
        return found
    # A small share for the order: models list options as they were given the answers.
    table = [
        [
            len(row & column) / max(1, len(row)) + 0.01 * (i == j)
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]
    pairs = sorted(best_assignment(table))
    return Clarification(
        found.category,
        tuple(found.options[i] for i, _ in pairs),
        tuple(readings[j] for _, j in pairs),
    )


@dataclass(frozen=True)
class ClarifiedReader:
    """CAmbigNQ's clarification-based QA: the question with one option, its passages ranked anew, its answer."""

    reader: Reader
    reranker: Reranker | None = None

    def answers(
        self, question: str, clarification: Clarification, hits: Sequence[Hit]
    ) -> list[Reading]:
        """A reading for each option; where nothing is found, with an empty answer."""
        return [
            self.answer(question, clarification, option, hits)
            for option in clarification.options
        ]

    def answer(
        self,
        question: str,
        clarification: Clarification,
        option: str,
        hits: Sequence[Hit],
    ) -> Reading:
        asked = clarified(question, clarification.category, option)
        ranked = (
            list(hits) if self.reranker is None else self.reranker.rerank(asked, hits)
        )
        found = self.reader.read(asked, ranked)
        return (
            Reading(asked, found[0].answer, found[0].spans, found[0].score)
            if found
            else Reading(asked, "")
        )
