"""Make a sentence of a passage stand alone: what it refers back to is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from whichsense.models.compact.story.grammar import word_lists
from whichsense.models.compact.story.grammar.verbs import has_verb
from whichsense.models.compact.story.naming import (
    is_same_kind,
    split_title,
    title_name,
    work_of,
)
from whichsense.text.dates import MONTHS
from whichsense.types import Passage

_PERSON_PRONOUNS = ("he", "she", "his", "her")
_THING_PRONOUNS = ("it", "its")
_POSSESSIVES = ("his", "her", "its")
_PRONOUN = re.compile(r"\b(?:he|she|it|his|her|its|him|they|their|them)\b", re.I)
_WORK = re.compile(
    rf"\b(?P<article>the|The) (?P<noun>{'|'.join(sorted(word_lists.PREPOSITION_OF_WORK))})(?P<owner>['’]s)?(?= |,|\.)"
)
# Words that point outside the sentence.
_POINTERS = re.compile(
    r"\b(?:this|these|those|the former|the latter|aforementioned|above|below|here|such|another|the other|others"
    r"|respectively|the rest|the (?:first|last|other) (?:two|three|four)(?! [a-z])|you|your|we|our|us|I|my"
    r"|(?:the same|that|the following|the previous|the next) (?:year|month|day|season|week|decade))\b",
    re.IGNORECASE,
)
_RELATIVE_TIME = re.compile(
    r"(?:(?:About|Almost|Nearly|Over|Some|Just)? ?[\w-]+ (?:years?|months?|weeks?|days?|decades?) later"
    r"|Later|Soon(?: after(?:wards)?)?|Afterwards|Eventually|Shortly after(?:wards)?|Subsequently|Previously),? "
)
_BAD_START = re.compile(
    r"(?:They|Their|Them|This|That|These|Those|Both|Such|Others?|Another|Which|Who|Where|When it|While|As such"
    r"|Here|Either|Neither|Some|Most|Many|All|One|Two|Three|What|Why|How)\b"
)
_NAME = re.compile(
    r"(?:(?:Sir|Dr|Dame|Lord|Lady)\.? )?"
    r"(?P<name>(?!The |An? |In |On |At |After |\w+ing )[A-Z][\w’'.-]*\w"
    r"(?: (?:[A-Z][\w’'.-]*|de|von|van|der|la|of))+)(?= [a-z(]|,)"
)
_PLACE_PREPOSITIONS = frozenset("in over at on from near of to across the".split())
_AFTER_OBJECT = re.compile(
    r"(?:$|[.,;]| (?:in|on|at|by|for|from|to|with|as|until|and)\b)"
)
_CAPITALIZED = re.compile(r"\b[A-Z][\w’'-]+")


def stand_alone(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """One of a passage's sentences with its references named; empty where one stays open.

    >>> passage = Passage("1", "Batman (1989 film)", "")
    >>> stand_alone(passage, ["It is by Tim Burton.", "Jack Nicholson plays the Joker."], 0)
    'The 1989 film Batman is by Tim Burton.'
    >>> stand_alone(passage, ["It is by Tim Burton.", "Jack Nicholson plays the Joker."], 1)
    'In the 1989 film Batman, Jack Nicholson plays the Joker.'
    """
    text = _without_time(sentences[place])
    if _BAD_START.match(text) or re.match(r"There (?!is|are|was|were)", text):
        return ""
    text = _name_work(text, passage)
    text = _name_pronouns(text, passage, sentences, place) if text else ""
    text = _set_scene(text, passage) if text else ""
    if not text or _POINTERS.search(_unquoted(text)):
        return ""
    return text[0].upper() + text[1:]


def _without_time(text: str) -> str:
    """The sentence without an opening that counts from the one before: "Two years later, …"."""
    match = _RELATIVE_TIME.match(text)
    rest = text[match.end() :] if match else text
    return rest[:1].upper() + rest[1:]


def _unquoted(text: str) -> str:
    return re.sub(r"[\"“][^\"”]*[\"”]", "", text)


def _name_work(text: str, passage: Passage) -> str:
    """ "the film" as the title names it; empty where the title does not."""
    match = _WORK.search(text)
    name, _ = split_title(passage.title)
    if match is None or name in text or _is_defined(text, match):
        return text
    full_name = title_name(passage)
    if not full_name or not _is_kind(passage, match["noun"]):
        return ""
    replacement = _make_possessive(name) if match["owner"] else full_name
    return text[: match.start()] + replacement + text[match.end() :]


def _is_defined(text: str, match: re.Match[str]) -> bool:
    """Whether a name or an "of …" behind "the film" says which one, or an earlier word of the sentence does."""
    behind = text[match.end() :]
    before = text[: match.start()]
    has_name = re.match(r" (?:[A-Z\"“]|of |that |which |in which |version)", behind)
    is_known = re.search(rf"\b(?:an?|[\w-]+) {match['noun']}\b", before)
    return has_name is not None or is_known is not None


def _is_kind(passage: Passage, noun: str) -> bool:
    """Whether a passage is about a thing of this kind, by its title or by its own words."""
    work = work_of(passage)
    if work is not None:
        return is_same_kind(work.kind, noun)
    name, _ = split_title(passage.title)
    called = rf"{re.escape(name)}\W+(?:is|was)\b[^.]*\b{noun}\b"
    return re.search(called, passage.text) is not None


def _name_pronouns(
    text: str, passage: Passage, sentences: Sequence[str], place: int
) -> str:
    """Pronouns by the names that they stand for, unless the sentence names them; empty where that is unknown."""
    start = 0
    while True:
        match = _PRONOUN.search(_masked(text), start)
        if match is None:
            return text
        before, behind = text[: match.start()], text[match.end() :]
        start = match.end()
        pronoun = match[0].lower()
        if not _is_open(before, pronoun, behind):
            continue
        name = ""
        if pronoun in _PERSON_PRONOUNS:
            name = _person(passage, sentences, place)
        elif pronoun in _THING_PRONOUNS:
            name = _thing(passage, sentences, place)
        if not name or name in text:
            return ""
        text = f"{before}{_make_possessive(name) if pronoun in _POSSESSIVES else name}"
        start = len(text)
        text += behind


def _is_open(before: str, pronoun: str, behind: str) -> bool:
    """Whether nothing before a pronoun says what it stands for."""
    is_subject = before.rstrip().endswith(",") and not has_verb(before)
    if is_subject and pronoun not in _POSSESSIVES:
        return True  # "In 1712, it pumped …"
    is_object = pronoun == "it" and _AFTER_OBJECT.match(behind) is not None
    if is_object and not _has_noun(before):
        return True
    if pronoun in ("his", "her") and _has_noun(before):
        return False  # "a baby's abduction … and his escape"
    return not _has_antecedent(before, pronoun)


def _has_noun(before: str) -> bool:
    """Whether a common noun stands before an object pronoun, which may stand for it."""
    return re.search(r"\b(?:an?|the|its|their|his|her) [a-z]", before, re.I) is not None


def _masked(text: str) -> str:
    """The text with its quotations blanked, at the same length."""
    return re.sub(r"[\"“][^\"”]*[\"”]", lambda match: "_" * len(match[0]), text)


def _has_antecedent(before: str, pronoun: str) -> bool:
    """Whether the words before a pronoun hold something that it can stand for."""
    words = before.split()
    if not words:
        return False
    for previous, word in pairwise(words):
        if not _CAPITALIZED.match(word) or word in MONTHS:
            continue
        is_place = previous.lower() in _PLACE_PREPOSITIONS
        if pronoun not in _PERSON_PRONOUNS or not is_place:
            return True
    first = words[0].lower()
    is_small = first in word_lists.PREPOSITIONS or first in word_lists.CONJUNCTIONS
    if not is_small and first not in word_lists.DETERMINERS:
        return True
    is_thing = pronoun in ("it", "its", "they", "their", "them")
    return is_thing and len(words) > 2 and _has_noun(before)


def _person(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """The person that "he" or "she" at a place means: whom the sentence before begins with, or the title's."""
    title, _ = split_title(passage.title)
    for earlier in reversed(sentences[:place]):
        if re.match(r"(?:He|She|His|Her)\b", earlier):
            continue
        match = _NAME.match(earlier)
        if match is None:
            first = earlier.split()[0].strip(",")
            return title if _is_person(passage) and first in title.split() else ""
        name = match["name"]
        is_titles = bool(set(name.split()) & set(title.split()))
        return title if is_titles and _is_person(passage) else name
    return title if _is_person(passage) else ""


