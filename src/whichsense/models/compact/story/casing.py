"""Give a question that is written in lower case the capitals that the evidence has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.grammar import is_lower_case
from whichsense.models.compact.rewrite.forms.title_forms.parts import split_title
from whichsense.types import Passage

_WORD = re.compile(r"[\w’'&.-]*\w")
_LONGEST = 6  # words of a name
# Words inside names that are not capitalized.
_LINKS = frozenset("of the and de la in for on a an to & at vs von van der".split())


_OWNER = re.compile(r"['’]s$")
# Nouns that have a capital in names alone: the Vietnam War, but a war.
_COMMON = vocabulary.THINGS | frozenset(
    """war cup final finals king queen president minister street river island county day season world woman man girl boy
    state states north south east west grand prize award super national international association
    new old first general prime""".split()
)


def restore_capitals(
    question: str, passages: Iterable[Passage], asked: str = ""
) -> str:
    """A question without capitals, but for its first letter, with the names of the passages in their own; another one
    as it is. A rewrite is judged by the question as it was `asked`.

    >>> passage = Passage("1", "Batman (1989 film)", "Jack Nicholson played the Joker in it.")
    >>> restore_capitals("who played the joker in the 1989 film batman", [passage])
    'who played the Joker in the 1989 film Batman'
    """
    if not is_lower_case((asked or question)[1:]):
        return question
    passages = list(passages)
    lowered: set[str] = set(_COMMON)
    for passage in passages:
        lowered.update(word for word in _WORD.findall(passage.text) if word.islower())
    names: dict[str, str] = {}
    for passage in passages:
        _collect(passage, names, lowered)
    words = question.split(" ")
    place = 0
    while place < len(words):
        for size in range(min(_LONGEST, len(words) - place), 0, -1):
            phrase = " ".join(words[place : place + size])
            core = _OWNER.sub("", phrase.strip("?,.“”\"'"))
            name = names.get(core.lower(), "")
            if name:
                words[place : place + size] = phrase.replace(core, name).split()
                place += size - 1
                break
        place += 1
    return " ".join(words)


def _collect(passage: Passage, names: dict[str, str], lowered: set[str]) -> None:
    """Names in a title and in a text: lower case → as they are written. A word of `lowered` alone is no name."""
    name, _ = split_title(passage.title)
    capitals = sum(word[0].isupper() for word in name.split())
    is_name = capitals > 1 or (" " not in name and name.lower() not in lowered)
    if is_name:
        names.setdefault(name.lower(), name)
    opening = name.split()[0] if name else ""
    if opening.istitle() and opening.lower() not in lowered:
        names.setdefault(opening.lower(), opening)
    for run in _capitalized_runs(passage.text):
        for first in range(len(run)):
            for last in range(first + 1, min(first + _LONGEST, len(run)) + 1):
                part = run[first:last]
                ends_early = last < len(run)
                is_cut_off = ends_early and (
                    part[0] == "The" or part[-1].lower() in lowered
                )
                if part[0] in _LINKS or part[-1] in _LINKS or is_cut_off:
                    continue
                phrase = " ".join(part)
                if last - first == 1 and phrase.lower() in lowered:
                    continue
                names.setdefault(phrase.lower(), phrase)


def _capitalized_runs(text: str) -> Iterator[list[str]]:
    """Runs of capitalized words with the small words between them; the first word of a sentence begins none."""
    run: list[str] = []
    end = 0
    opened_sentence = False
    for match in _WORD.finditer(text):
        word = match[0]
        gap = text[end : match.start()]
        opens_sentence = end == 0 or bool(re.search(r"[.!?:\n]", gap))
        is_name = word[0].isupper() and not (opens_sentence and word.lower() in _LINKS)
        joins = gap == " " and bool(run)
        if not joins or not (is_name or word in _LINKS):
            # One capitalized word that begins a sentence may be any word.
            if len(run) > 1 or not opened_sentence:
                yield run
            run = []
            opened_sentence = opens_sentence
        if is_name or (run and word in _LINKS):
            run.append(word)
        end = match.end()
    if len(run) > 1 or not opened_sentence:
        yield run
