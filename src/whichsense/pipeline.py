"""The order of the stages. A Pipeline is a frozen value: swap a stage with `dataclasses.replace`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from whichsense.errors import BadInput, MissingStage
from whichsense.jobs.limits import LimitReached, Limits, check_limits, current_limits, within
from whichsense.protocols import (
    Clarifier,
    Detector,
    Disambiguator,
    Reader,
    Reranker,
    Retriever,
    Summarizer,
    Verifier,
)
from whichsense.stages.roundtrip import RoundTrip, keep_distinct_answers
from whichsense.types import FOR_PEOPLE, Case, Clarification, LongAnswer, Policy, Reading

_Goal = Literal["evidence", "readings", "clarification", "long answer"]
Step = tuple[str, Callable[[Sequence[Case]], list[Case]]]
StageHook = Callable[[str, Sequence[Case]], None]
Stage = TypeVar("Stage")


def _ignore(stage: str, cases: Sequence[Case]) -> None:
    """The hook of a caller who gives none."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Retrieve `depth` passages, keep the best `keep` after reranking, and reason over those."""

    retriever: Retriever
    reranker: Reranker | None = None
    reader: Reader | None = None
    disambiguator: Disambiguator | None = None
    verifier: Verifier | None = None
    clarifier: Clarifier | None = None
    summarizer: Summarizer | None = None
    detector: Detector | None = None
    depth: int = 100
    keep: int = 20
    rounds: int = 0
    """Round-trip prediction: how often at most the rewrites are asked again for answers that were missed."""
    batch: int | None = None
    """Cases that go through the stages together, all of them without it; all are searched for in one call."""
    policy: Policy = FOR_PEOPLE
    on_stage: StageHook = _ignore
    """Told of each stage that ends, where a call names no hook of its own."""

    def with_threshold(self, threshold: float | None) -> Pipeline:
        """Return the pipeline whose policy has this threshold; None leaves its own."""
        return replace(self, policy=self.policy.with_threshold(threshold))

    def run(
        self,
        questions: Sequence[str],
        goal: _Goal = "readings",
        *,
        limits: Limits | None = None,
        on_stage: StageHook | None = None,
    ) -> list[Case]:
        """Take every question through the stages, up to a goal.

        `on_stage` is told the name and the cases of each stage that ends. When `limits` are reached, cases come back
        with what the stages before have filled in, and `Case.stopped` says why. Without `limits`, those of
        the caller hold.
        """
        cases = [Case(question, policy=self.policy) for question in _listed(questions)]
        return self._advance(cases, self._steps(goal), limits, on_stage)

    def ask(
        self, question: str, *, limits: Limits | None = None, on_stage: StageHook | None = None
    ) -> Case:
        """Ask one question: every reading of it, best first; those that are merely possible are kept apart."""
        return self.run([question], limits=limits, on_stage=on_stage)[0]

    def readings(self, question: str) -> tuple[Reading, ...]:
        """Return every reading of a question that is shown, best first."""
        return self.ask(question).readings

    def clarify(self, question: str | Case) -> Clarification | None:
        """Return one question back to the person: which reading is meant? A case that has its readings goes on from
        there.
        """
        case = self._with_readings(question, "clarification")
        return self.advance(case, "clarification").clarification

    def summarize(self, question: str | Case) -> LongAnswer | None:
        """Return one long answer that tells the whole story. A case that has its readings goes on from there."""
        case = self._with_readings(question, "long answer")
        return self.advance(case, "long answer").long_answer

    def advance(
        self,
        case: Case,
        goal: _Goal,
        *,
        limits: Limits | None = None,
        on_stage: StageHook | None = None,
    ) -> Case:
        """Return a case that has its readings, taken on to a clarification or a long answer; limits and hook as in
        `run`.
        """
        last = self._last_step(goal)
        limits = limits or current_limits()
        return _run_steps(last, [case], limits, on_stage or self.on_stage)[0]

    def _steps(self, goal: _Goal) -> Iterator[Step]:
        """Yield the names and verbs of the stages that lead to a goal, in their order."""
        yield "retrieve", lambda cases: self.retriever.retrieve(cases, self.depth)
        yield "rerank", self._rerank
        if goal == "evidence":
            return
        if self.reader is None and goal != "readings":
            # From the passages alone: CAmbigNQ's "no answers", ASQA's T5.
            yield from self._last_step(goal)
            return
        reader = _given(self.reader, "reader")
        disambiguator = _given(self.disambiguator, "disambiguator")
        last = self._last_step(goal)
        yield "read", lambda cases: keep_distinct_answers(reader.read(cases))
        if self.detector is not None:
            yield "detect", self.detector.detect
        steps: list[Step] = [("disambiguate", disambiguator.disambiguate)]
        if self.rounds:
            again = RoundTrip(reader, disambiguator, self.rounds)
            steps.append(("round trip", again.ask_again))
        if self.verifier is not None:
            steps.append(("verify", self.verifier.verify))
        *others, (name, verb) = steps
        yield from others
        yield name, lambda cases: _judged_by_readings(verb(cases))
        yield from last

    def _last_step(self, goal: _Goal) -> list[Step]:
        if goal == "clarification":
            return [("clarify", _given(self.clarifier, "clarifier").clarify)]
        if goal == "long answer":
            return [("summarize", _given(self.summarizer, "summarizer").summarize)]
        return []

    def _rerank(self, cases: Sequence[Case]) -> list[Case]:
        ranked = list(cases) if self.reranker is None else self.reranker.rerank(cases)
        return [replace(case, hits=case.hits[: self.keep]) for case in ranked]

    def _advance(
        self,
        cases: list[Case],
        steps: Iterator[Step],
        limits: Limits | None,
        on_stage: StageHook | None,
    ) -> list[Case]:
        """Search for all cases at once, then take `batch` of them at a time through the other stages."""
        first, *others = steps
        limits = limits or current_limits()
        on_stage = on_stage or self.on_stage
        cases = _run_steps([first], cases, limits, on_stage)
        size = self.batch or max(len(cases), 1)
        finished: list[Case] = []
        for start in range(0, len(cases), size):
            some = cases[start : start + size]
            finished += _run_steps(others, some, limits, on_stage)
        return finished

    def _with_readings(self, question: str | Case, goal: _Goal) -> Case:
        if isinstance(question, Case):
            return question
        self._last_step(goal)  # a stage that is missing is named before the work
        return self.ask(question)


