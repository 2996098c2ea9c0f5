"""Tell several statements of one form in one sentence: what they share is said once."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.tokens import find_verb
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    PREPOSITION_OF_WORK,
    VERSION_NOUNS,
)
from whichsense.models.compact.story.grammar.statements import Statement

# Words that open a phrase of time, place or condition.
_OPENERS = vocabulary.TIME_PREPOSITIONS | frozenset(
    "at for with without under within when if on as outside".split()
)
_WORK_NOUNS = frozenset(PREPOSITION_OF_WORK) | VERSION_NOUNS


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
    while shared and not _opens_rest(tails, shared):
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
    while shared and not _opens_rest(heads, shared):
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
    return answer.split(maxsplit=1)[0].lower() in vocabulary.PREPOSITIONS


def _shared_length(rows: Sequence[list[str]]) -> int:
    """How many words all rows begin with."""
    shared = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return shared


def _opens_rest(rows: Sequence[list[str]], shared: int) -> bool:
    """Whether behind the shared words a phrase of its own begins in every row."""
    return all(len(row) > shared and row[shared] in _OPENERS for row in rows)


def _without_repeated_name(rests: list[list[str]]) -> list[list[str]]:
    """Rests without the name with which all end, behind "the 1943 film"."""
    shared = _shared_length([rest[::-1] for rest in rests])
    while shared:
        if all(_ends_with_work(rest[:-shared]) for rest in rests):
            return [rest[:-shared] for rest in rests]
        shared -= 1
    return rests


def _ends_with_work(rest: list[str]) -> bool:
    return bool(rest) and rest[-1] in _WORK_NOUNS


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
