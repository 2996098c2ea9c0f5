"""Clarify: one question that asks which reading is meant, and the answer to each option of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from whichsense.jobs.limits import check_limits
from whichsense.protocols import Clarifier, Reader, Reranker
from whichsense.stages.providers import (
    COMPACT,
    LLM,
    Factory,
    GeneratorStage,
    StageSettings,
    endpoint,
)
from whichsense.text.clarification import ParsedClarification, compose_question, parse_clarification
from whichsense.text.overlap import best_assignment
from whichsense.text.words import words
from whichsense.types import Case, Clarification, Hit, Option, Reading

if TYPE_CHECKING:
    from whichsense.models.llm.endpoint import Endpoint
    from whichsense.models.llm.talk import Talk


@dataclass(frozen=True)
class CompactClarifier:
    """The embedded clarifier: what the rewrites add, aligned and trimmed. It asks only where that is worth it."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.compact.clarifier import clarify

        clarified_cases = []
        for case in cases:
            check_limits()
            clarified_cases.append(replace(case, clarification=clarify(case)))
        return clarified_cases


@dataclass(frozen=True)
class SeqClarifier(GeneratorStage):
    """CAmbigNQ's generator of clarification questions, with or without the answers, as the model was trained."""

    tasks: ClassVar = ("clarification",)

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        """Return what the model asks; where that is not a list of options, the rewrites themselves are offered."""
        questions = [case.question for case in cases]
        answers = [[reading.answer for reading in case.readings] for case in cases]
        # Without readings (CAmbigNQ's "no answers"), all passages are the evidence.
        hits = [evidence_of(case.readings) or case.hits for case in cases]
        return [
            _asking(case, _bound_to_readings(text, case))
            for case, text in zip(cases, self.write(questions, answers, hits), strict=True)
        ]

    def write(
        self,
        questions: Sequence[str],
        answers: Sequence[Sequence[str]],
        hits: Sequence[Sequence[Hit]],
    ) -> list[str]:
        """Return the clarification questions as the model writes them."""
        from whichsense.models.seq2seq.formats import clarifier_parts

        with_answers = self.generator.options.get("answers", "none") != "none"
        inputs = [
            self.composed(clarifier_parts(question, own if with_answers else ()), seen)
            for question, own, seen in zip(questions, answers, hits, strict=True)
        ]
        return self.best_texts(inputs)


def _asking(case: Case, asked: Clarification) -> Case:
    """Return the case with a clarification, for people in the right form."""
    from whichsense.models.compact.clarifier import repair

    return replace(case, clarification=repair(asked) if case.policy.careful else asked)


def _bound_to_readings(text: str, case: Case) -> Clarification:
    parsed = parse_clarification(text, expected=len(case.readings) or None)
    if parsed is None:
        return offer_each(case.readings)
    return matched(parsed, case.question, case.readings)


def offer_each(
    readings: Sequence[Reading], lead: str = "Which one", category: str = "one"
) -> Clarification:
    """Return a clarification with each reading by its label, else its rewrite, else its source."""
    labels = [one.label or one.source or one.question for one in readings]
    return offered(lead, category, labels, readings)


def offered(
    lead: str, category: str, labels: Sequence[str], readings: Sequence[Reading]
) -> Clarification:
    """Return a clarification with one option for each reading, in this order."""
    options = [
        Option(str(number), label, readings=tuple(readings[number - 1 : number]))
        for number, label in enumerate(labels, 1)
    ]
    header = category[:12].strip().capitalize()
    question = compose_question(lead, labels) if labels else f"{lead}?"
    return Clarification(header, question, category, tuple(options))


def evidence_of(readings: Sequence[Reading]) -> list[Hit]:
    """Return the passages that readings rest on, each once, the first of every reading before any second one."""
    hits: dict[str, Hit] = {}
    for rank in zip_longest(*[reading.evidence for reading in readings]):
        for span in filter(None, rank):
            hits.setdefault(span.passage.id, Hit(span.passage, span.score))
    return list(hits.values())


def matched(
    parsed: ParsedClarification, question: str, readings: Sequence[Reading]
) -> Clarification:
    """Return each option with the reading whose rewrite, label or source, and answer, share most words with it; what
    fits no reading goes.
    """
    asked = set(words(question))
    rows = [set(words(option)) for option in parsed.options]
    columns = []
    for reading in readings:
        told = reading.told_apart(question)
        added = set(words(f"{told} {reading.label}")) - asked
        columns.append(added | set(words(reading.answer)))
    lead = f"Which {parsed.category}"
    if not rows or not columns:
        return offered(lead, parsed.category, parsed.options, ())
    table = []  # options × readings
    for i, row in enumerate(rows):
        shares = [len(row & column) / max(1, len(row)) for column in columns]
        if i < len(shares):
            # A small share for the order: models list options as they were given the answers.
            shares[i] += 0.01
        table.append(shares)
    pairs = sorted(best_assignment(table))
    options = [parsed.options[i] for i, _ in pairs]
    return offered(lead, parsed.category, options, [readings[j] for _, j in pairs])


@dataclass(frozen=True)
class LLMClarifier:
    """A language model asks which reading is meant, after six examples as in CAmbigNQ. What does not keep the form is
    asked for again; then `instead` asks."""

    endpoint: Endpoint
    instead: Clarifier | None = None

    def clarify(self, cases: Sequence[Case]) -> list[Case]:
        from whichsense.models.llm.talk import think

        instead = None if self.instead is None else self.instead.clarify
        return think(self.endpoint, "clarify", cases, _ask_which, instead)


def _ask_which(talk: Talk, case: Case) -> Case:
    """Return the case with its clarification; one with a single reading needs none."""
    from whichsense.models.llm.wording import write_clarification

    if len(case.readings) < 2:
        return replace(case, clarification=None)
    parsed = write_clarification(talk, case)
    lead = f"Which {parsed.category}"
    return _asking(case, offered(lead, parsed.category, parsed.options, case.readings))


@dataclass(frozen=True)
class ClarifiedReader:
    """CAmbigNQ's clarification-based QA: the question with one option, its passages ranked anew, its answer."""

    reader: Reader
    reranker: Reranker | None = None

    def answer_options(self, case: Case) -> list[Reading]:
        """Return a reading for each option of the case's clarification; where nothing is found, an empty answer."""
        from whichsense.models.seq2seq.formats import clarified

        clarification = case.clarification
        if clarification is None:
            return []
        asked = [
            Case(
                clarified(case.question, clarification.category, option.label),
                hits=case.hits,
                policy=case.policy,
            )
            for option in clarification.options
        ]
        if self.reranker is not None:
            asked = self.reranker.rerank(asked)
        readings = []
        for answered in self.reader.read(asked):
            reading = Reading(answered.question, "")
            if answered.answers:
                best = answered.answers[0]
                reading = Reading(answered.question, best.answer, best.spans, best.score)
            readings.append(reading)
        return readings


@dataclass(frozen=True, slots=True)
class ClarifierSettings(StageSettings):
    """A system's `[clarifier]`."""

    beams: int = 4


PROVIDERS: Mapping[str, Factory[ClarifierSettings, Clarifier]] = {
    COMPACT: lambda settings, context: CompactClarifier(),
    LLM: lambda settings, context: LLMClarifier(endpoint(context, "clarifier"), CompactClarifier()),
    "clarification": lambda settings, context: SeqClarifier(
        settings.model, settings.beams, context.device
    ),
}
