"""The thing that a question names, made narrower by the words that an answer's clause has for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.tokens import (
    TOKEN,
    is_finite,
    is_function,
    is_participle,
    stem,
)

_MOST_MODIFIERS = 3
_VERSION = re.compile(r"(?:\d{1,4}[A-Za-z]?|[IVX]{1,4}|[A-Z]\d*)$")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A question whose thing is narrower, and the words that make it so."""

    question: str
    addition: str
    support: str


def narrowings(question: str, clause: Clause) -> Iterator[Narrowing]:
    """The question with the modifiers that the clause has before, or the number behind, a noun of the question.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> clause = find_clause(Snippet("Guide", "The door alarm sounds after 90 seconds.", 28, 38), [])
    >>> [narrowing.question for narrowing in narrowings("When does an Isbre alarm sound?", clause)]
    ['When does an Isbre door alarm sound?']
    """
    asked = _Asked.read(question)
    main = " ".join(
        part for part in (clause.subject, clause.verb, clause.middle) if part
    )
    for part in (clause.label, clause.lead, main, clause.after):
        source = TOKEN.findall(part)
        for place, token in enumerate(source):
            target = asked.place_of(token)
            if target is None:
                continue
            yield from _insert_before(asked, target, source, place)
            yield from _insert_behind(asked, target, source, place)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as tokens, and where each begins and ends."""

    question: str
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    stems: tuple[str, ...]

    @classmethod
    def read(cls, question: str) -> _Asked:
        """The tokens of a question."""
        matches = list(TOKEN.finditer(question))
        tokens = tuple(match[0] for match in matches)
        spans = tuple(match.span() for match in matches)
        return cls(question, tokens, spans, tuple(map(stem, tokens)))

    def place_of(self, noun: str) -> int | None:
        """Where the question has a noun of the clause, once only; None where it has none."""
        wanted = stem(noun)
        is_word = len(wanted) > 1 and noun[0].isalpha()
        is_word = is_word and noun.lower() not in vocabulary.ORDINALS
        if not is_word or is_function(noun) or self.stems.count(wanted) != 1:
            return None
        place = self.stems.index(wanted)
        opening = self.tokens[0].lower()
        token = self.tokens[place].lower()
        is_verb = (
            is_finite(token, "x")
            or is_participle(token)
            or (place == 1 and opening in ("who", "where", "when", "why"))
        )
        return None if place == 0 or is_verb else place

    def insert(self, place: int, added: Sequence[str]) -> str:
        """The question with words before a token, and with "a" or "an" as the first of them needs it."""
        offset = self.spans[place][0] if place < len(self.spans) else len(self.question)
        addition = " ".join(added)
        if self.question == self.question.lower():
            addition = addition.lower()
        before = self.question[:offset]
        article = re.search(r"\b(a|an) $", before, re.IGNORECASE)
        if article:
            vowel = addition[0].lower() in "aeiou"
            right = article[1][0] + ("n" if vowel else "")
            before = before[: article.start()] + right + " "
        return f"{before}{addition} {self.question[offset:]}"


def _modifiers(source: Sequence[str], place: int) -> list[str]:
    """The words directly before a noun of the clause that describe it."""
    modifiers: list[str] = []
    for position in range(place - 1, -1, -1):
        word = source[position]
        previous = source[position - 1] if position else ""
        is_participle = word.endswith("ing") and previous == ","
        is_possessive = word.endswith(("'s", "’s", "s'", "s’"))
        if word in ",;:" or is_function(word) or is_possessive or is_participle:
            break
        if word in vocabulary.PARTICIPLES:
            break
        # "by beating Ida Brand"
        if word.endswith("ing") and (source[place][0].isupper() or previous == "by"):
            return []
        if is_finite(word, previous):
            break
        # "the first to prepare oxygen"
        if previous == "to":
            return []
        modifiers.insert(0, word)
    return modifiers


def _insert_before(
    asked: _Asked, target: int, source: Sequence[str], place: int
) -> Iterator[Narrowing]:
    """The question with the clause's modifiers before its noun."""
    modifiers = _modifiers(source, place)
    tokens = asked.tokens
    start = target
    left = list(modifiers)
    while left and start > 0 and stem(left[-1]) == stem(tokens[start - 1]):
        left.pop()
        start -= 1
    while left and start > 0 and stem(left[0]) == stem(tokens[start - 1]):
        left.pop(0)
    first = place - len(modifiers)
    if not _are_modifiers(left, asked, target, source[place]):
        return
    if first > 0 and _looks_like_verb(left, asked.tokens[target], source[place]):
        return
    if is_adjective(left[-1]) or left[0].lower() in vocabulary.ORDINALS:
        start = _adjective_place(tokens, start)
    before = tokens[start - 1]
    is_superlative = left[0].endswith("est") and before.lower() in ("a", "an")
    # Nothing goes into the middle of a name, which a lower-case question does not show.
    is_shown = before[0].isupper() and tokens[start][0].isupper()
    is_hidden = source[place][0].isupper() and asked.question.islower()
    splits_name = start > 1 and (is_shown or (is_hidden and not _opens_noun(before)))
    if is_superlative or splits_name:
        return
    is_capital = first == 0 and source[place][0].islower()
    addition = _as_modifier(left, is_sentence_start=is_capital)
    article = _missing_article(tokens, start, source, first)
    text = asked.insert(start, [*article, *addition])
    yield Narrowing(text, " ".join(addition), " ".join(source[first : place + 1]))


