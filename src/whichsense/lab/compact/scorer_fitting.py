"""Fits the scorer: linear nets, probes of ambiguity, the choice of rewrites."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense import __version__
from whichsense.errors import BadInput, require
from whichsense.files import sha256
from whichsense.jobs.limits import Progress, silent
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.workers import run_forked, usable_processes
from whichsense.lab.compact.questions import (
    DEPTH,
    CorpusQuestions,
    can_fork,
    contains_answer,
    small_corpora,
    training_half_of_sample,
)
from whichsense.lab.compact.topics import Topics
from whichsense.lab.datasets import Question
from whichsense.lab.metrics.ambignq import question_scores
from whichsense.models.compact import scorer_features
from whichsense.models.compact.candidates import Answer
from whichsense.models.compact.rewrite_support import locate, support
from whichsense.models.compact.rewriting import written
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer import (
    FAR,
    Judge,
    Net,
    NgramProbe,
    Scorer,
    StateProbe,
    linear,
    ngrams,
)
from whichsense.models.compact.scorer_features import SceneView, of_rewrites
from whichsense.text.words import normalize
from whichsense.types import FOR_BENCHMARKS, Candidate

# Linear nets of the scorer, fitted to features with labels.

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]
_FeatureRow = Mapping[str, float]
_RIDGE = 5.0  # keeps weights small
_CERTAIN = 1e-6  # the probability of a label that no row has


def fit(rows: Sequence[_FeatureRow], labels: Sequence[float]) -> Net:
    """A logistic regression: the net's probabilities are calibrated as they are."""
    features = _standardize(rows)
    return features.net(*fit_logistic(features.values, np.array(labels), _RIDGE))


def cross_fit(
    rows: Sequence[_FeatureRow], labels: Sequence[float], groups: Sequence[int], folds: int = 5
) -> tuple[Net, list[float]]:
    """The net that `fit` gives, and for every row the probability by a net that was fitted without its group.

    Whatever is fitted or tuned on top of probabilities needs the latter: those of rows that were seen are too good.
    `groups` says which rows belong to one question.
    """
    fold_of_row = np.unique(groups, return_inverse=True)[1] % folds
    probabilities = np.zeros(len(rows))
    for fold in range(folds):
        seen = np.flatnonzero(fold_of_row != fold).tolist()
        unseen = np.flatnonzero(fold_of_row == fold).tolist()
        net = fit([rows[place] for place in seen], [labels[place] for place in seen])
        probabilities[unseen] = net.probabilities([rows[place] for place in unseen])
    return fit(rows, labels), probabilities.tolist()


def fit_within(
    rows: Sequence[_FeatureRow], values: Sequence[float], groups: Sequence[int], ridge: float = 20.0
) -> Net:
    """A net that orders the rows of each group by their values: least squares on differences within a group."""
    features = _standardize(rows)
    group_of_row = np.unique(groups, return_inverse=True)[1]
    both = np.c_[features.values, np.array(values)]
    sums = np.zeros((group_of_row.max() + 1, both.shape[1]))
    np.add.at(sums, group_of_row, both)
    # Each row is compared with the mean of its group.
    centred = both - (sums / np.bincount(group_of_row)[:, None])[group_of_row]
    model = require("sklearn.linear_model", "train").Ridge(ridge, fit_intercept=False)
    model.fit(centred[:, :-1], centred[:, -1])
    return features.net(model.coef_, 0.0)


@dataclass(frozen=True)
class _Standardized:
    """Rows × features, as a net sees them: in units of their spread, and clipped."""

    names: tuple[str, ...]
    mean: _Floats
    spread: _Floats
    values: _Doubles

    def net(self, weights: _Doubles, bias: float) -> Net:
        weights32 = weights.astype(np.float32)
        return Net(self.names, self.mean, self.spread, weights32, float(bias))


def _standardize(rows: Sequence[_FeatureRow]) -> _Standardized:
    names = tuple(rows[0])
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    # A feature that hardly varies is not blown up.
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((values - mean) / spread, -FAR, FAR)
    return _Standardized(names, mean, spread, scaled.astype(np.float64))


def fit_logistic(values: Any, labels: _Doubles, ridge: float) -> tuple[_Doubles, float]:
    """Fit a logistic regression to rows × features, dense or sparse; return its weights and its bias."""
    share = float(labels.mean().clip(_CERTAIN, 1 - _CERTAIN))
    # Where there are no features, or all labels are the same, there is only the bias.
    if not values.shape[1] or not _CERTAIN < share < 1 - _CERTAIN:
        return np.zeros(values.shape[1]), math.log(share / (1 - share))
    model = require("sklearn.linear_model", "train").LogisticRegression(
        C=1 / ridge, solver="newton-cg", tol=1e-8, max_iter=1000
    )
    model.fit(values, labels)
    return model.coef_[0], float(model.intercept_[0])


