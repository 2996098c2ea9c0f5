"""Rewrites that may be given for each answer: by forms that the evidence fills, and by the writer for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.conditions import condition_rewrites
from whichsense.models.compact.rewrite.forms.lists import (
    adds_label,
    label_of,
    list_rewrites,
)
from whichsense.models.compact.rewrite.forms.snippets import (
    AnswerEvidence,
    FormRewrite,
    Snippet,
)
from whichsense.models.compact.rewrite.forms.titles import title_rewrites
from whichsense.models.compact.rewrite.rewriting import draw_rewrites
from whichsense.models.compact.rewrite.support import Support, Target
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import key
from whichsense.text.function_words import SMALL_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.words import words

TITLE = "title"
CONDITION = "condition"
WRITER = "writer"
_SAMPLES = 10  # of the writer, for each answer
_MOST_OF_FORM = 3  # rewrites by each kind of form
# What every answer to "who" or "where" may be: naming it tells no two of them apart.
_CLASSES = frozenset(
    "actor artist author character city club company country group individual man men name nation organisation "
    "organization party people performer person place player singer star state team thing town writer".split()
)
_SMALL_STEMS = frozenset(map(porter_stem, SMALL_WORDS))
_STUMBLING = (
    re.compile(r"\b(?:what|which)\b.*\b(?:what|which)\b"),
    re.compile(r"\b(\w+ \w+) \1\b"),
    re.compile(r"\bfrom (\w+) to \1\b"),
    re.compile(r"\b(?:as|at|by|for|from|in|of|on|to|with) \d\d?$"),
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite that may be given for an answer."""

    question: str
    source: str
    """What proposed it: a form of titles or conditions, or the writer."""
    likely: float = 0.0
    """The mean log probability of its tokens, if the writer wrote it."""
    drawn: float = 0.0
    """The share of the writer's samples that are equal to it."""
    is_listed: bool = False
    """Whether a form adds the label that the answer has in a list."""


def propose_rewrites(
    scene: Scene, targets: Sequence[Target], supports: Sequence[Support]
) -> list[list[Proposal]]:
    """Different rewrites for each answer: forms first, then the writer's by their likelihood."""
    evidence = [collect_evidence(scene, target) for target in targets]
    writer = scene.compact.people_writer
    written = draw_rewrites(writer, scene, targets, supports, _SAMPLES)
    question = scene.evidence.question
    proposals = []
    for number, own in enumerate(evidence):
        others = [*evidence[:number], *evidence[number + 1 :]]
        label = label_of(question, own, others)
        by_key: dict[str, Proposal] = {}
        for source, propose in (
            (CONDITION, list_rewrites),
            (TITLE, title_rewrites),
            (CONDITION, condition_rewrites),
        ):
            forms: list[FormRewrite] = propose(question, own, others)
            for form in forms[:_MOST_OF_FORM]:
                is_listed = propose is list_rewrites or (
                    label is not None and adds_label(form.question, question, label)
                )
                proposal = Proposal(form.question, source, is_listed=is_listed)
                by_key.setdefault(key(form.question), proposal)
        options = sorted(written[number].options, key=lambda one: -one.likely)
        samples = [key(text) for text in written[number].drawn]
        for option in options:
            if stumbles(option.question, question):
                continue
            if loses_word(option.question, question):
                continue
            name = key(option.question)
            drawn = samples.count(name) / max(len(samples), 1)
            proposal = Proposal(option.question, WRITER, option.likely, drawn)
            by_key.setdefault(name, proposal)
        by_key.pop(key(question), None)
        telling = []
        for proposal in by_key.values():
            if adds_only_class(proposal.question, question):
                continue
            if not says_again(proposal.question, question):
                telling.append(proposal)
        proposals.append(telling)
    return proposals


def collect_evidence(scene: Scene, target: Target) -> AnswerEvidence:
    """Where an answer stands, as forms read it: one snippet for each span, best passages first."""
    snippets = []
    for place, spans in target.marked.items():
        pair = scene.evidence.pairs[place]
        passage = scene.evidence.passages[place]
        first_token, end_token = pair.text
        for first, end in spans:
            if first_token <= first < end_token:
                start, stop = pair.starts[first], pair.ends[end - 1]
                snippets.append(Snippet(passage.title, passage.text, start, stop))
            else:
                snippets.append(Snippet(passage.title, passage.text, 0, 0))
    return AnswerEvidence(target.answer, tuple(snippets))


def stumbles(text: str, question: str) -> bool:
    """Whether a bigram is doubled, it is asked twice, a span of years has no length, or a bare number ends the text.
    What the question itself has is allowed.

    >>> [stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in Berlin", "from 1945 to 1945", "as 8")]
    [True, True, True]
    >>> [stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in 1945", "from 1939 to 1945", "on May 8")]
    [False, False, False]
    """
    after = key(text)
    before = key(question)
    for pattern in _STUMBLING:
        for match in pattern.finditer(after):
            if match[0] not in before:
                return True
    return False


def says_again(rewrite: str, question: str) -> bool:
    """Whether a word of a rewrite soon comes again, or three words come again anywhere, in other forms too. What the
    question itself has is allowed.

    >>> question = "How many seasons of Lost are there?"
    >>> [says_again(one, question) for one in ("How many seasons of season 8 of Lost are there?", question)]
    [True, False]
    """
    return bool(_repetitions(rewrite) - _repetitions(question))


def _repetitions(text: str) -> Counter[tuple[str, ...]]:
    """Stems that come again within two words, and three in a row that come again; small words and numbers aside."""
    stems = list(map(porter_stem, words(text)))
    again = Counter[tuple[str, ...]]()
    for distance in (1, 2):
        for first, second in zip(stems, stems[distance:], strict=False):
            if first == second and first.isalpha() and first not in _SMALL_STEMS:
                again[(first,)] += 1
    triples = Counter(zip(stems, stems[1:], stems[2:], strict=False))
    for triple, count in triples.items():
        if count > 1 and not _SMALL_STEMS.issuperset(triple):
            again[triple] += count
    return again


def adds_only_class(rewrite: str, question: str) -> bool:
    """Whether a rewrite adds nothing but a class that says little: "Which team won?" for "Who won?".

    >>> [adds_only_class(one, "Who won?") for one in ("Which team won?", "Which guest team won?", "Who won in Rome?")]
    [True, False, False]
    """
    added = set(words(rewrite)) - set(words(question)) - set(SMALL_WORDS)
    added -= {"what", "which"}
    return bool(added) and added <= _CLASSES


def loses_word(rewrite: str, question: str) -> bool:
    """Whether a rewrite lacks a word of the question, other than small ones: the writer then mostly asks for something
    else. Forms change a verb or a role by rule, and may.

    >>> [loses_word(one, "When was it ended?") for one in ("When was it ended in Rome?", "When was it declared?")]
    [False, True]
    """
    after = Counter(map(porter_stem, words(rewrite)))
    before = Counter(porter_stem(word) for word in words(question))
    for word in SMALL_WORDS:
        before.pop(porter_stem(word), None)
    return bool(before - after)
