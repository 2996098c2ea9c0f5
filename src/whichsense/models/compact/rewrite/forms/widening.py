"""Forms that widen a mention to the title that holds it: World Cup → 2019 Cricket World Cup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.rewrite.forms.brackets import Proposal
from whichsense.models.compact.rewrite.forms.grammar import in_register
from whichsense.models.compact.rewrite.forms.mentions import (
    Mention,
    Word,
    is_same_word,
    split_words,
)
from whichsense.models.compact.rewrite.forms.title_words import (
    AUXILIARIES,
    MAKING_VERBS,
    ORDER_WORDS,
    PLAYING_VERBS,
    PREPOSITIONS,
)
from whichsense.text.function_words import QUESTION_WORDS

_LINKS = re.compile(
    r"(?:.*\b(?:of|in|for|on|at|and|by|to|from|with)|.*[:–,])\s+(?:the |The )?"
)
_YEAR = re.compile(r"^(?:1\d|20)\d\d(?:[-–/]\d\d+)?$")
_NO_MENTIONS = QUESTION_WORDS | MAKING_VERBS | PLAYING_VERBS | ORDER_WORDS
# A mention neither begins nor ends with one of these.
_EDGES = PREPOSITIONS | {"the", "a", "an", "and", "or"}
_WH_DETERMINERS = ("which", "what", "many", "much", "whose")
_PLACE = re.compile(r"^[A-Z][\w’'.-]*(?: (?:of |and )?(?:the )?[A-Z][\w’'.-]*){0,3}$")
# Owners that are no persons: the women's final keeps its article.
_COMMON_OWNERS = (
    "Women",
    "Men",
    "Ladies",
    "Children",
    "Girl",
    "Boy",
    "People",
    "World",
)
_APPOSITION = re.compile(
    r"^(?:(?:[A-Z][a-z]+ )?[a-z]+(?:-[a-z]+)?)(?: (?:and|of|[a-z]+))*$"
)


def widened_rewrites(question: str, name: str, text: str) -> Iterator[Proposal]:
    """Rewrites in which a mention grows to the name of a title, best first."""
    name = re.split(r":\s| – ", name)[0]
    gapped = _gapped_mention(question, name)
    if gapped is not None:
        yield _proposal(gapped, name, "widen:middle")
        return
    head, comma, tail = name.partition(", ")
    run = _longest_run(question, name)
    if run is None:
        return
    mention, first, last = run
    before = name[: first.start]
    behind = name[last.end :].strip()
    if not _is_name_like(mention, name[first.start : last.end]):
        return
    if comma and last.end == len(head) and not before:
        yield from _with_comma(mention, tail)
    elif before and not behind:
        yield from _with_beginning(mention, before, name, text)
    elif behind and not before and not comma:
        yield from _with_ending(mention, behind)


def _gapped_mention(question: str, name: str) -> Mention | None:
    """A run of the question that is the whole name but for words in its middle: William Bragg."""
    asked = split_words(question)
    named = split_words(name)
    for length in range(len(named) - 1, 1, -1):
        for first in range(len(asked) - length + 1):
            run = asked[first : first + length]
            front = _shared_length(run, 0, named, 0)
            back = _shared_length(run[::-1], 0, named[::-1], 0)
            ends = {run[0].form, run[-1].form}
            if front and back and front + back >= length and not ends & _NO_MENTIONS:
                mention = Mention(question, run[0].start, run[-1].end)
                in_title = name[named[0].start : named[-1].end]
                return mention if _is_name_like(mention, in_title) else None
    return None


def _longest_run(question: str, name: str) -> tuple[Mention, Word, Word] | None:
    """The run with most content words that question and name share: the mention, its first and last word in the name.

    Of equally long runs the last of the name is taken, which is its head.
    """
    asked = split_words(question)
    named = split_words(name)
    best: tuple[int, int, int] = (0, 0, 0)  # length, first in question, first in name
    for i in range(len(asked)):
        for j in range(len(named)):
            length = _shared_length(asked, i, named, j)
            while length and asked[i + length - 1].form in _EDGES:
                length -= 1
            if length >= max(best[0], 1) and asked[i].form not in _EDGES:
                best = (length, i, j)
    length, i, j = best
    if length in (0, len(named)):
        return None
    run = asked[i : i + length]
    if all(word.form in _NO_MENTIONS or word.form.isdigit() for word in run):
        return None
    mention = Mention(question, run[0].start, run[-1].end)
    return mention, named[j], named[j + length - 1]


def _shared_length(asked: Sequence[Word], i: int, named: Sequence[Word], j: int) -> int:
    """How many words are the same from these two places on."""
    length = 0
    while i + length < len(asked) and j + length < len(named):
        if not is_same_word(asked[i + length].form, named[j + length].form):
            break
        length += 1
    return length


def _is_name_like(mention: Mention, in_title: str) -> bool:
    """Whether a run of the question may be a mention of the title: its capitals fit, and it is not asked for."""
    if mention.previous in _WH_DETERMINERS or not mention.left:
        return False
    question = mention.question
    if question == question.lower():
        return True
    return (
        mention.text[0].isupper() == in_title[0].isupper() or not in_title[0].isupper()
    )


def _with_comma(mention: Mention, tail: str) -> Iterator[Proposal]:
    """Springfield, Ohio; Winston Churchill, the American novelist, …"""
    if mention.is_possessive or not mention.is_complete:
        return
    is_query = mention.question == mention.question.lower()
    comma = "," if mention.following and mention.right[:1] not in ",;" else ""
    if _PLACE.match(tail):
        closing = "" if is_query else comma
        yield _proposal(mention, f"{mention.text}, {tail}{closing}", "widen:place")
        yield _proposal(mention, f"{mention.text} in {tail}", "widen:place")
    elif _APPOSITION.match(tail):
        yield _proposal(mention, f"{mention.text}, the {tail}{comma}", "widen:role")


def _with_beginning(
    mention: Mention, before: str, name: str, text: str
) -> Iterator[Proposal]:
    """Damon Hill for Hill; the First Boer War for the Boer War."""
    added = _LINKS.sub("", before).strip()
    added = re.sub(r"^(?:The|the|A|An)\b\s*", "", added)
    if not added or mention.is_inside_name or not before[-1].isspace():
        return
    if _is_owner(added) and mention.previous in ORDER_WORDS:
        return
    if _is_sentence_case(name) and not _is_owner(added):
        added = _lower_first(added, text)
    words = _drop_asked(added.split(), mention)
    if not words:
        return
    yield _with_article(mention, f"{' '.join(words)} {mention.text}", text)
    if _YEAR.match(words[0]) and len(words) > 1:
        shorter = " ".join(words[1:])
        yield _with_article(mention, f"{shorter} {mention.text}", text)


def _drop_asked(words: list[str], mention: Mention) -> list[str]:
    """Added words without those at the beginning that the question has, and without a year behind "first"."""
    asked = set(re.findall(r"[\w/–-]+", mention.question.lower()))
    first = 0
    while first < len(words):
        is_year = _YEAR.match(words[first]) and mention.previous in ORDER_WORDS
        if not is_year and words[first].lower() not in asked:
            break
        first += 1
    return words[first:]


def _is_owner(added: str) -> bool:
    """Whether words end with a person's possessive: Rennie's, but not women's."""
    last = added.rsplit(maxsplit=1)[-1]
    return (
        last[0].isupper()
        and last.endswith(("'s", "’s"))
        and last[:-2] not in _COMMON_OWNERS
    )


