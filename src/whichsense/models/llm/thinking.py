"""Answers and readings by a language model: one decision a call, checked by the embedded encoder."""

from __future__ import annotations

import difflib
import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from whichsense.models.compact import people
from whichsense.models.compact.people import Proposal, join_named_together, log_odds, split_probable
from whichsense.models.compact.rewrite_support import Support, locate, support
from whichsense.models.compact.rewriting import candidates_of
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer_features import key
from whichsense.models.llm.endpoint import Reply, Request, clean
from whichsense.models.llm.talk import (
    Talk,
    answer_lines,
    choice_probability,
    fence_lines,
    numbered_answers,
    parse_object,
    passage_window,
    texts_of,
)
from whichsense.text.answers import fullest_form, group_answers, same_answer
from whichsense.text.words import SMALL_WORDS, normalize, porter_stem, spans_of, words
from whichsense.types import FOR_PEOPLE, Candidate, Case, Hit, Policy, Reading, Span, frozen

# Rewrites the question for each answer: samples of the language model compete with the answers'
# labels, and the embedded encoder asks each of them again.

_MOST_TOKENS = 80
_WARM = 0.8  # the temperature of all samples but the first
_LONGER = 14  # words that a rewrite may add
_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}


def rewrite_answers(talk: Talk, case: Case, compact: Compact) -> Case:
    """Return the case with a reading for each answer. An only answer needs no rewrite, and no call."""
    scene = compact.scene_of(case)
    answers = case.answers
    if len(answers) < 2:
        readings = people.rewrite_answers(scene, answers)
        return replace(case, readings=tuple(readings), scratch=scene)
    drawn = _draw(talk, case)
    proposals = [_accept(scene, answers, number, samples) for number, samples in enumerate(drawn)]
    if case.policy.careful:
        readings = people.rewrite_answers(scene, answers, proposals)
    else:
        readings = _first_of_each(case, proposals)
    return replace(case, readings=tuple(readings), scratch=scene)


def _draw(talk: Talk, case: Case) -> list[list[str]]:
    """For each answer the samples."""
    answers = case.answers
    count = talk.endpoint.settings.samples
    # The answers stand before the one to rewrite for: a server that keeps prompts reads them once for all calls.
    listed = numbered_answers(answers)
    requests: list[Request] = [
        talk.request(
            "rewrite",
            _MOST_TOKENS,
            schema=_SCHEMA,
            temperature=_WARM if seed else 0.0,
            seed=seed,
            question=clean(case.question),
            answers=listed,
            number=str(number),
            answer=clean(answer.answer),
        )
        for number, answer in enumerate(answers, 1)
        for seed in range(count)
    ]
    replies = talk.ask(requests, _understand_rewrite)
    return [
        [one for one in replies[first : first + count] if one is not None]
        for first in range(0, len(replies), count)
    ]


def _understand_rewrite(reply: Reply) -> str | None:
    table = parse_object(reply.text) or {}
    texts = texts_of(table.get("question", []))
    if not texts:
        return None
    return texts[0]


def _accept(
    scene: Scene, answers: Sequence[Candidate], number: int, samples: Sequence[str]
) -> list[Proposal]:
    """Return the samples that may be given for an answer: they say what its evidence says, and do not give it away."""
    question = scene.evidence.question
    target = locate(scene, answers[number], told=True)
    supported = support(scene, target, policy=FOR_PEOPLE)
    counts = Counter(key(text) for text in samples)
    proposals: dict[str, Proposal] = {}
    for text in samples:
        rewrite = _as_question(text)
        name = key(rewrite)
        if name == key(question) or not is_acceptable(question, rewrite, supported):
            continue
        share = counts[key(text)] / len(samples)
        proposals.setdefault(name, Proposal(rewrite, share))
    return list(proposals.values())


def is_acceptable(question: str, rewrite: str, supported: Support) -> bool:
    """Tell whether a rewrite keeps the question's words and adds only what the evidence says of the answer."""
    if _loses_word(rewrite, question):
        return False
    if len(rewrite.split()) > len(question.split()) + _LONGER:
        return False
    return all(supported.holds(text) for text in inserted_texts(question, rewrite))


