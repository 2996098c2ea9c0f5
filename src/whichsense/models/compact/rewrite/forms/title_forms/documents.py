"""Forms from the titles of documents: Travel Policy – Germany; X200 Data Sheet; Price List 2024."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.rewrite.forms.clauses.vocabulary import MONTHS
from whichsense.models.compact.rewrite.forms.grammar import (
    append_phrase,
    in_register,
    put_in_past,
)
from whichsense.models.compact.rewrite.forms.title_forms.inserting import Proposal
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    DOCUMENT_ADJECTIVES,
    DOCUMENT_NOUNS,
    GROUP_NOUNS,
    LOOSE_DOCUMENT_NOUNS,
    PAST_DOCUMENTS,
    PRODUCT_DOCUMENTS,
    SEASONS,
)
from whichsense.text.function_words import QUESTION_WORDS
from whichsense.text.words import words

_SEPARATORS = re.compile(r":\s+|\s+[–—-]\s+|,\s+|\s+\(|\)")
_MONTH = rf"(?:{'|'.join(sorted(MONTHS))})"
_DAY = re.compile(rf"\b(?P<day>\d{{1,2}}) (?P<month>{_MONTH})(?: (?P<year>\d{{4}}))?\b")
_MONTH_YEAR = re.compile(rf"\b(?P<month>{_MONTH}) (?P<year>\d{{4}})\b")
_SEASON = re.compile(
    rf"\b(?P<season>{'|'.join(sorted(SEASONS))}) "
    r"(?:(?P<noun>round|term|semester|tariff) )?(?P<year>\d{4}(?:/\d\d)?)\b",
    re.IGNORECASE,
)
_SPORT_SEASON = re.compile(r"\bseason (?P<year>\d{4}/\d\d)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\w/])(?:1[5-9]|20)\d\d(?:/\d\d)?\b")
_PRICE_LIST = re.compile(r"\bprice list\b", re.IGNORECASE)
_DOCUMENT_PAIRS = re.compile(
    r"\b(?:price|parts|staff) list\b|\bannual report\b", re.IGNORECASE
)
_PROPERTY = re.compile(r"(?:what|which|how \w+) (?:is|was|are|were) the [\w -]+$")
_SMALL = frozenset("of and the for in to on at from de".split())
_COUNTRY_SHEET = re.compile(
    r"^(?:country sheet |supplement |annex |appendix )(?P<place>[A-Z].*)$"
    r"|^(?P<before>[A-Z][\w ]*?) (?:supplement|annex|appendix)$"
)
_ASKS_TIME = re.compile(
    r"(?:when|since when|(?:in )?(?:what|which) (?:year|month|day))\b", re.I
)


def is_document(title: str) -> bool:
    """Whether a title names a kind of document: a data sheet, a policy, minutes.

    >>> is_document("Norlin X200 Data Sheet"), is_document("Third Amendment")
    (True, False)
    """
    nouns = set(words(title)) & DOCUMENT_NOUNS
    if len(_SEPARATORS.split(title)) > 1 or _DOCUMENT_PAIRS.search(title):
        return bool(nouns)
    bare = words(_YEAR.sub("", title))
    return bool(bare) and bool({bare[0], bare[-1]} & (nouns - LOOSE_DOCUMENT_NOUNS))


def document_rewrites(
    question: str, title: str, text: str, rivals: Sequence[str]
) -> Iterator[Proposal]:
    """Rewrites by what a document is about: its product, place, group or time; best first."""
    parts = [part.strip() for part in _SEPARATORS.split(title) if part.strip()]
    places = list(_part_rewrites(question, parts, rivals))
    times = list(_time_rewrites(question, title, rivals))
    # The minutes' place is where people met, not where what they say holds.
    is_past = bool(set(words(title)) & PAST_DOCUMENTS)
    yield from times + places if is_past else places + times
    subject = _subject(parts[0])
    known = set(words(question)) - QUESTION_WORDS
    if subject and not known & set(words(subject)):
        for rewrite in _subject_rewrites(question, title, subject, text):
            yield Proposal(rewrite, "document:subject")


def _part_rewrites(
    question: str, parts: Sequence[str], rivals: Sequence[str]
) -> Iterator[Proposal]:
    """in Germany; in the Faculty of Arts; for sales staff."""
    rival_words = [set(words(rival)) for rival in rivals]
    for number, part in enumerate(parts):
        phrase = _place_or_group(part, number)
        if (
            not phrase
            or _is_elsewhere(part, rival_words)
            or _is_asked(phrase, question)
        ):
            continue
        if phrase.startswith("for ") and " for " in question:
            continue
        yield Proposal(_insert_before_firm(question, phrase), "document:part")


def _insert_before_firm(question: str, phrase: str) -> str:
    """The phrase at the question's end, before a firm that stands there: in the Faculty of Arts at Kell.

    >>> _insert_before_firm("How long is the course at Kell?", "in the Faculty of Arts")
    'How long is the course in the Faculty of Arts at Kell?'
    """
    firm = re.search(r" at (?:[\w'’&.-]+ ?){1,3}[?.!]*$", question)
    if not firm or not phrase.startswith("in the "):
        return append_phrase(question, phrase)
    rest = question[firm.start() :]
    return f"{question[: firm.start()]} {in_register(phrase, question)}{rest}"


def _time_rewrites(
    question: str, title: str, rivals: Sequence[str]
) -> Iterator[Proposal]:
    """in 2024; in the spring round of 2023; at the board meeting of 12 March 2023."""
    if _ASKS_TIME.match(question):
        return
    is_past = bool(set(words(title)) & PAST_DOCUMENTS) or _is_outdated(title, rivals)
    asked = put_in_past(question) if is_past else question
    is_present = (
        re.search(r"\b(?:is|are|does|do|has|have|can|must)\b", asked) is not None
    )
    for phrase in _time_phrases(title):
        if _is_asked(phrase, question):
            continue
        if phrase.startswith("at ") and (
            put_in_past(question) != question or " meeting" in question
        ):
            continue
        year = re.search(r" in (\d{4})(?=\W*$)", asked)
        if year and year[1] in phrase:
            yield Proposal(
                asked.replace(year[0], f" {in_register(phrase, question)}"),
                "document:time",
            )
            continue
        if is_present and _MONTH_YEAR.search(phrase):
            dated = phrase.replace("in ", "as of ", 1)
            yield Proposal(append_phrase(asked, dated), "document:time")
        else:
            yield Proposal(append_phrase(asked, phrase), "document:time")


def _is_elsewhere(part: str, rivals: Sequence[set[str]]) -> bool:
    """Whether a rival's title has all words of a part."""
    return any(set(words(part)) <= rival for rival in rivals)


