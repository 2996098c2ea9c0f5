"""Labels, categories and headers as they are shown: short, distinct, in good English."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.models.compact.clarification.alignment import (
    FUNCTION_KINDS,
    Kind,
    kind_of,
    split_words,
)
from whichsense.models.compact.clarification.leads import Lead, option_kind
from whichsense.text.dates import parse_date

LONGEST_LABEL = 40  # characters
LONGEST_HEADER = 12
_NO_HEADER = "Which one"
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_LOWER_WORD = re.compile(r"\b[a-z]{3,}\b")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_ORDINAL_FIGURE = re.compile(r"\b(\d+)(?:st|nd|rd|th)?\b")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
# Kinds of works: options that end in one of them are versions of one thing.
_WORKS = (
    "film movie book novel musical song album series show game play opera remake cartoon comic manga anime sequel"
    " soundtrack single cover ballet poem novella adaptation miniseries sitcom drama documentary franchise version"
)
_A_YEAR_ONE = re.compile(r"the (\d{4}) one")
_KIND_IN_TITLE = re.compile(r"\((\d{4}) ([a-z][a-z ]*)\)$")
# Words that a noun must follow: "the current", "the first federal".
_MODIFIERS = frozenset(
    "current present former modern ancient new newer newest old older oldest original latest early earlier late later"
    " federal national international northern southern eastern western".split()
)
_PLACES = ("location", "place", "country", "region", "area", "city", "type of location")
_CATEGORY_OF_KIND = {
    "year": "year",
    "years": "time period",
    "date": "date",
    "country": "country",
    "region": "place",
}


def clean(text: str) -> str:
    """One line without control characters, outer quotation marks and final marks."""
    line = " ".join(_FORBIDDEN.sub(" ", text).split())
    return line.strip(' ,;:?!"“”')


def shorten(label: str, longest: int = LONGEST_LABEL) -> str:
    """A label of at most `longest` characters: without brackets, else cut between words.

    >>> shorten("the original soundtrack (released by a small label)", 30)
    'the original soundtrack'
    >>> shorten("the city near the mouth of the Cape Fear River", 40)
    'the city near the mouth…'
    """
    label = clean(label)
    if len(label) <= longest:
        return label
    bare = _BRACKETS.sub("", label).strip()
    if bare and len(bare) <= longest:
        return bare
    kept = label[: longest - 1]
    if not label[longest - 1].isspace():
        kept = kept.rpartition(" ")[0] or kept
    words = kept.split()
    while len(words) > 1 and _must_go(words[-1]):
        words.pop()
    return " ".join(words).rstrip(" ,;:(") + "…"


def _must_go(word: str) -> bool:
    """Whether a cut text must not end in this word: a function word, or a name that may go on."""
    kind = kind_of(word)
    return kind in FUNCTION_KINDS or kind is Kind.NAME


def with_capitals(label: str, evidence: str) -> str:
    """A label of a question in lower case, with the capitals that its words always have in the evidence.

    >>> with_capitals("in lumsey for the film", "At the film fair in Lumsey, a film was shown.")
    'in Lumsey for the film'
    """

    def written(word: re.Match[str]) -> str:
        capital = word.group().capitalize()
        inside = re.search(rf"(?<=[\w,;:)] ){re.escape(capital)}\b", evidence)
        in_lower_case = re.search(rf"\b{re.escape(word.group())}\b", evidence)
        return capital if inside and not in_lower_case else word.group()

    return _LOWER_WORD.sub(written, label)


def name_kind(label: str, title: str) -> str:
    """A label that only says the year of a work, with the kind of work that the title of its passage names.

    >>> name_kind("the 1984 one", "Dune (1984 film)"), name_kind("the 1984 one", "Dune (novel)")
    ('the 1984 film', 'the 1984 one')
    """
    year = _A_YEAR_ONE.fullmatch(label)
    kind = _KIND_IN_TITLE.search(title)
    if year is None or kind is None or year[1] != kind[1]:
        return label
    return f"the {kind[1]} {kind[2]}"


def complete(label: str) -> str:
    """A label that ends in an adjective behind its article, with a noun.

    >>> complete("the first federal"), complete("the actor"), complete("the White House")
    ('the first federal one', 'the actor', 'the White House')
    """
    words = label.split()
    is_open = len(words) > 1 and words[0].lower() == "the"
    if is_open and words[-1] in _MODIFIERS:
        return f"{label} one"
    return label


def key(label: str) -> str:
    """Equal for labels that a person cannot tell apart.

    >>> key("The United States"), key("the 2002 film.")
    ('united states', '2002 film')
    """
    words = split_words(label).bare
    kept = [word for word in words if kind_of(word) is not Kind.ARTICLE]
    return " ".join(kept or words)


def order_key(label: str) -> tuple[float, float, float] | None:
    """For labels that have a place in time or in a series: years, dates, ordinals, numbers; None for others.

    >>> order_key("from 2001 to 2004") < order_key("2003"), order_key("the second one"), order_key("Rome")
    (True, (2.0, 0.0, 0.0), None)
    """
    date = parse_date(label)
    if date is not None and date.year is not None:
        return (float(date.year), float(date.month or 0), float(date.day or 0))
    year = _YEAR.search(label)
    if year:
        return (float(year.group()), 0.0, 0.0)
    for word in split_words(label).bare:
        if word in _ORDINALS:
            return (_ORDINALS.index(word) + 1.0, 0.0, 0.0)
        figure = _ORDINAL_FIGURE.fullmatch(word)
        if figure:
            return (float(figure[1]), 0.0, 0.0)
    return None


def surest_lead(lead: Lead, labels: Sequence[str]) -> Lead:
    """The lead for people: where the labels' form says what they are, that; otherwise as it was chosen.

    >>> surest_lead(Lead("one"), ["1961", "2021"]).text, surest_lead(Lead("one"), ["the film", "the musical"]).text
    ('In which year', 'Which version')
    """
    kinds = {option_kind(label) for label in labels}
    category = _category_of(kinds) if lead.category == "one" else ""
    if category:
        return Lead(category, "in" if category in ("year", "country") else "")
    if lead.category in _PLACES and any(map(_is_circumstance, labels)):
        return Lead("one")
    heads = {" ".join(split_words(label).bare[-1:]) for label in labels}
    if lead.category in ("one", *heads) and heads <= set(_WORKS.split()):
        return Lead("version")
    return lead


def _category_of(kinds: set[str]) -> str:
    """The category of labels of these kinds; nothing where they leave a doubt."""
    if len(kinds) == 1:
        return _CATEGORY_OF_KIND.get(next(iter(kinds)), "")
    if kinds <= {"year", "date"}:
        return "date"
    return "time period" if kinds <= {"year", "date", "years"} else ""


def _is_circumstance(label: str) -> bool:
    """Whether a label is no place: "for her sea trials"."""
    words = split_words(label)
    is_phrase = words.kinds[:1] == (Kind.PREPOSITION,)
    return is_phrase and not any(word[:1].isupper() for word in label.split()[1:])


def without_category(labels: Sequence[str], category: str) -> list[str] | None:
    """The labels without the category's noun, where all that is left says something and differs; None where a noun
    that repeats cannot be taken away.

    >>> without_category(["season 2", "season 3"], "season"), without_category(["the men's team", "the B team"], "team")
    (['2', '3'], ["the men's", 'the B'])
    >>> without_category(["the city", "a country"], "city") is None
    True
    """
    noun = category.rsplit(maxsplit=1)[-1] if category else ""
    if not noun or category == "one":
        return list(labels)
    word = re.compile(rf"\b{re.escape(noun)}s?\b", re.IGNORECASE)
    if not any(word.search(label) for label in labels):
        return list(labels)
    at_an_end = re.compile(
        rf"^(?:the |an? )?{re.escape(noun)}\s+|\s+{re.escape(noun)}$", re.IGNORECASE
    )
    shorter = [at_an_end.sub("", label).strip() for label in labels]
    keys = {key(label) for label in shorter}
    says_something = all(has_content(label) for label in shorter)
    is_repeated = any(word.search(label) for label in shorter)
    if is_repeated or not says_something or len(keys) < len(labels):
        return None
    return shorter


def has_content(label: str) -> bool:
    """Whether a label has more than function words."""
    words = split_words(label)
    return any(kind not in FUNCTION_KINDS for kind in words.kinds)


def header_of(category: str) -> str:
    """At most 12 characters for a tab or a chip.

    >>> [header_of(category) for category in ("year", "one", "type of location", "country of registration")]
    ['Year', 'Which one', 'Location', 'Registration']
    """
    for text in (category, category.rsplit(maxsplit=1)[-1] if category.split() else ""):
        if text and text != "one" and len(text) <= LONGEST_HEADER:
            return text[0].upper() + text[1:]
    return _NO_HEADER