def _loses_word(rewrite: str, question: str) -> bool:
    """Tell whether a rewrite lacks a word of the question, other than small ones: it then mostly asks for something
    else.

    >>> [_loses_word(one, "When was it ended?") for one in ("When was it ended in Rome?", "When was it declared?")]
    [False, True]
    """
    after = Counter(map(porter_stem, words(rewrite)))
    before = Counter(porter_stem(word) for word in words(question))
    for word in SMALL_WORDS:
        before.pop(porter_stem(word), None)
    return bool(before - after)


def inserted_texts(question: str, rewrite: str) -> list[str]:
    """Return what a rewrite has that the question has not, each run of words by itself.

    >>> inserted_texts("Who directed Dune?", "Who directed the 1984 film Dune in Mexico?")
    ['the 1984 film', 'in Mexico']
    """
    before = question.rstrip("? ").split()
    after = rewrite.rstrip("? ").split()
    matcher = difflib.SequenceMatcher(
        None, [key(word) for word in before], [key(word) for word in after], False
    )
    return [
        " ".join(after[start:end])
        for kind, _, _, start, end in matcher.get_opcodes()
        if kind in ("insert", "replace")
    ]


def _as_question(text: str) -> str:
    """Return a rewrite as a question is written: with its mark, and a capital at the beginning.

    >>> _as_question("who won in 1990")
    'Who won in 1990?'
    """
    bare = text.strip().rstrip("?.! ")
    return f"{bare[:1].upper()}{bare[1:]}?"


def _first_of_each(case: Case, proposals: Sequence[Sequence[Proposal]]) -> list[Reading]:
    """For benchmarks: the first sample that differs from those of the other answers, or the question as it is."""
    taken: set[str] = set()
    readings = []
    for answer, own in zip(case.answers, proposals, strict=True):
        free = [one.rewrite for one in own if key(one.rewrite) not in taken]
        rewrite = free[0] if free else case.question
        taken.add(key(rewrite))
        readings.append(Reading(rewrite, answer.answer, answer.spans, answer.score))
    return readings


# The embedded encoder's word beside the language model's: how probable an answer is by both.

_JUDGED = 8  # candidates of the encoder
_MOST = 6  # answers
_CONSIDERED_OVER = 0.15
SAYS_NOTHING = 0.5
"""What the language model says of an answer in passages that it did not read."""
_SUREST = 0.9  # a language model is never surer than this: small ones say yes to much
_LEAST = 0.01  # the encoder is never surer of the contrary


def weigh(probability: float, said: float, trust: float) -> float:
    """Return the encoder's probability after what the language model says: its log odds are added, as far as it is
    trusted. What it says with 0.5 changes nothing.

    >>> [round(weigh(0.8, said, 0.5), 2) for said in (0.1, 0.5, 0.99)]
    [0.57, 0.8, 0.92]
    """
    inside = min(max(said, 1 - _SUREST), _SUREST)
    odds = log_odds(probability, _LEAST) + trust * log_odds(inside)
    return 1 / (1 + math.exp(-odds))


def check_answers(
    scene: Scene,
    given: Sequence[Candidate],
    unnamed: Mapping[str, float],
    trust: float,
    policy: Policy,
) -> list[Candidate]:
    """Return the answers that are probable enough to be rewritten, most probable first: the language model's, and
    those that the encoder alone is sure of. None where both hardly believe that there is an answer.

    `unnamed` has, for each passage that the language model read, by id, what its reply says of answers that it did not
    name; `trust` is how much its word counts.
    """
    candidates, said = _merge(scene, given, unnamed)
    if not candidates:
        return []
    chances, answerable = _encoder_probabilities(scene, candidates)
    judged = [
        replace(candidate, score=weigh(chance, own, trust))
        for candidate, own, chance in zip(candidates, said, chances, strict=True)
    ]
    judged.sort(key=lambda candidate: -candidate.score)
    standard = scene.compact.trust.in_large
    if scene.is_small:
        standard = scene.compact.trust.in_small
    there = weigh(answerable, max(said), trust)
    if there < standard.answerable_over or judged[0].score < standard.only_over:
        return []
    least = min(_CONSIDERED_OVER, policy.threshold or _CONSIDERED_OVER)
    considered = [one for one in judged if one.score >= least][:_MOST]
    return join_named_together(considered) or judged[:1]


