"""The sentences of a passage that can be told: clean, whole, standing alone, shortened by cuts that leave them true."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from whichsense.models.compact.story.grammar.verbs import has_verb
from whichsense.models.compact.story.mentions import stand_alone
from whichsense.models.compact.story.naming import split_title
from whichsense.text.sentences import sentence_spans
from whichsense.text.words import words
from whichsense.types import Passage

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|&[a-z]{2,8};")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]"
)
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-z]|citation needed|note \d+)\]")
_LOOSE_OWNER = re.compile(r" (['’]s|n['’]t)\b")
_BEFORE_MARK = re.compile(r"\s+([,;.])(?=\s|$)")
_ENDS = re.compile(r"[.!?][\"'”’)\]]*$")
# A dot that ends no sentence.
_ABBREVIATION = re.compile(
    r"\b(?:Art|Sec|Fig|Op|Ch|pp?|feat|vs|al|Nos?|Vol|St|Mr|Mrs|Dr|[A-Z])\.$"
)
_ODD = re.compile(r"https?:|www\.|[|{}<>\\=_~^*]|\.\.\.|…|\b\w{40,}")
_BEGINS = re.compile(r"(?:The|An?|In|On|At|It|He|She|They|This|These|There) [a-z]")
_SHORTEST, _LONGEST = 4, 70  # words
_MOST_SENTENCES = 40
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


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence of a passage that stands alone."""

    text: str
    passage: Passage
    start: int
    end: int

    def holds(self, place: int) -> bool:
        """Whether the character at a place of the passage is in the sentence."""
        return self.start <= place < self.end


@lru_cache(maxsize=256)
def facts(passage: Passage) -> tuple[Fact, ...]:
    """Every sentence of a passage that can be told, in order."""
    spans = list(islice(sentence_spans(passage.text), _MOST_SENTENCES))
    texts = [clean(passage.text[start:end]) for start, end in spans]
    texts[:1] = [_without_heading(text, passage.title) for text in texts[:1]]
    told = []
    for place, (start, end) in enumerate(spans):
        if not is_whole(texts[place]):
            continue
        text = stand_alone(passage, texts, place)
        if text:
            told.append(Fact(text, passage, start, end))
    return tuple(told)


def _without_heading(text: str, title: str) -> str:
    """The first sentence without the title that some corpora put before it.

    >>> _without_heading("Al Lee Albert Lee was a singer.", "Al Lee (singer)")
    'Albert Lee was a singer.'
    >>> _without_heading("Farm policy The aim of farms is food.", "Farm policy")
    'The aim of farms is food.'
    """
    name, _ = split_title(clean(title))
    for heading in (clean(title), name):
        if not heading or not text.lower().startswith(heading.lower() + " "):
            continue
        rest = text[len(heading) :].lstrip()
        opening = rest.lower().split()[: len(heading.split()) + 3]
        repeats_name = heading.lower().split()[-1] in opening
        if rest[0].isupper() and (repeats_name or _BEGINS.match(rest)):
            return rest
    return text


def is_whole(text: str) -> bool:
    """Whether a text is one whole sentence, and no heading, row of a table or fragment.

    >>> is_whole("It was released in 1989."), is_whole("released in 1989."), is_whole("Cast and crew.")
    (True, False, False)
    """
    count = len(text.split())
    if not _SHORTEST <= count <= _LONGEST or not _ENDS.search(text):
        return False
    if _ABBREVIATION.search(text):
        return False
    if not (text[0].isupper() or text[0].isdigit() or text[0] in "\"“'‘"):
        return False
    if _ODD.search(text) or text.count('"') % 2 or text.count("(") != text.count(")"):
        return False
    label, colon, rest = text.partition(": ")
    is_row = bool(colon) and not (has_verb(label) and has_verb(rest))
    return not is_row and not text.endswith("?") and has_verb(text)


def clean(text: str) -> str:
    """A piece of a passage on one line, without tags, control characters and numbers of notes.

    >>> clean('He <b>won</b>\\x07 it[3] , in ""1989"" .')
    'He won it, in "1989".'
    """
    plain = _TAG.sub(" ", _CONTROL.sub("", text.replace("&amp;", "&")))
    plain = _NOTE.sub("", plain).replace('""', '"').replace("``", '"')
    plain = plain.replace("''", '"')
    plain = _LOOSE_OWNER.sub(r"\1", " ".join(plain.split()))
    return _BEFORE_MARK.sub(r"\1", plain)


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
