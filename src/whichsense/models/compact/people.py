"""From answers to the readings that people see: labels, rewrites asked again, what is probable."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from whichsense.models.compact.candidates import (
    edge_probabilities,
    free_tokens,
    passage_probabilities,
    whole_name,
)
from whichsense.models.compact.encoder import LONGEST_QUESTION, Floats, Late, Pair, pair
from whichsense.models.compact.labeller import FRAMES, Label, put_into
from whichsense.models.compact.rewrite_support import Support, Target, locate, support, telling
from whichsense.models.compact.rewriting import candidates_of
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer import Standard
from whichsense.models.compact.scorer_features import Rewrite, added, change_features, key, together
from whichsense.text.answers import fullest_form, group_answers, same_answer
from whichsense.text.words import PHRASE_OPENERS, SMALL_WORDS, words
from whichsense.types import FOR_PEOPLE, AskedAgain, Candidate, Policy, Reading, Span

# Whole answers: *written by Ann Ray and Bo Finch* gives one answer, not two.

_LINKS = (" and ", " & ")


def join_named_together(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates, of which two that stand side by side in their best sentence become one; it is as probable as the
    better one. Numbers and dates are not joined: each has a time or a case of its own."""
    joined = list(candidates)
    for first in candidates:
        for second in candidates:
            both = _join(first, second)
            if both is not None and first in joined and second in joined:
                place = min(joined.index(first), joined.index(second))
                joined = [one for one in joined if one not in (first, second)]
                joined.insert(place, both)
    return joined


def _join(first: Candidate, second: Candidate) -> Candidate | None:
    """Both as one answer, if the second follows the first behind a link."""
    if first is second or not first.spans or not second.spans:
        return None
    begin, end = first.spans[0], second.spans[0]
    text = begin.passage.text
    has_digit = any(map(str.isdigit, first.answer + second.answer))
    if has_digit or begin.passage != end.passage:
        return None
    if text[begin.end : end.start] not in _LINKS:
        return None
    span = Span(begin.passage, begin.start, end.end, max(begin.score, end.score))
    score = max(first.score, second.score)
    return Candidate(text[begin.start : end.end], score, (span,))


# Asks a question again: reads it, in the place of the original one, with the passages of all listed
# answers.

_PASSAGES_OF_ANSWER = 2
_MOST_PASSAGES = 6
_LONGEST_PAIR = 176  # tokens; the verifier learnt from pairs of 160
_NO_VERDICT = -12.0  # of an answer that stands in none of the passages


@dataclass(frozen=True)
class Asked:
    """What a question gives over a panel's passages, for each of its answers."""

    mass: Floats
    """The probability of each answer."""
    verdict: Floats
    """The best logit of each answer's spans to be an answer."""
    null: float
    """The probability that no passage answers."""

    def own(self, number: int) -> float:
        return float(self.mass[number])

    def other(self, number: int) -> float:
        """The probability of the likeliest other answer."""
        others = np.delete(self.mass, number)
        return float(others.max()) if len(others) else 0.0


