"""Rewrites from the evidence itself: the question with a phrase that stands beside one answer and beside no other.

Phrases are years, what a title has in brackets (Dune (1984 film)), and phrases such as "at Wimbledon" or "in the United
States" from the sentences that hold the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.rewrite.support import Support, Target, beside
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Option, key
from whichsense.models.compact.scorer.views import asked_for
from whichsense.text.words import words

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
# The brackets of a title whose name several things have: Dune (1984 film).
_BRACKETS = re.compile(r" \([^()]+\)\s*$")
_NAME = r"[A-Z0-9][\w'’-]*"
_PHRASE = re.compile(
    rf"\b(?:in|at|for|from|on|during|as|by|with)\s+(?:the\s+)?{_NAME}(?:\s+(?:of\s+(?:the\s+)?)?{_NAME}){{0,4}}"
)
# Mean EDIT-F1 of such a phrase behind the question, over 3,000 pairs of AmbigNQ train, by what is asked for ("": all);
# the most promising are tried. Brackets have .11 for "who"; they count as for all questions there, because they name
# the reading best.
_WORTH = {
    "brackets": {"": 0.16, "when": 0.24},
    "year": {"": 0.12, "which": 0.20, "who": 0.13},
    "phrase": {"": 0.11, "who": 0.12},
}
_RANK_PENALTY = 0.04  # for each passage that supports the answer better
_MOST = 4  # rewrites for each answer


def phrase_rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[list[Option]]:
    """For each answer the rewrites with phrases of its evidence, the most promising first."""
    around = [beside(scene, target) for target in targets]
    rewrites = []
    for place, supported in enumerate(told):
        others = [*around[:place], *around[place + 1 :]]
        elsewhere = _spaced_words(" ".join(_flatten(others)))
        best: dict[str, tuple[float, Option]] = {}
        for phrase, worth in _phrases(scene, around[place]):
            if not _is_usable(scene, phrase, elsewhere, supported):
                continue
            option = _option(scene.evidence.question, phrase)
            if option is not None:
                # Of two phrases with the same words the first one stays.
                best.setdefault(key(phrase), (worth, option))
        ranked = sorted(best.values(), key=lambda item: -item[0])
        rewrites.append([option for _, option in ranked[:_MOST]])
    return rewrites


def _flatten(around: Sequence[Sequence[Sequence[str]]]) -> Iterator[str]:
    """All texts beside some answers."""
    for passages in around:
        for texts in passages:
            yield from texts


def _phrases(
    scene: Scene, around: Sequence[Sequence[str]]
) -> Iterator[tuple[str, float]]:
    """The phrases beside an answer and their worth, which is less in passages that support the answer less."""
    question = scene.evidence.question
    asked = asked_for(question)
    worth = {kind: values.get(asked, values[""]) for kind, values in _WORTH.items()}
    for rank, (title, *sentences) in enumerate(around):
        penalty = _RANK_PENALTY * rank
        name = _BRACKETS.sub("", title)
        is_asked = _spaced_words(name) in _spaced_words(question)
        if _BRACKETS.search(title) and is_asked:
            yield title, worth["brackets"] - penalty
        for sentence in sentences:
            for match in _PHRASE.finditer(sentence):
                yield match[0], worth["phrase"] - penalty
            if asked == "when":
                continue
            for year in _YEAR.findall(sentence):
                yield f"in {year}", worth["year"] - penalty


def _is_usable(scene: Scene, phrase: str, elsewhere: str, supported: Support) -> bool:
    """Whether a phrase tells the answer from the others, adds to the question, and is supported."""
    return (
        _spaced_words(phrase) not in elsewhere
        and _adds_word(scene.evidence.question, phrase)
        and supported.holds(phrase)
    )


def _adds_word(question: str, phrase: str) -> bool:
    """Whether a phrase has a word, behind its preposition, that the question does not have."""
    known = {*words(question), "the"}
    return any(word not in known for word in words(phrase)[1:])


def _option(question: str, phrase: str) -> Option | None:
    """The question with the phrase; None if that has the same words as the question."""
    rewrite = insert_phrase(question, phrase)
    if key(rewrite) == key(question):
        return None
    return Option(rewrite, phrase=True)


def insert_phrase(question: str, phrase: str) -> str:
    """Append a phrase to the question; insert a title's brackets behind the name that they belong to.

    >>> insert_phrase("Who wrote dune?", "in 1984"), insert_phrase("Who wrote dune first?", "Dune (novel)")
    ('Who wrote dune in 1984?', 'Who wrote dune (novel) first?')
    >>> insert_phrase("Who played spider man?", "Spider-Man (2002 film)")
    'Who played spider man (2002 film)?'
    """
    bare = question.strip().rstrip("?").rstrip()
    match = _BRACKETS.search(phrase)
    if not match:
        return f"{bare} {phrase}?"
    end = _end_of(phrase[: match.start()], bare)
    if end is None:
        return question
    return f"{bare[:end]}{match[0].rstrip()}{bare[end:]}?"


def _end_of(name: str, question: str) -> int | None:
    """The character at which a name ends in a question: spelt as in the title, or else with other punctuation."""
    for pattern in (re.escape(name), r"\W+".join(words(name))):
        match = re.search(rf"\b{pattern}(?!\w)", question, re.IGNORECASE)
        if match:
            return match.end()
    return None


def _spaced_words(text: str) -> str:
    """The words of a text with a space before, between and behind them, to search for whole words."""
    return f" {' '.join(words(text))} "
