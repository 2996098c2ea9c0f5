"""Match the words of a reply with options: vocabulary, tokens, periods, the profile of each option."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from rapidfuzz.distance import OSA

from whichsense.models.static import Static
from whichsense.text.answers import parse_date, parse_numbers
from whichsense.text.reply_words import (
    CARDINALS,
    CONTRASTS,
    CONTROL_WORDS,
    DECADES,
    FILLERS,
    ORDINALS,
)
from whichsense.text.words import CLOSED_CLASS_WORDS, porter_stem, words
from whichsense.types import Clarification, Option

# Replies and options as tokens: lower case, no accents, numbers as values, misspelt words corrected.

_TOKEN = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)+|[^\W_]+")
_ORDINAL_FIGURE = re.compile(r"(\d+)(?:st|nd|rd|th)")
_JOINED = re.compile(  # s3, 12h
    r"([a-z]{1,2})(\d+)|(\d+)((?!st\b|nd\b|rd\b|th\b)[a-z]{1,2})"
)
_SHORT_YEAR = re.compile(r"['’‘](\d\d)\b")
_US = re.compile(r"\bU\.S\.(?:A\.)?|\bUS\b")
_CENTURY_WORDS = {"seventeen": 1700, "eighteen": 1800, "nineteen": 1900, "twenty": 2000}
_TEN_WORDS = "ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_TENS = {word: 10 * number for number, word in enumerate(_TEN_WORDS, 1)}
_SPOKEN_YEAR = re.compile(
    rf"\b({'|'.join(_CENTURY_WORDS)})[ -]({'|'.join(_TENS)})(?:[ -]({'|'.join(CARDINALS)}))?\b"
)
# Where a word without its apostrophe would be another one: we're, I'll, what's; of others "'s" is no part.
_CONTRACTION = re.compile(
    r"\b(what|who|where|how|which|that|it|there|here)'s\b|\b(what|who|where|how)s\b|(?<=\w)'(re|ll|s)\b"
)
_FULL = {"re": " are", "ll": " will", "s": ""}


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a reply or of an option."""

    text: str
    stem: str
    number: float | None = None
    is_ordinal: bool = False
    is_short_year: bool = False
    """Written '78: the last two figures of a year."""


def plain(text: str) -> str:
    """Lower case without accents; contractions are written out, spoken years are figures.

    >>> plain("Café? We're; I don't know; nineteen seventy-eight or '99")
    'cafe? we are; i dont know; 1978 or `99'
    """
    text = _US.sub("usa", text)  # before it becomes a pronoun
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in decomposed if unicodedata.category(c) != "Mn").lower()
    bare = _SHORT_YEAR.sub(r"`\1", bare).replace("’", "'").replace("‘", "'")
    bare = _CONTRACTION.sub(_written_out, bare)
    bare = re.sub(r"(?<=\w)'(?=\w)", "", bare)
    return _SPOKEN_YEAR.sub(_year_figures, bare)


def _written_out(match: re.Match[str]) -> str:
    word = match[1] or match[2]
    return f"{word} is" if word else _FULL[match[3]]


def _year_figures(match: re.Match[str]) -> str:
    unit = CARDINALS.get(match[3] or "", 0)
    return str(_CENTURY_WORDS[match[1]] + _TENS[match[2]] + unit)


