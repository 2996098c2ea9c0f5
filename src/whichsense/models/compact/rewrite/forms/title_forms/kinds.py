"""Forms from a kind in a title's brackets: the 1989 film Batman, the musical Hairspray, the planet Mercury."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.grammar import (
    append_phrase,
    in_register,
    make_possessive,
)
from whichsense.models.compact.rewrite.forms.title_forms.inserting import (
    has_words,
    is_owned,
    replace_mention,
    with_article,
)
from whichsense.models.compact.rewrite.forms.title_forms.mentions import Mention
from whichsense.models.compact.rewrite.forms.title_forms.parts import Qualifier
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    AUXILIARIES,
    INDEFINITE_WORDS,
    MAKING_VERBS,
    NATIONAL_ADJECTIVES,
    ORDER_WORDS,
    PREPOSITION_OF_WORK,
    PREPOSITIONS,
    SONGS_AND_IMAGES,
    WORK_VERBS,
    is_same_kind,
)

_YEAR = re.compile(r"\d{4}s?")
# Behind these words a name is a character's and not the work's.
_OF_CHARACTER = re.compile(
    r"\b(?:voice|voices|role|part|character|actor|name) (?:of|for)$"
)


def kind_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """in the 1989 film Batman; behind a character's name: in the 1989 film."""
    merged, is_settled = _merge_kind(mention, qualifier)
    if merged:
        yield merged
    if is_settled:
        return
    is_character = mention.is_possessive or not _is_work_mention(mention)
    has_characters = qualifier.is_work and qualifier.head not in SONGS_AND_IMAGES
    if has_characters and is_character:
        yield from _end_rewrites(mention, name, qualifier)
    elif mention.is_complete:
        yield from _insert_kind(mention, name, qualifier)


def _merge_kind(mention: Mention, qualifier: Qualifier) -> tuple[str, bool]:
    """The modifier beside a kind that the question has already, and whether nothing else may be said.

    "the film Dune" → "the 1984 film Dune"; "the Dune movie" → "the 1984 Dune movie". A question that says another kind
    of work contradicts the title.
    """
    question = mention.question
    before = with_article(mention).left
    kind_of = re.search(r"\b(\w+) of$", before)  # the film of Hamlet
    beside = (mention.previous, mention.following, kind_of[1] if kind_of else "")
    for word in beside:
        if word not in PREPOSITION_OF_WORK and word != qualifier.head:
            continue
        if not is_same_kind(word, qualifier.head):
            # "who plays X" is no kind, "the play X" is one.
            return "", bool(re.search(rf"\b(?:the|a) (?:\w+ )?{word}\b", question))
        article = re.search(
            rf"\b(?:the|The) (?=(?:[\w-]+ )?(?:{word}|{re.escape(mention.text)})\b)",
            question[: mention.end],
        )
        is_dated = has_words(question, qualifier.modifier) or _YEAR.search(before)
        if not article or not qualifier.modifier or is_dated:
            return "", True
        place = article.end()
        added = in_register(qualifier.modifier, question)
        return f"{question[:place]}{added} {question[place:]}", True
    return "", False


def _is_work_mention(mention: Mention) -> bool:
    """Whether a mention is of the work and not of a character who has its name."""
    bare = with_article(mention)
    previous = bare.previous
    if _OF_CHARACTER.search(bare.left.lower()):
        return False
    if previous in PREPOSITIONS and previous not in ("as", "by", "with", "to"):
        return True
    if previous in AUXILIARIES:
        following = set(re.findall(r"\w+", mention.right.lower()))
        return bool(following & WORK_VERBS)
    if mention.is_quoted or previous in MAKING_VERBS:
        return True
    is_ordered = previous in ORDER_WORDS or is_owned(bare)
    return is_ordered and mention.is_complete


def _end_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """The work at the end of the question: in the 1976 film."""
    question = re.sub(r" on (?:film|tv)(?=\W*$)", "", mention.question)
    said = re.search(r"\bin the (?=(\w+)\W*$)", mention.right)
    if said and is_same_kind(said[1], qualifier.head) and qualifier.modifier:
        # "in the film" stands there already.
        place = mention.end + said.end()
        added = in_register(qualifier.modifier, mention.question)
        yield f"{mention.question[:place]}{added} {mention.question[place:]}"
    if not mention.left or re.search(rf" {qualifier.preposition} ", mention.right):
        return
    phrase = f"{qualifier.preposition} the {qualifier.phrase()}"
    if mention.is_inside_name:
        yield append_phrase(question, f"{phrase} {name}")
    if qualifier.modifier or not mention.is_inside_name:
        yield append_phrase(question, phrase)
    yield append_phrase(question, f"{phrase} {name}")


def _insert_kind(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """Kind and modifier before the mention, with the article that fits."""
    bare = with_article(mention)
    previous = bare.previous
    modifier = qualifier.modifier
    if not previous or previous in INDEFINITE_WORDS:
        return
    if is_owned(bare):
        yield replace_mention(mention, f"{qualifier.phrase()} {mention.text}")
    elif previous[0].isdigit():
        if previous == modifier:
            yield replace_mention(mention, f"{qualifier.noun} {mention.text}")
    elif previous in ORDER_WORDS:
        if _is_plain(modifier):
            yield replace_mention(bare, f"{modifier} {mention.text}")
    else:
        for phrase in _noun_phrases(mention.text, name, qualifier):
            yield _fit_preposition(bare, phrase, qualifier)


def _noun_phrases(text: str, name: str, qualifier: Qualifier) -> Iterator[str]:
    """The name with its kind, from the fullest to the shortest."""
    modifier = qualifier.modifier
    yield f"the {qualifier.phrase()} {text}"
    if not modifier:
        return
    yield f"the {qualifier.noun} {text}"
    has_article = re.match(r"(?:the|an?)\b", name, re.IGNORECASE) is not None
    if _is_plain(modifier) and not has_article:
        yield f"the {modifier} {text}"
    if not _is_plain(modifier) and qualifier.head in ("song", "single"):
        yield f"{make_possessive(qualifier.owner)} {text}"


def _fit_preposition(mention: Mention, phrase: str, qualifier: Qualifier) -> str:
    """The phrase in the mention's place, "on the album" instead of "in" what was no album."""
    before = re.search(r"\bin\s+$", mention.question[: mention.start])
    if before and qualifier.preposition == "on":
        return replace_mention(mention.widen(before.start()), f"on {phrase}")
    return replace_mention(mention, phrase)


def _is_plain(modifier: str) -> bool:
    """Whether a modifier is a year or one adjective of a nation."""
    return modifier in NATIONAL_ADJECTIVES or bool(_YEAR.fullmatch(modifier))