def _merge(
    scene: Scene, given: Sequence[Candidate], unnamed: Mapping[str, float]
) -> tuple[list[Candidate], list[float]]:
    """Return the encoder's candidates and those that only the language model gives, with the latter's probabilities.
    Where both mean the same, the answer is written as the language model wrote it.
    """
    candidates: list[Candidate] = []
    said: list[float] = []
    left = list(given)
    for candidate in candidates_of(scene, _saying_more(scene)[:_JUDGED]):
        same = [one for one in left if same_answer(one.answer, candidate.answer)]
        if same:
            left = [one for one in left if one not in same]
            text = fullest_form([same[0].answer, candidate.answer], [1.0, 1.0])
            spans = _join_spans(candidate, same[0])
            candidates.append(replace(candidate, answer=text, spans=spans))
            said.append(max(one.score for one in same))
        else:
            candidates.append(candidate)
            said.append(_said_of(candidate, unnamed))
    return [*candidates, *left], [*said, *(one.score for one in left)]


def _said_of(candidate: Candidate, unnamed: Mapping[str, float]) -> float:
    """Return what the language model says of an answer that it did not name."""
    passages = [span.passage.id for span in candidate.spans]
    read = [unnamed[one] for one in passages if one in unnamed]
    return max(read, default=SAYS_NOTHING)


def _saying_more(scene: Scene) -> list[int]:
    """Return the places of the encoder's answers that say something which the question does not."""
    asked = set(words(scene.evidence.question))
    return [
        place
        for place in scene.apart
        if "or" in asked or not asked.issuperset(words(scene.answers[place].text))
    ]


def _join_spans(encoded: Candidate, said: Candidate) -> tuple[Span, ...]:
    """Return the encoder's spans, best first, then the language model's in other passages, as much weaker ones."""
    spans = list(encoded.spans)
    known = {span.passage.id for span in spans}
    weakest = min((span.score for span in spans), default=1.0)
    for span in said.spans:
        if span.passage.id not in known:
            spans.append(replace(span, score=weakest * span.score))
    return tuple(spans)


def _encoder_probabilities(
    scene: Scene, candidates: Sequence[Candidate]
) -> tuple[list[float], float]:
    """Return how probable each candidate is by the embedded model, and that there is an answer at all."""
    trust = scene.compact.trust
    standard = trust.in_small if scene.is_small else trust.in_large
    rows = people.answer_features(scene, candidates)
    chances = standard.answer.probabilities(rows)
    return chances, max(trust.answerable.probabilities(rows))


# Reads for answers: each passage by itself, and each answer must stand in its passage.

_READING_MOST_TOKENS = 96
_MOST_OF_PASSAGE = 4  # answers of one passage
_LONGEST_ANSWER = 16  # words
_FEWEST = 2  # passages
_FAR = 6.0  # logits of relevance below the best passage's: four hundred to one
_READING_SCHEMA = {
    "type": "object",
    "properties": {
        "answered": {"type": "string", "enum": ["yes", "no"]},
        "answers": {"type": "array", "items": {"type": "string"}, "maxItems": _MOST_OF_PASSAGE},
    },
    "required": ["answered", "answers"],
    "additionalProperties": False,
}


@frozen
class _Said:
    """What the model says of a passage."""

    probability: float
    """That it answers the question."""
    answers: tuple[str, ...]

    @property
    def of_unnamed(self) -> float:
        """The probability that an answer is right which stands in the passage and is not named. Models name one answer
        of several and stop: beside a named one this says nothing."""
        return SAYS_NOTHING if self.answers else min(self.probability, SAYS_NOTHING)


@frozen
class _Mention:
    """An answer that stands in a passage."""

    surface: str
    span: Span
    probability: float