@dataclass(frozen=True)
class Panel:
    """Answers, and the passages over which questions for them are asked again: the best ones of every answer."""

    scene: Scene
    targets: tuple[Target, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, scene: Scene, targets: Sequence[Target]) -> Panel:
        places: dict[int, None] = {}
        # Every answer's best passage first, then every answer's second.
        for rank in range(_PASSAGES_OF_ANSWER):
            for target in targets:
                own = list(target.marked)
                if rank < len(own):
                    places[own[rank]] = None
        most = max(_MOST_PASSAGES, len(targets))
        return cls(scene, tuple(targets), tuple(places)[:most])

    def ask(self, questions: Sequence[str]) -> list[Asked]:
        """Ask each question. All pairs are encoded in one call, which fills all cores."""
        if not self.places:
            nothing = np.zeros(len(self.targets), np.float32)
            return [Asked(nothing, nothing + _NO_VERDICT, 1.0) for _ in questions]
        pairs: list[Pair] = []
        for question in questions:
            pairs += self._pairs(question)
        outputs = self.scene.compact.model.verify(pairs)
        asked = []
        size = len(self.places)
        for start in range(0, len(pairs), size):
            part = slice(start, start + size)
            asked.append(self._gather(pairs[part], outputs[part]))
        return asked

    def _pairs(self, question: str) -> list[Pair]:
        tokenizer = self.scene.compact.model.tokenizer
        ids = tokenizer.ids(question, LONGEST_QUESTION)
        pairs = []
        for place in self.places:
            passage = self.scene.evidence.passages[place]
            built = pair(tokenizer, ids, passage.title, passage.text, _LONGEST_PAIR)
            pairs.append(built)
        return pairs

    def _gather(self, pairs: Sequence[Pair], outputs: Sequence[Late]) -> Asked:
        shares, null = passage_probabilities(outputs)
        mass = np.zeros(len(self.targets), np.float32)
        verdict = np.full(len(self.targets), _NO_VERDICT, np.float32)
        for place, own, output, share in zip(
            self.places, pairs, outputs, shares.tolist(), strict=True
        ):
            edges = edge_probabilities(output.span, free_tokens(own))
            for number, target in enumerate(self.targets):
                spans = self._spans(target, place, own)
                if not spans:
                    continue
                first, last = np.array(spans).T
                # A span's probability: of its first token times of its last.
                probability = edges[first, 0] * edges[last, 1]
                mass[number] += share * float(min(1.0, probability.sum()))
                states = output.states[np.stack([first * 0, first, last], axis=1)]
                logits = self.scene.compact.model.verifier_verdicts(states)
                verdict[number] = max(verdict[number], float(logits.max()))
        return Asked(mass, verdict, null)

    def _spans(self, target: Target, place: int, own: Pair) -> list[tuple[int, int]]:
        """First and last tokens of an answer's spans in a pair that has another question than the scene's."""
        shift = own.title[0] - self.scene.evidence.pairs[place].title[0]
        spans = []
        for first, end in target.marked.get(place, ()):
            # The text may be cut earlier than before.
            if end + shift < len(own):
                spans.append((first + shift, end - 1 + shift))
        return spans


def judge_fluency(scene: Scene, rewrites: Sequence[str]) -> list[float]:
    """The logit of each rewrite to be one that a person could have written. It is read beside the question."""
    model = scene.compact.model
    pairs = []
    for rewrite in rewrites:
        ids = model.tokenizer.ids(rewrite, LONGEST_QUESTION)
        pairs.append(pair(model.tokenizer, ids, scene.evidence.question, ""))
    return [output.ambiguity for output in model.verify(pairs)]


def log_odds(probability: float, least: float = 1e-4) -> float:
    """The logit of a probability, away from 0 and 1.

    >>> log_odds(0.5), round(log_odds(0.0), 2), round(log_odds(1.0), 2)
    (0.0, -9.21, 9.21)
    """
    inside = min(max(probability, least), 1 - least)
    return math.log(inside / (1 - inside))


# Answers that people may see: what the tagger marks and what the reader proposes, with the features from which their
# probability is learnt.

_LEAST = 1e-4
_CANDIDATE_OVER = 0.01  # of a marked span's score
_SAME_PLACE = 0.5  # of the shorter of two spans: from here on both are one answer
IN_SMALL_BY = tuple(
    "inside holds mark mark_beside_best best_mark marked_passages probability_beside_best".split()
)
"""The features by which an answer over a small corpus is judged. The reader's own probability is another over a firm's
documents than over encyclopedic ones; how it compares with its best is not."""
IN_LARGE_BY = (*IN_SMALL_BY, "probability")
WITHOUT_MARKS_BY = ("probability", "probability_beside_best", "answerable")
"""Of a model that was trained without a tagger."""


def find_candidates(scene: Scene) -> list[Candidate]:
    """The answers that the tagger marks, then those that the reader alone proposes; none that the question names."""
    found = _group_marked(scene)
    places = [place for place in scene.apart if _says_more(scene, place)][:_JUDGED]
    for candidate in candidates_of(scene, places):
        if not any(_is_same(candidate, one) for one in found):
            found.append(candidate)
    return found


def _group_marked(scene: Scene) -> list[Candidate]:
    """Return marked spans that mean the same as one answer each, best first."""
    spans_by_text = _marked_texts(scene)
    texts = list(spans_by_text)
    weights = [max(span.score for span in spans) for spans in spans_by_text.values()]
    found = []
    for group in group_answers(texts, weights):
        own = [texts[place] for place in group]
        spans = list(chain.from_iterable(spans_by_text[text] for text in own))
        spans.sort(key=lambda span: -span.score)
        name = fullest_form(own, [weights[place] for place in group])
        found.append(Candidate(name, spans[0].score, tuple(spans)))
    read = [f"{one.title}\n{one.text}" for one in scene.evidence.passages]
    named = [replace(one, answer=whole_name(one.answer, read)) for one in found]
    return sorted(named, key=lambda candidate: -candidate.score)


