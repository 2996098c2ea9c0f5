"""Is a reply a question: a new one, one about the options, or the old one said more exactly?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.conversation.replies.choices import Selection, select
from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.tokens import Token, tokenize
from whichsense.conversation.replies.vocabulary import (
    AUXILIARIES,
    GREETINGS,
    MEASURES,
    META_WORDS,
    POINTERS,
    REQUESTS,
)
from whichsense.text.function_words import CLOSED_CLASS_WORDS

# What a choice may begin with, though it looks like a question.
_PROPOSAL = re.compile(
    r"^(?:(?:and|so|then|but|ok|okay),? )*(?:(?:what|how) about\b"
    r"|(?:can|could|may|would|will|shall|should) (?:you|i|we) (?:please |just )?"
    r"(?:have|give|show|get|take|see|choose|pick|select|use|go with|go for)\b)"
)
_ABOUT_ALL = re.compile(
    r"\bwhat (?:do|did) you mean|\bwhy (?:do|are|did) you ask|\b(?:dont|do not) understand"
    r"|\bwhat (?:are|were) (?:the|my|these|those) (?:options|choices)"
)
_SUBJECTS = ("who", "what", "whom", "whose", "which")
_ADVERBS = ("when", "where", "why", "how")
_MEANING = frozenset(("mean", "means", "meaning"))
_STAND_INS = ("it", "that", "this", "he", "she", "they")
_PRONOUNS = ("i", "you", "we", "it", "they", "he", "she")
_POINTED = re.compile(
    r"\b(?:option|number|choice) #?(?:\d|[a-e]|one|two|three|four|five)\b|#\d"
    r"|\b(?:first|second|third|fourth|fifth|last|\d(?:st|nd|rd|th)) (?:one|option|choice)\b"
)


def opening(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without what stands before a question: "ok, and who …"."""
    start = 0
    while start < len(tokens) and tokens[start].text in GREETINGS:
        start += 1
    return list(tokens[start:])


def is_question(text: str) -> bool:
    """Whether a plain text asks or requests something: a question word with a verb behind it, or a verb in front.

    >>> [is_question(text) for text in ("who wrote it", "and when was that?", "is it old", "tell me more")]
    [True, True, True, True]
    >>> [is_question(text) for text in ("when it was signed", "the film?", "how deep it is", "which")]
    [False, False, False, False]
    """
    words = [token.text for token in opening(tokenize(text))]
    if len(words) < 2:
        return bool(words) and words[0] in REQUESTS
    first, second = words[0], words[1]
    if first in REQUESTS:
        return True
    if first in AUXILIARIES:
        return len(words) > 2
    if first in _SUBJECTS:
        return second not in _PRONOUNS
    if first == "how" and second in MEASURES:
        # "how deep is it", not "how deep it is"
        return words[2:3] != [] and words[2] not in _PRONOUNS
    return first in _ADVERBS and second in AUXILIARIES


def proposal(text: str) -> str:
    """The choice behind "what about" or "can I have"; '' for other texts.

    >>> proposal("what about the film"), proposal("could you please give me the book"), proposal("what is it")
    ('the film', 'me the book', '')
    """
    match = _PROPOSAL.match(text)
    return text[match.end() :].strip() if match else ""


def about_options(text: str, matcher: Matcher) -> Selection | None:
    """The options that a question is about, none or all of them; None where it is about something else."""
    if _ABOUT_ALL.search(text):
        return Selection((), 1.0)
    tokens = opening(matcher.tokens(text))
    words = [token.text for token in tokens]
    referred = select(_without_meta(text), matcher)
    if words[0] == "which" and _asks_which(words):
        return referred if referred.ids else Selection(tuple(matcher.ids), 0.5)
    pointed = _POINTED.search(text)
    if pointed:
        return select(pointed[0], matcher)
    meta = [word for word in words if word in META_WORDS and word != "about"]
    if words[-1] == "about" or _tells_about(words):
        meta.append("about")
    rest = [one for one in matcher.content(tokens) if _is_subject(one)]
    # "what does … mean" may be about any word that was shown.
    means = not _MEANING.isdisjoint(words)
    uncovered = []
    for one in rest:
        if one.number is None and not matcher.covers(one, everywhere=means):
            uncovered.append(one)
    if uncovered:
        return None
    if not rest:
        return Selection(tuple(matcher.ids), 0.8) if meta else None
    has_words = any(one.number is None for one in rest)
    is_what = meta or words[0] == "what" or (words[0] == "who" and has_words)
    return referred if is_what and referred.ids else None


def _tells_about(words: Sequence[str]) -> bool:
    return "about" in words and words[0] in REQUESTS


def _asks_which(words: Sequence[str]) -> bool:
    """ "which is newest", "which one …", "which of them …", "which came first"; but not "which film won"."""
    if len(words) == 1 or words[1] in ("one", "of", "option", "ones"):
        return True
    return words[1] in AUXILIARIES or words[1] in (
        "came",
        "comes",
        "goes",
        "ended",
        "made",
        "won",
    )


def _without_meta(text: str) -> str:
    """A question about the options as a choice: "which came first" as "earliest"."""
    text = re.sub(r"\b(?:came|comes|was|is|started|begins) first\b", "earliest", text)
    text = re.sub(r"\b(?:came|comes|was|is) last\b", "latest", text)
    kept = []
    for word in re.split(r"(\W+)", text):
        is_meta = word in META_WORDS or word in ("which", "what", "whats")
        kept.append("" if is_meta else word)
    return "".join(kept).strip(" ?.!")


def _is_subject(token: Token) -> bool:
    """Whether a token is what a question is about, and no word that any question may have."""
    return token.text not in META_WORDS | POINTERS | REQUESTS | {"whats", "whos", "do"}


def restates(text: str, matcher: Matcher) -> Selection | None:
    """The options that the old question, said more exactly, names; None where it is another question."""
    tokens = opening(matcher.tokens(text))
    content = [one for one in tokens if one.text not in CLOSED_CLASS_WORDS]
    stems = {one.stem for one in content}
    leans = any(one.text in _STAND_INS for one in tokens) and matcher.asked & stems
    if not leans and not matcher.asked <= stems:
        return None
    added = [one for one in content if one.stem not in matcher.asked]
    if not added or not all(matcher.covers(one) for one in added):
        return None
    selection = select(" ".join(one.text for one in added), matcher)
    return selection if selection.ids else None
