"""State answers: one as a statement, several of one form in one sentence that says once what they share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.story.grammar import word_lists
from whichsense.models.compact.story.grammar.gaps import Gap, parse_question
from whichsense.models.compact.story.grammar.verbs import find_verb
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
_DOUBLED = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
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
    return None if _DOUBLED.search(stated.text) else stated


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
        return stated[0].lower() + answer
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


def list_statements(statements: Sequence[Statement]) -> str:
    """One sentence for all statements, without its full stop; empty where they are not of one form.

    >>> films = [Statement("", "Lon Chaney", "plays the Phantom in the 1925 film"),
    ...          Statement("", "Claude Rains", "plays the Phantom in the 1943 film")]
    >>> list_statements(films)
    'Lon Chaney plays the Phantom in the 1925 film and Claude Rains in the 1943 film'
    >>> list_statements([Statement("the novel was published", "in 1964", ""),
    ...                  Statement("the film was published", "in 1971", "")])
    'the novel was published in 1964 and the film in 1971'
    """
    if len(statements) < 2:
        return ""
    if all(not one.before for one in statements):
        items = _share_start(
            [one.after.split() for one in statements],
            [one.answer for one in statements],
        )
    elif all(one.before and not one.after for one in statements):
        items = (
            _share_beginning(statements)
            or _share_end(statements)
            or _share_noun(statements)
        )
    else:
        items = []
    return join(items)


def _share_start(tails: Sequence[list[str]], answers: Sequence[str]) -> list[str]:
    """Items whose verb stands behind the answer: "A plays X in Y", "B in Z"."""
    shared = _shared_length(tails)
    while shared and not _starts_rest(tails, shared):
        shared -= 1
    if not shared:
        return []
    rests = [tail[shared:] for tail in tails]
    rests = [rests[0], *_without_repeated_name(rests)[1:]]
    items = [f"{answers[0]} {' '.join(tails[0])}"]
    for answer, rest in zip(answers[1:], rests[1:], strict=True):
        items.append(f"{answer} {' '.join(rest)}")
    return items


def _share_beginning(statements: Sequence[Statement]) -> list[str]:
    """Items whose subject and verb are the same: "X opened in A on 1 May", "in B on 2 May"."""
    heads = [one.before.split() for one in statements]
    shared = _shared_length(heads)
    while shared and not _starts_rest(heads, shared):
        shared -= 1
    if not shared or find_verb(" ".join(heads[0][:shared])) is None:
        return []
    items = [f"{statements[0].before} {statements[0].answer}"]
    for head, one in zip(heads[1:], statements[1:], strict=True):
        items.append(f"{' '.join(head[shared:])} {one.answer}")
    return items


def _share_end(statements: Sequence[Statement]) -> list[str]:
    """Items whose verb is the same behind another subject: "X opened in 1964", "Y in 1971"."""
    heads = [one.before.split()[::-1] for one in statements]
    shared = _shared_length(heads)
    common = " ".join(heads[0][:shared][::-1])
    verb = find_verb(common) if common else None
    if verb is None or not all(_is_adverbial(one.answer) for one in statements):
        return []
    verb_words = len(common[verb[0] :].split())
    items = [f"{statements[0].before} {statements[0].answer}"]
    for one in statements[1:]:
        subject = one.before.split()[:-verb_words]
        if not subject:
            return []
        items.append(f"{' '.join(subject)} {one.answer}")
    return items


def _share_noun(statements: Sequence[Statement]) -> list[str]:
    """Items about the same property: "the population of X is 1", "that of Y is 2"."""
    heads = [one.before.split() for one in statements]
    shared = _shared_length(heads)
    while shared and heads[0][shared - 1] != "of":
        shared -= 1
    if not shared or heads[0][0].lower() != "the":
        return []
    items = [f"{statements[0].before} {statements[0].answer}"]
    for head, one in zip(heads[1:], statements[1:], strict=True):
        items.append(f"that of {' '.join(head[shared:])} {one.answer}")
    return items


def _is_adverbial(answer: str) -> bool:
    return answer.split(maxsplit=1)[0].lower() in word_lists.PREPOSITIONS


def _shared_length(rows: Sequence[list[str]]) -> int:
    """How many words all rows begin with."""
    shared = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return shared


def _starts_rest(rows: Sequence[list[str]], shared: int) -> bool:
    """Whether behind the shared words a phrase of its own begins in every row."""
    return all(
        len(row) > shared and row[shared] in word_lists.PHRASE_STARTS for row in rows
    )


def _without_repeated_name(rests: list[list[str]]) -> list[list[str]]:
    """Rests without the name with which all end, behind "the 1943 film"."""
    shared = _shared_length([rest[::-1] for rest in rests])
    while shared:
        if all(_ends_with_work(rest[:-shared]) for rest in rests):
            return [rest[:-shared] for rest in rests]
        shared -= 1
    return rests


def _ends_with_work(rest: list[str]) -> bool:
    return bool(rest) and rest[-1] in word_lists.WORK_NOUNS


def join(items: Sequence[str]) -> str:
    """Items with commas and "and"; with semicolons where an item has a comma itself.

    >>> join(["a", "b"]), join(["a", "b", "c"]), join(["a, x", "b", "c"])
    ('a and b', 'a, b, and c', 'a, x; b; and c')
    """
    if len(items) < 2:
        return "".join(items)
    if len(items) == 2 and any(", " in item for item in items):
        return ", and ".join(items)
    if any(", " in item for item in items):
        return "; ".join([*items[:-1], f"and {items[-1]}"])
    if len(items) == 2:
        return " and ".join(items)
    return ", ".join([*items[:-1], f"and {items[-1]}"])
