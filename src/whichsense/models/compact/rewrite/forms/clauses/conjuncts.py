"""Questions that ask for two things at once, cut down to the one that an answer's clause speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.text.words import words

_PAIR = re.compile(
    r"\b(?P<left>[a-z-]+) and (?P<article>the |a |an )?(?P<right>[a-z-]+)\b",
    re.IGNORECASE,
)
_PLURAL_BE = re.compile(r"^(who|which|what) (were|are)\b", re.IGNORECASE)
_DID = re.compile(r"^(?:when|where|how|what year|in what year) did\b", re.IGNORECASE)
# Words that open a second question behind "and".
_OPEN_CLAUSES = vocabulary.AUXILIARIES | vocabulary.WH_WORDS | vocabulary.PRONOUNS
_SINGULAR = {"were": "was", "are": "is"}
_LONGEST_STEM = 5  # letters by which two forms of one word are compared


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A question with one of its two conjuncts, and that conjunct."""

    question: str
    kept: str


def single_questions(question: str, clause: Clause, answer: str) -> Iterator[Conjunct]:
    """The question with the conjunct that the clause or the answer has, where it has only one of them.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> text = "Ida Brand discovered the moon; Ole Sund named it."
    >>> clause = find_clause(Snippet("Moon", text, 0, 9), [(31, 39)])
    >>> [single.question for single in single_questions("Who discovered and named the moon?", clause, "Ida Brand")]
    ['Who discovered the moon?']
    """
    pairs = list(_PAIR.finditer(question))
    if len(pairs) != 1:
        return
    pair = pairs[0]
    left, right = pair["left"], pair["right"]
    said = words(f"{clause.text} {clause.verb} {answer}")
    has_left, has_right = _has(said, left), _has(said, right)
    is_name = _is_name(left, clause) or _is_name(right, clause)
    if is_name or has_left == has_right or right in _OPEN_CLAUSES:
        return
    following = question[pair.end() :]
    if has_left:
        if _ends_conjunct(right, following):
            yield Conjunct(_singular(question[: pair.end("left")], following), left)
        return
    # "hit the iceberg and sink": the first conjunct is longer than a word.
    is_last = not following.strip(" ?.!")
    if not (is_last and _DID.match(question)):
        before = question[: pair.start()] + question[pair.start("right") : pair.end()]
        yield Conjunct(_singular(before, following), right)


def _is_name(word: str, clause: Clause) -> bool:
    """Whether a conjunct is a name, or part of one: Romeo and Juliet, also in a lower-case question."""
    plain = re.search(rf"\b{re.escape(word.lower())}", clause.sentence)
    capital = re.search(rf"[a-z,] {re.escape(word)}\b", clause.sentence, re.IGNORECASE)
    is_written_so = capital is not None and plain is None
    return word[0].isupper() or is_written_so


def _ends_conjunct(right: str, following: str) -> bool:
    """Whether the second conjunct is one word: what follows it is no noun of its own ("prime minister")."""
    token = following.strip(" ?.!").split(" ")[0]
    is_shared = right.endswith(("ing", "ed"))
    is_end = not token or not token[0].islower()
    is_function = token in vocabulary.PREPOSITIONS | vocabulary.DETERMINERS
    return is_shared or is_end or is_function or token in vocabulary.WH_WORDS


def _has(said: Sequence[str], word: str) -> bool:
    """Whether some words have a form of a word among them."""
    base = vocabulary.BASE_OF_PAST
    wanted = word.lower()
    for other in said:
        if base.get(other) == wanted or base.get(wanted) == other:
            return True
        if other[:_LONGEST_STEM] == wanted[:_LONGEST_STEM]:
            return True
    return False


def _singular(before: str, following: str) -> str:
    """A question about one thing: "Who were the first voices of" becomes "Who was the first voice of"."""
    match = _PLURAL_BE.match(before)
    if not match:
        return before + following
    noun = re.match(r" [a-z]+[^s\W](?=s\b)", following)
    if noun:
        following = noun[0] + following[noun.end() + 1 :]
    return f"{match[1]} {_SINGULAR[match[2].lower()]}{before[match.end() :]}{following}"
