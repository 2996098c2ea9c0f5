"""The words of a clause before and behind an answer: opening phrase, subject, verb."""

from __future__ import annotations

import re
from dataclasses import dataclass

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.times import restore_commas
from whichsense.models.compact.rewrite.forms.clauses.tokens import (
    find_verb,
    is_participle,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """An answer's clause, in the words of the sentence."""

    label: str  # what stands before the colon: "Severity 1", "Germany"
    lead: str  # an opening phrase: "In Germany", "From August 2025"
    subject: str  # its own subject: "part-time staff"; empty where the answer is it
    inherited: (
        str  # the subject of the clause before, for a clause that has none of its own
    )
    verb: str  # the finite verb before the answer; empty where it is left out
    middle: str  # the words between verb and answer
    after: str  # the words behind the answer
    before: str  # all the words before the answer in the clause
    is_elliptic: bool  # whether the verb is left out: "children £6"
    sentence: str

    @property
    def text(self) -> str:
        """All words of the clause with its label, but for the answer."""
        parts = (self.label, self.before, self.after)
        return " ".join(part for part in parts if part)


def tidy(text: str, *, keep_left_comma: bool = False) -> str:
    """A piece of the sentence without spaces at its ends and without a stray separator."""
    plain = " ".join(text.split()).replace(" ,", ",")
    if not keep_left_comma:
        plain = plain.lstrip(",;: ")
    return restore_commas(plain.rstrip(",;:. "))


def has_copula(clause: Clause) -> bool:
    """Whether a clause says what something is: "was" without a participle behind it."""
    for part in (clause.before, clause.after):
        span = find_verb(part)
        if span is None:
            continue
        following = part[span[1] :].split()[:1]
        if part[span[0] : span[1]] not in vocabulary.BE | {"has", "have", "had"}:
            return False
        return (
            not following or following[0] == "been" or not is_participle(following[0])
        )
    return True


def parse_clause(
    before: str, after: str, label: str, earlier: str, sentence: str
) -> Clause:
    """Subject, verb and opening phrase of the words before an answer."""
    if before.endswith((" and", " or")):
        before = ""
    lead, rest = _split_lead(before)
    verb_span = find_verb(rest)
    if verb_span is None:
        subject, verb, middle = rest, "", ""
    else:
        start, stop = verb_span
        subject, verb, middle = rest[:start], rest[start:stop], rest[stop:]
    inherited = ""
    if not subject.strip():
        inherited = _first_subject(earlier)
    is_elliptic = verb_span is None and (bool(earlier.strip()) or bool(label))
    return Clause(
        label=label,
        lead=lead,
        subject=subject.strip(" ,"),
        inherited=inherited,
        verb=verb,
        middle=middle.strip(" ,"),
        after=after,
        before=before,
        is_elliptic=is_elliptic,
        sentence=sentence,
    )


_LEAD = re.compile(
    r"(?:in|on|at|for|from|with|without|during|under|above|below|before|after|until|since|within|between|where|if|when"
    r"|unless|up to|over)\b[^,;:]*,\s+",
    re.IGNORECASE,
)
_TIME_LEAD = re.compile(
    r"(?:in|on|from|until|since|before|after|by) (?:the end of )?(?:\d{1,2} )?"
    rf"(?:(?:{'|'.join(sorted(vocabulary.MONTHS))})(?: \d{{4}})?|\d{{4}}) (?!to |and |until )",
    re.IGNORECASE,
)


# "In Kenya staff pay …": a name, and then a word that is none.
_NAME_LEAD = re.compile(r"(?:In|in)(?: [A-Z][\w’'-]+)+ (?=[a-z])(?!and |or |of )")
# "After the flood the fee is …": a noun, and then another article.
_NOUN_LEAD = re.compile(
    r"(?:In|On|At|For|From|With|Without|During|Under|After|Before|Until|Since) [^,;:]{3,40}? (?=the |a |an )"
)


def _split_lead(before: str) -> tuple[str, str]:
    """The opening phrase of a clause, up to its comma or the end of its date, and the rest."""
    for pattern in (_LEAD, _TIME_LEAD, _NAME_LEAD, _NOUN_LEAD):
        match = pattern.match(before)
        if match and find_verb(match[0]) is None:
            return match[0].strip(" ,"), before[match.end() :]
    ends_with_lead = _LEAD.fullmatch(before + ", ")
    is_condition = before.lower().startswith(("where ", "if ", "when ", "unless "))
    if ends_with_lead and (is_condition or find_verb(before) is None):
        return before, ""
    return "", before


def _first_subject(earlier: str) -> str:
    """The subject of the sentence's first clause."""
    _, rest = _split_lead(tidy(earlier))
    verb_span = find_verb(rest)
    if verb_span is None:
        return ""
    return rest[: verb_span[0]].strip(" ,")
