"""From a scene to the readings that people see: answers, a rewrite for each, and which of them are probable.

Answers are those of the reader, judged once more by the verifier. A rewrite is chosen among those of forms and of the
writer by what asking it again gives. What is not probable is kept apart as merely possible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from whichsense.models.compact.people import features
from whichsense.models.compact.people.asking import Asked, Panel, judge_fluency
from whichsense.models.compact.people.joining import (
    include_currency,
    join_named_together,
)
from whichsense.models.compact.people.labels import find_labels
from whichsense.models.compact.people.lists import complete_lists
from whichsense.models.compact.people.proposals import Proposal, propose_rewrites
from whichsense.models.compact.rewrite.resolving import candidates_of
from whichsense.models.compact.rewrite.support import support
from whichsense.models.compact.rewrite.targets import locate, telling
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Rewrite, added, key, together
from whichsense.models.compact.scorer.trust import Standard
from whichsense.text.words import words
from whichsense.types import FOR_PEOPLE, AskedAgain, Candidate, Policy, Reading

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_JUDGED = 8  # candidates that the verifier judges
_MOST = (
    5  # answers that are rewritten, and those that reach a threshold of the policy's
)
# The least probability of an answer that is shown, where the policy names none: on judged readings, held-out firms
# and the fitting half of the sample the best balance of what is right and what is missed, for each kind of corpus.
_SHOWN_OVER_IN_SMALL = 0.35
_SHOWN_OVER_IN_LARGE = 0.2
_ASKED = 4  # rewrites of an answer that are asked again
_CONSIDERED_OVER = 0.15  # the least probability of an answer that is rewritten
_HARDLY_ANSWERABLE = 0.1  # by the scorer: a hundredth of the answered questions over small corpora, a third of others
_OF_ANOTHER_YEAR = 0.5  # right are 3 of 12 shown answers whose passage lacks the question's year, and 35 of 75 others
_TRUE_OVER = 0.5  # a rewrite that is probably false is not given
_FLUENT_OVER = 0.5  # nor is one that is probably bad English


def _standard(scene: Scene) -> Standard:
    trust = scene.compact.trust
    return trust.in_small if scene.is_small else trust.in_large


def _shown_over(scene: Scene, policy: Policy) -> float:
    """The least probability of an answer that is shown."""
    if policy.threshold is not None:
        return policy.threshold
    return _SHOWN_OVER_IN_SMALL if scene.is_small else _SHOWN_OVER_IN_LARGE


def choose_answers(scene: Scene, policy: Policy) -> list[Candidate]:
    """The answers that are worth a rewrite, most probable first; none where the evidence hardly holds one."""
    places = [place for place in scene.apart if _says_more(scene, place)][:_JUDGED]
    if not places:
        return []
    candidates = candidates_of(scene, places)
    targets = [locate(scene, candidate, told=True) for candidate in candidates]
    (asked,) = Panel.of(scene, targets).ask([scene.evidence.question])
    rows = []
    for number, place in enumerate(places):
        rows.append(features.of_answer(scene, place, number, asked))
    standard = _standard(scene)
    chances = standard.answer.probabilities(rows)
    fits = [_year_fits(scene.evidence.question, one) for one in candidates]
    judged = []
    for number, candidate in enumerate(candidates):
        chances[number] *= fits[number]
        judged.append(replace(include_currency(candidate), score=chances[number]))
    best = max(range(len(rows)), key=chances.__getitem__)
    answerable = scene.compact.trust.answerable.probabilities([rows[best]])[0]
    answerable *= fits[best]
    judged.sort(key=lambda candidate: -candidate.score)
    is_hopeless = scene.is_small and scene.answerable < _HARDLY_ANSWERABLE
    is_declined = is_hopeless or answerable < standard.answerable_over
    if is_declined or judged[0].score < standard.only_over:
        return []
    if scene.is_small:
        judged = complete_lists(scene.evidence.question, judged)
    wanted = policy.threshold or 1.0
    considered = []
    for rank, one in enumerate(judged):
        is_likely = rank < _MOST and one.score >= _CONSIDERED_OVER
        if is_likely or one.score >= wanted:
            considered.append(one)
    return join_named_together(considered) or judged[:1]


def _says_more(scene: Scene, place: int) -> bool:
    """Whether a candidate says what the question does not. A question that offers a choice names its answer."""
    asked = set(words(scene.evidence.question))
    return "or" in asked or not asked.issuperset(words(scene.answers[place].text))


def _year_fits(question: str, candidate: Candidate) -> float:
    """A factor of an answer's probability: less than one where the question names years and its passages none of
    them."""
    years = set(_YEAR.findall(question))
    named = set[str]()
    for span in candidate.spans:
        named.update(_YEAR.findall(f"{span.passage.title} {span.passage.text}"))
    return _OF_ANOTHER_YEAR if years and years.isdisjoint(named) else 1.0


def rewrite_answers(
    scene: Scene,
    answers: Sequence[Candidate],
    others: Sequence[Sequence[Proposal]] = (),
    policy: Policy = FOR_PEOPLE,
) -> list[Reading]:
    """A reading for each answer, with its source and, where its evidence names one, its label; no two rewrites and no
    two labels are alike. Where nothing true and distinct can be said, the question stays as it is. An only answer needs
    neither. `others` are rewrites of another provider for each answer, which compete with the labels'."""
    question = scene.evidence.question
    readings = [_as_asked(scene, answer) for answer in answers]
    if len(answers) < 2:
        return [replace(reading, source="") for reading in readings]
    if not others and not _may_show_several(scene, answers, policy):
        return readings
    targets = [locate(scene, answer, told=True) for answer in answers]
    panel = Panel.of(scene, targets)
    (before,) = panel.ask([question])
    labels = find_labels(scene, answers)
    told = []
    for reading, label in zip(readings, labels, strict=True):
        told.append(replace(reading, label=label.text if label else ""))
    proposals = propose_rewrites(question, labels)
    for own, more in zip(proposals, others, strict=False):
        known = {key(proposal.question) for proposal in own}
        own += [one for one in more if key(one.question) not in known]
    judged = _judge_all(panel, before, proposals)
    for number, rewrite in enumerate(together(judged, partial(added, question))):
        if isinstance(rewrite, _JudgedRewrite):
            told[number] = rewrite.of(told[number])
    return told