def _is_person(passage: Passage) -> bool:
    """Whether a title is a person's name: two to four capitalized words, and a "he" or "she" in the text."""
    name, inside = split_title(passage.title)
    parts = name.split()
    if not 2 <= len(parts) <= 4 or inside.split()[-1:] in (["film"], ["series"]):
        return False
    is_name = all(part[0].isupper() and part.isalpha() for part in parts)
    return (
        is_name and re.search(r"\b(?:he|she|his|her)\b", passage.text, re.I) is not None
    )


def _thing(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """The thing that "it" at a place means: the title's, if the sentences before are about it."""
    name, _ = split_title(passage.title)
    if _is_person(passage):
        return ""
    for earlier in reversed(sentences[:place]):
        if re.match(r"(?:It|Its)\b", earlier):
            continue
        is_about = name in earlier or _WORK.match(earlier) is not None
        return title_name(passage) if is_about else ""
    return title_name(passage)


def _set_scene(text: str, passage: Passage) -> str:
    """ "In the 1989 film Batman, …" before a sentence about who appears in a work that it does not name."""
    work = work_of(passage)
    name, _ = split_title(passage.title)
    if work is None or name in text:
        return text
    words = re.findall(r"[\w’'-]+", text)
    if not word_lists.APPEARING.intersection(words[:8]):
        return ""
    if not (
        words and text[0].isupper() and words[0].lower() not in word_lists.PREPOSITIONS
    ):
        return ""
    opens_noun = words[0].lower() in word_lists.DETERMINERS
    first = text[0].lower() + text[1:] if opens_noun else text
    return f"{work.preposition.capitalize()} {title_name(passage)}, {first}"


def _make_possessive(name: str) -> str:
    """The possessive of a name.

    >>> _make_possessive("Verdi"), _make_possessive("Pet Shop Boys")
    ("Verdi's", "Pet Shop Boys'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"