def tokenize(text: str) -> list[Token]:
    """The tokens of a plain text.

    >>> [token.text for token in tokenize("the 2nd one, s3 and 114,394")]
    ['the', '2nd', 'one', 's', '3', 'and', '114,394']
    >>> [token.number for token in tokenize("2nd second 114,394 one")]
    [2.0, 2.0, 114394.0, None]
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        joined = _JOINED.fullmatch(match[0])
        parts = filter(None, joined.groups()) if joined else (match[0],)
        short_year = text[: match.start()].endswith("`")
        tokens += [_token(part, short_year) for part in parts]
    return tokens


def _token(word: str, is_short_year: bool = False) -> Token:
    ordinal = _ORDINAL_FIGURE.fullmatch(word)
    if ordinal:
        return Token(word, word, float(ordinal[1]), is_ordinal=True)
    if word in ORDINALS:
        return Token(word, word, float(ORDINALS[word]), is_ordinal=True)
    figure = word.replace(",", "")
    if figure.isascii() and re.fullmatch(r"\d+(?:\.\d+)?", figure):
        return Token(word, word, float(figure), is_short_year=is_short_year)
    if word in CARDINALS and word != "one":
        return Token(word, word, float(CARDINALS[word]))
    return Token(word, porter_stem(word))


def squeezed(text: str) -> str:
    """Letters and figures alone, without articles: "The T-200 X" is "t200x"."""
    words = [token.text for token in tokenize(text)]
    return "".join(word for word in words if word not in ("the", "a", "an"))


def corrected(
    tokens: Iterable[Token], is_word: Callable[[str], bool], *known: Iterable[str]
) -> list[Token]:
    """The tokens, each misspelt one replaced by the nearest known word; the first group of known words that has one
    wins."""
    groups = [sorted(set(group)) for group in known]
    result = []
    for token in tokens:
        nearest = ""
        if token.number is None and not is_word(token.text):
            for group in groups:
                nearest = nearest or nearest_word(token.text, group)
        result.append(_token(nearest) if nearest else token)
    return result


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word that is one edit away from a word of four letters, or two from one of eight; else ''.

    >>> nearest_word("thrid", ["third", "first"]), nearest_word("bat", ["cat"])
    ('third', '')
    """
    allowed = (len(word) >= 4) + (len(word) >= 8)
    near = [(OSA.distance(word, one, score_cutoff=allowed), one) for one in known if len(one) > 2]
    edits, best = min(near, default=(allowed + 1, ""), key=lambda pair: pair[0])
    return best if edits <= allowed else ""


# Years, decades and dates in replies and options.

_YEAR = r"(1\d{3}|20\d\d)"
_YEARS = re.compile(rf"\b{_YEAR}(s?)\b")
_DECADE = re.compile(rf"\b(?:(\d\d)s|{'|'.join(DECADES)})\b")
_FUTURE = 9999
# How a reply limits years.
_LIMIT = re.compile(
    r"\b(between|from|before|prior to|earlier than|older than|until|till|up to|after|later than|newer than|past|since) "
    rf"{_YEAR}\b(?: (?:and|to|until|till) {_YEAR}\b| ?(on|onwards|onward|and later)\b)?"
)
_BEFORE = ("before", "prior to", "earlier than", "older than")
_UNTIL = ("until", "till", "up to")
_SPANS = ("between", "from")


@dataclass(frozen=True, slots=True)
class Period:
    """Years from the first to the last; for "the sixties", of any century."""

    first: int
    last: int
    any_century: bool = False

    def contains(self, year: int) -> bool:
        """
        >>> Period(60, 69, any_century=True).contains(1966), Period(1990, 1999).contains(1966)
        (True, False)
        """
        if self.any_century:
            return self.first <= year % 100 <= self.last
        return self.first <= year <= self.last


def find_limit(text: str) -> tuple[Period, str] | None:
    """The period that a plain text names, and the text without it; None where it names none.

    >>> find_limit("the film before 1975")
    (Period(first=0, last=1974, any_century=False), 'the film ')
    >>> find_limit("in the 90s")
    (Period(first=90, last=99, any_century=True), 'in the ')
    """
    for match in _LIMIT.finditer(text):
        period = _period(match)
        if period:
            return period, text[: match.start()] + text[match.end() :]
    decade = _DECADE.search(text)
    if decade:
        first = int(decade[1]) if decade[1] else DECADES[decade[0]]
        rest = text[: decade.start()] + text[decade.end() :]
        return Period(first, first + 9, any_century=True), rest
    years_match = _YEARS.search(text)
    if years_match and years_match[2]:
        first = int(years_match[1])
        rest = text[: years_match.start()] + text[years_match.end() :]
        return Period(first, first + 9), rest
    return None


def _period(match: re.Match[str]) -> Period | None:
    how, year, last = match[1], int(match[2]), match[3]
    if how in _SPANS:
        is_open = how == "from" and match[4]
        return Period(year, int(last) if last else _FUTURE) if last or is_open else None
    if how in _BEFORE or how in _UNTIL:
        return Period(0, year - (how in _BEFORE))
    return Period(year + (how != "since"), _FUTURE)


def years_in(text: str) -> list[int]:
    """Years that a text names; a decade by its first.

    >>> years_in("Batman (1960s series), shown again in 1989")
    [1960, 1989]
    """
    return [int(match[1]) for match in _YEARS.finditer(plain(text))]


