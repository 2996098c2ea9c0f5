"""What passages call things: the names and works in their titles, and the capitals that names have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whichsense.models.compact.story.grammar import word_lists
from whichsense.types import Passage

_BRACKETS = re.compile(r"^(?P<name>.*\S)\s+\((?P<inside>[^()]+)\)$")
_SPAN = re.compile(r"\d\D\d")
_ROLE = re.compile(r"[a-z]+ of [A-Z]")
_SECTION_TITLE = re.compile(
    r"^(?:List|History|Timeline|Outline|Cast|Index) of\b| on screen$|:"
)
_WORD = re.compile(r"[\w’'&.-]*\w")
_LONGEST = 6  # words of a name
# Words inside names that are not capitalized.
_LINKS = frozenset("of the and de la in for on a an to & at vs von van der".split())
_OWNER = re.compile(r"['’]s$")


@dataclass(frozen=True, slots=True)
class Work:
    """What a title's brackets say of a work, in which characters may appear: "1989", "film"."""

    modifier: str
    noun: str

    @property
    def kind(self) -> str:
        """The noun without what tells it apart: "series" of "TV series"."""
        return self.noun.split()[-1]

    @property
    def preposition(self) -> str:
        """The preposition that says that something happens in such a work."""
        return word_lists.PREPOSITION_OF_WORK[self.kind]

    @property
    def phrase(self) -> str:
        """Modifier and noun without an article: "1989 film". A span of years is left out."""
        modifier = "" if _SPAN.search(self.modifier) else self.modifier
        return f"{modifier} {self.noun}".strip()


def split_title(title: str) -> tuple[str, str]:
    """A title's name and what its last brackets hold.

    >>> split_title("Dune (1984 film)"), split_title("Dune")
    (('Dune', '1984 film'), ('Dune', ''))
    """
    match = _BRACKETS.match(title.strip())
    if not match:
        return title.strip(), ""
    return match["name"], match["inside"].strip()


def work_of(passage: Passage) -> Work | None:
    """What the title's brackets say of a work; None where the passage is about something else.

    >>> work_of(Passage("1", "Batman (1989 film)", ""))
    Work(modifier='1989', noun='film')
    >>> work_of(Passage("2", "Phantom (submarine)", "")) is None
    True
    """
    name, inside = split_title(passage.title)
    kind = inside.split()[-1] if inside else ""
    is_work = kind in word_lists.PREPOSITION_OF_WORK and "(" not in name
    if not is_work or _ROLE.match(inside):
        return None
    modifier, noun = _split_kind(inside)
    if noun == "series" and _is_owner(modifier):
        return None  # the Paris series of Sunflowers
    return Work(modifier, noun)


def _split_kind(inside: str) -> tuple[str, str]:
    """The modifier, which has figures or capitals, and the common noun: TV is part of the noun."""
    words = inside.split()
    first = len(words)
    while first > 0 and (words[first - 1].islower() or words[first - 1] == "TV"):
        if words[first - 1] in ("and", "the", "of") or words[first - 1][0].isdigit():
            break
        first -= 1
    return " ".join(words[:first]), " ".join(words[first:])


def _is_owner(modifier: str) -> bool:
    """Whether a modifier is a name, of which something is, and no year or nation."""
    words = modifier.split()
    if not words or modifier[0].isdigit() or words[0] in word_lists.NATIONAL_ADJECTIVES:
        return False
    return modifier[0].isupper()


def title_name(passage: Passage) -> str:
    """What a passage is about, as a sentence would name it: "the 1989 film Batman"; empty where no title says so.

    >>> title_name(Passage("1", "Batman (1989 film)", "")), title_name(Passage("2", "List of films", ""))
    ('the 1989 film Batman', '')
    """
    name, _ = split_title(passage.title)
    work = work_of(passage)
    if work is not None:
        return f"the {work.phrase} {name}"
    if not name or _SECTION_TITLE.search(name) or _is_document(name):
        return ""
    has_article = re.search(rf"\b[Tt]he {re.escape(name)}\b", passage.text)
    return f"the {name}" if has_article else name