def _marked_texts(scene: Scene) -> dict[str, list[Span]]:
    spans_by_text: defaultdict[str, list[Span]] = defaultdict(list)
    for span in (one.span for one in scene.tagged):
        if span.score >= _CANDIDATE_OVER and _adds_to(scene.evidence.question, _text_of(span)):
            spans_by_text[_text_of(span)].append(span)
    return spans_by_text


def _text_of(span: Span) -> str:
    return span.passage.text[span.start : span.end]


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates mean the same, or lie in one place."""
    if same_answer(one.answer, other.answer):
        return True
    places = _told_places(other)
    return any(_share_place(own, span) for own in _told_places(one) for span in places)


def _told_places(candidate: Candidate) -> list[Span]:
    """The spans whose words are the answer's, more or fewer: what says something else lends an answer nothing."""
    answer = set(words(candidate.answer))
    told = []
    for span in candidate.spans:
        own = set(words(_text_of(span)))
        if own and (own <= answer or answer <= own):
            told.append(span)
    return told


def _share_place(one: Span, other: Span) -> bool:
    if one.passage.id != other.passage.id:
        return False
    shared = min(one.end, other.end) - max(one.start, other.start)
    shorter = min(one.end - one.start, other.end - other.start)
    return shared > 0 and shared >= _SAME_PLACE * shorter


def answer_features(scene: Scene, candidates: Sequence[Candidate]) -> list[dict[str, float]]:
    """What each candidate's probability is learnt from: the best mark on it, the reader's probability, and how both
    compare with those of the best candidate."""
    proposed = candidates_of(scene, range(len(scene.answers)))
    rows = [_marks_on(scene, candidate) for candidate in candidates]
    for row, candidate in zip(rows, candidates, strict=True):
        read = [other.score for other in proposed if _is_same(candidate, other)]
        row["probability"] = log_odds(max(read, default=0.0))
        row["answerable"] = log_odds(scene.answerable)
    best_mark = max((row["mark"] for row in rows), default=0.0)
    best_read = max((row["probability"] for row in rows), default=0.0)
    for row in rows:
        row["best_mark"] = best_mark
        row["mark_beside_best"] = row["mark"] - best_mark
        row["probability_beside_best"] = row["probability"] - best_read
    return rows


def _marks_on(scene: Scene, candidate: Candidate) -> dict[str, float]:
    """Return the best mark on a candidate, and in how many passages it is marked."""
    marked = [tag for tag in scene.tagged if _is_marked(candidate, tag.span)]
    best = max(marked, key=lambda tag: tag.span.score, default=None)
    return {
        "inside": log_odds(best.inside if best else 0.0),
        "holds": log_odds(best.holds if best else 0.0),
        "mark": log_odds(best.span.score if best else 0.0),
        "marked_passages": math.log(max(1, len({one.span.passage.id for one in marked}))),
    }


def _is_marked(candidate: Candidate, span: Span) -> bool:
    if same_answer(candidate.answer, _text_of(span)):
        return True
    return any(_share_place(own, span) for own in _told_places(candidate))


def _adds_to(question: str, text: str) -> bool:
    """Whether an answer says what the question does not. A question that offers a choice names its answer."""
    asked = set(words(question))
    return "or" in asked or not asked.issuperset(words(text))


def _says_more(scene: Scene, place: int) -> bool:
    return _adds_to(scene.evidence.question, scene.answers[place].text)


# Features of a rewrite after it was asked again: what trust is learnt from.


@dataclass(frozen=True)
class RewriteView:
    """A rewrite of a question for the panel's answer of this number, and what is known of it."""

    question: str
    rewrite: str
    number: int
    asked: Asked
    before: Asked
    """What the question itself gives."""
    fluency: float
    """A logit."""
    supports: Sequence[Support]
    """Of all answers."""

    @property
    def features(self) -> dict[str, float]:
        number = self.number
        own = self.asked.own(number)
        other = self.asked.other(number)
        own_before = self.before.own(number)
        other_before = self.before.other(number)
        return {
            "own": log_odds(own),
            "margin": _log_ratio(own, other),
            "gain": _log_ratio(own, own_before),
            "lost": _log_ratio(other, other_before),
            "null": math.log(max(self.asked.null, _LEAST)),
            "verdict": float(self.asked.verdict[number]),
            "verdict_margin": _margin(self.asked, number),
            "fluency": self.fluency,
            "apart": float(self._tells_apart()),
            "answers": math.log(len(self.asked.mass)),
            **change_features(self.question, self.rewrite),
        }

    def _tells_apart(self) -> bool:
        others = []
        for place, beside in enumerate(self.supports):
            if place != self.number:
                others.append(beside)
        own = self.supports[self.number]
        return own.tells_apart(self.rewrite, others)


