"""From answers to readings: a rewrite for each, verified over the same states. New answers join, rejected ones go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.rewrite.rewriting import rewrites
from whichsense.models.compact.rewrite.support import Target, support
from whichsense.models.compact.rewrite.targets import locate, telling
from whichsense.models.compact.rewrite.windows import likelihoods
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Rewrite, key, together
from whichsense.text.answers import same_answer
from whichsense.text.words import normalize
from whichsense.types import FOR_BENCHMARKS, Candidate, Policy, Reading, Span

_SPANS = 5  # best spans of a candidate, one a passage
_RIVALS = 2  # other candidates that the rewrite of an only answer is told apart from


def candidates_of(scene: Scene, places: Sequence[int]) -> list[Candidate]:
    """Answers of a scene as candidates: probability, and the best span of each passage."""
    candidates = []
    for place in places:
        answer = scene.answers[place]
        spans: dict[int, Span] = {}
        for mention in answer.mentions:
            # A mention in a title has no span in the text.
            start, end = (0, 0) if mention.in_title else (mention.start, mention.end)
            passage = scene.evidence.passages[mention.passage]
            # Mentions come by support: the first of a passage is its best.
            spans.setdefault(mention.passage, Span(passage, start, end, mention.mass))
        best = sorted(spans.values(), key=lambda span: -span.score)[:_SPANS]
        probability = scene.probabilities[place]
        candidates.append(Candidate(answer.text, probability, tuple(best)))
    return candidates


def rewrite_answers(scene: Scene, answers: Sequence[Candidate]) -> list[Reading]:
    """A reading for each answer, no two rewrites alike, for a benchmark: the clumsiest edit is nearer to an annotator's
    rewrite than none, and questions without one are not compared."""
    if not answers:
        return []
    if len(answers) == 1:
        return [_rewrite_only_answer(scene, answers[0])]
    targets = [locate(scene, answer) for answer in answers]
    chosen = _choose_rewrites(scene, targets)
    used = set()
    for rewrite in chosen:
        if rewrite is not None:
            used.add(key(rewrite.question))
    readings = []
    for answer, target, rewrite in zip(answers, targets, chosen, strict=True):
        written: str | None
        if rewrite is None:  # better any title than no reading at all
            written = _by_title(scene, target, normalize(answer.answer), used)
        else:
            written = rewrite.question
        if written is not None:
            used.add(key(written))
            readings.append(_reading(answer, written))
    return readings or [_reading(answers[0], scene.evidence.question)]


def _reading(answer: Candidate, question: str) -> Reading:
    return Reading(question, answer.answer, answer.spans, answer.score)


def _rewrite_only_answer(scene: Scene, answer: Candidate) -> Reading:
    """The reading of an only answer: its rewrite sets it apart from the likeliest other candidates."""
    others = []
    for place in scene.apart:
        if not same_answer(scene.answers[place].text, answer.answer):
            others.append(place)
    rivals = candidates_of(scene, others[:_RIVALS])
    targets = [locate(scene, candidate) for candidate in (answer, *rivals)]
    best = _choose_rewrites(scene, targets)[0]
    return _reading(answer, best.question if best else scene.evidence.question)


def _choose_rewrites(scene: Scene, targets: Sequence[Target]) -> list[Rewrite | None]:
    """The best set of rewrites, one for each answer; None where nothing fits."""
    supports = [support(scene, target, policy=FOR_BENCHMARKS) for target in targets]
    return together(rewrites(scene, targets, supports))


def _by_title(scene: Scene, wanted: Target, name: str, used: set[str]) -> str | None:
    """The question with the title of a passage that holds the answer, for an answer without a rewrite. Titles with the
    answer's name are skipped."""
    question = scene.evidence.question.strip().rstrip("?")
    for place in wanted.marked:
        title = scene.evidence.passages[place].title
        written = f"{question}, according to “{title}”?"
        has_name = name in normalize(title)
        if title and not has_name and key(written) not in used:
            return written
    # Only an answer that is nowhere in the evidence may leave the question unchanged.
    if not wanted.marked and key(question) not in used:
        return f"{question}?"
    return None


def verify_readings(
    scene: Scene, readings: Sequence[Reading], policy: Policy
) -> list[Reading]:
    """The readings that hold when their rewrites are asked again, with those of answers that the rewrites prefer."""
    if not readings:
        return []
    least = scene.judge.join_over if policy.threshold is None else policy.threshold
    held, joining = ask_again(scene, readings, least)
    current = list(readings)
    if joining:
        given = list(map(_candidate, readings))
        newcomers = candidates_of(scene, joining)
        current = rewrite_answers(scene, [*given, *newcomers])
        held, _ = ask_again(scene, current, least)
    verified = []
    for reading, holds in zip(current, held, strict=True):
        if holds:
            verified.append(reading)
    if not verified:
        verified = [max(current, key=lambda reading: reading.confidence)]
    verified.sort(key=lambda reading: -reading.confidence)
    supported = []
    for reading in verified:
        spans = telling(reading.evidence)
        supported.append(replace(reading, evidence=spans))
    return supported


def _candidate(reading: Reading) -> Candidate:
    return Candidate(reading.answer, reading.confidence, reading.evidence)


def ask_again(
    scene: Scene, readings: Sequence[Reading], least: float
) -> tuple[list[bool], list[int]]:
    """Ask each rewrite again: whether it holds its own answer, and which other candidates of at least that probability
    some rewrite prefers.

    A rewrite holds its answer unless it makes another given answer much likelier beside it (`holds_over`) than the
    original question does: an answer that is likely for every question is no reason to drop the others. The original
    question brings no new answers: what it prefers is known already.
    """
    question = scene.evidence.question
    known = set()
    questions = []
    is_rewritten = []
    for reading in readings:
        known.add(normalize(reading.answer))
        questions.append(reading.question)
        is_rewritten.append(reading.question != question)
    newcomers = []
    for place in scene.apart:
        is_new = normalize(scene.answers[place].text) not in known
        if is_new and scene.probabilities[place] >= least:
            newcomers.append(place)
    rewritten = np.array(is_rewritten)
    if len(readings) == 1 and not (newcomers and rewritten[0]):
        return [True], []  # no other outcome is possible
    answers = list(map(_candidate, readings))
    answers += candidates_of(scene, newcomers)
    targets = [locate(scene, answer) for answer in answers]
    # Log likelihoods: (readings and the question itself) × (given answers and newcomers).
    *rows, before = likelihoods(scene, [*questions, question], targets)
    after, count = np.stack(rows), len(readings)
    held = _holds_own_answer(after[:, :count], before[:count], scene)
    joins = _is_preferred(after[:, :count], after[:, count:], rewritten)
    joining = []
    for place, is_preferred in zip(newcomers, joins.tolist(), strict=True):
        if is_preferred:
            joining.append(place)
    return held.tolist(), joining


def _holds_own_answer(after: Floats, before: Floats, scene: Scene) -> NDArray[np.bool_]:
    """Whether each rewrite gains as much for its own answer as for any other. `after` is rewrites × answers."""
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
