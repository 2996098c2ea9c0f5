"""From what was read of many questions to the scorer's nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from whichsense.datasets import Question
from whichsense.models.compact.reader.candidates import Answer
from whichsense.models.compact.scorer import features
from whichsense.models.compact.scorer.probes import NgramProbe, StateProbe
from whichsense.models.compact.scorer.scorer import Judge, Net, Scorer
from whichsense.models.compact.scorer.views import Context
from whichsense.text.words import normalize
from whichsense.train.compact.scorer.linear import cross_fitted, fit

_HEARD = (
    "wording",
    "alone",
)  # features that come from the question, not from what was found
# Chosen on the half of the sample that is learnt from; in large corpora a judge's defaults, on val.
_MISSING, _JOIN_OVER, _DECLINE_UNDER = 0.5, 0.4, 0.25
_SAMPLE_COUNTS = 3  # times: its questions were written for what its few passages hold


class Kind(Enum):
    """Over what a question was read: a large corpus, a small one, the sample, topics, or one of these three without
    answers."""

    LARGE = "large"
    SMALL = "small"
    SAMPLE = "sample"
    TOPICS = "topics"
    EMPTIED = "emptied"


@dataclass(frozen=True)
class Read:
    """A question, what was read of it, and over what."""

    question: Question
    context: Context
    kind: Kind

    @property
    def rows(self) -> list[dict[str, float]]:
        return [
            features.of_answer(place, self.context)
            for place in range(len(self.context.answers))
        ]

    @property
    def right(self) -> list[bool]:
        return [is_right(answer, self.question) for answer in self.context.answers]


@dataclass(frozen=True)
class Heard:
    """What a question says of its ambiguity, whatever the evidence."""

    wording: NgramProbe = field(default_factory=NgramProbe)
    impression: StateProbe = field(default_factory=StateProbe)

    def __call__(self, one: Read) -> dict[str, float]:
        said = (
            self.wording(one.question.text),
            self.impression(one.context.evidence.alone),
        )
        return dict(zip(_HEARD, said, strict=True))


def fitted(read: Sequence[Read], heard: Heard) -> Scorer:
    """Nets for what a corpus is, whether a candidate is right, a question ambiguous, and an answer there at all.

    What is right in a large corpus is learnt from all of them but topics, which are unlike it; in a small one, where
    much more is, from small ones and topics.
    What is ambiguous in a large corpus is heard from the question: evidence adds nothing there that holds in another
    one. A small corpus answers what it happens to hold; whether it does is learnt besides from corpora whose answers
    were taken out.
    """
    large, small, emptied = (
        [one for one in read if one.kind in kinds]
        for kinds in (
            {Kind.LARGE},
            {Kind.SMALL, Kind.SAMPLE, Kind.TOPICS},
            {Kind.EMPTIED},
        )
    )
    everywhere, unseen = _right(
        [*large, *(one for one in small if one.kind is not Kind.TOPICS)]
    )
    in_small, unseen_in_small = _right(small, sample=_SAMPLE_COUNTS)
    whole, known = [*large, *small], [*large, *small, *emptied]
    chances = [
        *unseen[: len(large)],
        *unseen_in_small,
        *(in_small.probabilities(one.rows) for one in emptied),
    ]
    about = [_seen(one, own) for one, own in zip(known, chances, strict=True)]
    return Scorer(
        fit(about, [float(any(one.right)) for one in known]),
        fit(
            [features.of_corpus(one.context) for one in whole],
            [float(one.kind is Kind.LARGE) for one in whole],
        ),
        Judge(everywhere, fit([heard(one) for one in large], _ambiguous(large))),
        Judge(
            in_small,
            fit(about[: len(whole)], _ambiguous(whole)),
            None,
            _MISSING,
            _JOIN_OVER,
        ),
        wording=heard.wording,
        impression=heard.impression,
        decline_under=_DECLINE_UNDER,
    )


def _right(read: Sequence[Read], sample: int = 1) -> tuple[Net, list[list[float]]]:
    """A net for answers, to which the sample's count so many times, and what nets that have not seen a question say of
    its candidates."""
    rows, labels, groups, first = (
        list[dict[str, float]](),
        list[float](),
        list[int](),
        list[range](),
    )
    for group, one in enumerate(read):
        own = one.rows
        first.append(range(len(rows), len(rows) + len(own)))
        for _ in range(sample if one.kind is Kind.SAMPLE else 1):
            rows += own
            labels += map(float, one.right)
            groups += [group] * len(own)
    net, unseen = cross_fitted(rows, labels, groups)
    return net, [[unseen[place] for place in places] for places in first]


def _seen(one: Read, chances: Sequence[float]) -> dict[str, float]:
    """What the evidence says of a question."""
    found = features.of_question(one.context, chances)
    return {name: value for name, value in found.items() if name not in _HEARD}


def _ambiguous(read: Sequence[Read]) -> list[float]:
    return [float(one.question.is_ambiguous) for one in read]


def is_right(answer: Answer, question: Question) -> bool:
    """Whether a candidate, in any of its forms, is a gold answer as the official scripts compare them."""
    gold = {normalize(name) for names in question.answers for name in names}
    return any(
        normalize(text) in gold
        for text in (answer.text, *(mention.surface for mention in answer.mentions))
    )