def _opens_noun(word: str) -> bool:
    """Whether a noun can begin behind a word: an article, a preposition, a verb, an ordinal."""
    lowered = word.lower()
    is_verb = is_finite(lowered, "x") or is_participle(lowered)
    return is_function(word) or is_verb or lowered in vocabulary.ORDINALS


def _are_modifiers(left: Sequence[str], asked: _Asked, target: int, noun: str) -> bool:
    """Whether words of the clause can describe the question's noun and are new to the question."""
    if not 0 < len(left) <= _MOST_MODIFIERS:
        return False
    if not all(_is_modifier(word) for word in left):
        return False
    if not vocabulary.MONTHS.isdisjoint(left):
        return False
    if any(stem(word) in asked.stems for word in left):
        return False
    is_name = noun[0].isupper()
    has_number = any(word[0].isdigit() for word in left)
    asked_noun = asked.tokens[target].lower()
    same_number = asked_noun.endswith("s") == noun.lower().endswith("s")
    has_order = any(word.lower() in vocabulary.ORDINALS for word in left)
    return not ((is_name and has_number) or (has_order and not same_number))


def _looks_like_verb(left: Sequence[str], asked: str, noun: str) -> bool:
    """Whether a plural behind a name is a verb: "Ida Brand voices him" for the question's "voice"."""
    is_plural = noun.endswith("s") and not asked.endswith("s")
    return is_plural and noun[0].islower() and left[-1][0].isupper()


def _is_modifier(word: str) -> bool:
    """Whether a word can describe a noun: no number of things, no filler."""
    lowered = word.lower()
    if lowered in vocabulary.NO_MODIFIERS or lowered.endswith("ly"):
        return False
    if word[0].isdigit():
        return len(word) == 4 and word.isdigit()
    return word[0].isalpha()


def is_adjective(word: str) -> bool:
    """Whether a modifier is an adjective and no noun, by its ending or by list."""
    lowered = word.lower()
    by_ending = lowered.endswith(vocabulary.ADJECTIVE_ENDINGS) and len(lowered) > 4
    return word[1:].islower() and (by_ending or lowered in vocabulary.ADJECTIVES)


def _adjective_place(tokens: Sequence[str], start: int) -> int:
    """Where an adjective goes: before the names that describe the noun, behind article and ordinal."""
    place = start
    while place > 0:
        before = tokens[place - 1].lower()
        if before in vocabulary.DETERMINERS or before in vocabulary.ORDINALS:
            return place
        if is_function(before) or before.endswith(("est", "'s", "’s")):
            names = tokens[place:start]
            return place if all(name[0].isupper() for name in names) else start
        place -= 1
    return start


def _as_modifier(left: Sequence[str], *, is_sentence_start: bool) -> list[str]:
    """The modifiers as they stand inside a sentence: the first word loses the capital that only its place gave it."""
    if not is_sentence_start or (len(left) > 1 and left[1][0].isupper()):
        return list(left)
    return [left[0][0].lower() + left[0][1:], *left[1:]]


def _missing_article(
    tokens: Sequence[str], start: int, source: Sequence[str], first: int
) -> list[str]:
    """ "the", where the clause has it and the question's noun stands without an article."""
    has_article = first > 0 and source[first - 1].lower() == "the"
    before = tokens[start - 1].lower()
    opens_noun = (
        before in vocabulary.AUXILIARIES
        or before in vocabulary.PREPOSITIONS
        or start == 2  # behind the verb of "Who plays X?"
    )
    is_name = tokens[start][0].isupper()
    if has_article and opens_noun and (is_name or not tokens[start].endswith("s")):
        return ["the"]
    return []


def _name_behind(source: Sequence[str], place: int) -> list[str]:
    """The number or letter behind a name; for a whole label that is a name, the rest of it."""
    behind = list(source[place + 1 :])
    if behind and _VERSION.fullmatch(behind[0]):
        # "Wash 8 kg" has a measure and no version.
        is_measure = behind[1:2] and behind[1] in (
            "kg",
            "g",
            "m",
            "cm",
            "mm",
            "km",
            "litres",
        )
        return [] if is_measure else behind[:1]
    is_label = 1 <= len(behind) <= 2 and place == 0
    return behind if is_label and all(word[0].isupper() for word in behind) else []


def _insert_behind(
    asked: _Asked, target: int, source: Sequence[str], place: int
) -> Iterator[Narrowing]:
    """The question with the number or letter that stands behind a name in the clause: HX 4, World War II."""
    if place + 1 >= len(source) or not source[place][0].isupper():
        return
    version = " ".join(_name_behind(source, place))
    if not version:
        return
    following = asked.tokens[target + 1] if target + 1 < len(asked.tokens) else "?"
    if following.lower() == version.split()[0].lower():
        return
    ends_name = (
        is_function(following) or following in "?!.," or is_finite(following, "x")
    )
    if not ends_name:
        return
    end = asked.spans[target][1]
    addition = version.lower() if asked.question == asked.question.lower() else version
    text = f"{asked.question[:end]} {addition}{asked.question[end:]}"
    name = f"{source[place]} {version}"
    yield Narrowing(text, name, name)