# Fitting the linear probes of ambiguity: what the n-grams of a question say, and the encoder's states
# of it.

_FEWEST = 3  # questions that have an n-gram
_NGRAM_RIDGE = 0.5
_STATE_RIDGE = 2000.0  # there are a quarter as many states as questions


@dataclass(frozen=True)
class AmbiguityProbes:
    """Features of the question alone, whatever the evidence."""

    wording: NgramProbe = field(default_factory=NgramProbe)
    impression: StateProbe = field(default_factory=StateProbe)

    def features(self, scored: _ScoredQuestion) -> dict[str, float]:
        return {
            "wording": self.wording(scored.read.question.text),
            "alone": self.impression(scored.read.context.evidence.alone),
        }


def fit_ngram_probe(questions: Sequence[Question], fewest: int = _FEWEST) -> NgramProbe:
    """From questions whose annotators said whether there are several readings."""
    features = [ngrams(question.text) for question in questions]
    counts = Counter(chain.from_iterable(features))
    # Rows have norm 1, whatever the number of n-grams.
    rows = [
        {ngram: len(own) ** -0.5 for ngram in own if counts[ngram] >= fewest} for own in features
    ]
    vectorizer = require("sklearn.feature_extraction", "train").DictVectorizer()
    matrix = vectorizer.fit_transform(rows)
    weights, bias = fit_logistic(matrix, _labels(questions), _NGRAM_RIDGE)
    return NgramProbe(dict(zip(vectorizer.feature_names_, weights.tolist(), strict=True)), bias)


def fit_state_probe(
    compact: Compact,
    questions: Sequence[Question],
    progress: Progress = silent,
    *,
    ridge: float = _STATE_RIDGE,
) -> StateProbe:
    """From questions whose annotators said whether there are several readings."""
    states = []
    for number, question in enumerate(questions, 1):
        states.append(compact.alone(question.text))
        progress(number / len(questions), number)
    values = np.array(states, np.float64)  # questions × states
    mean = values.mean(axis=0)
    spread = values.std(axis=0) + 1e-6
    weights, bias = fit_logistic((values - mean) / spread, _labels(questions), ridge)
    # Scaling is folded into the weights, so that the probe takes raw states.
    weights = weights / spread
    return StateProbe(weights.astype(np.float32), float(bias - mean @ weights))


def _labels(questions: Sequence[Question]) -> NDArray[np.float64]:
    return np.array([question.is_ambiguous for question in questions], np.float64)


# From what was read of many questions to the scorer's nets.

_PROBE_FEATURES = ("wording", "alone")
# Chosen on the half of the sample that is trained on; those of large corpora, the defaults of Judge, on val.
_MISSING = 0.5
_JOIN_OVER = 0.4
_DECLINE_UNDER = 0.25
_SAMPLE_WEIGHT = 3  # its questions were written for what its few passages hold


class CorpusKind(Enum):
    """The corpus that a question was read over: large, small, the sample, topics, or one of the last three without
    passages that hold an answer."""

    LARGE = "large"
    SMALL = "small"
    SAMPLE = "sample"
    TOPICS = "topics"
    EMPTIED = "emptied"


_SMALL_KINDS = (CorpusKind.SMALL, CorpusKind.SAMPLE, CorpusKind.TOPICS)


@dataclass(frozen=True)
class ReadQuestion:
    """A question, its candidates with their evidence, and the kind of corpus."""

    question: Question
    context: SceneView
    kind: CorpusKind

    @property
    def rows(self) -> list[dict[str, float]]:
        """The features of each candidate."""
        places = range(len(self.context.answers))
        return [scorer_features.of_answer(place, self.context) for place in places]

    @property
    def right(self) -> list[bool]:
        """Whether each candidate is a gold answer."""
        return [is_right(answer, self.question) for answer in self.context.answers]


@dataclass(frozen=True)
class _ScoredQuestion:
    """A question with the probability of each candidate, by a net that has not seen the question."""

    read: ReadQuestion
    probabilities: Sequence[float]

    @cached_property
    def evidence_features(self) -> dict[str, float]:
        """The features of the question without those of the probes, which need no evidence."""
        every = scorer_features.of_question(self.read.context, self.probabilities)
        for name in _PROBE_FEATURES:
            every.pop(name, None)
        return every

    @property
    def answered(self) -> float:
        return float(any(self.read.right))

    @property
    def ambiguous(self) -> float:
        return float(self.read.question.is_ambiguous)