def _run_steps(
    steps: Sequence[Step], cases: list[Case], limits: Limits, on_stage: StageHook
) -> list[Case]:
    """Cases after these steps, with what each step took; at a limit, as they were before the step that it broke off."""
    if not cases:
        return []
    with within(limits):
        for name, verb in steps:
            begun = time.perf_counter()
            try:
                check_limits()
                advanced = verb(cases)
            except LimitReached as limit:
                return [replace(case, stopped=limit.reason) for case in cases]
            each = (time.perf_counter() - begun) / len(cases)
            cases = [case.spend(name, each) for case in advanced]
            on_stage(name, cases)
    return cases


def _judged_by_readings(cases: Sequence[Case]) -> list[Case]:
    """Return cases; those for people are ambiguous where several readings are shown, whatever a detector said."""
    judged = []
    for case in cases:
        shown = case.has_several_readings
        decision = shown if case.policy.careful else case.is_ambiguous
        judged.append(replace(case, is_ambiguous=decision))
    return judged


def _listed(questions: Sequence[str]) -> Sequence[str]:
    """Refuse a single string: it would be taken for a list of letters."""
    if isinstance(questions, str):
        raise BadInput(
            "One string was given where a list of questions is needed. Put it in brackets: [question]."
        )
    return questions


def _given(stage: Stage | None, name: str) -> Stage:
    if stage is None:
        raise MissingStage(
            f"This needs a {name}, and the pipeline has none. Give one: Pipeline(…, {name}=…), "
            f"or [{name}] in the system's file."
        )
    return stage