def _is_document(name: str) -> bool:
    """Whether a title names a document, which its sentences are not about."""
    return any(
        word.lower().strip(",") in word_lists.DOCUMENT_NOUNS for word in name.split()
    )


def is_same_kind(kind: str, other: str) -> bool:
    """Whether two nouns mean the same kind of work.

    >>> is_same_kind("film", "movie"), is_same_kind("film", "novel")
    (True, False)
    """
    if kind == other:
        return True
    return any({kind, other} <= group for group in word_lists.SAME_KINDS)


def restore_capitals(
    question: str, passages: Iterable[Passage], asked: str = ""
) -> str:
    """A question without capitals, but for its first letter, with the names of the passages in their own; another one
    as it is. A rewrite is judged by the question as it was `asked`.

    >>> passage = Passage("1", "Batman (1989 film)", "Jack Nicholson played the Joker in it.")
    >>> restore_capitals("who played the joker in the 1989 film batman", [passage])
    'who played the Joker in the 1989 film Batman'
    """
    judged = (asked or question)[1:]
    if judged != judged.lower():
        return question
    passages = list(passages)
    lowered: set[str] = set(word_lists.COMMON_NOUNS)
    for passage in passages:
        lowered.update(word for word in _WORD.findall(passage.text) if word.islower())
    names: dict[str, str] = {}
    for passage in passages:
        _collect_names(passage, names, lowered)
    words = question.split(" ")
    place = 0
    while place < len(words):
        for size in range(min(_LONGEST, len(words) - place), 0, -1):
            phrase = " ".join(words[place : place + size])
            core = _OWNER.sub("", phrase.strip("?,.“”\"'"))
            name = names.get(core.lower(), "")
            if name:
                words[place : place + size] = phrase.replace(core, name).split()
                place += size - 1
                break
        place += 1
    return " ".join(words)


def _collect_names(passage: Passage, names: dict[str, str], lowered: set[str]) -> None:
    """Names in a title and in a text: lower case → as they are written. A word of `lowered` alone is no name."""
    name, _ = split_title(passage.title)
    capitals = sum(word[0].isupper() for word in name.split())
    is_name = capitals > 1 or (" " not in name and name.lower() not in lowered)
    if is_name:
        names.setdefault(name.lower(), name)
    opening = name.split()[0] if name else ""
    if opening.istitle() and opening.lower() not in lowered:
        names.setdefault(opening.lower(), opening)
    for run in _capitalized_runs(passage.text):
        for first in range(len(run)):
            for last in range(first + 1, min(first + _LONGEST, len(run)) + 1):
                part = run[first:last]
                ends_early = last < len(run)
                is_cut_off = ends_early and (
                    part[0] == "The" or part[-1].lower() in lowered
                )
                if part[0] in _LINKS or part[-1] in _LINKS or is_cut_off:
                    continue
                phrase = " ".join(part)
                if last - first == 1 and phrase.lower() in lowered:
                    continue
                names.setdefault(phrase.lower(), phrase)


def _capitalized_runs(text: str) -> Iterator[list[str]]:
    """Runs of capitalized words with the small words between them; the first word of a sentence begins none."""
    run: list[str] = []
    end = 0
    opened_sentence = False
    for match in _WORD.finditer(text):
        word = match[0]
        gap = text[end : match.start()]
        opens_sentence = end == 0 or bool(re.search(r"[.!?:\n]", gap))
        is_name = word[0].isupper() and not (opens_sentence and word.lower() in _LINKS)
        joins = gap == " " and bool(run)
        if not joins or not (is_name or word in _LINKS):
            # One capitalized word that begins a sentence may be any word.
            if len(run) > 1 or not opened_sentence:
                yield run
            run = []
            opened_sentence = opens_sentence
        if is_name or (run and word in _LINKS):
            run.append(word)
        end = match.end()
    if len(run) > 1 or not opened_sentence:
        yield run
