"""Take titles apart: the name, and what stands in brackets behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.title_forms.words import (
    NATIONAL_ADJECTIVES,
    NO_KINDS,
    PART_NOUNS,
    PREPOSITION_OF_WORK,
    VERSION_NOUNS,
)

_BRACKETS = re.compile(r"^(?P<name>.*\S)\s+\((?P<inside>[^()]+)\)$")
_SPAN = re.compile(r"^(?P<first>\d{4})\s?[-–—]\s?(?P<last>\d{4})$")
_SINCE = re.compile(r"^(?P<first>\d{4})\s?[-–—]\s?(?:present)?$")
_YEAR = re.compile(r"^(?:1\d|20)\d\d$")
_PART = re.compile(r"^(?P<noun>[A-Za-z]+) (?P<number>\d+)$")
_PLURAL_YEARS = re.compile(r"^\d{4}(?:, \d{4})* and \d{4}$")
_MAKERS = r"(?:wrote|writes|composed|painted|carved|made|sculpted|set|completed|published|choreographed)"
# Nouns for persons, by their endings.
_PERSON = re.compile(r"(?:er|or|ist|ian|ess|man|poet|athlete|chef|judge|pilot)$")


@dataclass(frozen=True, slots=True)
class Qualifier:
    """What a title's brackets say, and the way in which English says it.

    `way` is one of: kind (the 1989 film X), version (the 2005 revival of X), owner (Whitney Houston's recording of X),
    plural (the 1974 and 1980 films), part (season 3 of X), years (from 1984 to 2021), since, year (X of 1933), place
    (X in Kansas), maker (Puccini's X), role (X, the wife of Y), sex (the men's X).
    """

    way: str
    modifier: str  # 1989; American; Foo Fighters; for years the first one
    noun: str  # film; revival; for years the last one; for places the preposition
    owner: str = ""  # of a song or a recording: the Pet Shop Boys

    @property
    def head(self) -> str:
        """The last word of the noun: the kind without what tells it apart."""
        return self.noun.split()[-1].lower() if self.noun else ""

    @property
    def is_work(self) -> bool:
        """Whether the title is that of a work, in which characters appear."""
        return self.head in PREPOSITION_OF_WORK

    @property
    def preposition(self) -> str:
        """The preposition that says that something happens in such a thing."""
        return PREPOSITION_OF_WORK.get(self.head, "in")

    def phrase(self, *, modified: bool = True) -> str:
        """Modifier and noun without an article: 1989 film."""
        words = (self.modifier, self.noun) if modified else (self.noun,)
        return " ".join(filter(None, words))


def split_title(title: str) -> tuple[str, str]:
    """A title's name and what its last brackets hold.

    >>> split_title("Dune (1984 film)"), split_title("Dune")
    (('Dune', '1984 film'), ('Dune', ''))
    """
    match = _BRACKETS.match(title.strip())
    if not match:
        return title.strip(), ""
    return match["name"], match["inside"].strip()


def read_qualifier(title: str, text: str) -> Qualifier | None:
    """What a title's brackets say; None where there are none or no form says them.

    >>> read_qualifier("Batman (1989 film)", "")
    Qualifier(way='kind', modifier='1989', noun='film', owner='')
    >>> read_qualifier("Jeopardy! (1984-2021)", "")
    Qualifier(way='years', modifier='1984', noun='2021', owner='')
    """
    name, inside = split_title(title)
    if not inside or "(" in name:
        return None
    return _read_figures(inside) or _read_kind(inside, text) or _read_name(inside, text)


def _read_figures(inside: str) -> Qualifier | None:
    """Years and numbered parts."""
    span = _SPAN.match(inside)
    if span:
        return Qualifier("years", span["first"], span["last"])
    if _YEAR.match(inside):
        return Qualifier("year", inside, "")
    since = _SINCE.match(inside)
    if since:
        return Qualifier("since", since["first"], "")
    part = _PART.match(inside)
    if part and part["noun"].lower() in PART_NOUNS:
        return Qualifier("part", part["number"], part["noun"].lower())
    return None


def _read_kind(inside: str, text: str) -> Qualifier | None:
    """Kinds of things, which end with a common noun."""
    if inside in ("men", "women"):
        return Qualifier("sex", f"{inside}'s", "")
    if re.match(r"^[a-z]+ of [A-Z]", inside):
        return Qualifier("role", inside, "")
    head = inside.rsplit(maxsplit=1)[-1]
    if not head.isalpha() or not head.islower() or head in NO_KINDS:
        return None
    modifier, noun = _split_kind(inside)
    way = ""
    if " and " in noun:
        return None
    if head in VERSION_NOUNS:
        way = "owner" if _is_owner(modifier) else "version"
    elif noun == "series" and _is_owner(modifier):
        way = "version"  # the Paris series of Sunflowers
    elif head in PREPOSITION_OF_WORK or _is_called(head, text):
        way = "kind"
    elif head[:-1] in PREPOSITION_OF_WORK and _PLURAL_YEARS.match(modifier):
        way = "plural"
    if not way:
        return None
    return Qualifier(way, modifier, noun, _name_owner(modifier, text))


def _split_kind(inside: str) -> tuple[str, str]:
    """The modifier, which has figures or capitals, and the common noun: TV is part of the noun."""
    words = inside.split()
    first = len(words)
    while first > 0 and (words[first - 1].islower() or words[first - 1] == "TV"):
        if words[first - 1] in ("and", "the", "of") or words[first - 1][0].isdigit():
            break
        first -= 1
    return " ".join(words[:first]), " ".join(words[first:])


def _is_owner(modifier: str) -> bool:
    """Whether a modifier names a person or a band, who has a version of a song."""
    words = modifier.split()
    if not words or modifier[0].isdigit() or words[0] in NATIONAL_ADJECTIVES:
        return False
    return modifier[0].isupper()


def _name_owner(modifier: str, text: str) -> str:
    """A singer or band with "the" where the title or the text has it; empty for years and nations."""
    if not _is_owner(modifier):
        return ""
    if modifier.startswith("The "):
        return f"the {modifier.removeprefix('The ')}"
    has_article = re.search(rf"\b[Tt]he {re.escape(modifier)}\b", text)
    return f"the {modifier}" if has_article else modifier


def _is_called(head: str, text: str) -> bool:
    """Whether a text calls something by this noun: "is a small planet"."""
    if _PERSON.search(head):
        return True
    if head.endswith("s") and not head.endswith("ss"):
        return False
    called = rf"\b(?:a|an|the|of)\s+(?:[\w’'-]+\s+){{0,4}}{re.escape(head)}\b"
    return re.search(called, text, re.IGNORECASE) is not None


def _read_name(inside: str, text: str) -> Qualifier | None:
    """A name in brackets: a place, an event or a maker, by what the text says of it."""
    if not inside[0].isupper() or any(map(str.isdigit, inside)):
        return None
    name = re.escape(inside)
    by = rf"\bby (?:[A-Z][\w.]*\s+){{0,3}}{name}\b"
    if re.search(rf"\b{name} (?:\w+ly )?{_MAKERS}\b|{by}", text):
        return Qualifier("maker", inside, "")
    for preposition in ("in", "during", "at", "through", "across"):
        place = re.search(rf"\b{preposition} (the )?{name}\b", text, re.IGNORECASE)
        if place:
            article = (place[1] or "").lower()
            said = preposition if preposition in ("during", "at") else "in"
            return Qualifier("place", f"{article}{inside}", said)
    if re.search(rf", {name}\b", text):
        return Qualifier("place", inside, "in")
    if re.search(rf"\b{name}[’']s?\b", text):
        return Qualifier("maker", inside, "")
    return None