def _may_show_several(
    scene: Scene, answers: Sequence[Candidate], policy: Policy
) -> bool:
    """Whether two answers are probable enough to be shown. A rewrite makes none more probable, and takes most of the
    time of a question; in a small corpus, what is merely possible is rewritten, too."""
    if scene.is_small:
        return True
    least = _shown_over(scene, policy)
    return sum(answer.score >= least for answer in answers) > 1


@dataclass(frozen=True, slots=True)
class _JudgedRewrite(Rewrite):
    """A rewrite that was asked again. Its score is the probability that it is true and fluent."""

    asked_again: AskedAgain | None = None

    def of(self, reading: Reading) -> Reading:
        """A reading, so far as asked, with this rewrite in place of its source."""
        question = _spelt_like(reading.question, self.question)
        return replace(
            reading, question=question, source="", asked_again=self.asked_again
        )


def _spelt_like(question: str, rewrite: str) -> str:
    """A rewrite with the question's own first letter and end, so that all readings of a list look alike.

    >>> _spelt_like("who made it", "Who made it in 1984?"), _spelt_like("Who made it?", "who made it first")
    ('who made it in 1984', 'Who made it first?')
    """
    first, asked = rewrite.split(maxsplit=1)[0], question.split(maxsplit=1)[0]
    if first.casefold() == asked.casefold():
        rewrite = asked + rewrite.strip().removeprefix(first)
    end = "?" if question.rstrip().endswith("?") else ""
    return rewrite.rstrip("? ") + end


def _as_asked(scene: Scene, answer: Candidate) -> Reading:
    """The reading of an answer without a rewrite, with its source."""
    return Reading(
        scene.evidence.question,
        answer.answer,
        telling(answer.spans),
        answer.score,
        source=answer.spans[0].passage.title if answer.spans else "",
    )


def _judge_all(
    panel: Panel, before: Asked, proposals: Sequence[Sequence[Proposal]]
) -> list[list[_JudgedRewrite]]:
    """The rewrites of each answer that may be given, best first."""
    scene = panel.scene
    supports = [support(scene, target, policy=FOR_PEOPLE) for target in panel.targets]
    shortlists = [
        sorted(own, key=lambda one: -one.promise)[:_ASKED] for own in proposals
    ]
    texts = [proposal.question for own in shortlists for proposal in own]
    asked = zip(panel.ask(texts), judge_fluency(scene, texts), strict=True)
    judged = []
    for number, shortlist in enumerate(shortlists):
        own = []
        for proposal in shortlist:
            outcome, fluency = next(asked)
            view = features.RewriteView(
                scene.evidence.question,
                proposal.question,
                number,
                outcome,
                before,
                fluency,
                supports,
            )
            true = scene.compact.trust.true.probabilities([view.features])[0]
            fluent = scene.compact.trust.fluent.probabilities([view.features])[0]
            if true >= _TRUE_OVER and fluent >= _FLUENT_OVER:
                told = AskedAgain(outcome.own(number), outcome.other(number), fluent)
                rewrite = _JudgedRewrite(
                    proposal.question, true * fluent, asked_again=told
                )
                own.append(rewrite)
        own.sort(key=lambda rewrite: -rewrite.score)
        judged.append(own)
    return judged


def split_probable(
    scene: Scene, readings: Sequence[Reading], policy: Policy
) -> tuple[list[Reading], list[Reading]]:
    """The readings that are shown, those whose answers are probable enough or the best one alone, and those that are
    merely possible; both best first."""
    ordered = sorted(readings, key=lambda reading: -reading.confidence)
    least = _shown_over(scene, policy)
    probable = sum(reading.confidence >= least for reading in ordered)
    return ordered[: max(probable, 1)], ordered[max(probable, 1) :]