def fit_nets(read: Sequence[ReadQuestion], probes: AmbiguityProbes) -> Scorer:
    """Nets for: the size of a corpus, whether a candidate is right, a question is ambiguous, and an answer exists.

    Right answers in a large corpus are learnt from all corpora but topics, which are unlike it; in a small one, where
    many more candidates are right, from small corpora and topics. Ambiguity in a large corpus is learnt from the
    question alone: evidence adds nothing there that holds in another corpus. A small corpus answers what it happens to
    hold; whether it does is learnt from corpora without the answers, too.
    """
    large = _of_kinds(read, CorpusKind.LARGE)
    small = _of_kinds(read, *_SMALL_KINDS)
    emptied = _of_kinds(read, CorpusKind.EMPTIED)
    without_topics = _of_kinds(small, CorpusKind.SMALL, CorpusKind.SAMPLE)

    in_large, scored = _fit_answers([*large, *without_topics])
    scored_large = [one for one in scored if one.read.kind is CorpusKind.LARGE]
    in_small, scored_small = _fit_answers(small, sample_weight=_SAMPLE_WEIGHT)
    # No net has seen these: the answers were taken out.
    scored_emptied = [_ScoredQuestion(one, in_small.probabilities(one.rows)) for one in emptied]

    # Whether an answer exists is learnt from emptied corpora, too; the other nets from real ones alone.
    with_answers = [*scored_large, *scored_small]
    evidence = attrgetter("evidence_features")
    ambiguous = attrgetter("ambiguous")
    alone = _fit_features(scored_large, probes.features, ambiguous)
    return Scorer(
        _fit_features([*with_answers, *scored_emptied], evidence, attrgetter("answered")),
        _fit_features(
            with_answers,
            lambda one: scorer_features.of_corpus(one.read.context),
            lambda one: float(one.read.kind is CorpusKind.LARGE),
        ),
        Judge(in_large, alone),
        Judge(
            in_small, _fit_features(with_answers, evidence, ambiguous), None, _MISSING, _JOIN_OVER
        ),
        wording=probes.wording,
        impression=probes.impression,
        decline_under=_DECLINE_UNDER,
    )


def _of_kinds(read: Sequence[ReadQuestion], *kinds: CorpusKind) -> list[ReadQuestion]:
    return [one for one in read if one.kind in kinds]


def _fit_features(
    scored: Sequence[_ScoredQuestion],
    features: Callable[[_ScoredQuestion], _FeatureRow],
    label: Callable[[_ScoredQuestion], float],
) -> Net:
    return fit(list(map(features, scored)), list(map(label, scored)))


def _fit_answers(
    read: Sequence[ReadQuestion], sample_weight: int = 1
) -> tuple[Net, list[_ScoredQuestion]]:
    """A net for candidates, and the questions scored by nets that have not seen them.

    Each question of the sample counts `sample_weight` times.
    """
    rows: list[dict[str, float]] = []
    labels: list[float] = []
    groups: list[int] = []
    places = []  # of each question's candidates among the rows
    for group, one in enumerate(read):
        own = one.rows
        first = len(rows)
        places.append(range(first, first + len(own)))
        # Repeated rows share a group, so that folds do not leak.
        repeats = sample_weight if one.kind is CorpusKind.SAMPLE else 1
        for _ in range(repeats):
            rows += own
            labels += [float(right) for right in one.right]
            groups += [group] * len(own)
    net, unseen = cross_fit(rows, labels, groups)
    scored = [
        _ScoredQuestion(one, unseen[own_places.start : own_places.stop])
        for one, own_places in zip(read, places, strict=True)
    ]
    return net, scored


def is_right(answer: Answer, question: Question) -> bool:
    """Whether a candidate, in any of its forms, is a gold answer by the official comparison."""
    gold: set[str] = set()
    for names in question.answers:
        gold.update(map(normalize, names))
    if normalize(answer.text) in gold:
        return True
    return any(normalize(mention.surface) in gold for mention in answer.mentions)


# Fitting the choice of rewrites: how close those that the model writes for gold answers come to the
# annotators'.

_BLEU_WEIGHT = 0.5  # of BLEU-4; EDIT-F1 counts 1