def _is_asked(phrase: str, question: str) -> bool:
    """Whether a question has a phrase's content words already."""
    content = set(words(phrase)) - QUESTION_WORDS
    return content <= set(words(question))


def _place_or_group(part: str, number: int) -> str:
    """The phrase for a part that is a place, a department or a group of people; empty for other parts."""
    sheet = _COUNTRY_SHEET.match(part)
    if sheet:
        return f"in {sheet['place'] or sheet['before']}"
    tokens = part.split()
    is_kind = any(token.lower() in DOCUMENT_NOUNS for token in tokens)
    if number == 0 or is_kind or any(map(str.isdigit, part)):
        return ""
    if tokens[0] in ("Faculty", "Department", "School", "Office"):
        return f"in the {part}"
    is_name = all(token[0].isupper() or token in _SMALL for token in tokens)
    if is_name and tokens[-1].isalpha():
        return f"in {part}"
    if tokens[-1] in GROUP_NOUNS and part == part.lower():
        return f"for {part}"
    return ""


def _subject(part: str) -> str:
    """The name in a title's first part, without the document's kind.

    >>> _subject("Norlin X200 Data Sheet"), _subject("Price List 2024")
    ('Norlin X200', '')
    """
    tokens = part.split()
    kinds = DOCUMENT_NOUNS | DOCUMENT_ADJECTIVES
    while tokens and (tokens[-1].lower() in kinds or _YEAR.fullmatch(tokens[-1])):
        tokens.pop()
    subject = " ".join(tokens)
    is_kind = any(token.lower() in kinds for token in tokens)
    is_name = bool(tokens) and tokens[0][0].isupper()
    return "" if is_kind or not is_name else subject


def _subject_rewrites(
    question: str, title: str, subject: str, text: str
) -> Iterator[str]:
    """of the Norlin X200; at Brindlow Optics."""
    article = "the " if f"the {subject}" in text else ""
    is_product = any(kind in title.lower() for kind in PRODUCT_DOCUMENTS)
    bare = question.lower().rstrip(" ?")
    if is_product and any(map(str.isdigit, subject)):
        name = f"the {subject}"
        asks_property = re.match(_PROPERTY, bare) is not None
        if re.search(r"\bit\b", bare):
            named = in_register(name, question)
            yield re.sub(r"\bit\b", named, question, count=1)
        elif asks_property and not re.search(r"\b(?:in|on|at|of|for|with)\b", bare):
            yield append_phrase(question, f"of {name}")
            yield append_phrase(question, f"for {name}")
        else:
            yield append_phrase(question, f"for {name}")
    elif not is_product and not re.search(r"\bat\b", bare):
        yield append_phrase(question, f"at {article}{subject}")


def _time_phrases(title: str) -> Iterator[str]:
    """The time that a title says, from the plainest phrase to the most exact one."""
    season = _SEASON.search(title)
    if season and season["noun"] in ("round", "term", "semester"):
        yield f"in the {season['season'].lower()} {season['noun']} of {season['year']}"
        return
    if season:
        yield f"in {season['season'].lower()} {season['year']}"
        return
    sport = _SPORT_SEASON.search(title)
    if sport:
        yield f"in the {sport['year']} season"
        return
    year = _YEAR.search(title)
    if year:
        yield f"in {year[0]}"
    if year and _PRICE_LIST.search(title):
        yield f"on the {year[0]} price list"
    month = _MONTH_YEAR.search(title)
    if month:
        yield f"in {month[0]}"
    day = _DAY.search(title)
    if day and re.search(r"\b(?:board|council|committee|meeting)\b", title, re.I):
        group = re.search(r"\b(board|council|committee)\b", title, re.I)
        meeting = f"{group[1].lower()} meeting" if group else "meeting"
        yield f"at the {meeting} of {day[0]}"


def _is_outdated(title: str, rivals: Sequence[str]) -> bool:
    """Whether a rival's title has a later year."""
    own = _YEAR.search(title)
    later = [match[0] for rival in rivals if (match := _YEAR.search(rival))]
    return own is not None and any(year > own[0] for year in later)
