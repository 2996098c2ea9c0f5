"""Forms that widen a mention to the title that holds it: World Cup → 2019 Cricket World Cup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.grammar import in_register
from whichsense.models.compact.rewrite.forms.title_forms.inserting import Proposal
from whichsense.models.compact.rewrite.forms.title_forms.mentions import (
    Mention,
    is_same_word,
    split_words,
)
from whichsense.models.compact.rewrite.forms.title_forms.runs import (
    EDGE_WORDS,
    find_gapped_mention,
    find_longest_run,
)
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    AUXILIARIES,
    MAKING_VERBS,
    ORDER_WORDS,
    PLAYING_VERBS,
    PREPOSITION_OF_WORK,
    PREPOSITIONS,
    SECTION_WORDS,
)
from whichsense.text.function_words import WH_WORDS

_LINKS = re.compile(
    r"(?:.*\b(?:of|in|for|on|at|and|by|to|from|with)|.*[:–,])\s+(?:the |The )?"
)
_YEAR = re.compile(r"^(?:1\d|20)\d\d(?:[-–/]\d\d+)?$")
_WH_DETERMINERS = ("which", "what", "many", "much", "whose")
_PLACE = re.compile(r"^[A-Z][\w’'.-]*(?: (?:of |and )?(?:the )?[A-Z][\w’'.-]*){0,3}$")
_VERB_PLACE = 2  # where the verb stands in a question for its subject
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
_LOOSE_RELATION = re.compile(
    r"(?:^|,? and |, )(?:grand|half-|step)?"
    r"(?:son|daughter|brother|sister|father|mother|wife|husband|nephew|niece|cousin)$"
)
_APPOSITION = re.compile(
    r"^(?:(?:[A-Z][a-z]+ )?[a-z]+(?:-[a-z]+)?)(?: (?:and|of|[a-z]+))*$"
)


def widened_rewrites(question: str, name: str, text: str) -> Iterator[Proposal]:
    """Rewrites in which a mention grows to the name of a title, best first."""
    name = re.split(r":\s| – ", name)[0]
    gapped = find_gapped_mention(question, name)
    if gapped is not None and _is_name_like(gapped, name):
        if not _repeats(gapped, name):
            yield _proposal(gapped, name, "widen:middle")
        return
    head, comma, tail = name.partition(", ")
    run = find_longest_run(question, name)
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
        yield from _with_ending(mention, behind, text)
    elif behind.startswith("of ") and mention.is_complete and not mention.following:
        yield from _with_article(mention, name, text)


def _repeats(mention: Mention, name: str) -> bool:
    """Whether a word of the name stands beside the mention already."""
    beside = {word.form for word in split_words(f"{mention.left} {mention.right}")}
    return bool({word.form for word in split_words(name)} & beside - EDGE_WORDS - {"s"})


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
        forms = [f"{mention.text}, {tail}{closing}", f"{mention.text} in {tail}"]
        if mention.previous == "the":  # the Frauenkirche in Dresden
            forms.reverse()
        for form in forms:
            yield _proposal(mention, form, "widen:place")
    elif _APPOSITION.match(tail) and (role := _without_relation(tail)):
        yield _proposal(mention, f"{mention.text}, the {role}{comma}", "widen:role")


def _without_relation(role: str) -> str:
    """A role without a relation that says not whose it is; empty where nothing is left.

    >>> [_without_relation(one) for one in ("journalist and grandson", "painter and poet", "wife of Rubens", "son")]
    ['journalist', 'painter and poet', 'wife of Rubens', '']
    """
    return _LOOSE_RELATION.sub("", role)


def _with_beginning(
    mention: Mention, before: str, name: str, text: str
) -> Iterator[Proposal]:
    """Damon Hill for Hill; the First Boer War for the Boer War."""
    added = _LINKS.sub("", before).strip()
    added = re.sub(r"^(?:The|the|A|An)\b\s*", "", added)
    if added[:1].islower() and added not in before[: len(added)]:
        return  # "The name oxygen" is no kind of oxygen
    if not added or mention.is_inside_name or not before[-1].isspace():
        return
    if added.split(maxsplit=1)[0].lower() in SECTION_WORDS:
        return
    head = name[len(before) :]
    is_query = mention.question == mention.question.lower()
    if (head[0].islower() or is_query) and _is_compound(mention):
        return
    if _is_owner(added) and mention.previous in ORDER_WORDS:
        return
    mention = _take_in(mention, added)
    if not _is_owner(added):
        added = _lower_first(added, head, text)
    words = _drop_asked(added.split(), mention)
    if not words:
        return
    yield from _with_article(mention, f"{' '.join(words)} {head}", text)
    if _YEAR.match(words[0]) and len(words) > 1:
        shorter = " ".join(words[1:])
        yield from _with_article(mention, f"{shorter} {head}", text)


def _is_compound(mention: Mention) -> bool:
    """Whether a common noun is the end of a compound: "match" in "the tennis match"."""
    previous = mention.previous
    if (
        previous
        in EDGE_WORDS | AUXILIARIES | MAKING_VERBS | ORDER_WORDS | PLAYING_VERBS
    ):
        return False
    if previous in WH_WORDS or len(mention.left.split()) == _VERB_PLACE:
        return False  # "who beat klitschko": the second word is the verb
    return not previous.endswith(("'s", "’s", "est", "ed", "ing"))


def _take_in(mention: Mention, added: str) -> Mention:
    """The mention with words of the addition that stand before it: the women's world cup."""
    known = {word.form for word in split_words(added)}
    start = mention.start
    for word in reversed(split_words(mention.question[: mention.start])):
        if word.form not in known:
            break
        start = word.start
    return mention.widen(start)