@dataclass
class RewriteData:
    """Rewrites that may be given: the features of each, its quality, and the number of its answer."""

    rows: list[dict[str, float]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def add(self, scene: Scene, question: Question) -> None:
        """Add all rewrites for the gold answers of a question with several readings; ignore any other question."""
        annotation = question.several
        if annotation is None:
            return
        targets = [locate(scene, Candidate(pair.answers[0], 1.0)) for pair in annotation.pairs]
        supports = [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
        by_answer = written(scene, targets, supports)
        for pair, rewrites in zip(annotation.pairs, by_answer, strict=True):
            # Rewrites are compared within an answer only.
            answer = self._next_answer()
            self.rows += of_rewrites(question.text, rewrites.options, rewrites.drawn)
            for option in rewrites.options:
                quality = _rewrite_quality(question.text, pair.questions, option.question)
                self.values.append(quality)
                self.answers.append(answer)

    def extend(self, other: RewriteData) -> None:
        # Answers of the other part are numbered from 0 again.
        first = self._next_answer()
        self.rows += other.rows
        self.values += other.values
        self.answers += [first + answer for answer in other.answers]

    def _next_answer(self) -> int:
        return self.answers[-1] + 1 if self.answers else 0

    def fit(self) -> Net | None:
        """None if there is nothing to learn from."""
        if not self.rows:
            return None
        return fit_within(self.rows, self.values, self.answers)


def _rewrite_quality(question: str, references: Sequence[str], rewrite: str) -> float:
    """EDIT-F1 with some BLEU-4, between 0 and 1."""
    *bleu, edit_f1 = question_scores(question, "|".join(references), rewrite)
    return (edit_f1 + _BLEU_WEIGHT * bleu[3]) / (1 + _BLEU_WEIGHT)


# The exported model reads every question that the scorer is fitted on.
#
# It is the longest of the work without a GPU: processes share it, and results are stored part by
# part, so that a stopped fit resumes.

_PROCESSES = 16


class UnfittedCompact(Compact):
    """The model before its scorer is fitted: passages are weighted by a scorer's default settings."""

    @cached_property
    def scorer(self) -> Scorer:
        # Nets without features: every probability is one half.
        nothing = linear()
        judge = Judge(nothing, nothing)
        return Scorer(nothing, nothing, judge, judge)


@dataclass(frozen=True)
class ScorerQuestion:
    """A question, and the corpus that it is asked over."""

    kind: CorpusKind
    corpus: CorpusQuestions
    question: Question


@dataclass
class ScorerData:
    """What the scorer is fitted on."""

    read: list[ReadQuestion] = field(default_factory=list)
    rewrites: RewriteData = field(default_factory=RewriteData)

    def add(self, asked: ScorerQuestion, scene: Scene) -> None:
        question = asked.question
        # The choice of rewrites is learnt over the large corpus alone.
        if asked.kind is CorpusKind.LARGE:
            self.rewrites.add(scene, question)
        elif question.is_answerable:
            context = _context(without_answers(scene, question))
            self.read.append(ReadQuestion(question, context, CorpusKind.EMPTIED))
        self.read.append(ReadQuestion(question, _context(scene), asked.kind))

    def extend(self, other: ScorerData) -> None:
        self.read += other.read
        self.rewrites.extend(other.rewrites)


@dataclass(frozen=True)
class QuestionReader:
    """Reads questions with the model of a folder. Each process loads its own."""

    folder: Path
    processes: int = _PROCESSES

    @cached_property
    def _compact(self) -> Compact:
        # Processes that share the cores need no threads.
        threads = 1 if usable_processes(self.processes) > 1 else 2
        return UnfittedCompact(self.folder, threads=threads)

    def scene(self, asked: ScorerQuestion) -> Scene:
        return read_scene(self._compact, asked.corpus, asked.question)

    def read(self, asked: Sequence[ScorerQuestion]) -> ScorerData:
        data = ScorerData()
        for one in asked:
            data.add(one, self.scene(one))
        return data


def read_questions(
    reader: QuestionReader,
    asked: Sequence[ScorerQuestion],
    folder: Path,
    progress: Progress = silent,
    *,
    part: int = 20,
) -> ScorerData:
    """Read all questions. Parts of `part` questions are stored in `folder`, and read if they are there."""
    fingerprint = _fingerprint(reader.folder, asked, part)
    digest = hashlib.sha256(json.dumps(fingerprint).encode()).hexdigest()[:16]
    parts = Parts[ScorerQuestion, ScorerData](
        folder / digest,
        "questions",
        fingerprint,
        size=part,
        codec=PartCodec(".pickle", pickle.dumps, pickle.loads),
    )
    # One index that cannot be searched in a fork is enough to stay here.
    shareable = all(can_fork(one.corpus.index) for one in asked)

    def read_part(items: Part[ScorerQuestion]) -> ScorerData:
        return reader.read(items.items)

    parts.complete(
        asked,
        read_part,
        executor=run_forked(reader.processes if shareable else 1),
        progress=progress,
    )
    data = ScorerData()
    for result in parts:
        data.extend(result)
    return data


def _fingerprint(folder: Path, asked: Sequence[ScorerQuestion], part: int) -> dict[str, object]:
    """The model, the questions, the sizes of their corpora and the version: results of others are not used."""
    questions = []
    for one in asked:
        question = one.question
        questions.append([one.kind.value, question.id, question.text])
    return {
        "version": __version__,
        "part": part,
        "model": [sha256(path) for path in sorted(folder.glob("*.onnx"))],
        "questions": questions,
        "corpora": [len(one.corpus.index) for one in asked],
    }


def read_scene(compact: Compact, corpus: CorpusQuestions, question: Question) -> Scene:
    hits = corpus.index.search(question.text, DEPTH, corpus.method)
    return compact.read_search(question.text, hits)


def without_answers(scene: Scene, question: Question) -> Scene:
    """The scene as if no passage that holds a gold answer had been found."""
    others = [
        place
        for place, passage in enumerate(scene.evidence.passages)
        if not any(contains_answer(passage, names) for names in question.answers)
    ]
    return replace(scene, evidence=scene.evidence.only(others))


def _context(scene: Scene) -> SceneView:
    """What features are computed from. Encoder states, 25 MB a question, are dropped."""
    nothing = np.zeros(0, np.float32)
    read = [replace(passage, states=nothing, span=nothing) for passage in scene.evidence.read]
    return replace(scene.context, evidence=replace(scene.evidence, read=tuple(read)))


# The last step: fit the scorer on what the exported model reads of questions that nothing was learnt
# from.

_FITTING_FEWEST = 10
_ENOUGH = 500  # of each kind: twice as many lower the log loss by two in a thousand, and take twice the time


def fit_scorer(
    folder: Path,
    held_out: CorpusQuestions,
    progress: Progress = silent,
    *,
    labelled: Sequence[Question] = (),
    topics: Topics | None = None,
    parts_folder: Path | None = None,
) -> Scorer:
    """The scorer of the model in `folder`, which has none yet.

    It is fitted on questions over their index, over small corpora, the sample and topics. The probes of ambiguity are
    fitted on `labelled`, of which there are more. `parts_folder` is where a fit that is stopped leaves what it has
    read; the next one resumes from there.
    """
    # Five folds need more than a handful of questions.
    if len(held_out.questions) < _FITTING_FEWEST:
        raise BadInput(
            f"The scorer needs {_FITTING_FEWEST} questions that nothing was learnt from; there are "
            f"{len(held_out.questions)}. Lower data.held, which says how many are kept for it, and train again."
        )
    probes = AmbiguityProbes()
    if labelled:
        probes = AmbiguityProbes(
            fit_ngram_probe(labelled), fit_state_probe(UnfittedCompact(folder), labelled, progress)
        )
    questions = list(scorer_questions(held_out, topics))
    with tempfile.TemporaryDirectory() as temporary:
        parts = parts_folder or Path(temporary)
        data = read_questions(QuestionReader(folder), questions, parts, progress)
    # A question without a candidate has no features.
    scorer = fit_nets([one for one in data.read if one.context.answers], probes)
    return replace(scorer, rewrite=data.rewrites.fit() or scorer.rewrite)


def scorer_questions(
    held_out: CorpusQuestions, topics: Topics | None, enough: int = _ENOUGH
) -> Iterator[ScorerQuestion]:
    """The questions that the scorer is fitted on, about `enough` of each kind; the same in each run."""
    by_kind: dict[CorpusKind, Iterable[CorpusQuestions]] = {
        CorpusKind.LARGE: [held_out],
        CorpusKind.SAMPLE: [training_half_of_sample()],
        CorpusKind.SMALL: small_corpora(held_out),
        CorpusKind.TOPICS: topics.corpora() if topics else [],
    }
    for kind, sources in by_kind.items():
        questions = [
            ScorerQuestion(kind, source, question)
            for source in sources
            for question in source.questions
        ]
        # Every so many-th, so that all corpora of a kind take part.
        yield from questions[:: max(1, round(len(questions) / enough))]