def time_key(text: str) -> tuple[int, int, int] | None:
    """Return (year, month, day) of the first date in a text, with 0 for what it leaves out; None if it has none.

    >>> time_key("August 2, 1776"), time_key("general election, May 2016"), time_key("1 March"), time_key("film")
    ((1776, 8, 2), (2016, 0, 0), (0, 3, 1), None)
    """
    date = parse_date(text)
    if date is not None:
        return (date.year or 0, date.month or 0, date.day or 0)
    years = years_in(text)
    return (years[0], 0, 0) if years else None


# What is known of each option, as tokens that a reply may use.

_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30.4, "year": 365.25}


@dataclass(frozen=True)
class Field:
    """One text about an option."""

    text: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        tokens = tokenize(plain(self.text))
        return content(tokens) or tuple(tokens)


@dataclass(frozen=True)
class Profile:
    """An option with everything by which a person may name it."""

    id: str
    label: Field
    others: tuple[Field, ...]
    """The rewrites' own words, the readings' labels, answers and sources, the description, labels of inner options."""
    titles: tuple[Field, ...]
    """Of the evidence."""
    passages: str = ""
    """The text of the evidence."""

    @cached_property
    def text(self) -> set[str]:
        """The stems of the evidence."""
        return {token.stem for token in tokenize(plain(self.passages))}

    @cached_property
    def squeezed(self) -> str:
        return squeezed(plain(self.label.text))

    @cached_property
    def numbers(self) -> set[float | None]:
        """The numbers of the label."""
        return {token.number for token in self.label.tokens}

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.label, *self.others, *self.titles)

    def weight(self, field: Field) -> float:
        """Return how much a word of a field counts."""
        return 1.0 if field is self.label else _BESIDE

    @cached_property
    def years(self) -> Sequence[int]:
        """The years of the first text that names any."""
        return next(filter(None, (years_in(field.text) for field in self.fields)), ())


