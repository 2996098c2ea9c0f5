"""Phrases of time, and the tense that a question takes with one."""

from __future__ import annotations

import re

from whichsense.models.compact.rewrite.forms.clauses import vocabulary

_MONTH = "|".join(sorted(vocabulary.MONTHS))
_YEAR = r"(?:1[0-9]|20)\d\d"
_POINT = "|".join(
    (
        r"(?<=\bin )[1-9]\d\d(?![\d,.]| [a-z]{3,})",
        r"\d{1,4} (?:BC|AD|BCE|CE)",
        rf"(?:\d{{1,2}} )?(?:{_MONTH})(?: \d{{1,2}})?(?:,? {_YEAR})?",
        rf"(?:the )?{_YEAR}s?",
    )
)
TIME = re.compile(rf"\b(?:{_POINT})\b")
_DATE_COMMA = re.compile(
    rf"\b(?:{_MONTH}) \d{{1,2}}, (?=\d{{4}})|\b(?:{_MONTH}), (?=(?:{_MONTH})\b)"
)
_COMMA = "\ue000"  # stands for a comma that separates nothing
_YEARS = re.compile(rf"\b{_YEAR}")
_FIRST_YEAR_AHEAD = 2025  # from here on a document's rule may still hold
_PAST_OF = {"is": "was", "are": "were", "does": "did", "do": "did"}
# Questions with a present verb and no auxiliary: "Who hosts X?"
_PRESENT_VERB = re.compile(r"(?i)^((?:who|which \w+|what \w+) )([a-z]+s)\b")
_AUXILIARY = re.compile(r"(?i)\b(is|are|does|do|has|have|can|may|must|should|will)\b")
_PAST = re.compile(r"(?i)\b(was|were|did|had|would|could)\b")
_PAST_OF_PRESENT = {
    base: past for past, base in vocabulary.BASE_OF_PAST.items() if past != base
}


def protect_commas(text: str) -> str:
    """A text, of the same length, whose dates have another mark in place of their comma.

    >>> restore_commas(protect_commas("May 5, 1997, and")), protect_commas("May 5, 1997").count(",")
    ('May 5, 1997, and', 0)
    """
    return _DATE_COMMA.sub(lambda match: match[0].replace(",", _COMMA), text)


def restore_commas(text: str) -> str:
    """A text with the commas that were protected."""
    return text.replace(_COMMA, ",")


def is_time(phrase: str) -> bool:
    """Whether a phrase names a year, a month or a day.

    >>> is_time("from 2005 to 2014"), is_time("on 3 May"), is_time("on weekdays")
    (True, True, False)
    """
    return TIME.search(phrase) is not None


def is_time_phrase(phrase: str) -> bool:
    """Whether a phrase names a time and nothing else.

    >>> is_time_phrase("from early 2005 to 2014"), is_time_phrase("in the 2012 final")
    (True, False)
    """
    rest = TIME.sub(" ", phrase).lower().split()
    return is_time(phrase) and all(word in vocabulary.TIME_WORDS for word in rest)


def is_edge(phrase: str, clause: str) -> bool:
    """Whether a time is the boundary of a term and not the time of the fact.

    >>> is_edge("in 1985", "Orla retired in 1985"), is_edge("in 1985", "Orla won it in 1985")
    (True, False)
    """
    has_boundary = not vocabulary.BOUNDARY_VERBS.isdisjoint(clause.split())
    return has_boundary and phrase.startswith(("in ", "on "))


def with_tense(question: str, phrase: str) -> str | None:
    """The question in the tense that a phrase of time calls for; None where that cannot be done safely.

    >>> with_tense("Who is the head of Orla?", "from 2005 to 2014")
    'Who was the head of Orla?'
    >>> with_tense("Who is the head of Orla?", "since 2019")
    'Who has been the head of Orla?'
    >>> with_tense("who hosts the quiz", "in 1994"), with_tense("Who founded Orla?", "in 1994")
    ('who hosted the quiz', 'Who founded Orla?')
    """
    if _PAST.search(question):
        return question
    if phrase.startswith("since "):
        return _perfect(question)
    if not _is_past(phrase):
        return question
    auxiliary = _AUXILIARY.search(question)
    if auxiliary:
        return _past_auxiliary(question, auxiliary)
    present = _PRESENT_VERB.match(question)
    if present:
        past = _past_of(present[2].lower())
        return past and f"{present[1]}{past}{question[present.end() :]}"
    return question


def _is_past(phrase: str) -> bool:
    """Whether a phrase of time ends before today."""
    years = [int(year) for year in _YEARS.findall(phrase)]
    if not years or (phrase.startswith(("from ", "after ")) and len(years) == 1):
        return False
    return max(years) < _FIRST_YEAR_AHEAD


def _perfect(question: str) -> str | None:
    """The question in the present perfect, for "since": only "is" and "are" change safely."""
    match = re.search(r"(?i)\b(is|are)\b", question)
    if not match or re.search(r"(?i)\b(?:is|are) \w+ing\b", question):
        return None
    perfect = "has been" if match[1].lower() == "is" else "have been"
    opening = question[: match.start()].lower().split()
    # "how long is X" would need its words in another order
    if not opening or opening[0] == "how" or opening[0] == "when":
        return None
    return f"{question[: match.start()]}{perfect}{question[match.end() :]}"


def _past_auxiliary(question: str, auxiliary: re.Match[str]) -> str | None:
    """The question with its auxiliary in the past."""
    word = auxiliary[1].lower()
    if word not in _PAST_OF:
        return None
    return (
        f"{question[: auxiliary.start()]}{_PAST_OF[word]}{question[auxiliary.end() :]}"
    )


def _past_of(present: str) -> str | None:
    """The past of a verb in the third person."""
    stems = [present[:-1]]
    if present.endswith("es"):
        stems.append(present[:-2])
    for stem in stems:
        if stem in _PAST_OF_PRESENT:
            return _PAST_OF_PRESENT[stem]
    if present.endswith("ies"):
        return present[:-3] + "ied"
    if present.endswith(("ss", "us")) or len(present) < 4:
        return None
    if present.endswith(("ches", "shes", "sses", "xes")):
        return present[:-2] + "ed"
    stem = present[:-1]
    return stem + ("d" if stem.endswith("e") else "ed")
