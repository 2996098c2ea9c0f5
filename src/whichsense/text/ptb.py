"""Tokens as the Stanford PTB tokenizer 3.4.1 makes them, without Java: the first step of AmbigQA's question metrics."""

from __future__ import annotations

import re
from functools import lru_cache

from whichsense.text.ptb_rules import rules
from whichsense.text.words import normalize

# What the captioning toolkit drops after tokenizing. It lower-cases first, so that a bracket's "-lrb-" stays.
_DROPPED = frozenset("'' ' `` ` -LRB- -RRB- -LCB- -RCB- . ? ! , : - -- ... ;".split())

# What needs no rule, as nothing that follows can make a longer token of it: the bulk of every question.
_PLAIN = re.compile(
    r"""[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?=[ "()]|[,:;]\ |\?*\Z)  # a word, whole or hyphenated
    |[0-9][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?=\ [^0-9]|[")]|\?*\Z)         # a number, unless another one may join it
    |[A-Za-z]{2,}(?='(?:s|m|d|re|ve|ll)(?:\ |\?*\Z))                    # the word before 's
    |'(?:s|m|d|re|ve|ll)(?=\ |\?*\Z)
    |[A-Za-z]*[A-MO-Za-mo-z](?=n't(?:\ |\?*\Z))                         # the word before n't
    |n't(?=\ |\?*\Z)
    |,(?=\ )|:(?=\ )|\?(?=\ |\Z)""",
    re.VERBOSE,
)
_SPLIT = frozenset(("cannot", "gonna", "gotta", "lemme", "gimme", "wanna"))
_ARTICLES = frozenset(("a", "an", "the"))
_SKIPPED = re.compile(
    "[ \t\u00a0\u2000-\u200b\u3000\u200e\u200f\ufeff\0\r\n\u2028\u2029\u000b\u000c]+|&nbsp;"
)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_SIMPLE = re.compile(r"[A-Za-z0-9 ]*\??")


def lexemes(text: str) -> list[str]:
    """All tokens in lower case, punctuation included.

    >>> lexemes("Don't they (the U.S.) cost $5?")
    ['do', "n't", 'they', '-lrb-', 'the', 'u.s.', '-rrb-', 'cost', '$', '5', '?']
    >>> lexemes("I cannot say: rock'n'roll/pop")
    ['i', 'can', 'not', 'say', ':', 'rock', "'n'", 'roll/pop']
    """
    # The original knows 16-bit characters only, and drops the others.
    text = _ASTRAL.sub("\u200b", text)
    tokens: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        plain = _PLAIN.match(text, position)
        if plain and plain[0].lower() not in _SPLIT:
            tokens.append(plain[0].lower())
            position = plain.end()
        elif gap := _SKIPPED.match(text, position):
            position = gap.end()
        else:
            position = _add_longest(text, position, tokens)
    return tokens


def _add_longest(text: str, position: int, tokens: list[str]) -> int:
    """Add the token of the rule that matches farthest; returns the position after it."""
    best_rule = best_match = None
    reach = position
    for rule in rules():
        match = rule.pattern.match(text, position)
        if match and match.end() > reach:
            best_rule, best_match = rule, match
            reach = match.end()
    if best_rule is None or best_match is None:
        # A character that the original cannot tokenize is dropped.
        return position + 1
    end = best_match.end(1)
    token = best_match[1]
    if best_rule.again > 1:  # the rest of the word is a token of its own
        token = text[position : end - best_rule.again]
    if best_rule.make:
        token = best_rule.make(token)
    tokens.append(token.lower())
    return end - best_rule.again


def tokenize(text: str) -> list[str]:
    """The tokens that the captioning toolkit keeps.

    >>> tokenize("Who's the actor, then?")
    ['who', "'s", 'the', 'actor', 'then']
    """
    return [token for token in lexemes(text) if token not in _DROPPED]


@lru_cache(maxsize=2**16)
def tokenize_question(question: str) -> tuple[str, ...]:
    """A question's words as AmbigQA compares them: tokenized, then normalized, so that articles vanish.

    >>> tokenize_question("Who made the play 'The Crucible' (1996)?")
    ('who', 'made', 'play', 'crucible', 'lrb', '1996', 'rrb')
    """
    # Most questions are words without punctuation: no rule is needed.
    if _SIMPLE.fullmatch(question):
        words = question.lower().rstrip("?").split()
        if _SPLIT.isdisjoint(words):
            return tuple([word for word in words if word not in _ARTICLES])
    tokens = tokenize(question.replace("\n", " "))
    return tuple(normalize(" ".join(tokens)).split())