def _log_ratio(value: float, beside: float) -> float:
    return math.log(max(value, _LEAST) / max(beside, _LEAST))


def _margin(asked: Asked, number: int) -> float:
    """How much better the answer's verdict is than the best of the others."""
    others = [value for place, value in enumerate(asked.verdict) if place != number]
    return float(asked.verdict[number]) - float(max(others, default=-12.0))


# Rewrites that may be given for each answer: its label in the frame that fits it.

_ARTICLES = frozenset("a an the".split())
_FITS_OVER = 0.6  # a frame that fits less probably is not tried: of the others nine in ten are the written one


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite that may be given for an answer."""

    rewrite: str
    promise: float = 0.0
    """How promising it is before that."""


def propose_rewrites(question: str, labels: Sequence[Label | None]) -> list[list[Proposal]]:
    """The rewrites of each answer that has a label with a frame; others may be added."""
    proposals: list[list[Proposal]] = []
    for label in labels:
        proposals.append([])
        if label is None or label.fits < _FITS_OVER:
            continue
        for frame in _frames_of(label):
            rewrite = put_into(question, label.text, FRAMES.index(frame))
            proposals[-1].append(Proposal(rewrite, label.fits))
    return proposals


def _frames_of(label: Label) -> list[str]:
    """The label's frame, and with an article where it has a word in lower case and none of its own: asking again
    chooses. It has no frame that would give it a second preposition or article, or none."""
    first = words(label.text)[:1]
    frame = FRAMES[label.frame]
    if _ARTICLES.issuperset(first):
        bare = frame.removesuffix(" the").removesuffix(" a")
        return [bare] if bare else []
    if PHRASE_OPENERS.issuperset(first):
        return [] if frame else [frame]
    if not _has_noun(label.text) or f"{frame} the" not in FRAMES:
        return [frame] if frame else []
    # "in the 1961 film": a noun behind a figure is one of several.
    is_one = label.text[0].isdigit()
    return [f"{frame} the"] if is_one else [frame, f"{frame} the"]


def _has_noun(text: str) -> bool:
    """Whether a text has a word in lower case that says something: *1961 film*, not *London* or *March and April*."""
    lower = [word for word in text.split() if word.islower() and word[0].isalpha()]
    return not SMALL_WORDS.issuperset(lower)


# Labels of a question's answers, which tell them apart.

# A label that is less sure is not shown: of held-out ones that are surer 87% overlap the written one, of others 43%.
# In a rewrite, which is asked again, it may stand.
_SHOWN_LABEL_OVER = 0.9
_SURE_OVER = 0.7
_YEAR_DIGITS = 4


def find_labels(scene: Scene, answers: Sequence[Candidate]) -> list[Label | None]:
    """Return the label of each answer, in the best of its passages; None where there is none, or where it says nothing
    that the question, the answer or another answer's label does not say."""
    labels: dict[int, Label] = {}
    labeller, question = scene.compact.labeller, scene.evidence.question
    places = [number for number, answer in enumerate(answers) if answer.spans]
    spans = [answers[number].spans[0] for number in places]
    found = labeller.find(question, spans) if labeller else []
    for number, label in zip(places, found, strict=bool(labeller)):
        if label is not None and _is_usable(label, f"{question} {answers[number].answer}"):
            labels[number] = label
    counts = Counter(map(_plain, labels.values()))
    distinct = {place: one for place, one in labels.items() if counts[_plain(one)] == 1}
    return list(map(distinct.get, range(len(answers))))


def _is_usable(label: Label, known: str) -> bool:
    """Whether a label is sure, and has a word that is not known and one that names something, or a year: *over* and
    *21* are pieces of a sentence."""
    if label.sure < _SURE_OVER or set(words(known)).issuperset(words(label.text)):
        return False
    for word in words(label.text):
        is_year = word.isdigit() and len(word) == _YEAR_DIGITS
        if is_year or (word not in SMALL_WORDS and not word.isdigit()):
            return True
    return False


def _plain(label: Label) -> str:
    return " ".join(words(label.text))


