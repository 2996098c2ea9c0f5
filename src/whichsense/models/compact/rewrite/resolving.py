"""Answers to readings: a rewrite for each, asked again over the same states. New answers join, what fails goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.reader.candidates import Mention
from whichsense.models.compact.rewrite.rewriting import rewrites
from whichsense.models.compact.rewrite.support import Places, Target, support
from whichsense.models.compact.rewrite.windows import likelihoods
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Rewrite, added, key, together
from whichsense.text.answers import same
from whichsense.text.words import normalize
from whichsense.types import Candidate, Span

_SPANS = 5
_TOLD = 0.05  # a span that is less probable in its passage is not marked as the answer
_MOST_MARKED = 12  # places of a passage
_WELL_PUT = 0.04  # on held-out train and val, rewrites that are worth less have an EDIT-F1 of 11, the others of 18
_LEAST_SAID = 0.02  # of the best span's score
_RIVALS = (
    2  # answers that are not given, beside which one that stands alone is told apart
)


@dataclass(frozen=True, slots=True)
class Resolved:
    """An answer with its rewrite."""

    candidate: Candidate
    question: str


def candidates_of(scene: Scene, places: Sequence[int]) -> list[Candidate]:
    """Answers of a scene as candidates: probability, and the best span of each passage."""
    found = []
    for place in places:
        answer, spans = scene.answers[place], dict[int, Span]()
        for mention in answer.mentions:
            where = (0, 0) if mention.in_title else (mention.start, mention.end)
            spans.setdefault(
                mention.passage,
                Span(scene.evidence.passages[mention.passage], *where, mention.mass),
            )
        best = sorted(spans.values(), key=lambda span: -span.score)[:_SPANS]
        found.append(Candidate(answer.text, scene.probabilities[place], tuple(best)))
    return found


def telling(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The best of an answer's spans, and those that are not next to nothing beside it: they only share its words."""
    return tuple(
        span
        for span in spans
        if span is spans[0] or span.score >= _LEAST_SAID * spans[0].score
    )


def resolved(
    scene: Scene, candidates: Sequence[Candidate], *, cautious: bool = False
) -> list[Resolved]:
    """A rewrite for each answer, no two alike.

    If `cautious`, one alone leaves the question as it is where that is not ambiguous or where its rewrite is not well
    put, and one of several is then put to a title; what a title has in brackets comes first. That is for readers: to a
    benchmark the clumsiest edit is nearer to an annotator's rewrite, and questions that have none are not compared.
    """
    least = _WELL_PUT if cautious else -np.inf
    if len(candidates) == 1:
        return [_alone(scene, candidates[0], least, cautious=cautious)]
    targets = [target(scene, candidate, told=cautious) for candidate in candidates]
    chosen = _rewritten(scene, targets, cautious=cautious)
    used = {key(one.question) for one in chosen if one is not None}
    given = [normalize(candidate.answer) for candidate in candidates]
    found = []
    for candidate, wanted, one in zip(candidates, targets, chosen, strict=True):
        other = None
        if one is None:  # better any title than no reading at all
            other = _by_title(
                scene, target(scene, candidate), [normalize(candidate.answer)], used
            )
        elif one.worth < least:
            other = _by_title(scene, wanted, given, used)
        written = other or (one.question if one is not None else None)
        if written is not None:
            used.add(key(written))
            found.append(Resolved(candidate, written))
    return found or [Resolved(candidates[0], scene.evidence.question)]


def _alone(
    scene: Scene, candidate: Candidate, least: float, *, cautious: bool
) -> Resolved:
    """Where only one of several readings is answered, which one: what sets it apart from what else might be meant."""
    question = scene.evidence.question
    if cautious and not scene.is_ambiguous:
        return Resolved(candidate, question)
    others = [
        place
        for place in scene.apart
        if not same(scene.answers[place].text, candidate.answer)
    ]
    targets = [
        target(scene, one, told=cautious)
        for one in (candidate, *candidates_of(scene, others[:_RIVALS]))
    ]
    best = _rewritten(scene, targets, cautious=cautious)[0]
    return Resolved(
        candidate,
        best.question if best is not None and best.worth >= least else question,
    )


def _rewritten(
    scene: Scene, targets: Sequence[Target], *, cautious: bool
) -> list[Rewrite | None]:
    """The best rewrites together; None where nothing fits."""
    told = [support(scene, wanted, cautious=cautious) for wanted in targets]
    options = rewrites(scene, targets, told, cautious=cautious)
    if not cautious:
        return together(options)
    # One that adds what another does is better than none.
    apart = together(options, partial(added, scene.evidence.question))
    return together(
        [[one] if one else rest for one, rest in zip(apart, options, strict=True)]
    )