def read_answers(talk: Talk, case: Case, compact: Compact) -> Case:
    """Return the case with every answer that the model finds. For people, the encoder has a word in how probable each
    is.
    """
    question = clean(case.question)
    judged = compact.judge(case)
    scene = compact.scene_of(judged)
    hits = _worth_reading(scene.evidence.hits, talk.endpoint.settings.windows)
    requests = [
        talk.request(
            "read",
            _READING_MOST_TOKENS,
            schema=_READING_SCHEMA,
            top_logprobs=5,
            question=question,
            text=passage_window(hit.passage, case.question),
        )
        for hit in hits
    ]
    mentions: list[_Mention] = []
    unnamed: dict[str, float] = {}
    for hit, said in zip(hits, talk.ask(requests, _understand_reading), strict=True):
        if said is not None:
            mentions += _find(said, hit, case.question)
            unnamed[hit.passage.id] = said.of_unnamed
    answers = _group(mentions)
    if case.policy.careful:
        trust = talk.endpoint.settings.trust
        answers = check_answers(scene, answers, unnamed, trust, case.policy)
    is_ambiguous = len(answers) > 1
    return replace(judged, answers=tuple(answers), is_ambiguous=is_ambiguous)


def _worth_reading(hits: Sequence[Hit], most: int) -> list[Hit]:
    """Return the most relevant passages, at most `most`; not those that the encoder finds far less relevant than the
    best.
    """
    worth = []
    for place, hit in enumerate(hits[:most]):
        is_near = hit.score >= hits[0].score - _FAR
        if is_near or place < _FEWEST:
            worth.append(hit)
    return worth


def _understand_reading(reply: Reply) -> _Said | None:
    table = parse_object(reply.text)
    if table is None or "answers" not in table:
        return None
    answers = texts_of(table["answers"])[:_MOST_OF_PASSAGE]
    said = str(table.get("answered", "yes" if answers else "no")).lower()
    shares = choice_probability(reply, ("yes", "no")) if reply.tokens else {}
    probability = shares.get("yes", float(said == "yes"))
    if said != "yes":
        return _Said(probability, ())
    return _Said(probability, tuple(answers))


def _find(said: _Said, hit: Hit, question: str) -> list[_Mention]:
    """Return the answers that stand in the passage, as it writes them, and say what the question does not."""
    asked = set(words(question))
    mentions = []
    for answer in said.answers:
        own = words(answer)
        repeats = "or" not in asked and asked.issuperset(own)
        if not own or repeats or len(own) > _LONGEST_ANSWER:
            continue
        spans = spans_of(answer, [hit])
        if spans:
            span = replace(spans[0], score=said.probability)
            surface = hit.passage.text[span.start : span.end]
            mentions.append(_Mention(surface, span, said.probability))
        elif normalize(answer) == normalize(hit.passage.title):
            # A title's answer has no place in the text.
            span = Span(hit.passage, 0, 0, said.probability)
            mentions.append(_Mention(hit.passage.title, span, said.probability))
    return mentions


def _group(mentions: Sequence[_Mention]) -> list[Candidate]:
    """Return mentions that mean the same as one answer, most probable first."""
    surfaces = [mention.surface for mention in mentions]
    weights = [mention.probability for mention in mentions]
    answers = []
    for group in group_answers(surfaces, weights):
        own = [mentions[place] for place in group]
        own.sort(key=lambda mention: -mention.probability)
        text = fullest_form(
            [mention.surface for mention in own],
            [max(mention.probability, 1e-6) for mention in own],
        )
        spans = tuple(mention.span for mention in own)
        answers.append(Candidate(text, own[0].probability, spans))
    answers.sort(key=lambda answer: -answer.score)
    return answers


# Verifies readings: the rewrite is asked again, and the model chooses among all listed answers.

_VERIFYING_MOST_TOKENS = 4
_TOP = 12  # letters that may be among a token's alternatives
_UNSURE = 0.2  # that a bare choice, without log probabilities, is wrong
_VERIFYING_LEAST = 0.02  # of a letter's probability
_TRUE_OVER = 0.5  # a rewrite that is probably false is not given
_MOST_ANSWERS = len(string.ascii_uppercase) - 1
Shares = Mapping[str, float]
"""The probability of each letter."""


