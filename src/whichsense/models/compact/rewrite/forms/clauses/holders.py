"""Whom or what a value is for: the label or the subject of its clause, as a phrase of the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whichsense.models.compact.rewrite.forms.clauses import vocabulary
from whichsense.models.compact.rewrite.forms.clauses.parsing import Clause
from whichsense.models.compact.rewrite.forms.clauses.subjects import is_adjective
from whichsense.models.compact.rewrite.forms.clauses.times import is_time
from whichsense.models.compact.rewrite.forms.clauses.tokens import stem

_MOST_WORDS = 6
_MOST_LABEL_WORDS = 3  # a longer one is a heading
_VALUE_QUESTION = re.compile(
    r"(?i)(?:how (?:much|many|long|big|heavy|often|soon|fast|far|high|tall|large|wide|deep|late|early|old|loud)"
    r"|what|which|when|until|from|by|at|after|on|in|for|to)\b"
)
_PERSON_WORD = re.compile(r"(?i)\b(?:who|whom)\b")


def holders(clause: Clause) -> list[str]:
    """The nouns of a clause that its value belongs to: its label, its subject, whom the verb gives it to.

    >>> from whichsense.models.compact.rewrite.forms.snippets import Snippet
    >>> from whichsense.models.compact.rewrite.forms.clauses.segmentation import find_clause
    >>> holders(find_clause(Snippet("Fares", "Adults pay £12; children £6.", 25, 27), [(11, 14)]))
    ['children']
    """
    nouns = []
    if _gives_value(clause):
        nouns.append(clause.subject)
    if clause.verb in vocabulary.GIVING_VERBS:
        nouns.append(clause.middle)
    label = clause.label.split()
    is_heading = len(label) > _MOST_LABEL_WORDS
    if not is_heading and vocabulary.PREPOSITIONS.isdisjoint(label):
        nouns.append(clause.label)
    unique = []
    for noun in nouns:
        tidy = _tidy(noun)
        if _is_noun(tidy) and tidy not in unique:
            unique.append(tidy)
    return unique


def _gives_value(clause: Clause) -> bool:
    """Whether a clause gives its value to its subject."""
    subject = clause.subject
    if not clause.verb:
        # "Use 50 g of powder": a word that only opens the sentence is no name.
        is_opening = clause.sentence.startswith(subject) and not clause.label
        return not is_opening or " " in subject or subject.endswith("s")
    if clause.verb in vocabulary.AUXILIARIES:
        is_definite = subject.lower().startswith("the ")
        return _is_plural(_head(subject)) and not is_definite
    return clause.verb in vocabulary.VALUE_VERBS


def _tidy(noun: str) -> str:
    """A noun without the prepositions that lead to the value, and without what stands before it."""
    parts = noun.strip(" ,").split()
    while parts and parts[-1].lower() in vocabulary.PREPOSITIONS | {"most", "least"}:
        parts.pop()
    while parts and parts[0].lower() in vocabulary.CONJUNCTIONS:
        parts.pop(0)
    return " ".join(parts)


def _is_noun(noun: str) -> bool:
    """Whether a text is one noun phrase: short, no pronoun, no verb."""
    parts = noun.split()
    if not 1 <= len(parts) <= _MOST_WORDS or "," in noun or ":" in noun:
        return False
    lowered = {part.lower() for part in parts}
    unwanted = (
        vocabulary.PRONOUNS
        | vocabulary.POSSESSIVES
        | vocabulary.WH_WORDS
        | vocabulary.AUXILIARIES
        | vocabulary.NO_MODIFIERS
        | vocabulary.ADVERBIALS
    )
    if is_time(noun) or not vocabulary.MONTHS.isdisjoint(parts):
        return False
    is_thing = len(parts) == 2 and parts[0].lower() == "the"
    if is_thing and parts[1] in vocabulary.THINGS:
        return False
    if parts[0].lower() in vocabulary.HEADINGS or parts[-1].endswith("ly"):
        return False
    if lowered & unwanted or parts[0].lower() in vocabulary.PREPOSITIONS:
        return False
    return parts[-1][-1].isalnum() and not parts[0][0].isdigit()


def holder_phrases(question: str, noun: str, texts: Sequence[str]) -> Iterator[str]:
    """Phrases that put a value's holder at the end of a question, best first.

    `texts` are passages in which the noun may stand behind its own preposition.

    >>> list(holder_phrases("What is the fare?", "Children under 12", ["Fares"]))
    ['for children under 12']
    >>> list(holder_phrases("How long is the leave?", "Germany", ["Staff in Germany"]))
    ['in Germany', 'for Germany']
    """
    if not _VALUE_QUESTION.match(question) or _PERSON_WORD.search(question):
        return
    asked = {stem(part) for part in re.findall(r"[\w'’-]+", question)}
    content = [part for part in noun.split() if part.lower() not in vocabulary.ARTICLES]
    if any(stem(part) in asked for part in content):
        return
    plain = lower_common(noun, texts)
    if plain.lower() in vocabulary.ADJECTIVES or plain.split()[0] in vocabulary.TITLES:
        return
    head = _head(plain)
    if plain.split()[0] in ("a", "an", "the"):
        yield from _definite(plain, head, texts)
    elif plain[0].isupper():
        yield from _named(plain, head, texts)
    else:
        yield from _common(plain, head)


def _common(noun: str, head: str) -> Iterator[str]:
    """Phrases for a common noun without an article."""
    parts = noun.split()
    if head in vocabulary.ON_NOUNS:
        yield f"on the {noun}"
    elif parts[0] in vocabulary.ORDINALS:
        if len(parts) > 1:
            yield f"for the {noun}"
    elif _is_plural(head) or head.endswith("ing") or not head.islower():
        yield f"for {noun}"
    elif len(parts) > 1 and not is_adjective(head):
        article = "an" if noun[0] in "aeiou" else "a"
        yield f"for {article} {noun}"


def _definite(noun: str, head: str, texts: Sequence[str]) -> Iterator[str]:
    if head.lower() in vocabulary.ON_NOUNS:
        yield f"on {noun}"
    found = _preposition(noun, texts)
    if found and found != "for":
        yield f"{found} {noun}"
    yield f"for {noun}"


def _named(noun: str, head: str, texts: Sequence[str]) -> Iterator[str]:
    """Phrases for a name, with the preposition that the texts have before it."""
    if head.lower() in vocabulary.ON_NOUNS:
        yield f"on the {noun}"
        return
    if any(mark.isdigit() for mark in noun) or (
        _is_plural(head) and not head[0].isupper()
    ):
        yield f"for {noun}"
        return
    found = _preposition(noun, texts)
    if found:
        yield found if found.endswith(noun) else f"{found} {noun}"
    if is_adjective(noun):  # the name of a plan, not of a place: Basic
        yield f"for {noun}"
        return
    for preposition in ("in", "for"):
        if found != preposition:
            yield f"{preposition} {noun}"


def _preposition(noun: str, texts: Sequence[str]) -> str:
    """The preposition before a noun in some text; empty where none has one."""
    pattern = re.compile(rf"\b(in|at|on|for) {re.escape(noun)}\b", re.IGNORECASE)
    for text in texts:
        match = pattern.search(text)
        if match:
            return match[1].lower()
    return ""


def lower_common(noun: str, texts: Sequence[str]) -> str:
    """A noun phrase without the capital that only the beginning of a sentence gave it.

    >>> lower_common("Private cars", ["Private cars: 40p a mile"]), lower_common("Oak Room", ["Oak Room: £5"])
    ('private cars', 'Oak Room')
    """
    parts = noun.split()
    first = parts[0]
    lowered = first[0].lower() + first[1:]
    if not first[0].isupper() or (len(first) > 1 and first[1:] != first[1:].lower()):
        return noun
    if first.lower() in vocabulary.DETERMINERS:
        return " ".join([lowered, *parts[1:]])
    if len(parts) > 1 and (parts[1][0].isupper() or parts[1][0].isdigit()):
        return noun
    inside = re.compile(rf"[a-z,;] {re.escape(first)}\b")
    is_name = any(inside.search(text) for text in texts)
    # A single word that is no plural is taken for a name: Germany.
    if is_name or (len(parts) == 1 and not _is_plural(first)):
        return noun
    return " ".join([lowered, *parts[1:]])


def _head(noun: str) -> str:
    """The main noun of a phrase: the last word before a preposition."""
    head = ""
    for part in noun.split():
        is_end = part.lower() in vocabulary.PREPOSITIONS or part.endswith("ing")
        if head and is_end and head.lower() not in vocabulary.ARTICLES:
            break
        head = part
    return head


def _is_plural(word: str) -> bool:
    """Whether a noun stands for several or for a group."""
    lowered = word.lower()
    if lowered in vocabulary.GROUPS:
        return True
    return lowered.endswith("s") and not lowered.endswith(("ss", "us", "is"))