def _by_title(
    scene: Scene, wanted: Target, named: Sequence[str], used: set[str]
) -> str | None:
    """Where there is no rewrite that is good enough: the question put to one of the texts in which the answer stands,
    whose title has none of these names in it."""
    question = scene.evidence.question.strip().rstrip("?")
    for place in wanted.marked:
        title = scene.evidence.passages[place].title
        written = f"{question}, according to “{title}”?"
        if (
            title
            and not any(name in normalize(title) for name in named)
            and key(written) not in used
        ):
            return written
    # Only an answer that stands nowhere in the evidence may leave the question as it is.
    return f"{question}?" if not wanted.marked and key(question) not in used else None


def checked(
    scene: Scene, readings: Sequence[Resolved], least: float
) -> tuple[list[bool], list[int]]:
    """Each rewrite asked again: does it hold its own answer, and which other candidates (of at least that
    probability) do rewrites prefer?

    A rewrite holds its answer if it does not make another given answer much likelier beside it (`holds_over`) than the
    question as it was asked does: an answer that is likely to everything is no reason to drop the others. That question
    brings no new answers either: what it prefers is known already.
    """
    scorer, given = scene.compact.scorer, [one.candidate.answer for one in readings]
    known = {normalize(answer) for answer in given}
    new = [
        place
        for place in scene.apart
        if normalize(scene.answers[place].text) not in known
        and scene.probabilities[place] >= least
    ]
    rewritten = np.array([one.question != scene.evidence.question for one in readings])
    if len(readings) == 1 and not (new and rewritten[0]):
        return [True], []  # nothing could come of it
    asked = [*(one.question for one in readings), scene.evidence.question]
    answers = [*(one.candidate for one in readings), *candidates_of(scene, new)]
    *rows_of_readings, before = likelihoods(
        scene, asked, [target(scene, answer) for answer in answers]
    )
    rows = np.stack(rows_of_readings)
    count, diagonal = len(given), np.arange(len(given))
    gained = rows[:, :count] - before[:count]
    own, others = gained[diagonal, diagonal], gained.copy()
    others[diagonal, diagonal] = -np.inf
    holds = own - others.max(axis=1) >= scorer.holds_over
    beaten = rows[:, count:] > rows[:, :count].max(axis=1, keepdims=True)
    best = (
        rows[:, count:] == rows[:, count:].max(axis=1, keepdims=True) if new else beaten
    )
    joining = (beaten & best & rewritten[:, None]).any(axis=0)
    return holds.tolist(), [
        place for place, joins in zip(new, joining.tolist(), strict=True) if joins
    ]


def target(scene: Scene, candidate: Candidate, *, told: bool = False) -> Target:
    """Where an answer stands: every place of every passage that has its tokens, or those of a string like it. If
    `told`, only where the reader finds it, so far as it does."""
    mentions = [
        one
        for answer in scene.answers
        if same(answer.text, candidate.answer)
        for one in answer.mentions
    ]
    surfaces = {mention.surface for mention in mentions if mention.probability > _TOLD}
    spans = {span.passage.text[span.start : span.end] for span in candidate.spans}
    wanted = [
        scene.tokens(text) for text in {candidate.answer, *spans, *surfaces} if text
    ]
    vocabulary = scene.compact.model.words.vocabulary
    marked: Places = {}
    for place, pair in enumerate(scene.evidence.pairs):
        found = [
            where
            for tokens in wanted
            if tokens
            for where in _places(pair, tokens, vocabulary)
        ]
        if found:
            marked[place] = sorted(set(found))[:_MOST_MARKED]
    if told:
        marked = _where_told(marked, mentions) or marked
    supporting = {mention.passage: mention.mass for mention in reversed(mentions)}
    order = sorted(marked, key=lambda place: (-supporting.get(place, 0.0), place))
    return Target(candidate.answer, {place: marked[place] for place in order})


def _where_told(marked: Places, mentions: Sequence[Mention]) -> Places:
    """Of the places where an answer stands, those of mentions that are not next to nothing beside the best. A text
    whose title is the answer tells of it wherever it stands."""
    best = max((mention.mass for mention in mentions), default=0.0)
    found: Places = {}
    for mention in mentions:
        first, end = mention.tokens
        if mention.mass >= _LEAST_SAID * best:
            spans = marked.get(mention.passage, ())
            own = [
                span
                for span in spans
                if mention.in_title or (span[0] < end and first < span[1])
            ]
            found.setdefault(mention.passage, []).extend(own)
    return {place: sorted(set(spans)) for place, spans in found.items() if spans}


def _places(
    pair: Pair, tokens: Sequence[int], vocabulary: Sequence[str]
) -> list[tuple[int, int]]:
    """Where a row of tokens stands in a pair's title and text, as whole words."""
    found, count = [], len(tokens)
    for first, last in (pair.title, pair.text):
        for at in range(first, last - count + 1):
            if pair.ids[at] == tokens[0] and pair.ids[at : at + count] == list(tokens):
                if at + count == last or not vocabulary[
                    pair.ids[at + count]
                ].startswith("##"):
                    found.append((at, at + count))
    return found
