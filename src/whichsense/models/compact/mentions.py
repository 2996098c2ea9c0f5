"""Names in long answers: how a sentence speaks of its subject, and what that is called alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from whichsense.models.compact import statements
from whichsense.models.compact.statements import has_verb
from whichsense.text.answers import MONTHS
from whichsense.types import Passage

# What passages call things: the names and works in their titles, and the capitals that names have.

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
        return statements.PREPOSITION_OF_WORK[self.kind]

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
    is_work = kind in statements.PREPOSITION_OF_WORK and "(" not in name
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
    if not words or modifier[0].isdigit() or words[0] in statements.NATIONAL_ADJECTIVES:
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
        word.lower().strip(",") in statements.DOCUMENT_NOUNS for word in name.split()
    )


def is_same_kind(kind: str, other: str) -> bool:
    """Whether two nouns mean the same kind of work.

    >>> is_same_kind("film", "movie"), is_same_kind("film", "novel")
    (True, False)
    """
    if kind == other:
        return True
    return any({kind, other} <= group for group in statements.SAME_KINDS)


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
    lowered: set[str] = set(statements.COMMON_NOUNS)
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


# Make a sentence of a passage stand alone: what it refers back to is named.

_PERSON_PRONOUNS = ("he", "she", "his", "her")
_THING_PRONOUNS = ("it", "its")
_POSSESSIVES = ("his", "her", "its")
_PRONOUN = re.compile(r"\b(?:he|she|it|his|her|its|him|they|their|them)\b", re.I)
_WORK = re.compile(
    rf"\b(?P<article>the|The) (?P<noun>{'|'.join(sorted(statements.PREPOSITION_OF_WORK))})(?P<owner>['’]s)?(?= |,|\.)"
)
# Words that point outside the sentence.
_POINTERS = re.compile(
    r"\b(?:this|these|those|the former|the latter|aforementioned|above|below|here|such|another|the other|others"
    r"|respectively|the rest|the (?:first|last|other) (?:two|three|four)(?! [a-z])|you|your|we|our|us|I|my"
    r"|(?:the same|that|the following|the previous|the next) (?:year|month|day|season|week|decade))\b",
    re.IGNORECASE,
)
_RELATIVE_TIME = re.compile(
    r"(?:(?:About|Almost|Nearly|Over|Some|Just)? ?[\w-]+ (?:years?|months?|weeks?|days?|decades?) later"
    r"|Later|Soon(?: after(?:wards)?)?|Afterwards|Eventually|Shortly after(?:wards)?|Subsequently|Previously),? "
)
_BAD_START = re.compile(
    r"(?:They|Their|Them|This|That|These|Those|Both|Such|Others?|Another|Which|Who|Where|When it|While|As such"
    r"|Here|Either|Neither|Some|Most|Many|All|One|Two|Three|What|Why|How)\b"
)
_NAME = re.compile(
    r"(?:(?:Sir|Dr|Dame|Lord|Lady)\.? )?"
    r"(?P<name>(?!The |An? |In |On |At |After |\w+ing )[A-Z][\w’'.-]*\w"
    r"(?: (?:[A-Z][\w’'.-]*|de|von|van|der|la|of))+)(?= [a-z(]|,)"
)
_PLACE_PREPOSITIONS = frozenset("in over at on from near of to across the".split())
_AFTER_OBJECT = re.compile(
    r"(?:$|[.,;]| (?:in|on|at|by|for|from|to|with|as|until|and)\b)"
)
_CAPITALIZED = re.compile(r"\b[A-Z][\w’'-]+")


def stand_alone(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """One of a passage's sentences with its references named; empty where one stays open.

    >>> passage = Passage("1", "Batman (1989 film)", "")
    >>> stand_alone(passage, ["It is by Tim Burton.", "Jack Nicholson plays the Joker."], 0)
    'The 1989 film Batman is by Tim Burton.'
    >>> stand_alone(passage, ["It is by Tim Burton.", "Jack Nicholson plays the Joker."], 1)
    'In the 1989 film Batman, Jack Nicholson plays the Joker.'
    """
    text = _without_time(sentences[place])
    if _BAD_START.match(text) or re.match(r"There (?!is|are|was|were)", text):
        return ""
    text = _name_work(text, passage)
    text = _name_pronouns(text, passage, sentences, place) if text else ""
    text = _set_scene(text, passage) if text else ""
    if not text or _POINTERS.search(_unquoted(text)):
        return ""
    return text[0].upper() + text[1:]


def _without_time(text: str) -> str:
    """The sentence without an opening that counts from the one before: "Two years later, …"."""
    match = _RELATIVE_TIME.match(text)
    rest = text[match.end() :] if match else text
    return rest[:1].upper() + rest[1:]


def _unquoted(text: str) -> str:
    return re.sub(r"[\"“][^\"”]*[\"”]", "", text)


def _name_work(text: str, passage: Passage) -> str:
    """ "the film" as the title names it; empty where the title does not."""
    match = _WORK.search(text)
    name, _ = split_title(passage.title)
    if match is None or name in text or _is_defined(text, match):
        return text
    full_name = title_name(passage)
    if not full_name or not _is_kind(passage, match["noun"]):
        return ""
    replacement = _make_possessive(name) if match["owner"] else full_name
    return text[: match.start()] + replacement + text[match.end() :]


def _is_defined(text: str, match: re.Match[str]) -> bool:
    """Whether a name or an "of …" behind "the film" says which one, or an earlier word of the sentence does."""
    behind = text[match.end() :]
    before = text[: match.start()]
    has_name = re.match(r" (?:[A-Z\"“]|of |that |which |in which |version)", behind)
    is_known = re.search(rf"\b(?:an?|[\w-]+) {match['noun']}\b", before)
    return has_name is not None or is_known is not None


def _is_kind(passage: Passage, noun: str) -> bool:
    """Whether a passage is about a thing of this kind, by its title or by its own words."""
    work = work_of(passage)
    if work is not None:
        return is_same_kind(work.kind, noun)
    name, _ = split_title(passage.title)
    called = rf"{re.escape(name)}\W+(?:is|was)\b[^.]*\b{noun}\b"
    return re.search(called, passage.text) is not None


def _name_pronouns(
    text: str, passage: Passage, sentences: Sequence[str], place: int
) -> str:
    """Pronouns by the names that they stand for, unless the sentence names them; empty where that is unknown."""
    start = 0
    while True:
        match = _PRONOUN.search(_masked(text), start)
        if match is None:
            return text
        before, behind = text[: match.start()], text[match.end() :]
        start = match.end()
        pronoun = match[0].lower()
        if not _is_open(before, pronoun, behind):
            continue
        name = ""
        if pronoun in _PERSON_PRONOUNS:
            name = _person(passage, sentences, place)
        elif pronoun in _THING_PRONOUNS:
            name = _thing(passage, sentences, place)
        if not name or name in text:
            return ""
        text = f"{before}{_make_possessive(name) if pronoun in _POSSESSIVES else name}"
        start = len(text)
        text += behind


def _is_open(before: str, pronoun: str, behind: str) -> bool:
    """Whether nothing before a pronoun says what it stands for."""
    is_subject = before.rstrip().endswith(",") and not has_verb(before)
    if is_subject and pronoun not in _POSSESSIVES:
        return True  # "In 1712, it pumped …"
    is_object = pronoun == "it" and _AFTER_OBJECT.match(behind) is not None
    if is_object and not _has_noun(before):
        return True
    if pronoun in ("his", "her") and _has_noun(before):
        return False  # "a baby's abduction … and his escape"
    return not _has_antecedent(before, pronoun)


def _has_noun(before: str) -> bool:
    """Whether a common noun stands before an object pronoun, which may stand for it."""
    return re.search(r"\b(?:an?|the|its|their|his|her) [a-z]", before, re.I) is not None


def _masked(text: str) -> str:
    """The text with its quotations blanked, at the same length."""
    return re.sub(r"[\"“][^\"”]*[\"”]", lambda match: "_" * len(match[0]), text)


def _has_antecedent(before: str, pronoun: str) -> bool:
    """Whether the words before a pronoun hold something that it can stand for."""
    words = before.split()
    if not words:
        return False
    for previous, word in pairwise(words):
        if not _CAPITALIZED.match(word) or word in MONTHS:
            continue
        is_place = previous.lower() in _PLACE_PREPOSITIONS
        if pronoun not in _PERSON_PRONOUNS or not is_place:
            return True
    first = words[0].lower()
    is_small = first in statements.PREPOSITIONS or first in statements.CONJUNCTIONS
    if not is_small and first not in statements.DETERMINERS:
        return True
    is_thing = pronoun in ("it", "its", "they", "their", "them")
    return is_thing and len(words) > 2 and _has_noun(before)


def _person(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """The person that "he" or "she" at a place means: whom the sentence before begins with, or the title's."""
    title, _ = split_title(passage.title)
    for earlier in reversed(sentences[:place]):
        if re.match(r"(?:He|She|His|Her)\b", earlier):
            continue
        match = _NAME.match(earlier)
        if match is None:
            first = earlier.split()[0].strip(",")
            return title if _is_person(passage) and first in title.split() else ""
        name = match["name"]
        is_titles = bool(set(name.split()) & set(title.split()))
        return title if is_titles and _is_person(passage) else name
    return title if _is_person(passage) else ""


