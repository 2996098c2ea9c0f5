"""Small helpers of English grammar that several forms share."""

from __future__ import annotations

import re

_DOUBLED = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)


def is_lower_case(question: str) -> bool:
    """Whether a question is written in lower case throughout, as a search query is.

    >>> is_lower_case("who won the world cup"), is_lower_case("Who won the World Cup?")
    (True, False)
    """
    return question == question.lower()


def in_register(phrase: str, question: str) -> str:
    """A phrase of the evidence in the case of the question: a lower-case question stays one.

    >>> in_register("in Ohio", "where is springfield"), in_register("in Ohio", "Where is Springfield?")
    ('in ohio', 'in Ohio')
    """
    return phrase.lower() if is_lower_case(question) else phrase


def split_end(question: str) -> tuple[str, str]:
    """A question without its closing punctuation, and that punctuation.

    >>> split_end("Who won? ")
    ('Who won', '?')
    """
    bare = question.rstrip(" ?.!")
    return bare, question[len(bare) :].strip()


def append_phrase(question: str, phrase: str) -> str:
    """A question with a phrase at its end, before its closing punctuation.

    >>> append_phrase("Who won?", "in 1998")
    'Who won in 1998?'
    """
    bare, end = split_end(question)
    return f"{bare} {in_register(phrase, question)}{end}"


def has_doubled_word(text: str) -> bool:
    """Whether a word stands twice in a row.

    >>> has_doubled_word("in the the film"), has_doubled_word("in the film")
    (True, False)
    """
    return _DOUBLED.search(text) is not None


_PAST_OF_AUXILIARY = {
    "is": "was",
    "are": "were",
    "does": "did",
    "do": "did",
    "has": "had",
    "have": "had",
}
# Verbs that questions ask with in the third person of the present, and their past.
_PAST_OF_VERB = {
    "hosts": "hosted",
    "plays": "played",
    "presents": "presented",
    "owns": "owned",
    "leads": "led",
    "runs": "ran",
    "holds": "held",
    "chairs": "chaired",
    "manages": "managed",
    "coaches": "coached",
    "sings": "sang",
    "heads": "headed",
    "conducts": "conducted",
    "edits": "edited",
    "represents": "represented",
    "voices": "voiced",
    "sponsors": "sponsored",
    "teaches": "taught",
    "supplies": "supplied",
}
_FINITE = re.compile(
    rf"\b(?:{'|'.join([*_PAST_OF_AUXILIARY, *_PAST_OF_VERB])})\b(?! been\b| not\b)"
)
_CLAUSE_START = re.compile(r"\b(?:that|who|which|when|where|while|if|because)\b")


def put_in_past(question: str) -> str:
    """A question in the past tense, if its first clause has a finite verb that this knows; else as it is.

    >>> put_in_past("Who hosts Jeopardy?"), put_in_past("what is the fee")
    ('Who hosted Jeopardy?', 'what was the fee')
    >>> put_in_past("Who won the prize that is given today?")
    'Who won the prize that is given today?'
    """
    verb = _FINITE.search(question)
    if verb is None or _CLAUSE_START.search(question, 1, verb.start()):
        return question
    # A finite verb stands near the beginning: "who", "how many X", "which X of Y" come before it.
    if re.search(r"\b(?:was|were|did|had|will|can|should|would|could)\b", question):
        return question
    past = _PAST_OF_AUXILIARY.get(verb[0]) or _PAST_OF_VERB[verb[0]]
    return f"{question[: verb.start()]}{past}{question[verb.end() :]}"


def put_in_perfect(question: str) -> str:
    """A question in the present perfect, as "since" wants it; as it is where this does not know its verb.

    >>> put_in_perfect("Who hosts Jeopardy?"), put_in_perfect("who is the mayor")
    ('Who has hosted Jeopardy?', 'who has been the mayor')
    """
    match = re.match(
        r"(?P<subject>[Ww]ho|[Ww]hat|[Ww]hich \w+) (?P<verb>\w+)\b", question
    )
    if not match:
        return question
    participle = _PAST_OF_VERB.get(match["verb"], "")
    if match["verb"] == "is":
        participle = "been"
    if participle in ("", "ran", "sang"):
        return question
    return f"{match['subject']} has {participle}{question[match.end() :]}"


def make_possessive(name: str) -> str:
    """The possessive of a name.

    >>> make_possessive("Verdi"), make_possessive("Pet Shop Boys")
    ("Verdi's", "Pet Shop Boys'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"
