"""Forms from a title's brackets: the 1989 film Batman, the musical Hairspray, from 1984 to 2021."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.grammar import (
    append_phrase,
    in_register,
    make_possessive,
    put_in_past,
)
from whichsense.models.compact.rewrite.forms.mentions import Mention
from whichsense.models.compact.rewrite.forms.title_parts import Qualifier
from whichsense.models.compact.rewrite.forms.title_words import (
    AUXILIARIES,
    INDEFINITE_WORDS,
    MAKING_VERBS,
    NATIONAL_ADJECTIVES,
    ORDER_WORDS,
    POSSESSIVE_PRONOUNS,
    PREPOSITION_OF_WORK,
    PREPOSITIONS,
    WORK_VERBS,
    is_same_kind,
)

_ARTICLE_BEFORE = re.compile(r"\b(?:the|The)\s+$")
_YEAR = re.compile(r"\d{4}s?")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite and the name of its form."""

    question: str
    form: str


def bracket_rewrites(
    mention: Mention, name: str, qualifier: Qualifier
) -> Iterator[Proposal]:
    """Rewrites of a question that mentions a title's name, by what its brackets say; best first."""
    forms = {
        "kind": _kind_rewrites,
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


def _kind_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """in the 1989 film Batman; behind a character's name: in the 1989 film."""
    merged, is_settled = _merge_kind(mention, qualifier)
    if merged:
        yield merged
    if is_settled:
        return
    if qualifier.is_work and not _is_work_mention(mention):
        yield from _end_rewrites(mention, name, qualifier)
        return
    if mention.is_possessive and qualifier.is_work:
        yield from _end_rewrites(mention, name, qualifier)
        return
    if not mention.is_complete:
        return
    yield from _insert_kind(mention, name, qualifier)


def _merge_kind(mention: Mention, qualifier: Qualifier) -> tuple[str, bool]:
    """The modifier beside a kind that the question has already, and whether nothing else may be said.

    "the film Dune" → "the 1984 film Dune"; "the Dune movie" → "the 1984 Dune movie". A question that says another kind
    of work contradicts the title.
    """
    question = mention.question
    left = re.search(r"([\w-]+)$", _without_article(mention).left)
    for word, start in (
        (mention.previous, left.start() if left else 0),
        (mention.following, _before_article(mention)),
    ):
        if word not in PREPOSITION_OF_WORK and word != qualifier.head:
            continue
        if not is_same_kind(word, qualifier.head):
            # "who plays X" is no kind, "the play X" is one.
            return "", bool(re.search(rf"\b(?:the|a) (?:\w+ )?{word}\b", question))
        modifier = qualifier.modifier
        before = question[:start].split()
        if not modifier or not before or _has_words(question, modifier):
            return "", True
        if before[-1].lower() in ("a", "an") or _YEAR.fullmatch(before[-1]):
            return "", True
        added = in_register(modifier, question)
        return f"{question[:start]}{added} {question[start:]}", True
    return "", False


def _is_work_mention(mention: Mention) -> bool:
    """Whether a mention is of the work and not of a character who has its name."""
    bare = _without_article(mention)
    previous = bare.previous
    if previous in PREPOSITIONS and previous not in ("as", "by", "with", "to"):
        return True
    if previous in AUXILIARIES:
        following = set(re.findall(r"\w+", mention.right.lower()))
        return bool(following & WORK_VERBS)
    if mention.is_quoted or previous in MAKING_VERBS:
        return True
    is_ordered = previous in ORDER_WORDS or _is_owner_word(bare)
    return is_ordered and not mention.following


def _end_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """The work at the end of the question: in the 1976 film."""
    question = mention.question
    if not mention.left or re.search(rf" {qualifier.preposition} ", mention.right):
        return
    phrase = f"{qualifier.preposition} the {qualifier.phrase()}"
    if mention.is_inside_name:
        yield append_phrase(question, f"{phrase} {name}")
    if qualifier.modifier:
        yield append_phrase(question, phrase)
    yield append_phrase(question, f"{phrase} {name}")


def _insert_kind(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """Kind and modifier before the mention, with the article that fits."""
    bare = _without_article(mention)
    previous = bare.previous
    if not previous or previous in INDEFINITE_WORDS:
        return
    if _is_owner_word(bare):
        yield _replace(mention, f"{qualifier.phrase()} {mention.text}")
        return
    if previous[0].isdigit():
        if previous == qualifier.modifier:
            yield _replace(mention, f"{qualifier.noun} {mention.text}")
        return
    if previous in ORDER_WORDS:
        if _is_national(qualifier.modifier) or _YEAR.fullmatch(qualifier.modifier):
            yield _replace(bare, f"{qualifier.modifier} {mention.text}")
        return
    yield _replace(bare, f"the {qualifier.phrase()} {mention.text}")
    if qualifier.modifier:
        yield _replace(bare, f"the {qualifier.phrase(modified=False)} {mention.text}")
    has_article = name.split(maxsplit=1)[0].lower() in ("the", "a", "an")
    is_plain = _is_national(qualifier.modifier) or _YEAR.fullmatch(qualifier.modifier)
    if is_plain and not has_article:
        yield _replace(bare, f"the {qualifier.modifier} {mention.text}")
    if qualifier.modifier and not is_plain and qualifier.head in ("song", "single"):
        owner = make_possessive(qualifier.modifier)
        yield _replace(bare, f"{owner} {mention.text}")


def _version_rewrites(
    mention: Mention, _name: str, qualifier: Qualifier
) -> Iterator[str]:
    """the 2005 revival of Doctor Who; Whitney Houston's recording of the song X."""
    bare = _without_article(mention)
    if mention.is_possessive or not mention.is_complete or not bare.previous:
        return
    if bare.previous in ORDER_WORDS | INDEFINITE_WORDS or _is_owner_word(bare):
        return
    # "the song Respect" stays together behind "of".
    kind = re.search(
        r"\bthe (?:song|film|play|musical|opera|series|show)\s*$", bare.left
    )
    whole = mention.widen(kind.start()) if kind else mention
    if qualifier.way == "owner":
        owner = make_possessive(qualifier.modifier.removeprefix("The "))
        yield _replace(whole, f"{owner} {qualifier.noun} of {whole.text}")
        return
    yield _replace(whole, f"the {qualifier.phrase()} of {whole.text}")


def _plural_rewrites(
    mention: Mention, name: str, qualifier: Qualifier
) -> Iterator[str]:
    """in the 1935 and 1936 films."""
    bare = _without_article(mention)
    if bare.previous in PREPOSITIONS and mention.is_complete:
        yield _replace(bare, f"the {qualifier.modifier} {name} {qualifier.noun}")
        return
    if mention.left and " in " not in mention.right:
        yield append_phrase(mention.question, f"in the {qualifier.phrase()}")


def _part_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """in season 3 of Lost."""
    part = f"{qualifier.noun} {qualifier.modifier}"
    bare = _without_article(mention)
    if bare.previous in PREPOSITIONS and mention.is_complete:
        yield _replace(mention, f"{part} of {mention.text}")
        return
    if bare.previous not in ORDER_WORDS and mention.left:
        yield append_phrase(mention.question, f"in {part} of {name}")


def _time_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """from 1984 to 2021, in the past; since 2005."""
    question = mention.question
    if re.match(
        r"(?:since|in|from|by|on) ?when|when\b|(?:what|which) year", question, re.I
    ):
        if (
            qualifier.way == "years"
            and mention.is_complete
            and not mention.is_possessive
        ):
            years = f"{qualifier.modifier} to {qualifier.noun}"
            yield _replace(mention, f"{mention.text} of {years}")
        return
    if qualifier.way == "since":
        yield append_phrase(question, f"since {qualifier.modifier}")
        return
    past = put_in_past(question)
    yield append_phrase(past, f"from {qualifier.modifier} to {qualifier.noun}")
    yield append_phrase(past, f"between {qualifier.modifier} and {qualifier.noun}")


def _year_rewrites(mention: Mention, name: str, qualifier: Qualifier) -> Iterator[str]:
    """the Treaty of Paris of 1763; the 1940 Tacoma Narrows Bridge."""
    if not mention.is_complete or mention.is_possessive:
        return
    bare = _without_article(mention)
    if not bare.previous or bare.previous in INDEFINITE_WORDS | ORDER_WORDS:
        return
    if _is_owner_word(bare):
        return
    has_article = bare.start != mention.start or name.startswith("The ")
    if has_article:
        yield _replace(mention, f"{mention.text} of {qualifier.modifier}")
    if " of " not in name and not name.startswith("The "):
        yield _replace(bare, f"the {qualifier.modifier} {mention.text}")


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
        yield _replace(mention, f"{mention.text} {phrase}")


def _maker_rewrites(
    mention: Mention, _name: str, qualifier: Qualifier
) -> Iterator[str]:
    """Puccini's La bohème; the statue of David by Donatello."""
    bare = _without_article(mention)
    if mention.is_possessive or not mention.is_complete:
        return
    if _is_owner_word(bare) or bare.previous in ORDER_WORDS | INDEFINITE_WORDS:
        return
    if bare.previous:
        owner = make_possessive(qualifier.modifier)
        yield _replace(bare, f"{owner} {mention.text}")


def _role_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """Anne Hathaway, the wife of Shakespeare, born."""
    if mention.is_possessive or not mention.is_complete:
        return
    comma = "," if mention.following else ""
    yield _replace(mention, f"{mention.text}, the {qualifier.modifier}{comma}")


def _sex_rewrites(mention: Mention, _name: str, qualifier: Qualifier) -> Iterator[str]:
    """the men's 100 metres."""
    if not _is_owner_word(mention):
        yield _replace(mention, f"{qualifier.modifier} {mention.text}")


def _without_article(mention: Mention) -> Mention:
    """The mention with an article of the question that stands before it, so that both are replaced."""
    article = _ARTICLE_BEFORE.search(mention.question, 0, mention.start)
    return mention.widen(article.start()) if article else mention


def _before_article(mention: Mention) -> int:
    """Where a modifier goes before a mention: behind its article."""
    article = re.match(r"(?:the|a|an)\s+", mention.text, re.IGNORECASE)
    return mention.start + (article.end() if article else 0)


def _is_owner_word(mention: Mention) -> bool:
    """Whether a possessive stands before the mention: Barrie's Peter Pan, its first film."""
    previous = mention.previous
    is_name = previous.endswith(("'s", "’s", "s'", "s’"))
    return is_name or previous in POSSESSIVE_PRONOUNS


def _is_national(modifier: str) -> bool:
    """Whether a modifier is one adjective of a nation."""
    return modifier in NATIONAL_ADJECTIVES


def _has_words(question: str, phrase: str) -> bool:
    """Whether a question has all words of a phrase."""
    known = set(re.findall(r"\w+", question.lower()))
    return set(re.findall(r"\w+", phrase.lower())) <= known


def _replace(mention: Mention, text: str) -> str:
    """The question with other words in the mention's place; a mention's quotation marks stay beside its name."""
    question = mention.question
    # Only what the form adds takes the question's case.
    added = in_register(text, question)
    start = mention.start
    if mention.is_quoted and mention.text in added:
        quote = question[: mention.start].rstrip()[-1]
        start = question.rindex(quote, 0, mention.start)
        added = added.replace(mention.text, f"{quote}{mention.text}", 1)
    return f"{question[:start]}{added}{question[mention.end :]}"
