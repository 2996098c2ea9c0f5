"""Reads for answers: each passage by itself, and each answer must stand in its passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.models.compact.scene import Compact
from whichsense.models.llm.exchange import Reply
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import choice_probability, parse_object, texts_of
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.thinking.checks import SAYS_NOTHING, check_answers
from whichsense.models.llm.windows import passage_window
from whichsense.text.answers import fullest_form, group_answers
from whichsense.text.spans import spans_of
from whichsense.text.words import normalize, words
from whichsense.types import Candidate, Case, Hit, Span

_MOST_TOKENS = 96
_MOST_OF_PASSAGE = 4  # answers of one passage
_LONGEST_ANSWER = 16  # words
_FEWEST = 2  # passages
_FAR = 6.0  # logits of relevance below the best passage's: four hundred to one
_SCHEMA = {
    "type": "object",
    "properties": {
        "answered": {"type": "string", "enum": ["yes", "no"]},
        "answers": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": _MOST_OF_PASSAGE,
        },
    },
    "required": ["answered", "answers"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Mention:
    """An answer that stands in a passage."""

    surface: str
    span: Span
    probability: float


def read_answers(talk: Talk, case: Case, compact: Compact) -> Case:
    """The case with every answer that the model finds. For people, the encoder has a word in how probable each is."""
    question = clean(case.question)
    judged = compact.judge(case)
    scene = compact.scene_of(judged)
    hits = _worth_reading(scene.evidence.hits, talk.endpoint.settings.windows)
    requests = []
    for hit in hits:
        text = passage_window(hit.passage, case.question)
        requests.append(
            talk.request(
                "read",
                _MOST_TOKENS,
                schema=_SCHEMA,
                top_logprobs=5,
                question=question,
                text=text,
            )
        )
    mentions: list[_Mention] = []
    unnamed: dict[str, float] = {}
    for hit, said in zip(hits, talk.ask(requests, _understand), strict=True):
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
    """The most relevant passages, at most `most`; not those that the encoder finds far less relevant than the best."""
    worth = []
    for place, hit in enumerate(hits[:most]):
        is_near = hit.score >= hits[0].score - _FAR
        if is_near or place < _FEWEST:
            worth.append(hit)
    return worth


def _understand(reply: Reply) -> _Said | None:
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
    """The answers that stand in the passage, as it writes them, and say what the question does not."""
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
    """Mentions that mean the same as one answer, most probable first."""
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
