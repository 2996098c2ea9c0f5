"""The compact model over one question. A scene computes each value once, for all stages."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from whichsense.errors import WhichsenseError
from whichsense.models.compact import candidates, scorer_features
from whichsense.models.compact.candidates import Answer, Evidence
from whichsense.models.compact.encoder import WEIGHTS, CompactModel, Floats, answer_ids, once
from whichsense.models.compact.hits import encode_question, log_search_scores, read_hits
from whichsense.models.compact.labeller import Labeller
from whichsense.models.compact.scorer import Judge, Scorer, Trust, chosen
from whichsense.models.compact.scorer_features import SceneView
from whichsense.models.compact.tagger import TAGGER, TaggedSpan, Tagger
from whichsense.models.compact.writer import Writer
from whichsense.types import Case, Hit

_KEEP = 20  # passages that go through all layers
_CANDIDATES = 12  # answers that are scored
_TAGGED_IN_SMALL, _TAGGED_IN_LARGE = 8, 6  # passages in which answers are marked


@dataclass(frozen=True)
class ModelParts:
    """The parts of a weights folder. Each loads on first use."""

    folder: Path
    threads: int

    @once
    def model(self) -> CompactModel:
        return CompactModel(self.folder, self.threads)

    @once
    def writer(self) -> Writer:
        return Writer(self.model)

    @once
    def labeller(self) -> Labeller | None:
        """None for a folder of a model that was trained without one."""
        return None if self.tagger is None else Labeller(self.tagger)

    @once
    def tagger(self) -> Tagger | None:
        """None for a folder of a model that was trained without one."""
        is_without = self.model.lacks(TAGGER) and not self.trust.reads_marks
        return None if is_without else Tagger(self.model)

    @once
    def scorer(self) -> Scorer:
        return Scorer.load(self.folder / "scorer.json")

    @once
    def trust(self) -> Trust:
        return Trust.load(self.folder / "trust.json")


class Compact:
    """The compact model, ready for questions to one corpus. It keeps nothing between two questions.

    `keep` passages go through all layers; `passages` is the size of the corpus, if it is known. Weights load on first
    use. Threads may share one object.
    """

    def __init__(
        self,
        folder: Path = WEIGHTS,
        threads: int = 2,
        keep: int = _KEEP,
        passages: int | None = None,
    ) -> None:
        self.parts = ModelParts(folder, threads)
        self.keep = keep
        self.passages = passages

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
    def labeller(self) -> Labeller | None:
        return self.parts.labeller

    @property
    def tagger(self) -> Tagger | None:
        return self.parts.tagger

    @property
    def scorer(self) -> Scorer:
        return self.parts.scorer

    @property
    def trust(self) -> Trust:
        return self.parts.trust

    def load(self) -> None:
        """Load everything now, and raise what cannot be loaded."""
        self.model.prepare()
        if self.tagger is not None:
            self.tagger.prepare()

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
        """The scene of an earlier stage; if none fits this case, its hits are read now."""
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
        """The pooled states of a question without a passage."""
        return encode_question(self.model, question)

    def read_search(self, question: str, hits: Sequence[Hit]) -> Scene:
        """Read hits of a search: all through the first layers, the best `keep` through all. Their scores count."""
        self.model.require_config()  # a folder without a model is reported as such
        weight = self.scorer.search_weight
        bonuses = [weight * score for score in log_search_scores(hits)]
        return Scene(self, *read_hits(self.model, question, hits, bonuses, self.keep))

    def read_given(self, question: str, hits: Sequence[Hit]) -> Scene:
        """Read all hits through all layers. Their scores, which may be any reranker's, do not count."""
        bonuses = [0.0] * len(hits)
        return Scene(self, *read_hits(self.model, question, hits, bonuses, len(hits)))


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
        mentions = candidates.mentions(self.evidence, model.words.vocabulary)
        if not mentions:
            return []
        states = candidates.edge_states(mentions, self.evidence)
        verdicts = model.verdicts(states).tolist()
        judged = []
        for mention, verdict in zip(mentions, verdicts, strict=True):
            judged.append(replace(mention, verdict=verdict))
        return candidates.gathered(judged, _CANDIDATES)

    @cached_property
    def context(self) -> SceneView:
        return SceneView(self.evidence, self.answers)

    @cached_property
    def probabilities(self) -> list[float]:
        """The calibrated probability of each candidate to be right."""
        if not self.answers:
            return []
        rows = []
        for place in range(len(self.answers)):
            rows.append(scorer_features.of_answer(place, self.context))
        return self.judge.answer.probabilities(rows)

    @cached_property
    def apart(self) -> list[int]:
        """Places of the candidates, most probable first, without those that mostly overlap a better one."""
        chances = self.probabilities
        order = sorted(range(len(chances)), key=lambda place: -chances[place])
        return candidates.apart(self.answers, order)

    @cached_property
    def judge(self) -> Judge:
        """The judge for a corpus such as this one."""
        scorer = self.compact.scorer
        if not self.answers:
            return scorer.in_small
        return scorer.judge(scorer_features.of_corpus(self.context), self.compact.passages)

    @property
    def is_small(self) -> bool:
        """Whether the corpus is a small one."""
        return self.judge is self.compact.scorer.in_small

    @cached_property
    def answerable(self) -> float:
        """The probability that the evidence holds an answer."""
        if not self.answers:
            return 0.0
        return self.compact.scorer.answerable.probabilities([self._about])[0]

    @cached_property
    def ambiguous(self) -> float:
        """The probability that the question has several readings."""
        if not self.answers:
            return 0.0
        return self.judge.ambiguous.probabilities([self._about])[0]

    @property
    def is_ambiguous(self) -> bool:
        under = self.judge.single_under
        if under is None:
            return len(self.likely()) > 1
        return self.ambiguous >= under

    @cached_property
    def tagged(self) -> list[TaggedSpan]:
        """What the tagger marks in the best passages."""
        tagger = self.compact.tagger
        if tagger is None:
            return []
        count = _TAGGED_IN_SMALL if self.is_small else _TAGGED_IN_LARGE
        passages = self.evidence.passages[:count]
        return tagger.find(self.evidence.question, passages)

    def likely(self, threshold: float | None = None, least: int = 1) -> list[int]:
        """Places of the candidates that together have the highest expected F1, or of all that reach a threshold; the
        `least` likeliest in any case."""
        chances = [self.probabilities[place] for place in self.apart]
        best = chosen(chances, self.judge.missing, threshold, least)
        return [self.apart[place] for place in best]

    @cached_property
    def _about(self) -> dict[str, float]:
        scorer = self.compact.scorer
        wording = scorer.wording(self.evidence.question)
        alone = scorer.impression(self.evidence.alone)
        return scorer_features.of_question(self.context, self.probabilities, wording, alone)

    def tokens(self, answer: str) -> list[int]:
        return answer_ids(self.compact.model.tokenizer, answer)