def _with_article(mention: Mention, widened: str, text: str) -> Proposal:
    """The widened name in the mention's place, with or without "the" as the evidence has it."""
    needs = _takes_article(widened, text)
    if _is_owner(widened.split(maxsplit=1)[0]):
        needs = False
    article = re.search(r"\b[Tt]he\s+$", mention.question[: mention.start])
    if article and needs is False and not widened[0].islower():
        return _proposal(mention.widen(article.start()), widened, "widen:front")
    is_bare = mention.previous in PREPOSITIONS | AUXILIARIES | MAKING_VERBS
    if not article and needs and is_bare:
        widened = f"the {widened}"
    return _proposal(mention, widened, "widen:front")


def _with_ending(mention: Mention, behind: str) -> Iterator[Proposal]:
    """Hans Holbein the Younger; the Nobel Prize in Literature; Queen Elizabeth 2."""
    link, _, rest = behind.partition(" ")
    if not behind[0].isalnum() and not re.match(r"[’']\d\d", behind):
        return
    if link.lower() in _EDGES - {"of", "in", "the"}:
        return
    if link == "in" and not rest[:1].isupper():
        return
    if not mention.is_complete or (mention.is_possessive and link in PREPOSITIONS):
        return
    asked = {word.form for word in split_words(mention.question)}
    added = {word.form for word in split_words(behind)} - _EDGES
    if added & asked:
        return
    yield _proposal(mention, f"{mention.text} {behind}", "widen:back")


def _takes_article(name: str, text: str) -> bool | None:
    """Whether a text writes "the" before a name inside its sentences; None where it does not say."""
    pattern = re.escape(name).replace(r"\ ", r"\s+")
    uses = re.findall(rf"(\w*)(?:^|[\s.]+){pattern}\b", text, re.IGNORECASE)
    before = {word.lower() for word in uses}
    if "the" in before:
        return True
    # Behind other words, as in "the 2019 Cricket World Cup", a text does not say.
    return False if before & (_EDGES | {""}) else None


def _is_sentence_case(name: str) -> bool:
    """Whether only the first word of a title has a capital, so that it may be a common noun."""
    rest = [word for word in name.split()[1:] if word.isalpha()]
    return bool(rest) and all(word.islower() for word in rest)


def _lower_first(words: str, text: str) -> str:
    """The first word in lower case, unless the text writes it with a capital inside a sentence."""
    first = words.split(maxsplit=1)[0]
    if first.isupper() or re.search(rf"[a-z,] {re.escape(first)}\b", text):
        return words
    return words[0].lower() + words[1:]


def _proposal(mention: Mention, text: str, form: str) -> Proposal:
    question = mention.question
    added = in_register(text, question)
    return Proposal(f"{question[: mention.start]}{added}{mention.right}", form)
