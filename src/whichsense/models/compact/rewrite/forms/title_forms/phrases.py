"""Forms that take a phrase out of a title: its year, its place, whether it is about men or women."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.grammar import append_phrase, put_in_past
from whichsense.models.compact.rewrite.forms.title_forms.inserting import Proposal
from whichsense.models.compact.rewrite.forms.title_forms.mentions import split_words
from whichsense.models.compact.rewrite.forms.title_forms.runs import (
    EDGE_WORDS,
    find_longest_run,
)
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    EVENT_NAMES,
    MAKING_VERBS,
    ORDER_WORDS,
)
from whichsense.text.function_words import QUESTION_WORDS

_YEAR = re.compile(r"(?<![\d–/-])(?:1[3-9]|20)\d\d(?![\d–/-])")
_ASKS_TIME = re.compile(
    r".*\b(?:when|what year|which year|what date|how long ago)\b", re.I
)
_SPAN = re.compile(r"\b(?:since|after|before|from|until|to|by) \d{4}", re.IGNORECASE)
_PAST = re.compile(
    r"\b(?:was|were|did|had|won|led|wrote|sang|beat|held|took|became|made|lost|\w+ed)\b"
)
_PLACE = re.compile(
    r"^(?P<topic>.+) (?P<phrase>in (?:the )?(?:[A-Z][\w’'.-]*)(?: [A-Z][\w’'.-]*)*)$"
)
_SEX = re.compile(r"\b(?P<sex>(?:Wom|M)en)[’']s\b|\((?P<bracket>(?:wom|m)en)\)$")
_CONTEST = re.compile(
    r"\b(?:(?:world|olympic|european|asian|national|euro|team) )?"
    r"(?:records?|championships?|titles?|cups?|finals?|races?|tournaments?|medals?|champions?)\b",
    re.IGNORECASE,
)


def phrase_rewrites(question: str, title: str) -> Iterator[Proposal]:
    """Rewrites by a phrase of a title that shares a word with the question, best first."""
    if find_longest_run(question, title) is None:
        return
    yield from _sex_rewrites(question, title)
    ends_with_place = re.search(r"\b(?:in|at|on) (?:[\w’'-]+ ?){1,4}\W*$", question)
    place = _PLACE.match(title)
    if place and not ends_with_place and find_longest_run(question, place["topic"]):
        yield Proposal(append_phrase(question, place["phrase"]), "phrase:place")
    yield from _year_rewrites(question, title)


def _year_rewrites(question: str, title: str) -> Iterator[Proposal]:
    """in 1980, of an event that is over."""
    years = _YEAR.findall(title)
    is_bracketed = title.endswith(")") and not re.match(EVENT_NAMES, title)
    if len(years) != 1 or is_bracketed or _SPAN.search(title):
        return
    if _ASKS_TIME.match(question) or _YEAR.search(question):
        return
    past = put_in_past(question)
    if _PAST.search(past):
        yield Proposal(append_phrase(past, f"in {years[0]}"), "phrase:year")


def _sex_rewrites(question: str, title: str) -> Iterator[Proposal]:
    """the women's world record."""
    sex = _SEX.search(title)
    contest = _CONTEST.search(question)
    if not sex or not contest or re.search(r"\b(?:wo)?men\b", question, re.IGNORECASE):
        return
    place = _start_of_phrase(question, contest.start())
    before = question[:place].split()
    if not before or before[-1].lower() in ("a", "an"):
        return
    added = f"{(sex['sex'] or sex['bracket']).lower()}'s "
    yield Proposal(f"{question[:place]}{added}{question[place:]}", "phrase:sex")


def _start_of_phrase(question: str, place: int) -> int:
    """Where the nouns and adjectives before a place begin, behind article and "first".

    >>> question = "Who won the first university boat race?"
    >>> question[_start_of_phrase(question, question.index("race")) :]
    'university boat race?'
    """
    for word in reversed(split_words(question[:place])):
        is_noun = word.form not in QUESTION_WORDS | ORDER_WORDS | EDGE_WORDS
        if not is_noun or word.form in MAKING_VERBS or len(word.form) == 1:
            break
        place = word.start
    return place
