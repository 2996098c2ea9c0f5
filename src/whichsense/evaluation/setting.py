"""The setting of an experiment: what a system predicts, and what the dataset gives it beside the question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from whichsense.conversation.records import CHOOSE
from whichsense.conversation.replies import understand
from whichsense.datasets import Question
from whichsense.errors import BadInput, did_you_mean
from whichsense.evaluation.given import with_clarification, with_gold_readings
from whichsense.pipeline import Pipeline
from whichsense.protocols import Answerer
from whichsense.stages.clarify import ClarifiedReader
from whichsense.types import (
    FOR_BENCHMARKS,
    FOR_PEOPLE,
    Case,
    Clarification,
    Option,
    Policy,
    Reading,
)

Goal = Literal[
    "readings", "ambiguity", "clarification", "clarified answers", "long answer"
]
Given = Literal["question", "answers", "clarification", "documents"]
Options = Literal["bound", "read", "dialogue"]
ForWhom = Literal["benchmarks", "people"]

GOALS: tuple[str, ...] = get_args(Goal)
GIVENS: tuple[str, ...] = get_args(Given)
OPTIONS: tuple[str, ...] = get_args(Options)
POLICIES: dict[str, Policy] = {"benchmarks": FOR_BENCHMARKS, "people": FOR_PEOPLE}

# What a clarification or a long answer can be made from; the other goals need nothing but the question.
_FROM_ANSWERS = ("clarification", "clarified answers", "long answer")


def _check(key: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise BadInput(f"There is no {key} '{value}'. {did_you_mean(value, known)}")


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment over a dataset."""

    goal: Goal = "readings"
    given: Given = "question"
    """The question alone; gold answers with their rewrites; the gold clarification question; or the documents that
    come with each question, which are read in place of a search."""
    options: Options = "bound"
    """How an option is answered: by the reading that it is bound to; by reading the clarified question anew, as
    CAmbigNQ does; or in a dialogue (its appendix E): the person replies with the option's words, and what is
    understood of them decides. An option without a reading is always read."""
    policy: ForWhom = "benchmarks"
    """Answer everything, as benchmarks want it, or what `ask` would show to a person."""

    def __post_init__(self) -> None:
        _check("goal", self.goal, GOALS)
        _check("given", self.given, GIVENS)
        _check("options", self.options, OPTIONS)
        _check("policy", self.policy, POLICIES)
        if self.given == "answers" and self.goal not in _FROM_ANSWERS:
            raise BadInput(
                f"Gold answers are given for the goals {', '.join(_FROM_ANSWERS)}, not for '{self.goal}'."
            )
        if self.given == "clarification" and self.goal != "clarified answers":
            raise BadInput(
                f"A gold clarification is given for the goal 'clarified answers', not for '{self.goal}'."
            )

    def run(self, answerer: Answerer, questions: Sequence[Question]) -> list[Case]:
        """The cases of some questions, as far as the goal needs them."""
        texts = [question.text for question in questions]
        if self.goal == "readings":
            return answerer.run(texts)
        if not isinstance(answerer, Pipeline):
            raise BadInput(
                f"A system that rewrites before it reads has no goal but 'readings'; this is '{self.goal}'."
            )
        if self.given in ("question", "documents"):
            cases = answerer.run(texts, _STEPS[self.goal])
            return [self._with_choices(answerer, case) for case in cases]
        cases = []
        evidence = answerer.run(texts, "evidence")
        for question, case in zip(questions, evidence, strict=True):
            cases.append(self._advance(answerer, question, case))
        return cases

    def _with_choices(self, pipeline: Pipeline, case: Case) -> Case:
        """CAmbigNQ asks about every question: where there is one reading only, the next one is offered beside it. What
        would be answered without asking stays."""
        is_asked = self.goal in ("clarification", "clarified answers")
        if not is_asked or case.policy.careful or len(case.readings) > 1:
            return case
        offering = replace(pipeline, policy=replace(case.policy, least=_CHOICES))
        (offered,) = offering.run([case.question], "clarification")
        return replace(case, clarification=offered.clarification)

    def _advance(self, pipeline: Pipeline, question: Question, case: Case) -> Case:
        """The case with what the dataset gives, and with what is made from it."""
        if self.given == "clarification":
            return with_clarification(question, case)
        case = with_gold_readings(question, case)
        if self.goal == "long answer":
            return replace(case, long_answer=pipeline.summarize(case))
        return replace(case, clarification=pipeline.clarify(case))

    def prediction(self, answerer: Answerer, case: Case, rewrites: bool) -> Any:
        """What is written of a case, as JSON values."""
        if self.goal == "ambiguity":
            return {"ambiguous": is_called_ambiguous(case), "score": case.ambiguous}
        if self.goal == "clarification":
            return case.clarification.question if case.clarification else ""
        if self.goal == "clarified answers":
            return self._clarified_answers(answerer, case)
        if self.goal == "long answer":
            return _long_answer(case)
        return official_readings(case.readings, rewrites)

    def _clarified_answers(self, answerer: Answerer, case: Case) -> dict[str, Any]:
        """The options with an answer each; the answers without asking; whether the system would ask."""
        clarification = case.clarification
        options = []
        if clarification is not None and isinstance(answerer, Pipeline):
            clarification = replace(clarification, options=_ungrouped(clarification))
            case = replace(case, clarification=clarification)
            answers = self._answer_options(answerer, case, clarification)
            for option, answer in zip(clarification.options, answers, strict=True):
                options.append({"option": option.label, "answer": answer})
        return {
            "asked": len(options) > 1 and not _is_held_back(answerer, case),
            "clarification": clarification.question if clarification else "",
            "options": options,
            "answers": [reading.answer for reading in case.readings],
        }

    def _answer_options(
        self, pipeline: Pipeline, case: Case, clarification: Clarification
    ) -> list[str]:
        answers = [""] * len(clarification.options)
        if self.options != "read":
            answers = [_bound_answer(option) for option in clarification.options]
        if not all(answers):
            if pipeline.reader is None:
                raise BadInput(
                    "The options of a clarification are to be read, and the system has no reader. Add [reader]."
                )
            reader = ClarifiedReader(pipeline.reader, pipeline.reranker)
            read = reader.answer_options(case)
            pairs = zip(answers, read, strict=True)
            answers = [answer or reading.answer for answer, reading in pairs]
        if self.options == "dialogue":
            answers = _in_dialogue(case.question, clarification, answers)
        return answers


