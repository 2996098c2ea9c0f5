"""Rewrites the question for each answer: samples of the language model compete with the answers' labels, and the
embedded encoder asks each of them again."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from whichsense.models.compact.people import readings as for_people
from whichsense.models.compact.people.proposals import Proposal
from whichsense.models.compact.rewrite.support import Support, support
from whichsense.models.compact.rewrite.targets import locate
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer.choosing import key
from whichsense.models.llm.exchange import Reply, Request
from whichsense.models.llm.fences import clean
from whichsense.models.llm.replies import parse_object, texts_of
from whichsense.models.llm.talk import Talk
from whichsense.models.llm.windows import numbered_answers
from whichsense.text.function_words import SMALL_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.words import words
from whichsense.types import FOR_PEOPLE, Candidate, Case, Reading

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
    """The case with a reading for each answer. An only answer needs no rewrite, and no call."""
    scene = compact.scene_of(case)
    answers = case.answers
    if len(answers) < 2:
        readings = for_people.rewrite_answers(scene, answers)
        return replace(case, readings=tuple(readings), scratch=scene)
    drawn = _draw(talk, case)
    proposals = []
    for number, samples in enumerate(drawn):
        proposals.append(_accept(scene, answers, number, samples))
    if case.policy.careful:
        readings = for_people.rewrite_answers(scene, answers, proposals)
    else:
        readings = _first_of_each(case, proposals)
    return replace(case, readings=tuple(readings), scratch=scene)


def _draw(talk: Talk, case: Case) -> list[list[str]]:
    """For each answer the samples."""
    answers = case.answers
    count = talk.endpoint.settings.samples
    # The answers stand before the one to rewrite for: a server that keeps prompts reads them once for all calls.
    listed = numbered_answers(answers)
    requests: list[Request] = []
    for number, answer in enumerate(answers, 1):
        for seed in range(count):
            requests.append(
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
            )
    replies = talk.ask(requests, _understand)
    samples = []
    for first in range(0, len(replies), count):
        own = [one for one in replies[first : first + count] if one is not None]
        samples.append(own)
    return samples


def _understand(reply: Reply) -> str | None:
    table = parse_object(reply.text) or {}
    texts = texts_of(table.get("question", []))
    if not texts:
        return None
    return texts[0]


def _accept(
    scene: Scene, answers: Sequence[Candidate], number: int, samples: Sequence[str]
) -> list[Proposal]:
    """The samples that may be given for an answer: they say what its evidence says, and do not give it away."""
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
    """Whether a rewrite keeps the question's words and adds only what the evidence says of the answer."""
    if _loses_word(rewrite, question):
        return False
    if len(rewrite.split()) > len(question.split()) + _LONGER:
        return False
    return all(supported.holds(text) for text in inserted_texts(question, rewrite))


def _loses_word(rewrite: str, question: str) -> bool:
    """Whether a rewrite lacks a word of the question, other than small ones: it then mostly asks for something else.

    >>> [_loses_word(one, "When was it ended?") for one in ("When was it ended in Rome?", "When was it declared?")]
    [False, True]
    """
    after = Counter(map(porter_stem, words(rewrite)))
    before = Counter(porter_stem(word) for word in words(question))
    for word in SMALL_WORDS:
        before.pop(porter_stem(word), None)
    return bool(before - after)


def inserted_texts(question: str, rewrite: str) -> list[str]:
    """What a rewrite has that the question has not, each run of words by itself.

    >>> inserted_texts("Who directed Dune?", "Who directed the 1984 film Dune in Mexico?")
    ['the 1984 film', 'in Mexico']
    """
    before = question.rstrip("? ").split()
    after = rewrite.rstrip("? ").split()
    matcher = difflib.SequenceMatcher(
        None, [key(word) for word in before], [key(word) for word in after], False
    )
    runs = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            runs.append(" ".join(after[start:end]))
    return runs


def _as_question(text: str) -> str:
    """A rewrite as a question is written: with its mark, and a capital at the beginning.

    >>> _as_question("who won in 1990")
    'Who won in 1990?'
    """
    bare = text.strip().rstrip("?.! ")
    return f"{bare[:1].upper()}{bare[1:]}?"


def _first_of_each(
    case: Case, proposals: Sequence[Sequence[Proposal]]
) -> list[Reading]:
    """For benchmarks: the first sample that differs from those of the other answers, or the question as it is."""
    taken: set[str] = set()
    readings = []
    for answer, own in zip(case.answers, proposals, strict=True):
        free = [one.question for one in own if key(one.question) not in taken]
        rewrite = free[0] if free else case.question
        taken.add(key(rewrite))
        readings.append(Reading(rewrite, answer.answer, answer.spans, answer.score))
    return readings
