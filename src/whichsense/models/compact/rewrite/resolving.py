"""Answers to readings: a rewrite for each, asked again over the same states. New answers join, what fails goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.reader.candidates import Mention
from whichsense.models.compact.rewrite.rewriting import rewrites
from whichsense.models.compact.rewrite.support import Places, Target, support
from whichsense.models.compact.rewrite.windows import likelihoods
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Rewrite, added, key, together
from whichsense.text.answers import same_answer
from whichsense.text.words import normalize
from whichsense.types import Candidate, Policy, Reading, Span

_SPANS = 5
_TOLD = 0.05  # a span that is less probable in its passage is not marked as the answer
_MOST_MARKED = 12  # places of a passage
_LEAST_SAID = 0.02  # of the best span's score
_RIVALS = (
    2  # answers that are not given, beside which one that stands alone is told apart
)


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


def rewrite_answers(
    scene: Scene, answers: Sequence[Candidate], policy: Policy
) -> list[Reading]:
    """A reading for each answer, no two rewrites alike.

    A careful policy leaves the question as it is where one answer stands alone and the question is not ambiguous or the
    rewrite is not well put; one of several is then put to a title, and what a title has in brackets comes first. That
    is for people: to a benchmark the clumsiest edit is nearer to an annotator's rewrite, and questions that have none
    are not compared.
    """
    if not answers:
        return []
    if len(answers) == 1:
        return [_rewrite_only_answer(scene, answers[0], policy)]
    targets = [target(scene, answer, told=policy.careful) for answer in answers]
    chosen = _choose_rewrites(scene, targets, policy)
    used = {key(rewrite.question) for rewrite in chosen if rewrite is not None}
    names = [normalize(answer.answer) for answer in answers]
    readings = []
    for answer, wanted, rewrite in zip(answers, targets, chosen, strict=True):
        if rewrite is None:  # better any title than no reading at all
            own_name = [normalize(answer.answer)]
            written = _by_title(scene, target(scene, answer), own_name, used)
        elif _is_well_put(scene, rewrite, policy):
            written = rewrite.question
        else:
            written = _by_title(scene, wanted, names, used) or rewrite.question
        if written is not None:
            used.add(key(written))
            readings.append(_reading(answer, written))
    return readings or [_reading(answers[0], scene.evidence.question)]


def _reading(answer: Candidate, question: str) -> Reading:
    return Reading(question, answer.answer, answer.spans, answer.score)


def _is_well_put(scene: Scene, rewrite: Rewrite, policy: Policy) -> bool:
    return rewrite.worth >= scene.compact.well_put or not policy.careful


def _rewrite_only_answer(scene: Scene, answer: Candidate, policy: Policy) -> Reading:
    """Where only one of several readings is answered, which one: what sets it apart from what else might be meant."""
    question = scene.evidence.question
    if policy.careful and not scene.is_ambiguous:
        return _reading(answer, question)
    others = [
        place
        for place in scene.apart
        if not same_answer(scene.answers[place].text, answer.answer)
    ]
    rivals = candidates_of(scene, others[:_RIVALS])
    targets = [target(scene, one, told=policy.careful) for one in (answer, *rivals)]
    best = _choose_rewrites(scene, targets, policy)[0]
    if best is not None and _is_well_put(scene, best, policy):
        question = best.question
    return _reading(answer, question)


def _choose_rewrites(
    scene: Scene, targets: Sequence[Target], policy: Policy
) -> list[Rewrite | None]:
    """The best rewrites together; None where nothing fits."""
    careful = policy.careful
    supports = [support(scene, wanted, cautious=careful) for wanted in targets]
    options = rewrites(scene, targets, supports, cautious=careful)
    if not careful:
        return together(options)
    # One that adds what another does is better than none.
    apart = together(options, partial(added, scene.evidence.question))
    alternatives = []
    for rewrite, others in zip(apart, options, strict=True):
        alternatives.append([rewrite] if rewrite else others)
    return together(alternatives)


def _by_title(
    scene: Scene, wanted: Target, named: Sequence[str], used: set[str]
) -> str | None:
    """Where there is no rewrite that is good enough: the question put to one of the texts in which the answer stands,
    whose title has none of these names in it."""
    question = scene.evidence.question.strip().rstrip("?")
    for place in wanted.marked:
        title = scene.evidence.passages[place].title
        written = f"{question}, according to “{title}”?"
        has_name = any(name in normalize(title) for name in named)
        if title and not has_name and key(written) not in used:
            return written
    # Only an answer that stands nowhere in the evidence may leave the question as it is.
    if not wanted.marked and key(question) not in used:
        return f"{question}?"
    return None


def verify_readings(
    scene: Scene, readings: Sequence[Reading], policy: Policy
) -> list[Reading]:
    """The readings that hold when their rewrites are asked again, and those of answers that the rewrites bring up."""
    if not readings:
        return []
    least = scene.judge.join_over if policy.threshold is None else policy.threshold
    held, joining = ask_again(scene, readings, least)
    current = list(readings)
    if joining:
        given = [_candidate(reading) for reading in readings]
        newcomers = candidates_of(scene, joining)
        current = rewrite_answers(scene, [*given, *newcomers], policy)
        held, _ = ask_again(scene, current, least)
    kept = [reading for reading, holds in zip(current, held, strict=True) if holds]
    if not kept:
        kept = [max(current, key=lambda reading: reading.confidence)]
    # What is left alone answers the question as it was asked.
    if policy.careful and len(kept) == 1 and not scene.is_ambiguous:
        kept = [replace(kept[0], question=scene.evidence.question)]
    kept.sort(key=lambda reading: -reading.confidence)
    return [replace(one, evidence=telling(one.evidence)) for one in kept]


def _candidate(reading: Reading) -> Candidate:
    return Candidate(reading.answer, reading.confidence, reading.evidence)


def ask_again(
    scene: Scene, readings: Sequence[Reading], least: float
) -> tuple[list[bool], list[int]]:
    """Each rewrite asked again: whether it holds its own answer, and which other candidates (of at least that
    probability) some rewrite prefers.

    A rewrite holds its answer if it does not make another given answer much likelier beside it (`holds_over`) than the
    question as it was asked does: an answer that is likely to everything is no reason to drop the others. That question
    brings no new answers either: what it prefers is known already.
    """
    question = scene.evidence.question
    known = {normalize(reading.answer) for reading in readings}
    newcomers = []
    for place in scene.apart:
        is_new = normalize(scene.answers[place].text) not in known
        if is_new and scene.probabilities[place] >= least:
            newcomers.append(place)
    rewritten = np.array([reading.question != question for reading in readings])
    if len(readings) == 1 and not (newcomers and rewritten[0]):
        return [True], []  # nothing could come of it
    questions = [*(reading.question for reading in readings), question]
    answers = [_candidate(reading) for reading in readings]
    answers += candidates_of(scene, newcomers)
    targets = [target(scene, answer) for answer in answers]
    # Log likelihoods: (readings and the question itself) × (given answers and newcomers).
    *rows, before = likelihoods(scene, questions, targets)
    after, count = np.stack(rows), len(readings)
    held = _holds_own_answer(after[:, :count], before[:count], scene)
    joins = _is_preferred(after[:, :count], after[:, count:], rewritten)
    joining = [
        place for place, wins in zip(newcomers, joins.tolist(), strict=True) if wins
    ]
    return held.tolist(), joining


def _holds_own_answer(after: Floats, before: Floats, scene: Scene) -> NDArray[np.bool_]:
    """Whether each rewrite gains as much for its own answer as for any other given one. `after`: rewrites × answers."""
    gain = after - before
    own = np.diagonal(gain).copy()
    np.fill_diagonal(gain, -np.inf)
    margin = own - gain.max(axis=1)
    return np.asarray(margin >= scene.compact.scorer.holds_over)


def _is_preferred(
    given: Floats, new: Floats, rewritten: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether some rewrite finds a newcomer likelier than all given answers and all other newcomers.

    `given`: rewrites × answers; `new`: rewrites × newcomers.
    """
    if not new.shape[1]:
        return np.zeros(0, dtype=bool)
    beats_given = new > given.max(axis=1, keepdims=True)
    is_best_newcomer = new == new.max(axis=1, keepdims=True)
    preferred = beats_given & is_best_newcomer & rewritten[:, None]
    return np.asarray(preferred.any(axis=0))


def target(scene: Scene, candidate: Candidate, *, told: bool = False) -> Target:
    """Where an answer stands: every place of every passage that has its tokens, or those of a string like it. If
    `told`, only where the reader finds it, so far as it does."""
    mentions = [
        one
        for answer in scene.answers
        if same_answer(answer.text, candidate.answer)
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
        marked = places_read(marked, mentions) or marked
    supporting = {mention.passage: mention.mass for mention in reversed(mentions)}
    order = sorted(marked, key=lambda place: (-supporting.get(place, 0.0), place))
    return Target(candidate.answer, {place: marked[place] for place in order})


def places_read(marked: Places, mentions: Sequence[Mention]) -> Places:
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
