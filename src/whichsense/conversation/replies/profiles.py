"""What is known of each option, as tokens that a reply may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from whichsense.conversation.replies.periods import time_key, years_in
from whichsense.conversation.replies.tokens import Token, plain, squeezed, tokenize
from whichsense.conversation.replies.vocabulary import CONTRASTS
from whichsense.text.dates import parse_numbers
from whichsense.text.function_words import CLOSED_CLASS_WORDS
from whichsense.text.words import words
from whichsense.types import Clarification, Option

_NAME = re.compile(r"(?<=\w )[A-Z]\w*")
_LONGEST_PHRASE = 8  # words
_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30.4, "year": 365.25}
_PRICE_SIGNS = ("€", "$", "£", "eur", "usd", "gbp", "price", "fee", "cost")


@dataclass(frozen=True)
class Field:
    """One text about an option, and how much a word of it counts."""

    text: str
    weight: float

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        tokens = tokenize(plain(self.text))
        return content(tokens, self.names) or tuple(tokens)

    @cached_property
    def names(self) -> frozenset[str]:
        """Words with a capital behind the first word: in May, but not The Killers."""
        words = frozenset(word.lower() for word in _NAME.findall(self.text))
        return words - {"the", "a", "an"}


@dataclass(frozen=True)
class Profile:
    """An option with everything by which a person may name it."""

    id: str
    label: Field
    others: tuple[Field, ...]
    """The rewrite's own words, the readings' labels, the answers, the description, the titles of the evidence."""

    @cached_property
    def squeezed(self) -> str:
        return squeezed(plain(self.label.text))

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.label, *self.others)

    @cached_property
    def years(self) -> tuple[int, ...]:
        """The years of the first text that names any."""
        for field in self.fields:
            years = years_in(field.text)
            if years:
                return tuple(years)
        return ()


def content(tokens: Sequence[Token], names: Collection[str] = ()) -> tuple[Token, ...]:
    """Tokens that are no function words, but for names and for those that tell labels apart."""
    kept = []
    for token in tokens:
        is_kept = token.text in CONTRASTS or token.text in names
        if is_kept or token.text not in CLOSED_CLASS_WORDS:
            kept.append(token)
    return tuple(kept)


def profiles_of(clarification: Clarification, question: str) -> list[Profile]:
    """A profile for each option."""
    asked = set(words(question))
    return [_profile(option, asked) for option in clarification.options]


def _profile(option: Option, asked: set[str]) -> Profile:
    fields = []
    for reading in option.readings:
        added = [word for word in words(reading.question) if word not in asked]
        fields.append(Field(" ".join(added), 0.9))
        fields.append(Field(reading.label, 0.9))
        fields.append(Field(reading.answer, 0.9))
    # A whole sentence names much that the option is not about.
    is_short = len(option.description.split()) <= _LONGEST_PHRASE
    fields.append(Field(option.description, 0.8 if is_short else 0.6))
    for inner in option.options:
        fields.append(Field(inner.label, 0.8))
    for reading in option.readings:
        fields.append(Field(reading.source, 0.7))
        for span in reading.evidence[:2]:
            fields.append(Field(span.passage.title, 0.7))
    given = tuple(field for field in fields if field.text)
    return Profile(option.id, Field(option.label, 1.0), given)


def time_order(profiles: Sequence[Profile]) -> list[tuple[float, str]]:
    """(date as a number, id) of the options whose date is known, by the same kind of text where all have it."""
    return _ordered(profiles, _time_value)


def size_order(profiles: Sequence[Profile], price: bool) -> list[tuple[float, str]]:
    """(size, id) of the options whose size is known; with `price`, of those that name a price."""
    return _ordered(
        profiles, _price_value if price else _size_value, answers_first=True
    )


def _ordered(
    profiles: Sequence[Profile],
    value_of: Callable[[str], float | None],
    answers_first: bool = False,
) -> list[tuple[float, str]]:
    columns = []
    for profile in profiles:
        texts = [field.text for field in profile.fields]
        if answers_first:
            texts = [*texts[1:], texts[0]]
        columns.append([value_of(text) for text in texts])
    for row in zip(*columns, strict=False):
        if None not in row and len(set(row)) > 1:
            return [(value, one.id) for value, one in zip(row, profiles, strict=True)]
    known = []
    for profile, column in zip(profiles, columns, strict=True):
        values = [value for value in column if value is not None]
        if values:
            known.append((values[0], profile.id))
    return known


def _time_value(text: str) -> float | None:
    key = time_key(text)
    return key[0] * 10_000.0 + key[1] * 100 + key[2] if key else None


def _size_value(text: str) -> float | None:
    """The first number of a text; a length of time in days."""
    numbers, beside = parse_numbers(plain(text))
    cardinals = [value for value, is_ordinal in numbers if not is_ordinal]
    if not cardinals:
        return None
    for unit, days in _DAYS.items():
        if unit in beside or f"{unit}s" in beside:
            return cardinals[0] * days
    return cardinals[0]


def _price_value(text: str) -> float | None:
    lowered = text.lower()
    if any(sign in lowered for sign in _PRICE_SIGNS):
        return _size_value(text)
    return None