def content(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens that are no function words, but for those that tell labels apart."""
    return tuple(
        token for token in tokens if token.text in CONTRASTS or token.text not in CLOSED_CLASS_WORDS
    )


def profiles_of(clarification: Clarification, question: str) -> list[Profile]:
    """A profile for each option."""
    asked = set(words(question))
    return [_profile(option, asked) for option in clarification.options]


def _profile(option: Option, asked: set[str]) -> Profile:
    texts, titles, passages = [option.description], [], []
    for reading in option.readings:
        added = (word for word in words(reading.question) if word not in asked)
        texts += [" ".join(added), reading.label, reading.answer, reading.source]
        titles += [span.passage.title for span in reading.evidence[:2]]
        passages += [span.passage.text for span in reading.evidence[:1]]
    texts += [inner.label for inner in option.options]
    others, named = (tuple(map(Field, filter(None, some))) for some in (texts, titles))
    return Profile(option.id, Field(option.label), others, named, " ".join(passages))


def time_order(profiles: Sequence[Profile]) -> list[tuple[float, str]]:
    """(date as a number, id) of the options whose date is known, by the same kind of text where all have it."""
    return _ordered(profiles, [[_time_value(one.text) for one in own.fields] for own in profiles])


def size_order(profiles: Sequence[Profile]) -> list[tuple[float, str]]:
    """(size, id) of the options whose size is known; labels come last."""
    columns = []
    for own in profiles:
        fields = (*own.fields[1:], own.label)
        columns.append([_size_value(field.text) for field in fields])
    return _ordered(profiles, columns)


def _ordered(
    profiles: Sequence[Profile], columns: Sequence[Sequence[float | None]]
) -> list[tuple[float, str]]:
    rows = [row for row in zip(*columns, strict=False) if None not in row and len(set(row)) > 1]
    firsts = [next((one for one in own if one is not None), None) for own in columns]
    values = zip(rows[0] if rows else firsts, profiles, strict=True)
    return [(value, profile.id) for value, profile in values if value is not None]


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


# How well the words of a reply fit each option: equal words, misspelt ones, other wordings.

_TYPO = 0.85
_BESIDE = 0.8  # the weight of a word that is not the label's
_IN_TEXT = 0.5  # … of one that only the evidence has
NEAR = 0.33  # the least cosine of two words that mean nearly the same
_NEAR_NAME = 0.55  # … of a name in a label, which is near to others of its category, too
_NEAR_TEXT = 0.18  # … of a reply and an option of which no word is near
_UNMATCHED = 0.5  # the weight of a word that fits no option
_LEAST = 0.34  # the least score of an option that is meant
_TIE = 0.75  # options with this share of the best score are meant, too


@cache
def shipped_vectors() -> Static:
    """The word vectors that ship with the package; they load when they are first needed."""
    return Static()


@dataclass(frozen=True)
class Matcher:
    """The options of a clarification, ready to be compared with replies."""

    clarification: Clarification
    question: str = ""

    @cached_property
    def profiles(self) -> list[Profile]:
        return profiles_of(self.clarification, self.question)

    @property
    def ids(self) -> list[str]:
        return [profile.id for profile in self.profiles]

    @cached_property
    def category(self) -> set[str]:
        """The stems of the words of the category."""
        return {token.stem for token in tokenize(plain(self.clarification.category))}

    @cached_property
    def asked(self) -> set[str]:
        """The stems of the question's content words."""
        tokens = tokenize(plain(self.question))
        return {token.stem for token in tokens if token.text not in CLOSED_CLASS_WORDS}

    @cached_property
    def option_words(self) -> set[str]:
        """Every word by which an option may be named."""
        fields = [field for profile in self.profiles for field in profile.fields]
        return {token.text for field in fields for token in field.tokens}

    @cached_property
    def shared(self) -> set[str]:
        """The stems that every label has."""
        stems = [{token.stem for token in one.label.tokens} for one in self.profiles]
        return set.intersection(*stems) if stems else set()

    @cached_property
    def label_words(self) -> set[str]:
        return {token.text for one in self.profiles for token in one.label.tokens}

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a plain text, misspelt ones corrected."""
        tokens = tokenize(text)
        asked = [token.text for token in tokenize(plain(self.question))]
        return corrected(tokens, self._is_word, self.option_words, CONTROL_WORDS, asked)

    def _is_word(self, word: str) -> bool:
        if len(word) < 4 or word in FILLERS or word in CONTROL_WORDS:
            return True
        return word in self.option_words or shipped_vectors().has_word(word)

    def content(self, tokens: Sequence[Token]) -> list[Token]:
        """Tokens that may name an option: no words that are always around a choice, nor what all options share."""
        return [
            token
            for token in tokens
            if (token.text not in FILLERS or token.text in self.label_words)
            and token.stem not in self.category
        ]

    def labelled(self, text: str) -> str:
        """The id of the option whose label, id or only such text a reply is; '' where there is none."""
        letters = "".join(token.text for token in tokenize(text))
        bare = letters.removeprefix("the") if letters.startswith("the") else letters
        named = (one.id for one in self.profiles if bare and bare == one.squeezed)
        return next(named, "")

    def meant(self, tokens: Sequence[Token]) -> tuple[list[str], float]:
        """The options that content tokens name, and their score; none where the tokens fit no option better than the
        rest."""
        if not tokens or not self.profiles:
            return [], 0.0
        table = np.array([self._qualities(token) for token in tokens])
        weights = self._weights(tokens, table)
        if weights is None or not weights.any():
            return [], 0.0
        scores = weights @ table / weights.sum()
        best = float(scores.max())
        if best < _LEAST:
            return self._near_text(tokens)
        ids = [self.ids[place] for place in np.flatnonzero(scores >= _TIE * best)]
        ids = self._fully_named(ids, tokens) or ids
        return (ids, best) if len(ids) < len(self.profiles) else ([], 0.0)

    def _weights(self, tokens: Sequence[Token], table: np.ndarray) -> np.ndarray | None:
        """How much each token counts; a word that fits all options alike tells nothing. None where a token is another
        year than any option's."""
        best_of = table.max(axis=1)
        years = np.array([1000 <= (token.number or 0) <= 2100 for token in tokens])
        if (years & (best_of <= 0)).any():
            return None
        repeated = np.array([token.stem in self.asked for token in tokens])
        weights = np.where(best_of > 0, 1.0, np.where(repeated, 0.0, _UNMATCHED))
        weights[(table.min(axis=1) >= best_of - 1e-6) & (best_of > 0)] = 0.0
        return weights

    def _fully_named(self, ids: Sequence[str], tokens: Sequence[Token]) -> list[str]:
        """Of options that fit alike, those all of whose label is said: "adults" is "adult", not "two adults"."""
        return [
            profile.id
            for profile in self.profiles
            if profile.id in ids
            and all(
                any(_word_quality(token, own) >= _TYPO for token in tokens)
                for own in profile.label.tokens
            )
        ]

    def covers(self, token: Token, everywhere: bool = False) -> bool:
        """Whether a token is a word of a label, or `everywhere` of what else is known of an option."""
        return any(
            _word_quality(token, own) >= _TYPO
            for profile in self.profiles
            for field in (profile.fields if everywhere else (profile.label,))
            for own in field.tokens
        )

    def _qualities(self, token: Token) -> list[float]:
        """How well a token fits each option: by equal words where there are any, by meaning where there are none."""
        qualities = [
            max(
                profile.weight(field) * _word_quality(token, own)
                for field in profile.fields
                for own in field.tokens
            )
            for profile in self.profiles
        ]
        if max(qualities, default=0.0) > 0 or token.number is not None:
            return qualities
        in_text = [_IN_TEXT * (token.stem in profile.text) for profile in self.profiles]
        return in_text if 0 < sum(in_text) < len(in_text) * _IN_TEXT else self._near_words(token)

    def _near_words(self, token: Token) -> list[float]:
        """The nearest word of each option, where one option's is much nearer than that of the rest."""
        nearest = []
        for profile in self.profiles:
            scores = [self._nearness(token, field, profile) for field in profile.fields]
            nearest.append(max(scores, default=0.0))
        top = max(nearest, default=0.0)
        if top < NEAR:
            return [0.0] * len(nearest)
        return [0.4 + 0.5 * one if one >= _TIE * top else 0.0 for one in nearest]

    @staticmethod
    def _nearness(token: Token, field: Field, profile: Profile) -> float:
        """How near a token is to the nearest word of a field; a name in a label must be nearer than others."""
        texts = tuple(own.text for own in field.tokens if own.number is None)
        if not texts:
            return 0.0
        cosine = float(cosines(token.text, texts).max())
        is_name = field is profile.label and field.text[:1].isupper()
        is_far = is_name and cosine < _NEAR_NAME
        return 0.0 if is_far else (0.5 + 0.5 * profile.weight(field)) * cosine

    def _near_text(self, tokens: Sequence[Token]) -> tuple[list[str], float]:
        """The option whose words as a whole are near to the tokens, where only one is."""
        if not all(shipped_vectors().has_word(token.text) for token in tokens):
            return [], 0.0
        text = " ".join(token.text for token in tokens if token.number is None)
        best = [(0.0, "")]
        for profile in self.profiles:
            others = [field.text for field in (*profile.others, *profile.titles)]
            texts = (_without_names(profile.label.text), *others)
            best.append((float(cosines(text, texts).max()), profile.id))
        (second, _), (first, identifier) = sorted(best)[-2:]
        is_near = first >= max(_NEAR_TEXT, 2 * second)
        return ([identifier], first) if is_near else ([], 0.0)


def _word_quality(one: Token, other: Token) -> float:
    """1 for the same word or number, less for one that is misspelt or derived."""
    if one.number is not None or other.number is not None:
        return float(_same_number(one, other))
    if one.text == other.text or one.stem == other.stem:
        return 1.0
    if min(len(one.text), len(other.text)) < 4:
        return 0.0
    if len(one.text) >= 5 and nearest_word(one.text, [other.text]):
        return _TYPO
    return 0.0


def _same_number(one: Token, other: Token) -> bool:
    if one.number is None or other.number is None:
        return False
    if one.is_short_year and other.number >= 1000:
        return other.number % 100 == one.number
    return one.number == other.number


def _without_names(text: str) -> str:
    """A name in a label is near to others of its category, which are no option: Austria to Germany."""
    return " ".join(word for word in text.split() if not word[:1].isupper())


@cache
def cosines(word: str, texts: tuple[str, ...]) -> np.ndarray:
    """Return how near a word is in meaning to each of the texts."""
    vectors = shipped_vectors().encode_passages([word, *texts])
    return np.asarray(vectors[1:] @ vectors[0])
