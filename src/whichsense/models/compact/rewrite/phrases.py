"""Rewrites from the evidence itself: what stands beside an answer and tells it from the others, put to the question.

Years, what a title has in brackets (Dune (1984 film)), and phrases such as "at Wimbledon" or "in the United States"
from the sentences that hold the answer. What stands beside another answer too says nothing and is left out.
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
# What a title has behind the name that several things have: Dune (1984 film); for readers also Springfield, Illinois,
# Oliver Holmes Sr. and World War II.
_BRACKETS = re.compile(r" \([^()]+\)\s*$")
_BEHIND = re.compile(rf"{_BRACKETS.pattern}|, [^,()]+$| (?:[SJ]r\.?|[IVX]+|\d\d?)$")
_NAME = r"[A-Z0-9][\w'’-]*"
_PHRASE = re.compile(
    rf"\b(?:in|at|for|from|on|during|as|by|with)\s+(?:the\s+)?{_NAME}(?:\s+(?:of\s+(?:the\s+)?)?{_NAME}){{0,4}}"
)
# Mean EDIT-F1 of such a phrase behind the question, over 3,000 pairs of AmbigNQ train, by what is asked for ("": all);
# the most promising are looked at. Brackets have .11 for "who"; they count as for all questions there, because they
# name the reading best.
_WORTH = {
    "brackets": {"": 0.16, "when": 0.24},
    "year": {"": 0.12, "which": 0.20, "who": 0.13},
    "phrase": {"": 0.11, "who": 0.12},
}
_LESS = 0.04  # for each passage that supports the answer better
_MOST = 4
# For readers, beyond what the scorer says, which was fitted to annotators who write no brackets: they read best.
# What is called by a longer name reads better still.
_CALLED, _NAMED, _TOLD = 0.2, 0.1, 0.02


def phrase_rewrites(
    scene: Scene,
    targets: Sequence[Target],
    told: Sequence[Support],
    *,
    cautious: bool = False,
) -> list[list[Option]]:
    """For each answer the rewrites that its evidence gives, the most promising first; if `cautious`, by all that a
    title may have behind a name."""
    behind = _BEHIND if cautious else _BRACKETS
    around, question = (
        [beside(scene, target) for target in targets],
        scene.evidence.question,
    )
    found = []
    for place, supported in enumerate(told):
        others = " ".join(
            text
            for number, texts in enumerate(around)
            if number != place
            for some in texts
            for text in some
        )
        elsewhere = f" {' '.join(words(others))} "
        made: dict[str, tuple[float, Option]] = {}
        for phrase, worth in _phrases(scene, around[place], behind):
            said, asked = " ".join(words(phrase)), _asked(question, phrase, behind)
            fits = (
                f" {said} " not in elsewhere
                and _says_more(scene, phrase)
                and supported.holds(phrase)
            )
            if fits and key(asked) != key(question):
                bonus = (
                    _NAMED
                    if _BRACKETS.search(phrase)
                    else _CALLED
                    if behind.search(phrase)
                    else _TOLD
                )
                made.setdefault(said, (worth, Option(asked, phrase=True, bonus=bonus)))
        found.append(
            [
                option
                for _, option in sorted(made.values(), key=lambda one: -one[0])[:_MOST]
            ]
        )
    return found


def _asked(question: str, phrase: str, behind: re.Pattern[str] = _BEHIND) -> str:
    """The question with a phrase behind it; what a title has behind a name goes behind the name that it explains.

    >>> _asked("Who wrote dune?", "in 1984"), _asked("Who wrote dune first?", "Dune (novel)")
    ('Who wrote dune in 1984?', 'Who wrote dune (novel) first?')
    >>> _asked("Who played spider man?", "Spider-Man (2002 film)")
    'Who played spider man (2002 film)?'
    >>> _asked("Who lives in Springfield?", "Springfield, Ohio"), _asked("When did John Doe die?", "John Doe Sr.")
    ('Who lives in Springfield, Ohio?', 'When did John Doe Sr. die?')
    """
    asked = question.strip().rstrip("?").rstrip()
    if more := behind.search(phrase):
        end = _end_of(phrase[: more.start()], asked)
        return (
            question
            if end is None
            else f"{asked[:end]}{more[0].rstrip()}{asked[end:]}?"
        )
    return f"{asked} {phrase}?"


def _end_of(name: str, question: str) -> int | None:
    """Where a name ends in a question: spelt as the title has it, or else its words with other signs between them."""
    for spelt in (re.escape(name), r"\W+".join(words(name))):
        if found := re.search(rf"\b{spelt}(?!\w)", question, re.IGNORECASE):
            return found.end()
    return None


def _phrases(
    scene: Scene, around: Sequence[Sequence[str]], behind: re.Pattern[str]
) -> Iterator[tuple[str, float]]:
    """What may be put to the question, and its worth. What stands in the answer's best passage is meant most likely."""
    asked, question = (
        asked_for(scene.evidence.question),
        f" {' '.join(words(scene.evidence.question))} ",
    )
    worth = {kind: values.get(asked, values[""]) for kind, values in _WORTH.items()}
    for rank, (title, *holding) in enumerate(around):
        less = _LESS * rank
        if (
            behind.search(title)
            and f" {' '.join(words(behind.sub('', title)))} " in question
        ):
            yield title, worth["brackets"] - less
        for text in holding:
            for match in _PHRASE.finditer(text):
                yield match[0], worth["phrase"] - less
            if asked != "when":
                for year in _YEAR.findall(text):
                    yield f"in {year}", worth["year"] - less


def _says_more(scene: Scene, phrase: str) -> bool:
    """Whether there is a word with a meaning in it that the question does not have."""
    asked = set(words(scene.evidence.question))
    return any(word not in asked for word in words(phrase)[1:] if word != "the")
