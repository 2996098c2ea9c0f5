"""The compact model with everything that a question needs of it, each thing worked out once and kept."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from whichsense.types import Hit

_LEAST_SCORE = 0.05  # of the best one's: what is below is far enough
_KEPT_QUESTIONS = 3  # a scene takes about 30 MB


@dataclass(frozen=True)
class Settings:
    """How much is looked at. More is slower."""

    keep: int = 20
    """Passages that are read to the end."""
    answers: int = 12
    """Candidates that are scored."""


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


@dataclass(frozen=True)
class Compact:
    """Loads on first use. Scenes of the last few questions are kept, so that every stage draws on the same states."""

    folder: Path = WEIGHTS
    threads: int = 2
    settings: Settings = Settings()
    passages: int | None = None
    """Of the corpus that is asked, where that is known."""
    parts: Parts = field(default=None, repr=False, compare=False)  # type: ignore[assignment]  # made below
    _scenes: OrderedDict[str, Scene] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _lock: threading.Lock = field(
        default_factory=threading.Lock, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.parts is None:
            object.__setattr__(self, "parts", Parts(self.folder, self.threads))

    def over(self, passages: int) -> Compact:
        """For questions to a corpus of so many passages, with what this one has loaded."""
        return replace(
            self, passages=passages, _scenes=OrderedDict(), _lock=threading.Lock()
        )

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
        """Load everything now; what cannot be loaded is told."""
        self.model.prepare()
        self.writer.prepare()

    def prepare(self) -> threading.Thread:
        """Begin to load everything, in a thread: imports and a search leave a core free. What cannot be loaded is told
        when it is needed."""

        def loaded() -> None:
            with contextlib.suppress(WhichsenseError):
                self.load()

        # No daemon: Python would end while ONNX Runtime still loads, and one such end in three is a crash.
        thread = threading.Thread(target=loaded, name="whichsense-loading")
        thread.start()
        return thread

    def scene(
        self, question: str, hits: Sequence[Hit], *, keep: int | None = None
    ) -> Scene:
        """A question's passages, read: the best `keep` of them to the end (all of them without it).

        Hits that came out of an earlier scene of the same question are not read again.
        """
        with self._lock:
            known = self._scenes.get(question)
        if known is not None and known.holds(hits, keep):
            return known
        made = self._read(question, hits, keep)
        with self._lock:
            self._scenes[question] = made
            self._scenes.move_to_end(question)
            while len(self._scenes) > _KEPT_QUESTIONS:
                self._scenes.popitem(last=False)
        return made

    def alone(self, question: str) -> Floats:
        """What is kept of a question's states when it is read without a passage."""
        model = self.model
        ((begun, _),) = model.early(
            [
                pair(
                    model.tokenizer,
                    model.tokenizer.ids(question, LONGEST_QUESTION),
                    "",
                    "",
                )
            ]
        )
        return pool_states(begun[0], model.late([begun])[0].states)

    def _read(self, question: str, hits: Sequence[Hit], keep: int | None) -> Scene:
        model, searched = self.model, keep is not None
        keep = len(hits) if keep is None else keep
        asked = model.tokenizer.ids(question, LONGEST_QUESTION)
        pairs = [
            pair(model.tokenizer, asked, hit.passage.title, hit.passage.text)
            for hit in hits
        ]
        # Only scores of a search are weighed: hits without `keep` may carry those of any reranker.
        weight = self.scorer.search_weight if searched else 0.0
        found = [weight * one for one in _searched(hits)]
        *states, (begun, _) = model.early(
            [*pairs, pair(model.tokenizer, asked, "", "")]
        )
        early = [
            (state, score + more)
            for (state, score), more in zip(states, found, strict=True)
        ]
        order = sorted(range(len(hits)), key=lambda place: -early[place][1])
        best = order[:keep]
        *read, ended = model.late([*(early[place][0] for place in best), begun])
        late = dict(zip(best, read, strict=True))
        evidence = replace(
            _arranged(question, hits, pairs, late, found),
            alone=pool_states(begun[0], ended.states),
        )
        # Those that were not read to the end follow, below them all.
        floor = min((hit.score for hit in evidence.hits), default=0.0)
        first = max((early[place][1] for place in order[keep:]), default=0.0)
        rest = [
            Hit(hits[place].passage, floor - 1 + early[place][1] - first)
            for place in order[keep:]
        ]
        return Scene(self, evidence, tuple(rest))


def _arranged(
    question: str,
    hits: Sequence[Hit],
    pairs: Sequence[Pair],
    late: Mapping[int, Late],
    found: Sequence[float],
) -> Evidence:
    """What was read to the end (`late`, by place among the hits), in the order of relevance and what `found` adds."""
    read = {
        place: replace(one, relevance=one.relevance + found[place])
        for place, one in late.items()
    }
    best = sorted(read, key=lambda place: -read[place].relevance)
    return Evidence(
        question,
        tuple(Hit(hits[place].passage, read[place].relevance) for place in best),
        tuple(pairs[place] for place in best),
        tuple(read[place] for place in best),
        tuple((place, hits[place].score) for place in best),
    )


def _searched(hits: Sequence[Hit]) -> list[float]:
    """The logarithm of each hit's search score beside the best one's: at most 0."""
    top = max((hit.score for hit in hits), default=0.0)
    return [
        math.log(max(hit.score / top, _LEAST_SCORE)) if top > 0 else 0.0 for hit in hits
    ]


@dataclass(frozen=True)
class Scene:
    """One question with its evidence: candidates and their probabilities."""

    compact: Compact
    evidence: Evidence
    rest: tuple[Hit, ...] = ()

    def holds(self, hits: Sequence[Hit], keep: int | None) -> bool:
        """Whether these hits are what this scene read to the end, or with `keep`, what it was given."""
        read, asked = (
            [hit.passage.id for hit in self.evidence.hits],
            sorted(hit.passage.id for hit in hits),
        )
        if keep is None:
            return asked == sorted(read)
        return asked == sorted([*read, *(hit.passage.id for hit in self.rest)]) and len(
            read
        ) == min(keep, len(asked))

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
        return candidates.gathered(found, self.compact.settings.answers)

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