def _is_person(passage: Passage) -> bool:
    """Whether a title is a person's name: two to four capitalized words, and a "he" or "she" in the text."""
    name, inside = split_title(passage.title)
    parts = name.split()
    if not 2 <= len(parts) <= 4 or inside.split()[-1:] in (["film"], ["series"]):
        return False
    is_name = all(part[0].isupper() and part.isalpha() for part in parts)
    return (
        is_name and re.search(r"\b(?:he|she|his|her)\b", passage.text, re.I) is not None
    )


def _thing(passage: Passage, sentences: Sequence[str], place: int) -> str:
    """The thing that "it" at a place means: the title's, if the sentences before are about it."""
    name, _ = split_title(passage.title)
    if _is_person(passage):
        return ""
    for earlier in reversed(sentences[:place]):
        if re.match(r"(?:It|Its)\b", earlier):
            continue
        is_about = name in earlier or _WORK.match(earlier) is not None
        return title_name(passage) if is_about else ""
    return title_name(passage)


def _set_scene(text: str, passage: Passage) -> str:
    """ "In the 1989 film Batman, …" before a sentence about who appears in a work that it does not name."""
    work = work_of(passage)
    name, _ = split_title(passage.title)
    if work is None or name in text:
        return text
    words = re.findall(r"[\w’'-]+", text)
    if not statements.APPEARING.intersection(words[:8]):
        return ""
    if not (
        words and text[0].isupper() and words[0].lower() not in statements.PREPOSITIONS
    ):
        return ""
    opens_noun = words[0].lower() in statements.DETERMINERS
    first = text[0].lower() + text[1:] if opens_noun else text
    return f"{work.preposition.capitalize()} {title_name(passage)}, {first}"


def _make_possessive(name: str) -> str:
    """The possessive of a name.

    >>> _make_possessive("Verdi"), _make_possessive("Pet Shop Boys")
    ("Verdi's", "Pet Shop Boys'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"
