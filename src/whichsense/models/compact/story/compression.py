"""Shorten a sentence by cuts that leave it grammatical and true, and never cut what must stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.story.grammar.verbs import has_verb
from whichsense.text.words import words

_PARENTHESES = re.compile(r" ?\([^()]*\)| ?\[[^\[\]]*\]")
_OPENER = re.compile(
    r"(?:However|Moreover|Furthermore|Additionally|In addition|Also|Therefore|Thus|Hence|Nevertheless|Nonetheless"
    r"|For example|For instance|In fact|Indeed|Meanwhile|Consequently|As a result|Similarly|Likewise|Finally"
    r"|Notably|In particular|Interestingly|Instead|Still|Then|But|And|So|Yet)\b,? "
)
# A phrase between commas behind a name: ", an American actor," before the verb.
_APPOSITION = re.compile(
    r"(?<=[\w’'.\"”]),"
    r" (?:an? |the |who |whose |which |born |formerly |originally |also known as |also called |then |now )"
    r"[^,;:()]{3,120},(?= (?P<next>[a-z]+) )"
)
# Where the last clause begins that a sentence can do without.
_TRAILING = re.compile(
    r"(?:, (?:which|while|although|though|whereas|where|who|whose|making|becoming|including|with|after|before|despite"
    r"|as well as|because|since|so that|followed by|leading|causing|allowing|having|being|using|featuring|starring"
    r"|replacing|(?:and|but) (?:he|she|it|they|the|his|her|its|their|was|were|is|are|has|had|also|later|then"
    r"|[a-z]+ed))\b|; | – | — )"
)


def compress(sentence: str, needed: Sequence[str], longest: int) -> str:
    """The sentence with as few cuts as bring it to `longest` words; parentheses go in any case.

    Phrases of `needed` are never cut. A cut that would leave no verb is not made.

    >>> text = "Batman, a film by Tim Burton, opened (in the US) in 1989, which was a good year for such films."
    >>> compress(text, ["1989"], 8)
    'Batman opened in 1989.'
    >>> compress(text, ["1989", "good year"], 30)
    'Batman, a film by Tim Burton, opened in 1989, which was a good year for such films.'
    """
    shorter = _without_parentheses(_without_opener(sentence), needed)
    while len(shorter.split()) > longest:
        for candidate in _cut(shorter):
            if _is_allowed(candidate, shorter, needed):
                shorter = candidate
                break
        else:
            break
    return shorter


def _without_opener(sentence: str) -> str:
    match = _OPENER.match(sentence)
    if not match:
        return sentence
    rest = sentence[match.end() :]
    return rest[:1].upper() + rest[1:]


def _without_parentheses(sentence: str, needed: Sequence[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        holds_needed = any(phrase in match[0] for phrase in needed if phrase)
        return match[0] if holds_needed else ""

    return " ".join(_PARENTHESES.sub(replacement, sentence).split()).replace(" ,", ",")


def _cut(sentence: str) -> Iterator[str]:
    """The sentence with one cut, the gentlest first: trailing clauses from the last on, then appositions."""
    for match in reversed(list(_TRAILING.finditer(sentence))):
        yield sentence[: match.start()].rstrip(" ,;") + "."
    for match in _APPOSITION.finditer(sentence):
        if has_verb(f"it {match['next']}"):
            yield sentence[: match.start()] + sentence[match.end() :]


def _is_allowed(candidate: str, sentence: str, needed: Sequence[str]) -> bool:
    """Whether a cut leaves a whole sentence with everything that is needed."""
    if len(candidate) >= len(sentence) or len(words(candidate)) < 4:
        return False
    for phrase in needed:
        if phrase in sentence and phrase not in candidate:
            return False
    is_balanced = candidate.count('"') % 2 == 0
    return is_balanced and has_verb(candidate)
