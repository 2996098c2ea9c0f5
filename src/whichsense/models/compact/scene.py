"""The compact model over one question: what its passages say, worked out once and shared by all stages."""

from __future__ import annotations

import contextlib
import copy
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from whichsense.errors import WhichsenseError
from whichsense.models.compact.encoder.inputs import (
    LONGEST_QUESTION,
    Pair,
    answer_ids,
    pair,
)
from whichsense.models.compact.encoder.runtime import (
    WEIGHTS,
    CompactModel,
    Floats,
    Late,
    once,
)
from whichsense.models.compact.reader import candidates
from whichsense.models.compact.reader.candidates import Answer, Evidence
from whichsense.models.compact.scorer import features
from whichsense.models.compact.scorer.probes import pool_states
from whichsense.models.compact.scorer.scorer import Judge, Scorer, chosen
from whichsense.models.compact.scorer.views import Context
from whichsense.models.compact.writer.runtime import Writer
from whichsense.types import Case, Hit, Policy

_LEAST_SCORE = 0.05  # of the best one's: what is below is far enough
KEEP = 20  # passages that are read to the end
_CANDIDATES = 12  # answers that are scored
WELL_PUT = 0.04  # on held-out train and val, rewrites worth less have an EDIT-F1 of 11, the others of 18


@dataclass(frozen=True)
class Parts:
    """What is loaded of a weights folder, each on first use."""

    folder: Path
    threads: int

    @once
    def model(self) -> CompactModel:
        return CompactModel(self.folder, self.threads)

    @once
    def writer(self) -> Writer:
        return Writer(self.model)

    @once
    def scorer(self) -> Scorer:
        return Scorer.load(self.folder / "scorer.json")


class Compact:
    """The compact model, ready for questions to one corpus. It keeps nothing between two questions.

    `keep` passages are read to the end; `passages` is the size of the corpus, where it is known; a careful policy shows
    no rewrite that the scorer finds worth less than `well_put`. Weights load on first use.
    Threads may share one object.
    """

    def __init__(
        self,
        folder: Path = WEIGHTS,
        threads: int = 2,
        keep: int = KEEP,
        passages: int | None = None,
        well_put: float = WELL_PUT,
    ) -> None:
        self.parts = Parts(folder, threads)
        self.keep = keep
        self.passages = passages
        self.well_put = well_put

    def over(self, passages: int | None, keep: int | None = None) -> Compact:
        """The same weights for questions to a corpus of so many passages."""
        other = copy.copy(self)
        other.passages = passages
        other.keep = keep or self.keep
        return other

    @property
    def folder(self) -> Path:
        return self.parts.folder

    @property
    def model(self) -> CompactModel:
        return self.parts.model

    @property
    def writer(self) -> Writer:
        return self.parts.writer

    @property
    def scorer(self) -> Scorer:
        return self.parts.scorer

    def load(self) -> None:
        """Load everything now; raises where something cannot be loaded."""
        self.model.prepare()
        self.writer.prepare()

    def prepare(self) -> threading.Thread:
        """Begin to load everything in a thread: imports and a search leave a core free. What cannot be loaded raises
        when it is needed."""

        def load_quietly() -> None:
            with contextlib.suppress(WhichsenseError):
                self.load()

        # No daemon: Python would end while ONNX Runtime still loads, and one such end in three is a crash.
        thread = threading.Thread(target=load_quietly, name="whichsense-loading")
        thread.start()
        return thread

    def scene_of(self, case: Case) -> Scene:
        """What an earlier stage read for this case; where none did, its hits are read now."""
        scene = case.scratch
        if isinstance(scene, Scene) and scene.holds(case):
            return scene
        return self.read_given(case.question, case.hits)

    def judge(self, case: Case) -> Case:
        """The case with its scene, and with the probabilities that it is answerable and ambiguous."""
        scene = self.scene_of(case)
        return replace(
            case,
            answerable=scene.answerable,
            ambiguous=scene.ambiguous,
            is_ambiguous=scene.is_ambiguous,
            scratch=scene,
        )

    def alone(self, question: str) -> Floats:
        """What is kept of a question's states when it is read without a passage."""
        model = self.model
        ids = model.tokenizer.ids(question, LONGEST_QUESTION)
        ((states, _),) = model.early([pair(model.tokenizer, ids, "", "")])
        return pool_states(states[0], model.late([states])[0].states)

    def read_search(self, question: str, hits: Sequence[Hit]) -> Scene:
        """Read hits of a search: all through the first layers, the best `keep` to the end. Their scores count."""
        self.model.prepare()  # a folder without a model is reported as such
        weight = self.scorer.search_weight
        bonuses = [weight * score for score in _log_search_scores(hits)]
        return self._read(question, hits, bonuses, self.keep)

    def read_given(self, question: str, hits: Sequence[Hit]) -> Scene:
        """Read all hits to the end. Their scores, which may be any reranker's, do not count."""
        return self._read(question, hits, [0.0] * len(hits), len(hits))

    def _read(
        self, question: str, hits: Sequence[Hit], bonuses: Sequence[float], keep: int
    ) -> Scene:
        """`bonuses`: what is added to each hit's relevance."""
        model = self.model
        asked = model.tokenizer.ids(question, LONGEST_QUESTION)
        pairs = []
        for hit in hits:
            passage = hit.passage
            pairs.append(pair(model.tokenizer, asked, passage.title, passage.text))
        # The question without a passage is read beside them, for the judgement of its ambiguity.
        bare = pair(model.tokenizer, asked, "", "")
        *early, (bare_states, _) = model.early([*pairs, bare])
        scores = []
        for (_, score), bonus in zip(early, bonuses, strict=True):
            scores.append(score + bonus)
        order = sorted(range(len(hits)), key=lambda place: -scores[place])
        best, others = order[:keep], order[keep:]
        *read, bare_read = model.late(
            [*(early[place][0] for place in best), bare_states]
        )
        late = {}
        for place, one in zip(best, read, strict=True):
            relevance = one.relevance + bonuses[place]
            late[place] = replace(one, relevance=relevance)
        evidence = replace(
            _ranked_evidence(question, hits, pairs, late),
            alone=pool_states(bare_states[0], bare_read.states),
        )
        # Those that were not read to the end follow, below them all.
        floor = min((hit.score for hit in evidence.hits), default=0.0)
        first = max((scores[place] for place in others), default=0.0)
        rest = []
        for place in others:
            rest.append(Hit(hits[place].passage, floor - 1 + scores[place] - first))
        return Scene(self, evidence, tuple(rest))