_CHOICES = 2  # options that a clarification offers at least

# How far a pipeline goes for each goal.
_STEPS: dict[str, Literal["readings", "clarification", "long answer"]] = {
    "ambiguity": "readings",
    "clarification": "clarification",
    "clarified answers": "clarification",
    "long answer": "long answer",
}


def _is_held_back(answerer: Answerer, case: Case) -> bool:
    """Whether a system that has a detector calls the question unambiguous: then nothing is asked."""
    has_detector = isinstance(answerer, Pipeline) and answerer.detector is not None
    return has_detector and case.is_ambiguous is False


def _ungrouped(clarification: Clarification) -> tuple[Option, ...]:
    """The options that have no narrower ones."""
    options: list[Option] = []
    for option in clarification.options:
        options += option.options or (option,)
    return tuple(options)


def _in_dialogue(
    question: str, clarification: Clarification, answers: Sequence[str]
) -> list[str]:
    """What a person gets who replies with the words of each option: its answer, another one's, or none where the reply
    is not understood as a choice."""
    by_id = {}
    for option, answer in zip(clarification.options, answers, strict=True):
        by_id[option.id] = answer
    given = []
    for option in clarification.options:
        intent = understand(option.label, clarification, question)
        is_choice = intent.kind == CHOOSE and len(intent.options) == 1
        given.append(by_id.get(intent.options[0], "") if is_choice else "")
    return given


def _bound_answer(option: Option) -> str:
    return option.readings[0].answer if option.readings else ""


def is_called_ambiguous(case: Case) -> bool:
    """What the system's detector says; without one, whether there are several readings."""
    if case.is_ambiguous is None:
        return len(case.readings) > 1
    return case.is_ambiguous


def official_readings(readings: Sequence[Reading], rewrites: bool) -> list[Any]:
    """AmbigNQ's official form. Pairs also say how probable the answer is, where the system gives a probability; the
    official script passes over it."""
    if not rewrites:
        return [reading.answer for reading in readings]
    pairs = []
    for reading in readings:
        pair: dict[str, Any] = {"question": reading.question, "answer": reading.answer}
        # Some verifiers score by log probabilities, and some systems not at all.
        if 0 < reading.confidence <= 1:
            pair["confidence"] = round(reading.confidence, 4)
        pairs.append(pair)
    return pairs


def _long_answer(case: Case) -> dict[str, Any]:
    """The text, and ALCE's form of its citations: documents, and the numbers of those that each sentence cites."""
    if case.long_answer is None:
        return {"text": "", "sentences": [], "documents": []}
    documents: dict[str, dict[str, str]] = {}
    sentences = []
    for citation in case.long_answer.sentences:
        numbers = []
        for passage in citation.passages:
            documents.setdefault(
                passage.id, {"title": passage.title, "text": passage.text}
            )
            numbers.append(list(documents).index(passage.id) + 1)
        sentences.append({"sentence": citation.sentence, "citations": numbers})
    return {
        "text": case.long_answer.text,
        "sentences": sentences,
        "documents": list(documents.values()),
    }


READINGS = Setting()
