"""What options have in common, and the words that ask for it: "Which version", "As of which year", "Which one"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.clarification.alignment import (
    AlignedRewrite,
    Kind,
    Words,
    kind_of,
    split_words,
)
from whichsense.models.compact.clarification.phrases import Phrase, phrase_text
from whichsense.models.compact.clarification.ranking import Ranker
from whichsense.models.compact.clarification.word_sets import closed_set, place_kind

Features = dict[str, float]
# Categories that fit many questions, and what may stand before "which" with them.
_COMMON = (
    "one year location country time|period time time|frame place region date person team period area type origin"
    " type|of|location position role nationality version season event era city state generation age name month"
    " language movie part episode series sport format edition gender age|group"
)
_PREPOSITIONS = {
    "year": ("in", "as of"),
    "country": ("in",),
    "location": ("in",),
    "place": ("in",),
    "region": ("in",),
    "time period": ("in", "during"),
    "date": ("as of", "on"),
}
_CLOSED_SETS = {"gender": "gender", "age": "age group", "language": "language"}
_WORD_WEIGHT = 0.3
_NOUN_KINDS = (Kind.WORD, Kind.ING, Kind.ED)


@dataclass(frozen=True, slots=True)
class Lead:
    """The words before the options."""

    category: str
    preposition: str = ""

    @property
    def text(self) -> str:
        """
        >>> Lead("year", "as of").text, Lead("one").text
        ('As of which year', 'Which one')
        """
        which = f"{self.preposition} which" if self.preposition else "which"
        return f"{which[0].upper()}{which[1:]} {self.category}"


@dataclass(frozen=True)
class Choice:
    """A question, its rewrites, and the phrase that was chosen of each."""

    question: Words
    rewrites: Sequence[AlignedRewrite]
    phrases: Sequence[Phrase]

    @property
    def options(self) -> list[str]:
        texts = []
        for rewrite, phrase in zip(self.rewrites, self.phrases, strict=True):
            texts.append(phrase_text(rewrite, phrase))
        return texts


def choose_lead(choice: Choice, ranker: Ranker) -> Lead:
    """The lead that fits the options best."""
    candidates = lead_candidates(choice)
    best = max(candidates, key=lambda lead: ranker.score(candidates[lead]))
    kinds = {option_kind(option) for option in choice.options}
    # Small closed sets are too rare to be learnt.
    if best.category == "one" and len(kinds) == 1:
        return Lead(_CLOSED_SETS.get(kinds.pop(), "one"))
    return best


def lead_candidates(choice: Choice) -> dict[Lead, Features]:
    """Every lead that may be meant, with its features: the lead, or where its noun is from, with each signal of the
    options."""
    signals = list(_signals(choice))
    sources: dict[Lead, list[str]] = {}
    for category in _COMMON.split():
        name = category.replace("|", " ")
        for preposition in ("", *_PREPOSITIONS.get(name, ())):
            sources[Lead(name, preposition)] = [name]
    for source, noun in _nouns(choice):
        sources.setdefault(Lead(noun), []).append(f"<{source}>")
        sources.setdefault(Lead(f"type of {noun}"), []).append(f"<type of {source}>")
    candidates = {}
    for lead, names in sources.items():
        features: Features = {}
        for name in [*names, f"({lead.preposition})"]:
            features[name] = 1.0
            for signal, weight in signals:
                features[f"{name} & {signal}"] = weight
        candidates[lead] = features
    return candidates


def _signals(choice: Choice) -> Iterator[tuple[str, float]]:
    """What is known of the options, each with its weight: forms count in full, single words little."""
    options = choice.options
    bare = choice.question.bare
    neighbours = [
        ("before", _neighbours(choice, -1)),
        ("before two", _two_before(choice)),
        ("behind", _neighbours(choice, 1)),
    ]
    for name, tokens in [("is", list(map(option_kind, options))), *neighbours]:
        for token, count in Counter(tokens).items():
            how_many = "all" if count == len(options) else "some"
            yield f"{how_many} {name} {token}", 1.0
    yield f"{min(len(options), 5)} options", 0.5
    yield f"asks {' '.join(bare[:1])}", 1.0
    yield f"asks {' '.join(bare[:2])}", _WORD_WEIGHT
    for word in sorted({*bare[1:]}):
        yield f"asked {word}", _WORD_WEIGHT
    inside: set[str] = set()
    for option in options:
        words = split_words(option).bare
        inside.update(words)
        yield f"ends {words[-1] if words else ''}", 2 * _WORD_WEIGHT
    for word in sorted(inside):
        yield f"has {word}", _WORD_WEIGHT


def option_kind(option: str) -> str:
    """The form of an option.

    >>> [option_kind(text) for text in ("2017", "from 2001 to 2004", "Japan", "the film", "in Rome", "Old Dan")]
    ['year', 'years', 'country', 'noun', 'in', 'name']
    """
    words = split_words(option)
    kinds = [kind_of(words.word(place)) for place in range(len(words))]
    if not kinds:
        return "nothing"
    listed = place_kind(option) or closed_set(option)
    if listed:
        return listed
    if len(kinds) == 1 and kinds[0] is not Kind.NAME:
        return str(kinds[0].value)
    return _phrase_kind(words.bare[0], kinds)


def _phrase_kind(first: str, kinds: Sequence[Kind]) -> str:
    timed = [kind in (Kind.YEAR, Kind.DATE) for kind in kinds]
    kind = kinds[0]
    if sum(timed) > 1 or (any(timed) and kind is Kind.PREPOSITION):
        return "years"
    if kind is Kind.PREPOSITION:
        return first
    if kind in (Kind.WH, Kind.ORDINAL, Kind.YEAR, Kind.DATE, Kind.NUMBER):
        return f"{kind.value} …"
    if Kind.NAME in kinds:
        return "name"
    return "noun" if kind is Kind.ARTICLE else "words"


def _neighbours(choice: Choice, side: int) -> list[str]:
    """The word before (-1) or behind (1) each phrase."""
    found = []
    for rewrite, phrase in zip(choice.rewrites, choice.phrases, strict=True):
        place = phrase.start - 1 if side < 0 else phrase.end
        inside = 0 <= place < len(rewrite.words)
        found.append(rewrite.words.bare[place] if inside else "")
    return found


def _two_before(choice: Choice) -> list[str]:
    """The two words before each phrase: "as of"."""
    found = []
    for rewrite, phrase in zip(choice.rewrites, choice.phrases, strict=True):
        start = phrase.start
        found.append(" ".join(rewrite.words.bare[max(start - 2, 0) : start]))
    return found


def _nouns(choice: Choice) -> Iterator[tuple[str, str]]:
    """Nouns that may be the category, each with where it is from."""
    for source, side in (("before", -1), ("behind", 1)):
        shared = set(_neighbours(choice, side))
        noun = shared.pop() if len(shared) == 1 else ""
        if noun and kind_of(noun) in _NOUN_KINDS:
            yield source, noun
    ends = {" ".join(split_words(option).bare[-1:]) for option in choice.options}
    if len(ends) == 1:
        noun = ends.pop()
        if noun and kind_of(noun) in _NOUN_KINDS:
            yield "end", noun
    yield from _asked_nouns(choice.question)


def _asked_nouns(question: Words) -> Iterator[tuple[str, str]]:
    """The noun behind a wh-word ("What airline …"), and the one before the first preposition ("the president of")."""
    kinds = question.kinds
    for place, kind in enumerate(kinds):
        following = place + 1
        if kind is Kind.WH and following < len(kinds):
            if kinds[following] in _NOUN_KINDS:
                yield "asked", question.bare[following]
            break
    for place in range(1, len(kinds)):
        if kinds[place] is Kind.PREPOSITION:
            if kinds[place - 1] in _NOUN_KINDS:
                yield "subject", question.bare[place - 1]
            break