def verify_readings(talk: Talk, case: Case, compact: Compact) -> Case:
    """Return the case with what is probable split from what is merely possible. For benchmarks, readings whose
    rewrite calls for another answer go; the best one stays in any case.
    """
    scene = compact.scene_of(case)
    readings = list(case.readings)
    if 1 < len(readings) <= _MOST_ANSWERS:
        readings = _ask_again(talk, case)
    if case.policy.careful:
        probable, possible = split_probable(scene, readings, case.policy)
    else:
        probable = sorted(readings, key=lambda reading: -reading.confidence)
        least = 0.5 * max((one.confidence for one in probable), default=0.0)
        probable = [one for one in probable if one.confidence >= least]
        possible = []
    return replace(case, readings=tuple(probable), possible=tuple(possible), scratch=scene)


def _ask_again(talk: Talk, case: Case) -> list[Reading]:
    """Return the readings after what the model chose. One without a rewrite stays as it is.

    The question as it was asked is put to the model, too: what it chooses there is its habit, such as the first
    letter, and counts for nothing.
    """
    letters = string.ascii_uppercase[: len(case.readings) + 1]
    # For people the question as it was asked tells nothing of a reading without a rewrite.
    asked = [
        one for one in case.readings if one.question != case.question or not case.policy.careful
    ]
    questions = [case.question, *(one.question for one in asked)]
    table = _answer_table(case.readings, letters)
    requests = [
        talk.request(
            "verify",
            _VERIFYING_MOST_TOKENS,
            top_logprobs=_TOP,
            answers=table,
            question=clean(question),
        )
        for question in questions
    ]
    habit, *choices = talk.ask(requests, partial(_understand_verdict, letters=letters))
    weighed = {}
    for reading, chosen in zip(asked, choices, strict=True):
        letter = letters[case.readings.index(reading)]
        if chosen is not None:
            own = _against_habit(chosen, habit, letter, letters[:-1])
            trust = talk.endpoint.settings.trust
            weighed[reading] = _weigh_reading(case, reading, own, trust)
    return [weighed.get(reading, reading) for reading in case.readings]


def _answer_table(readings: Sequence[Reading], letters: str) -> str:
    candidates = [Candidate(one.answer, 0.0, one.evidence) for one in readings]
    lines = answer_lines(candidates, letters[:-1])
    return fence_lines([*lines, f"{letters[-1]}. none of these"], "answers")


def _understand_verdict(reply: Reply, letters: str) -> Shares | None:
    shares = choice_probability(reply, tuple(letters))
    if shares and not reply.tokens:
        others = _UNSURE / (len(letters) - 1)
        for letter, share in shares.items():
            shares[letter] = 1 - _UNSURE if share else others
    return shares or None


def _against_habit(chosen: Shares, habit: Shares | None, own: str, letters: str) -> float:
    """Return how much a choice speaks for an answer: 0.5 where it says no more than the habit does, or than chance.

    >>> same = {"A": 0.9, "B": 0.1}
    >>> round(_against_habit(same, same, "B", "AB"), 2), round(_against_habit({"A": 0.5, "B": 0.5}, same, "B", "AB"), 2)
    (0.5, 0.9)
    """
    weights = {}
    for letter in letters:
        usual = 1.0 if habit is None else max(habit[letter], _VERIFYING_LEAST)
        weights[letter] = max(chosen[letter], _VERIFYING_LEAST) / usual
    others = [weights[letter] for letter in letters if letter != own]
    # Beside the mean of the others: with any number of answers, no difference is 0.5.
    return weights[own] / (weights[own] + (sum(others) / len(others)))


def _weigh_reading(case: Case, reading: Reading, own: float, trust: float) -> Reading:
    """Return a reading whose rewrite was asked again. For people it loses a rewrite that is probably false by what
    the encoder and the model chose; for benchmarks its confidence counts the model's choice.
    """
    if not case.policy.careful:
        return replace(reading, confidence=reading.confidence * weigh(1.0, own, trust))
    if weigh(_encoder_choice(reading), own, trust) >= _TRUE_OVER:
        return reading
    titles = [span.passage.title for span in reading.evidence]
    source = titles[0] if titles else ""
    return replace(reading, question=case.question, source=source, asked_again=None)


def _encoder_choice(reading: Reading) -> float:
    """Return how probable the encoder finds the answer of a rewrite beside the likeliest other one; at least as
    probable as not, for it gives no other rewrite.
    """
    again = reading.asked_again
    if again is None or not again.own:
        return _TRUE_OVER
    return max(_TRUE_OVER, again.own / (again.own + again.other))
