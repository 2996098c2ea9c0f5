"""Forms from a title's brackets: the 2005 revival of X, season 3 of X, from 1984 to 2021, Puccini's X."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.grammar import (
    append_phrase,
    make_possessive,
    put_in_past,
    put_in_perfect,
)
from whichsense.models.compact.rewrite.forms.title_forms.inserting import (
    Proposal,
    is_owned,
    replace_mention,
    with_article,
)
from whichsense.models.compact.rewrite.forms.title_forms.kinds import kind_rewrites
from whichsense.models.compact.rewrite.forms.title_forms.mentions import Mention
from whichsense.models.compact.rewrite.forms.title_forms.parts import Qualifier
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    EVENT_NAMES,
    INDEFINITE_WORDS,
    ORDER_WORDS,
    PREPOSITION_OF_WORK,
    PREPOSITIONS,
)

_ASKS_TIME = re.compile(
    r"(?:since|in|from|by|on) ?when|when\b|(?:what|which) year", re.IGNORECASE
)


def bracket_rewrites(
    mention: Mention, name: str, qualifier: Qualifier
) -> Iterator[Proposal]:
    """Rewrites of a question that mentions a title's name, by what its brackets say; best first."""
    forms = {
        "kind": kind_rewrites,
        "version": _version_rewrites,
        "owner": _version_rewrites,
        "plural": _plural_rewrites,
        "part": _part_rewrites,
        "years": _time_rewrites,
        "since": _time_rewrites,
        "year": _year_rewrites,
        "place": _place_rewrites,
        "maker": _maker_rewrites,
        "role": _role_rewrites,
        "sex": _sex_rewrites,
    }
    for question in forms[qualifier.way](mention, name, qualifier):
        yield Proposal(question, f"bracket:{qualifier.way}")


def _version_rewrites(
    mention: Mention, _name: str, qualifier: Qualifier
) -> Iterator[str]:
    """the 2005 revival of Doctor Who; Whitney Houston's recording of the song X."""
    bare = with_article(mention)
    if mention.is_possessive or not mention.is_complete or not bare.previous:
        return
    if bare.previous in ORDER_WORDS | INDEFINITE_WORDS or is_owned(bare):
        return
    # "the song Respect" stays together behind "of".
    kind = re.search(
        r"\bthe (?:song|film|play|musical|opera|series|show)\s*$", bare.left
    )
    whole = mention.widen(kind.start()) if kind else mention
    if qualifier.way == "owner":
        owner = make_possessive(qualifier.owner)
        yield replace_mention(whole, f"{owner} {qualifier.noun} of {whole.text}")
        return
    yield replace_mention(whole, f"the {qualifier.phrase()} of {whole.text}")


def _plural_rewrites(
    mention: Mention, name: str, qualifier: Qualifier
) -> Iterator[str]:
    """in the 1935 and 1936 films."""
    bare = with_article(mention)
    if bare.previous in PREPOSITION_OF_WORK:
        return
    if bare.previous in PREPOSITIONS and mention.is_complete:
        yield replace_mention(bare, f"the {qualifier.modifier} {name} {qualifier.noun}")
        return
    if mention.left and " in " not in mention.right:
        yield append_phrase(mention.question, f"in the {qualifier.phrase()}")


def _part_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """in season 3 of Lost."""
    part = f"{qualifier.noun} {qualifier.modifier}"
    bare = with_article(mention)
    if bare.previous in PREPOSITIONS and mention.is_complete:
        yield replace_mention(mention, f"{part} of {mention.text}")
        return
    if bare.previous not in ORDER_WORDS and mention.left:
        yield append_phrase(mention.question, f"in {part} of {name}")


def _time_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """from 1984 to 2021, in the past; since 2005."""
    question = mention.question
    if _ASKS_TIME.match(question):
        if (
            qualifier.way == "years"
            and mention.is_complete
            and not mention.is_possessive
        ):
            years = f"{qualifier.modifier} to {qualifier.noun}"
            yield replace_mention(mention, f"{mention.text} of {years}")
        return
    if qualifier.way == "since":
        perfect = put_in_perfect(question)
        if perfect != question:
            yield append_phrase(perfect, f"since {qualifier.modifier}")
        return
    if re.search(r"\bdid\b", question) and mention.is_complete:
        years = f"{qualifier.modifier} to {qualifier.noun}"
        yield replace_mention(mention, f"{mention.text} of {years}")
        return
    past = put_in_past(question)
    yield append_phrase(past, f"from {qualifier.modifier} to {qualifier.noun}")
    yield append_phrase(past, f"between {qualifier.modifier} and {qualifier.noun}")


def _year_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """the Treaty of Paris of 1763; the 1940 Tacoma Narrows Bridge."""
    if not mention.is_complete or mention.is_possessive:
        return
    bare = with_article(mention)
    if not bare.previous or bare.previous in INDEFINITE_WORDS | ORDER_WORDS:
        return
    if is_owned(bare) or bare.previous in PREPOSITION_OF_WORK:
        return
    is_event = re.match(EVENT_NAMES, name) is not None
    if is_event and not _ASKS_TIME.match(mention.question) and not mention.following:
        yield append_phrase(mention.question, f"in {qualifier.modifier}")
    has_article = bare.start != mention.start or name.startswith("The ")
    if has_article:
        yield replace_mention(mention, f"{mention.text} of {qualifier.modifier}")
    if not is_event and " of " not in name and not name.startswith("The "):
        yield replace_mention(bare, f"the {qualifier.modifier} {mention.text}")


def _place_rewrites(
    mention: Mention, _name: str, qualifier: Qualifier
) -> Iterator[str]:
    """Mother's Day celebrated in the United States; Trinity College in Connecticut."""
    question = mention.question
    phrase = f"{qualifier.noun} {qualifier.modifier}"
    ends_with_phrase = re.search(r"\b(?:in|at) (?:[\w'-]+ ?){1,3}\W*$", mention.right)
    if not ends_with_phrase:
        yield append_phrase(question, phrase)
    if mention.following and mention.is_complete and not mention.is_possessive:
        yield replace_mention(mention, f"{mention.text} {phrase}")


def _maker_rewrites(
    mention: Mention, _name: str, qualifier: Qualifier
) -> Iterator[str]:
    """Puccini's La bohème; the statue of David by Donatello."""
    bare = with_article(mention)
    if mention.is_possessive or not mention.is_complete:
        return
    if is_owned(bare) or bare.previous in ORDER_WORDS | INDEFINITE_WORDS:
        return
    owner = make_possessive(qualifier.modifier)
    kind = re.search(r"\bthe (?=(\w+)$)", bare.left)
    if kind and kind[1] in PREPOSITION_OF_WORK:
        # the opera X: Puccini's opera X
        whole = mention.widen(kind.start())
        rest = mention.question[kind.end() : mention.end]
        yield replace_mention(whole, f"{owner} {rest}")
    elif bare.previous:
        yield replace_mention(bare, f"{owner} {mention.text}")


def _role_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """Anne Hathaway, the wife of Shakespeare, born."""
    if mention.is_possessive or not mention.is_complete:
        return
    comma = "," if mention.following else ""
    yield replace_mention(mention, f"{mention.text}, the {qualifier.modifier}{comma}")


def _sex_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """the men's 100 metres."""
    if not is_owned(mention):
        yield replace_mention(mention, f"{qualifier.modifier} {mention.text}")
