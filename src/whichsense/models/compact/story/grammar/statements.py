"""Make a statement of a question and its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.grammar import has_doubled_word
from whichsense.models.compact.story.grammar.gaps import Gap
from whichsense.models.compact.story.grammar.questions import parse_question
from whichsense.text.dates import parse_date
from whichsense.types import Span

_PERIOD = re.compile(
    r"(?:the )?(?:early |late |mid-?)?(?:\d{3,4}s|\d{1,2}(?:st|nd|rd|th) century)|(?:spring|summer|autumn|winter)"
    r"(?: of)? \d{4}",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?", re.I)
_WEEKDAY = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?")
_ADVERBIAL = re.compile(
    r"(?:in|on|at|from|since|after|before|between|during|until|around|by|near|within|with|upon)\b",
    re.IGNORECASE,
)
_FREQUENCY = re.compile(
    r"(?:every|each|once|twice|daily|weekly|monthly|yearly|annually|\w+ times)\b", re.I
)
_PLACE_BEFORE = re.compile(
    r"\b(in|at|on|near|outside|off|around|through) (?:the )?$", re.IGNORECASE
)
_ARTICLE_BEFORE = re.compile(r"\b(the|an?) $", re.IGNORECASE)
_FIGURE = re.compile(r"[\d.,]+(?: (?:million|billion|thousand))?|[a-z]+(?:-[a-z]+)?")
_PLURALS = {"is": "are", "was": "were", "has": "have"}
# Words that mean another time to whoever reads the statement.
_RELATIVE = re.compile(
    r"\b(?:(?:this|next|last) (?:year|season|month|week|time)|now|today|yet|so far|upcoming"
    r"|you|your|I|my|we|our|they)\b",
    re.I,
)
_LONGEST_ANSWER = 12  # words


@dataclass(frozen=True, slots=True)
class Statement:
    """A question's answer as a sentence, in its three parts."""

    before: str
    answer: str
    """With its preposition, its article or what it counts."""
    after: str

    @property
    def text(self) -> str:
        body = " ".join(filter(None, (self.before, self.answer, self.after)))
        return f"{body[0].upper()}{body[1:].rstrip('.')}."


def statement(question: str, answer: str, span: Span | None) -> Statement | None:
    """The answer in the question's gap; None where that is not surely grammatical.

    `span` is where the evidence gives the answer: its preposition and its article are taken over.

    >>> statement("Who played the Joker in the 1989 film Batman?", "Jack Nicholson", None).text
    'Jack Nicholson played the Joker in the 1989 film Batman.'
    >>> statement("When did the Titanic sink?", "15 April 1912", None).text
    'The Titanic sank on 15 April 1912.'
    >>> statement("How many seasons of Lost are there?", "six", None).text
    'There are six seasons of Lost.'
    """
    gap = parse_question(question)
    if gap is None or not answer or len(answer.split()) > _LONGEST_ANSWER:
        return None
    if _RELATIVE.search(question):
        return None
    filling = _filling(gap, answer, span)
    after = gap.after
    if not gap.before:
        after = _agree(after, filling)
    if not filling or (not after and not gap.before):
        return None
    stated = Statement(gap.before, filling, after)
    return None if has_doubled_word(stated.text) else stated


def _filling(gap: Gap, answer: str, span: Span | None) -> str:
    """The answer in the form that fits the gap; empty where there is none."""
    if gap.asks == "time":
        return _time_phrase(answer)
    if gap.asks == "place":
        return _place_phrase(gap, answer, span)
    if gap.asks == "number":
        return _counted(gap, answer)
    if gap.asks == "frequency":
        return answer if _FREQUENCY.match(answer) else ""
    if gap.noun:
        return _measured(gap.noun, answer)
    return _with_article(answer, span)


def _measured(noun: str, answer: str) -> str:
    """A duration behind "for", or a size before "tall"."""
    if noun == "for":
        return answer if answer.startswith(("for ", "until ")) else f"for {answer}"
    if noun == "old" and answer.isdigit():
        return f"{answer} years old"
    if noun.startswith("of "):
        has_noun = noun.rsplit(maxsplit=1)[-1].lower() in answer.lower()
        is_measure = re.fullmatch(r"\S+ [a-z]+", answer) is not None
        return answer if has_noun else f"{answer} {noun}" if is_measure else ""
    has_unit = re.search(r"\d\D* \w+$|^[a-z]+ \w+$", answer)
    return f"{answer} {noun}" if has_unit and noun not in answer else answer


def _time_phrase(answer: str) -> str:
    if _ADVERBIAL.match(answer):
        return answer
    date = parse_date(answer)
    if date is not None and date.known_parts:
        return f"on {answer}" if date.day is not None else f"in {answer}"
    if _PERIOD.fullmatch(answer):
        return f"in {answer}"
    if _CLOCK.fullmatch(answer):
        return f"at {answer}"
    return f"on {answer}" if _WEEKDAY.fullmatch(answer) else ""


def _place_phrase(gap: Gap, answer: str, span: Span | None) -> str:
    if gap.before.endswith(" from"):
        return answer
    if _ADVERBIAL.match(answer):
        return answer
    stated = _PLACE_BEFORE.search(_words_before(span))
    if stated:
        return f"{stated[0]}{answer}".lower()[: len(stated[0])] + answer
    is_name = answer[:1].isupper() and "," in answer
    return f"in {answer}" if is_name else ""


def _counted(gap: Gap, answer: str) -> str:
    """A number with what it counts, which the answer may name already."""
    noun = gap.noun.split()[0].lower().rstrip("s")
    if noun in answer.lower():
        head = gap.noun.split(maxsplit=1)
        rest = head[1] if len(head) > 1 else ""
        is_last = answer.lower().rstrip("s").endswith(noun)
        return f"{answer} {rest}".strip() if is_last else ""
    if not _FIGURE.fullmatch(answer):
        return ""
    return f"{answer} {gap.noun}"


def _with_article(answer: str, span: Span | None) -> str:
    """The answer with the article that it has in the evidence."""
    article = _ARTICLE_BEFORE.search(_words_before(span))
    if not article or _ARTICLE_BEFORE.match(answer.split(maxsplit=1)[0] + " "):
        return answer
    return f"{article[1].lower()} {answer}"


def _words_before(span: Span | None) -> str:
    return span.passage.text[max(0, span.start - 20) : span.start] if span else ""


def _agree(after: str, answer: str) -> str:
    """The words behind an answer that comes first, with a verb that fits its number; empty where it has none."""
    verb, _, rest = after.partition(" ")
    is_team = answer.startswith("the ") and answer.endswith("s")
    is_plural = is_team or bool(re.search(r" and |, ", answer))
    if not is_plural:
        is_several = verb in ("are", "were", "have") and not answer.endswith("s")
        return "" if is_several else after
    if verb in _PLURALS:
        return f"{_PLURALS[verb]} {rest}"
    return "" if verb.endswith("s") else after
