"""Fits the scorer: linear nets, probes of ambiguity, the choice of rewrites."""

from __future__ import annotations

import hashlib
import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense import __version__
from whichsense.errors import BadInput
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
from whichsense.models.compact.encoder import Floats
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

# Linear nets of the scorer, fitted to features with labels. Everything here runs in numpy, in
# seconds.

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]
_FeatureRow = Mapping[str, float]
_RIDGE = 5.0  # keeps weights small
_BIAS_RIDGE = 1e-6
_LARGEST_LOGIT = 30.0  # further out exp would overflow
_NEWTON_STEPS = 100
_LONGEST_STEP = 0.5  # far from the optimum Newton's steps overshoot
_GRADIENT_STEPS = 300


def fit(rows: Sequence[_FeatureRow], labels: Sequence[float]) -> Net:
    """A logistic regression: the net's probabilities are calibrated as they are."""
    features = _standardize(rows)
    weights = fit_logistic(features.values, np.array(labels), _RIDGE)
    return features.net(weights[:-1], weights[-1])


def cross_fit(
    rows: Sequence[_FeatureRow],
    labels: Sequence[float],
    groups: Sequence[int],
    folds: int = 5,
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
        seen_rows = [rows[place] for place in seen]
        seen_labels = [labels[place] for place in seen]
        net = fit(seen_rows, seen_labels)
        unseen_rows = [rows[place] for place in unseen]
        probabilities[unseen] = net.probabilities(unseen_rows)
    return fit(rows, labels), probabilities.tolist()


def fit_within(
    rows: Sequence[_FeatureRow],
    values: Sequence[float],
    groups: Sequence[int],
    ridge: float = 20.0,
) -> Net:
    """A net that orders the rows of each group by their values: least squares on differences within a group."""
    features = _standardize(rows)
    group_of_row = np.unique(groups, return_inverse=True)[1]
    both = np.c_[features.values, np.array(values)]
    groups_count = group_of_row.max() + 1
    sums = np.zeros((groups_count, both.shape[1]))
    np.add.at(sums, group_of_row, both)
    # Each row is compared with the mean of its group.
    means = sums / np.bincount(group_of_row)[:, None]
    centred = both - means[group_of_row]
    left = centred[:, :-1]
    right = centred[:, -1]
    damping = ridge * np.eye(len(features.names))
    # The normal equations of a ridge regression.
    weights = np.linalg.solve(left.T @ left + damping, left.T @ right)
    return features.net(weights, 0.0)


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
    table = []
    for row in rows:
        table.append([row[name] for name in names])
    values = np.array(table, dtype=np.float32)
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    # A feature that hardly varies is not blown up.
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((values - mean) / spread, -FAR, FAR)
    return _Standardized(names, mean, spread, scaled.astype(np.float64))


def fit_logistic(values: _Doubles, labels: _Doubles, ridge: float) -> _Doubles:
    """The weights of a logistic regression, and last its bias, by Newton's method. `values`: rows × features."""
    values = np.c_[values, np.ones(len(values))]
    ridges = np.full(values.shape[1], ridge)
    ridges[-1] = _BIAS_RIDGE
    weights = np.zeros(values.shape[1])
    for _ in range(_NEWTON_STEPS):
        probabilities = _sigmoid(values @ weights)
        gradient = values.T @ (probabilities - labels) + ridges * weights
        curvature = (probabilities * (1 - probabilities))[:, None]
        hessian = (values * curvature).T @ values + np.diag(ridges)
        step = np.linalg.solve(hessian, gradient)
        step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        # The problem is convex, so that clipped steps arrive, too.
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


@dataclass(frozen=True)
class SparseMatrix:
    """Values at places of a matrix; all other places hold 0."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: _Doubles
    shape: tuple[int, int]

    def with_ones(self) -> SparseMatrix:
        """With a last column of ones."""
        height, width = self.shape
        every = np.arange(height)
        return SparseMatrix(
            np.r_[self.rows, every],
            np.r_[self.columns, np.full(height, width)],
            np.r_[self.values, np.ones(height)],
            (height, width + 1),
        )

    def times(self, vector: _Doubles) -> _Doubles:
        products = self.values * vector[self.columns]
        return np.bincount(self.rows, products, self.shape[0]).astype(np.float64)

    def transposed_times(self, vector: _Doubles) -> _Doubles:
        products = self.values * vector[self.rows]
        return np.bincount(self.columns, products, self.shape[1]).astype(np.float64)


def fit_sparse_logistic(
    matrix: SparseMatrix, labels: _Doubles, ridge: float
) -> _Doubles:
    """The same over thousands of sparse features, whose Hessian would not fit: Nesterov's accelerated gradient.

    The bias, which is last, has no ridge.
    """
    matrix = matrix.with_ones()
    width = matrix.shape[1]
    ridges = np.full(width, ridge)
    ridges[-1] = 0.0
    # The largest eigenvalue, by power iteration, bounds the curvature.
    vector = np.ones(width)
    for _ in range(20):
        unit = vector / np.linalg.norm(vector)
        vector = matrix.transposed_times(matrix.times(unit))
    # The slope of the sigmoid is at most 1/4.
    curvature = 0.25 * float(np.linalg.norm(vector)) + ridge
    rate = 1 / curvature
    weights = np.zeros(width)
    ahead = np.zeros(width)
    momentum = 1.0
    for _ in range(_GRADIENT_STEPS):
        errors = _sigmoid(matrix.times(ahead)) - labels
        gradient = matrix.transposed_times(errors) + ridges * ahead
        updated = ahead - rate * gradient
        next_momentum = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        ahead = updated + (momentum - 1) / next_momentum * (updated - weights)
        weights = updated
        momentum = next_momentum
    return weights


def _sigmoid(logits: _Doubles) -> _Doubles:
    clipped = np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)
    return np.asarray(1 / (1 + np.exp(-clipped)))


def expected_calibration_error(
    probabilities: Sequence[float], labels: Sequence[float], bins: int = 10
) -> float:
    """How far confidence is from accuracy, over bins of equal width, weighted by how many fall into each.

    >>> expected_calibration_error([0.8] * 10, [1] * 8 + [0] * 2)
    0.0
    >>> round(expected_calibration_error([0.9] * 10, [1] * 5 + [0] * 5), 3)
    0.4
    """
    given = np.array(probabilities)
    right = np.array(labels)
    bin_of_item = np.minimum((given * bins).astype(int), bins - 1)
    total = 0.0
    for number in range(bins):
        inside = bin_of_item == number
        confidence = given[inside].sum()
        accuracy = right[inside].sum()
        total += abs(confidence - accuracy)
    return round(float(total / max(len(given), 1)), 12)


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

    def features(self, question: str, states: Floats) -> dict[str, float]:
        return {"wording": self.wording(question), "alone": self.impression(states)}


def fit_ngram_probe(questions: Sequence[Question], fewest: int = _FEWEST) -> NgramProbe:
    """From questions whose annotators said whether there are several readings."""
    features = [ngrams(question.text) for question in questions]
    counts: Counter[str] = Counter()
    for own in features:
        counts.update(own)
    known = sorted(ngram for ngram, count in counts.items() if count >= fewest)
    columns_of = {ngram: column for column, ngram in enumerate(known)}
    rows = []
    columns = []
    values = []
    for row, own in enumerate(features):
        for ngram in own:
            if ngram in columns_of:
                rows.append(row)
                columns.append(columns_of[ngram])
                # Rows have norm 1, whatever the number of n-grams.
                values.append(1 / np.sqrt(len(own)))
    matrix = SparseMatrix(
        np.array(rows, np.int64),
        np.array(columns, np.int64),
        np.array(values, np.float64),
        (len(questions), len(known)),
    )
    weights = fit_sparse_logistic(matrix, _labels(questions), _NGRAM_RIDGE)
    by_ngram = dict(zip(known, weights[:-1].tolist(), strict=True))
    return NgramProbe(by_ngram, float(weights[-1]))


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
    scaled = (values - mean) / spread
    fitted = fit_logistic(scaled, _labels(questions), ridge)
    # Scaling is folded into the weights, so that the probe takes raw states.
    weights = fitted[:-1] / spread
    bias = float(fitted[-1] - mean @ weights)
    return StateProbe(weights.astype(np.float32), bias)


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
    scored_emptied = []
    for one in emptied:
        scored_emptied.append(_ScoredQuestion(one, in_small.probabilities(one.rows)))

    # Whether an answer exists is learnt from emptied corpora, too; the other nets from real ones alone.
    with_answers = [*scored_large, *scored_small]
    return Scorer(
        _fit_answerable([*with_answers, *scored_emptied]),
        _fit_large(with_answers),
        Judge(in_large, _fit_ambiguous_alone(scored_large, probes)),
        Judge(in_small, _fit_ambiguous(with_answers), None, _MISSING, _JOIN_OVER),
        wording=probes.wording,
        impression=probes.impression,
        decline_under=_DECLINE_UNDER,
    )


def _of_kinds(read: Sequence[ReadQuestion], *kinds: CorpusKind) -> list[ReadQuestion]:
    return [one for one in read if one.kind in kinds]


def _fit_answerable(scored: Sequence[_ScoredQuestion]) -> Net:
    rows = []
    labels = []
    for one in scored:
        rows.append(one.evidence_features)
        labels.append(one.answered)
    return fit(rows, labels)


def _fit_large(scored: Sequence[_ScoredQuestion]) -> Net:
    """Whether a corpus is a large one."""
    rows = []
    labels = []
    for one in scored:
        rows.append(scorer_features.of_corpus(one.read.context))
        labels.append(float(one.read.kind is CorpusKind.LARGE))
    return fit(rows, labels)


def _fit_ambiguous(scored: Sequence[_ScoredQuestion]) -> Net:
    rows = []
    labels = []
    for one in scored:
        rows.append(one.evidence_features)
        labels.append(one.ambiguous)
    return fit(rows, labels)


def _fit_ambiguous_alone(
    scored: Sequence[_ScoredQuestion], probes: AmbiguityProbes
) -> Net:
    """Without evidence."""
    rows = []
    labels = []
    for one in scored:
        states = one.read.context.evidence.alone
        rows.append(probes.features(one.read.question.text, states))
        labels.append(one.ambiguous)
    return fit(rows, labels)


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
    scored = []
    for one, own_places in zip(read, places, strict=True):
        probabilities = unseen[own_places.start : own_places.stop]
        scored.append(_ScoredQuestion(one, probabilities))
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
        targets = []
        for pair in annotation.pairs:
            candidate = Candidate(pair.answers[0], 1.0)
            targets.append(locate(scene, candidate))
        supports = [support(scene, one, policy=FOR_BENCHMARKS) for one in targets]
        by_answer = written(scene, targets, supports)
        for pair, rewrites in zip(annotation.pairs, by_answer, strict=True):
            # Rewrites are compared within an answer only.
            answer = self._next_answer()
            self.rows += of_rewrites(question.text, rewrites.options, rewrites.drawn)
            for option in rewrites.options:
                quality = _rewrite_quality(
                    question.text, pair.questions, option.question
                )
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
    body = json.dumps(fingerprint).encode()
    digest = hashlib.sha256(body).hexdigest()[:16]
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


def _fingerprint(
    folder: Path, asked: Sequence[ScorerQuestion], part: int
) -> dict[str, object]:
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
    others = []
    for place, passage in enumerate(scene.evidence.passages):
        if not any(contains_answer(passage, names) for names in question.answers):
            others.append(place)
    return replace(scene, evidence=scene.evidence.only(others))


def _context(scene: Scene) -> SceneView:
    """What features are computed from. Encoder states, 25 MB a question, are dropped."""
    nothing = np.zeros(0, np.float32)
    read = []
    for passage in scene.evidence.read:
        read.append(replace(passage, states=nothing, span=nothing))
    evidence = replace(scene.evidence, read=tuple(read))
    return replace(scene.context, evidence=evidence)


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
            fit_ngram_probe(labelled),
            fit_state_probe(UnfittedCompact(folder), labelled, progress),
        )
    questions = list(scorer_questions(held_out, topics))
    with tempfile.TemporaryDirectory() as temporary:
        parts = parts_folder or Path(temporary)
        data = read_questions(QuestionReader(folder), questions, parts, progress)
    # A question without a candidate has no features.
    with_candidates = [one for one in data.read if one.context.answers]
    scorer = fit_nets(with_candidates, probes)
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
        questions = []
        for source in sources:
            for question in source.questions:
                questions.append(ScorerQuestion(kind, source, question))
        # Every so many-th, so that all corpora of a kind take part.
        step = max(1, round(len(questions) / enough))
        yield from questions[::step]
