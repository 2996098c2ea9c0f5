"""From what was read of many questions to the scorer's nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from whichsense.datasets import Question
from whichsense.models.compact.reader.candidates import Answer
from whichsense.models.compact.scorer import features
from whichsense.models.compact.scorer.scorer import Judge, Net, Scorer
from whichsense.models.compact.scorer.views import SceneView
from whichsense.text.words import normalize
from whichsense.train.compact.scorer.ambiguity_probes import AmbiguityProbes
from whichsense.train.compact.scorer.linear import cross_fit, fit

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
        return [features.of_answer(place, self.context) for place in places]

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
        every = features.of_question(self.read.context, self.probabilities)
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
        rows.append(features.of_corpus(one.read.context))
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
