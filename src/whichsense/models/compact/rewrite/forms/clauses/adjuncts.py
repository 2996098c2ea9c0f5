"""Phrases of a clause that say when, where, for whom or on which condition it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.times import (
    is_time_phrase,
    protect_commas,
    restore_commas,
)
from whichsense.models.compact.rewrite.forms.clauses.tokens import (
    TOKEN,
    find_verb,
    is_finite,
)
from whichsense.text.words import words

_MOST_WORDS = 9  # of a phrase
_CONDITION = re.compile(r"\b(?:if|unless|where|when)\b [^,;:]+")


@dataclass(frozen=True, slots=True)
class Adjunct:
    """A phrase that can stand at the end of a question."""

    text: str
    opening: str  # its preposition, "if", or "adverb"
    is_time: bool
    is_near: bool  # whether it stands directly behind the answer


def find_adjuncts(clause: Clause) -> list[Adjunct]:
    """The phrases of an answer's clause, those behind the answer first.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> text = "The hall costs 420 on weekdays and 690 at weekends."
    >>> [phrase.text for phrase in find_adjuncts(find_clause(Snippet("Hall", text, 15, 18), [(35, 38)]))]
    ['on weekdays']
    """
    phrases: list[Adjunct] = []
    for part in (clause.after, clause.lead, clause.middle):
        phrases.extend(_phrases(part, near=part is not clause.middle))
    for phrase in _phrases(clause.label, near=False):
        if phrase.is_time:
            phrases.append(phrase)
    phrases.extend(_phrases(clause.subject, near=not clause.verb))
    unique: dict[str, Adjunct] = {}
    for phrase in phrases:
        unique.setdefault(phrase.text.lower(), phrase)
    return list(unique.values())


def _phrases(part: str, *, near: bool) -> Iterator[Adjunct]:
    """All phrases of one part of a clause."""
    condition = _CONDITION.search(part)
    if condition and _is_whole_condition(condition[0], part):
        text = _lower_first(condition[0].strip())
        yield Adjunct(text, "if", is_time=False, is_near=near)
        part = part[: condition.start()]
    tokens = TOKEN.findall(protect_commas(part))
    starts = [place for place in range(len(tokens)) if _opens(tokens, place)]
    end_of_last = 0
    for start in starts:
        if start < end_of_last or _repeats(tokens, start):
            continue
        stop = _clause_end(tokens, start, _phrase_end(tokens, start))
        if tokens[start].lower() in ("from", "between", "up"):
            end_of_last = stop
        text = _join(tokens[start:stop])
        if not _is_phrase(text):
            continue
        is_near = near and "," not in tokens[:start]
        yield Adjunct(text, tokens[start].lower(), is_time_phrase(text), is_near)
        longer = _longer(tokens, start, stop)
        if longer:
            yield Adjunct(
                longer, tokens[start].lower(), is_time_phrase(longer), is_near
            )
    if tokens and tokens[0] in vocabulary.ADVERBS:
        yield Adjunct(tokens[0], "adverb", is_time=False, is_near=near)


def _repeats(tokens: Sequence[str], start: int) -> bool:
    """Whether a list goes on behind a comma with a preposition that it had: "for a week in May, for two in June"."""
    if "," not in tokens[:start]:
        return False
    comma = tokens.index(",")
    earlier = {token.lower() for token in tokens[:comma]}
    behind = [token.lower() for token in tokens[comma + 1 : start + 1]]
    return any(token in earlier & vocabulary.PREPOSITIONS for token in behind)


def _clause_end(tokens: Sequence[str], start: int, stop: int) -> int:
    """The end of a phrase that has a verb of its own: "after a plan ends", "for staff who marry"."""
    if stop >= len(tokens):
        return stop
    opens_clause = tokens[start].lower() in ("after", "before", "until", "since")
    has_verb = opens_clause and is_finite(tokens[stop], tokens[stop - 1])
    is_relative = tokens[stop].lower() in ("who", "that", "which", "whose")
    if not has_verb and not is_relative:
        return stop
    while stop < len(tokens) and tokens[stop] not in ",;:":
        stop += 1
    return stop


def _longer(tokens: Sequence[str], start: int, stop: int) -> str:
    """A phrase with the one that follows it directly: "for the first 5,000 miles in a year"."""
    if stop >= len(tokens) or not _opens(tokens, stop):
        return ""
    first = _join(tokens[start:stop])
    if tokens[stop] not in ("in", "at", "on", "for", "with") or is_time_phrase(first):
        return ""
    text = _join(tokens[start : _phrase_end(tokens, stop)])
    return text if _is_phrase(text) else ""


def _join(tokens: Sequence[str]) -> str:
    text = _lower_first(restore_commas(" ".join(tokens)))
    return re.sub(r"(?:’s|'s|s’|s')?[.]?$", lambda match: match[0].rstrip("."), text)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _opens(tokens: Sequence[str], place: int) -> bool:
    """Whether a phrase may open at a token."""
    word = tokens[place].lower()
    if word not in vocabulary.CONDITION_PREPOSITIONS and word not in ("until", "since"):
        return False
    if word == "to":  # only as the second half of "from A to B" and "up to"
        return False
    # "for outside firms" is one phrase.
    if place and tokens[place - 1].lower() in vocabulary.CONDITION_PREPOSITIONS:
        return False
    # "measured at the jib": the phrase belongs to the participle.
    if place == 1 and tokens[0].endswith("ed"):
        return False
    # "those under 16" is one phrase.
    if place and tokens[place - 1].lower() in vocabulary.PRONOUNS:
        return False
    # Particles of verbs: "brought in", "made up of"
    return place + 1 < len(tokens) and tokens[place + 1].lower() not in ("of", "which")


def _phrase_end(tokens: Sequence[str], start: int) -> int:
    """Where the phrase that opens at `start` ends."""
    opening = tokens[start].lower()
    joins = {"of", "than"}
    if opening in ("from", "up", "between"):
        joins |= {"to", "and", "until"}
    place = start + 1
    if opening == "up":
        place += 1
    while place < len(tokens):
        word = tokens[place]
        lowered = word.lower()
        previous = tokens[place - 1]
        if word in ",;:" or lowered in vocabulary.WH_WORDS:
            break
        if lowered in vocabulary.CONJUNCTIONS and lowered not in joins:
            if not _continues(tokens, place):
                break
        elif lowered in vocabulary.PREPOSITIONS and lowered not in joins:
            is_span = lowered == "to" and previous.isdigit()
            is_first = place == start + 1
            if previous.lower() != "those" and not is_span and not is_first:
                break
        elif is_finite(word, previous) and previous.lower() != opening:
            break
        place += 1
    return place


def _continues(tokens: Sequence[str], place: int) -> bool:
    """Whether a conjunction joins two nouns of one phrase: no verb follows it before the next mark."""
    if tokens[place].lower() not in ("and", "or"):
        return False
    following = tokens[place + 1 : place + 2]
    if following and following[0][0].isupper() and tokens[place - 1].islower():
        return False
    joined = 0
    previous = "and"
    for word in tokens[place + 1 :]:
        if word in ",;:":
            break
        if word.lower() in vocabulary.PREPOSITIONS:
            # "in France and Ole Sund in Sweden": the second name opens a clause.
            opens_clause = word.lower() in ("in", "at", "on")
            is_name = following[0][0].isupper()
            return joined > 0 and not (opens_clause and is_name)
        if joined and is_finite(word, previous):
            return False
        joined += 1
        previous = word
    return 1 <= joined <= 4


def _is_phrase(text: str) -> bool:
    """Whether a phrase is whole: a noun behind its preposition, of a fair length, without a pronoun."""
    parts = text.split()
    if not 2 <= len(parts) <= _MOST_WORDS:
        return False
    # "Block A" ends with no article.
    last = parts[-1] if len(parts[-1]) == 1 else parts[-1].lower()
    if last in vocabulary.DETERMINERS or last in vocabulary.PREPOSITIONS:
        return False
    if last in vocabulary.CONJUNCTIONS or last in vocabulary.VAGUE:
        return False
    is_rate = parts[1] in ("a", "an") and parts[2:3] and parts[2] in vocabulary.UNITS
    if is_rate:
        return False
    inner = {word.lower() for word in parts[1:]} - {"those"}
    if inner & vocabulary.UNIVERSAL or parts[1] in ("most", "least"):
        return False
    return not inner & (vocabulary.PRONOUNS | vocabulary.POSSESSIVES)


def _is_whole_condition(condition: str, part: str) -> bool:
    """Whether an "if" clause can stand alone: it names its subject, or has none."""
    opening, *inner = words(condition)
    if not 1 <= len(inner) <= _MOST_WORDS or inner == ["not"]:
        return False
    has_verb = find_verb(condition) is not None
    if opening in ("when", "where"):
        # "when students may work 20": the value is the verb's object.
        ends_with_verb = inner[-1] in vocabulary.VALUE_VERBS | vocabulary.AUXILIARIES
        is_whole = has_verb and not ends_with_verb
    else:
        # "if the locative, …, is counted" goes on behind the comma; "if registered" is whole.
        is_whole = has_verb or inner[0] not in vocabulary.DETERMINERS
    vague = (vocabulary.PRONOUNS | vocabulary.POSSESSIVES) - {"one"}
    behind = part.split(condition, 1)[-1].strip()
    is_last = not behind or behind.startswith(",")
    return is_whole and is_last and vague.isdisjoint(inner)