# From a scene to the readings that people see: answers, a rewrite for each, and which of them are
# probable.
#
# Answers are those that the tagger marks and the reader proposes. A rewrite is a label in its frame,
# kept by what asking it again gives. What is not probable is kept apart as merely possible.

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_JUDGED = 8  # candidates of the reader beside those that the tagger marks
_MOST = 5  # answers that are rewritten, and those that reach a threshold of the policy's
# The least probability of an answer that is shown, where the policy names none: on judged readings, held-out firms
# and the fitting half of the sample the best balance of what is right and what is missed, for each kind of corpus.
_SHOWN_OVER_IN_SMALL = 0.45
_SHOWN_OVER_IN_LARGE = 0.18
_ASKED = 4  # rewrites of an answer that are asked again
_CONSIDERED_OVER = 0.15  # the least probability of an answer that is rewritten
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
    found = find_candidates(scene)
    if not found:
        return []
    rows = answer_features(scene, found)
    standard = _standard(scene)
    fits = [_year_fits(scene.evidence.question, candidate) for candidate in found]
    chances = np.array(standard.answer.probabilities(rows)) * fits
    best = int(chances.argmax())
    answerable = scene.compact.trust.answerable.probabilities([rows[best]])[0] * fits[best]
    if answerable < standard.answerable_over or chances[best] < standard.only_over:
        return []
    pairs = zip(found, chances.tolist(), strict=True)
    judged = sorted(
        (replace(one, score=chance) for one, chance in pairs), key=lambda one: -one.score
    )
    return join_named_together(_considered(judged, policy)) or judged[:1]


def _considered(judged: Sequence[Candidate], policy: Policy) -> list[Candidate]:
    """Return the answers that are worth a rewrite, and all that reach the policy's own threshold."""
    likely = [one for one in judged[:_MOST] if one.score >= _CONSIDERED_OVER]
    wanted = policy.threshold or 1.0
    return [*likely, *(one for one in judged[len(likely) :] if one.score >= wanted)]


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
    labels = find_labels(scene, answers)
    proposals = propose_rewrites(question, labels)
    for own, more in zip(proposals, others, strict=False):
        own.extend(more)
    panel = Panel.of(scene, [locate(scene, answer, told=True) for answer in answers])
    chosen = together(_judge_all(panel, proposals), partial(added, question))
    return list(map(_tell, readings, labels, chosen))


def _tell(reading: Reading, label: Label | None, rewrite: Rewrite | None) -> Reading:
    """Return a reading, so far as asked, with what tells it apart."""
    if label is not None and label.sure >= _SHOWN_LABEL_OVER:
        reading = replace(reading, label=label.text)
    return rewrite.of(reading) if isinstance(rewrite, _JudgedRewrite) else reading


def _may_show_several(scene: Scene, answers: Sequence[Candidate], policy: Policy) -> bool:
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
        return replace(reading, question=question, source="", asked_again=self.asked_again)


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


def _judge_all(panel: Panel, proposals: Sequence[Sequence[Proposal]]) -> list[list[_JudgedRewrite]]:
    """Return the rewrites of each answer that may be given, best first; the most promising ones are asked again."""
    judged: list[list[_JudgedRewrite]] = [[] for _ in proposals]
    tried: dict[tuple[int, str], str] = {}
    for number, own in enumerate(proposals):
        for one in sorted(own, key=lambda one: -one.promise)[:_ASKED]:
            tried.setdefault((number, key(one.rewrite)), one.rewrite)
    if not tried:
        return judged
    scene = panel.scene
    question, trust = scene.evidence.question, scene.compact.trust
    supports = list(map(partial(support, scene, policy=FOR_PEOPLE), panel.targets))
    before, *outcomes = panel.ask([question, *tried.values()])
    fluencies = judge_fluency(scene, list(tried.values()))
    for (number, _), rewrite, asked, fluency in zip(
        tried, tried.values(), outcomes, fluencies, strict=True
    ):
        view = RewriteView(question, rewrite, number, asked, before, fluency, supports)
        true, fluent = (net.probabilities([view.features])[0] for net in (trust.true, trust.fluent))
        if true >= _TRUE_OVER and fluent >= _FLUENT_OVER:
            told = AskedAgain(asked.own(number), asked.other(number), fluent)
            judged[number].append(_JudgedRewrite(rewrite, true * fluent, asked_again=told))
    return [sorted(own, key=lambda one: -one.score) for own in judged]


def split_probable(
    scene: Scene, readings: Sequence[Reading], policy: Policy
) -> tuple[list[Reading], list[Reading]]:
    """The readings that are shown, those whose answers are probable enough or the best one alone, and those that are
    merely possible; both best first."""
    ordered = sorted(readings, key=lambda reading: -reading.confidence)
    least = _shown_over(scene, policy)
    probable = sum(reading.confidence >= least for reading in ordered)
    return ordered[: max(probable, 1)], ordered[max(probable, 1) :]