def _drop_asked(words: list[str], mention: Mention) -> list[str]:
    """Added words without those at the beginning that the question has, and without a year behind "first"."""
    beside = f"{mention.left} {mention.right}".lower()
    asked = set(re.findall(r"[\w/–-]+", beside))
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


def _with_article(
    mention: Mention, widened: str, text: str, form: str = "widen:front"
) -> Iterator[Proposal]:
    """The widened name in the mention's place, with or without "the" as the evidence has it."""
    needs = _takes_article(widened, text)
    if _is_owner(widened.split(maxsplit=1)[0]):
        needs = False
    if is_same_word(mention.last_word, widened.rsplit(maxsplit=1)[-1].lower()):
        # The number is the question's: "a central bank" for "Central banks".
        widened = f"{widened.rpartition(' ')[0]} {mention.last_word_as_written}"
    article = re.search(r"\b[Tt]he\s+$", mention.question[: mention.start])
    if article and needs is False and not widened[0].islower():
        if mention.is_complete:
            wider = mention.widen(article.start())
            yield _proposal(wider, widened, form)
        return
    if mention.previous in ("a", "an") and not _fits_article(mention.previous, widened):
        return
    is_bare = mention.previous in PREPOSITIONS | AUXILIARIES | MAKING_VERBS
    if not article and needs and is_bare:
        widened = f"the {widened}"
    yield _proposal(mention, widened, form)


def _fits_article(article: str, phrase: str) -> bool:
    """Whether "a" or "an" stands rightly before a phrase.

    >>> _fits_article("a", "NBA game"), _fits_article("an", "NBA game"), _fits_article("a", "beach")
    (False, True, True)
    """
    first = phrase.split(maxsplit=1)[0]
    vowels = "AEFHILMNORSX" if first.isupper() else "AEIOaeio"
    return (first[0] in vowels) == (article == "an")


def _with_ending(mention: Mention, behind: str, text: str) -> Iterator[Proposal]:
    """Hans Holbein the Younger; the Nobel Prize in Literature; Queen Elizabeth 2."""
    link, _, rest = behind.partition(" ")
    if not behind[0].isalnum() and not re.match(r"[’']\d\d", behind):
        return
    if link.lower() in EDGE_WORDS - {"of", "in", "the"} or mention.following == link:
        return
    is_last = not mention.following or mention.following in EDGE_WORDS
    if link == "in" and not (rest[:1].isupper() and is_last):
        return
    is_common = link not in EDGE_WORDS and link.islower()
    is_term = f"{mention.text} {link}".lower() in text.lower()
    is_loose = link.endswith("s") and not is_term
    if is_common and (rest or is_loose or link in PREPOSITION_OF_WORK):
        return
    if not mention.is_complete or (mention.is_possessive and link in PREPOSITIONS):
        return
    asked = {word.form for word in split_words(mention.question)}
    added = {word.form for word in split_words(behind)} - EDGE_WORDS
    if not added & asked:
        yield from _with_article(
            mention, f"{mention.text} {behind}", text, "widen:back"
        )


def _takes_article(name: str, text: str) -> bool | None:
    """Whether a text writes "the" before a name inside its sentences; None where it does not say."""
    pattern = re.escape(name).replace(r"\ ", r"\s+")
    uses = re.findall(rf"(\w*)(?:^|[\s.]+){pattern}\b", text, re.IGNORECASE)
    before = {word.lower() for word in uses}
    if "the" in before:
        return True
    # Behind other words, as in "the 2019 Cricket World Cup", a text does not say.
    return False if before & (EDGE_WORDS | {""}) else None


def _lower_first(added: str, head: str, text: str) -> str:
    """The first word of a title in lower case if it is a common noun or adjective that the text writes so.

    >>> _lower_first("Beach", "volleyball", "In beach volleyball two play.")
    'beach'
    >>> _lower_first("First", "Boer War", "It was the first war.")
    'First'
    """
    first = added.split(maxsplit=1)[0]
    lowered = added[0].lower() + added[1:]
    if head[0].islower():
        is_common = re.search(rf"\b{re.escape(first.lower())}\b", text) is not None
        is_common |= first[:-2] in _COMMON_OWNERS
    else:
        is_common = f"{lowered} {head}" in text
    return lowered if is_common else added


def _proposal(mention: Mention, text: str, form: str) -> Proposal:
    question = mention.question
    added = in_register(text, question)
    return Proposal(f"{question[: mention.start]}{added}{mention.right}", form)