def _ranked_evidence(
    question: str, hits: Sequence[Hit], pairs: Sequence[Pair], late: Mapping[int, Late]
) -> Evidence:
    """What was read to the end (`late`, by place among the hits), most relevant first."""
    best = sorted(late, key=lambda place: -late[place].relevance)
    return Evidence(
        question,
        tuple(Hit(hits[place].passage, late[place].relevance) for place in best),
        tuple(pairs[place] for place in best),
        tuple(late[place] for place in best),
        tuple((place, hits[place].score) for place in best),
    )


def _log_search_scores(hits: Sequence[Hit]) -> list[float]:
    """The logarithm of each hit's search score beside the best one's: at most 0."""
    top = max((hit.score for hit in hits), default=0.0)
    if top <= 0:
        return [0.0] * len(hits)
    return [math.log(max(hit.score / top, _LEAST_SCORE)) for hit in hits]


@dataclass(frozen=True)
class Scene:
    """One question with its evidence: candidates and their probabilities."""

    compact: Compact
    evidence: Evidence
    rest: tuple[Hit, ...] = ()

    def holds(self, case: Case) -> bool:
        """Whether this is what was read for a case: its question, and all of its hits."""
        if self.evidence.question != case.question:
            return False
        read = sorted(hit.passage.id for hit in self.evidence.hits)
        return read == sorted(hit.passage.id for hit in case.hits)

    @cached_property
    def answers(self) -> list[Answer]:
        """Candidates, those with most support first."""
        model = self.compact.model
        found = candidates.mentions(self.evidence, model.words.vocabulary)
        if found:
            verdicts = model.verdicts(
                candidates.edge_states(found, self.evidence)
            ).tolist()
            found = [
                replace(one, verdict=said)
                for one, said in zip(found, verdicts, strict=True)
            ]
        return candidates.gathered(found, _CANDIDATES)

    @cached_property
    def context(self) -> Context:
        return Context(self.evidence, self.answers)

    @cached_property
    def probabilities(self) -> list[float]:
        """Of each candidate to be right: calibrated."""
        if not self.answers:
            return []
        found = [
            features.of_answer(place, self.context)
            for place in range(len(self.answers))
        ]
        return self.judge.answer.probabilities(found)

    @cached_property
    def apart(self) -> list[int]:
        """Places of the candidates, most probable first, without those that stand in another's place."""
        chances = self.probabilities
        return candidates.apart(
            self.answers, sorted(range(len(chances)), key=lambda place: -chances[place])
        )

    @cached_property
    def judge(self) -> Judge:
        """Of what is right and ambiguous in a corpus such as this one."""
        scorer = self.compact.scorer
        if not self.answers:
            return scorer.in_small
        return scorer.judge(features.of_corpus(self.context), self.compact.passages)

    @cached_property
    def answerable(self) -> float:
        """The probability that the evidence holds an answer."""
        return (
            self.compact.scorer.answerable.probabilities([self._about])[0]
            if self.answers
            else 0.0
        )

    @cached_property
    def ambiguous(self) -> float:
        """The probability that the question has several readings."""
        return (
            self.judge.ambiguous.probabilities([self._about])[0]
            if self.answers
            else 0.0
        )

    @property
    def is_ambiguous(self) -> bool:
        under = self.judge.single_under
        return len(self.likely()) > 1 if under is None else self.ambiguous >= under

    def likely(self, threshold: float | None = None) -> list[int]:
        """Places of the candidates that together have the highest expected F1, or of all that reach a threshold."""
        chances = [self.probabilities[place] for place in self.apart]
        return [
            self.apart[place]
            for place in chosen(chances, self.judge.missing, threshold)
        ]

    def likely_for(self, policy: Policy) -> list[int]:
        """Places of the candidates that are given under a policy."""
        if policy.careful and self.answerable < self.compact.scorer.decline_under:
            return []
        places = self.likely(policy.threshold)
        if policy.careful and policy.threshold is None and not self.is_ambiguous:
            return places[:1]
        return places

    @cached_property
    def _about(self) -> dict[str, float]:
        scorer = self.compact.scorer
        said = (
            scorer.wording(self.evidence.question),
            scorer.impression(self.evidence.alone),
        )
        return features.of_question(self.context, self.probabilities, *said)

    def tokens(self, answer: str) -> list[int]:
        return answer_ids(self.compact.model.tokenizer, answer)
