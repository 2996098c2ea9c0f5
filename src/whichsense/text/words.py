"""Words, stems, sentences and quoted spans of a text."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from whichsense.types import Hit, Span

# Normal forms of answers, words, and edits of words.

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"\w+")


def normalize(answer: str) -> str:
    """Return the normal form in which the official scripts compare answers.

    >>> [normalize(answer) for answer in ("A.B. & C-D", "St. John's", "the")]
    ['ab cd', 'st johns', '']
    """
    bare = answer.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which badly encoded names and arguments contain, by question marks.

    >>> whole_characters("caf\\udce9")
    'caf?'
    """
    return text.encode("utf-8", "replace").decode()


def words(text: str) -> list[str]:
    """Return lower-cased runs of letters and digits.

    >>> words("Who's on first?")
    ['who', 's', 'on', 'first']
    """
    return _WORD.findall(text.lower())


def word_edits(before: list[str], after: list[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the multisets of words deleted from and added to a question.

    >>> deleted, added = word_edits("who made the play".split(), "who wrote the play".split())
    >>> dict(deleted), dict(added)
    ({'made': 1}, {'wrote': 1})
    """
    old = Counter(before)
    new = Counter(after)
    return old - new, new - old


# Function words, one named set for each use.
#
# The sets differ on purpose: models were trained and results were measured with each of them as it
# is. They share the groups below; what a set adds to its groups is written out.


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list, as it is written here."""
    return frozenset(text.split())


# Groups that the sets are made of.
ARTICLES = word_set("a an the")
_PREPOSITIONS = word_set("of in on at to for from by with")
_CORE = ARTICLES | _PREPOSITIONS | word_set("and or")
_COPULAS = word_set("is are was were")
_BE = _COPULAS | word_set("be been being")
_AUXILIARIES = word_set("do does did has have had")
_DEMONSTRATIVES = word_set("this that these those")
_SUBJECTS = word_set("i you he she it we they")
_POSSESSIVES = word_set("my your his her its our their")
_OBJECTS = word_set("me him them")

# Numbers in words.
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()

WH_WORDS = word_set("who whom whose which what when where why how")

# What kind of answer a question asks for: the second look of a search.
ASKING_WHO = word_set("who whom whose")
ASKING_WHEN = word_set("when year date")
ASKING_NUMBERS = word_set("number population percentage percent age")
HOW_MUCH = word_set("many much old long far tall high large big deep fast often heavy wide")

# Lucene's stop words, which are not indexed.
UNINDEXED_WORDS = (
    _CORE - {"from"}
    | word_set("is are was be it they their this that these")
    | word_set("as but if into no not such then there will")
)

# Dropped from questions only: a search for "The Who" still finds it.
QUESTION_WORDS = (
    UNINDEXED_WORDS
    | WH_WORDS
    | _BE
    | _AUXILIARIES
    | (_SUBJECTS - {"it", "they"})
    | word_set("its our your his her him them")
    | word_set("many much s t from about after over than out up all can also one")
    | word_set("would could should")
)

# Words that a rewrite may insert whatever the evidence is, in lower case.
SMALL_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | (WH_WORDS - {"why"})
    | word_set("it its he she they his her their")
    | word_set("but without as into onto over under after before during since until")
    | word_set("between against about around within will would can could many much not")
    | word_set("no only also than then s there some any if more most later including per")
)

# Words for a kind of thing that state no fact: a rewrite may insert them, too.
NEUTRAL_WORDS = word_set(
    """film movie series show season episode song album book novel game version edition character actor actress single
    original originally first second third last final current currently former name named person people individual team
    play played plays playing sang sings sung sing write wrote written record recorded direct directed voice role lead
    make made release released date year time number total amount part end start begin began beginning according terms
    country city state world man men woman women group all each ever other another up out through time place event take
    took official officially full based air aired called used come came become became get tv musical main regular
    general generally overall specific specifically primarily typically known considered type
    kind form one two"""
)

# Words that do not distinguish two rewrites.
GENERIC_WORDS = SMALL_WORDS | word_set(
    "country city state person people individual man men woman women team group name named year date time"
)

# Words that do not count where a mention's surroundings are compared with the question.
SURROUNDING_WORDS = _CORE | _COPULAS | _AUXILIARIES

# Words that begin a phrase: a rewrite must not end with one.
PHRASE_OPENERS = _CORE | word_set("as during between which whose")

# Words that do not count where a sentence of a summary is compared with a passage.
SUMMARY_STOP_WORDS = _CORE | _COPULAS | word_set("be been it its as that this")

# Words that an abbreviation leaves out: the United States *of* America.
NAME_LINKS = ARTICLES | word_set("of and for in on at") | word_set("de la le du von van der den")

# NLTK's stop words without wh-words: changing a wh-word is an edit that matters.
EDIT_STOP_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | _SUBJECTS
    | _POSSESSIVES
    | _OBJECTS
    | word_set("ours yours hers theirs am having doing but if because as until while")
    | word_set("about against between into through during before after above below up")
    | word_set("down out off over under again further then once here there all any both")
    | word_set("each few more most other some such no nor not only own same so than too")
    | word_set("very s t can will just don should now d ll m o re ve y")
)

# Words of the closed classes (determiners, pronouns, prepositions, conjunctions, auxiliaries, some adverbs): those that
# token deletion leaves in a question where no tagger is installed.
CLOSED_CLASS_WORDS = (
    _CORE
    | _BE
    | _AUXILIARIES
    | _DEMONSTRATIVES
    | _SUBJECTS
    | _POSSESSIVES
    | _OBJECTS
    | WH_WORDS
    | word_set("each every either neither some any no all both half such another")
    | word_set("mine myself yours yourself himself hers herself itself us ours theirs")
    | word_set("themselves one ones whoever whatever somebody someone something anybody")
    | word_set("anyone anything nobody nothing everybody everyone everything")
    | word_set("about against between into through during before after above below up")
    | word_set("down out off over under within without along across behind beyond near")
    | word_set("among around since until till upon toward towards per via")
    | word_set("but nor so yet if because although though while whereas unless than as")
    | word_set("whether am done doing having can could may might must shall should will")
    | word_set("would ought 's 're 've 'd 'll n't not")
    | word_set("there here then thus also only very too just even still again once ever")
    | word_set("never always often")
)


# Porter's stemmer with NLTK's extensions: the one inside the `rouge-score` package.

_IRREGULAR = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing", "cannings": "canning",
    "canning": "canning", "howe": "howe", "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
# suffix → replacement; the first suffix that fits decides, whether or not its condition holds.
_PLURAL = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "fulli": "ful", "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = dict.fromkeys(
    "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(), ""
)


def _shape(word: str) -> str:
    """Consonants and vowels, as a string of c and v. A y after a consonant is a vowel."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    return _shape(stem).count("vc")


def _ends_short(stem: str) -> bool:
    """Consonant, vowel, consonant other than w, x, y; or a word of a vowel and a consonant."""
    shape = _shape(stem)
    return (shape.endswith("cvc") and stem[-1] not in "wxy") or shape == "vc"


def _replace(word: str, table: dict[str, str], holds: Callable[[str, str], bool]) -> str:
    for suffix, replacement in table.items():
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            return stem + replacement if holds(stem, suffix) else word
    return word


def _past_and_ing(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + ("ie" if len(word) == 4 else "i")
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem != word and "v" in _shape(stem):
            return _repair(stem)
    return word


def _repair(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 1 and stem[-1] == stem[-2] and _shape(stem)[-1] == "c":
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _second(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _second(word[:-2])
    return _replace(
        word, _STEP_2, lambda stem, suffix: _measure(stem + "l" if suffix == "logi" else stem) > 0
    )


def _fourth(stem: str, suffix: str) -> bool:
    return _measure(stem) > 1 and (suffix != "ion" or stem[-1] in "st")


def _final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    stem = word[:-1]
    measure = _measure(stem)
    if measure > 1 or (measure == 1 and not _ends_short(stem)):
        return stem
    return word


@lru_cache(maxsize=2**16)
def porter_stem(word: str) -> str:
    """Return the stem of a lower-case word.

    >>> [porter_stem(word) for word in ("running", "flies", "dies", "happily", "archaeology", "generalizations")]
    ['run', 'fli', 'die', 'happili', 'archaeolog', 'gener']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    if len(word) == 4 and word.endswith("ies"):
        word = word[:-1]
    else:
        word = _replace(word, _PLURAL, lambda stem, suffix: True)
    word = _past_and_ing(word)
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    word = _second(word)
    word = _replace(word, _STEP_3, lambda stem, suffix: _measure(stem) > 0)
    word = _replace(word, _STEP_4, _fourth)
    word = _final_e(word)
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        return word[:-1]
    return word


# Split text into sentences by rules.

_LINE = re.compile(r"[^\n]+")
# A sentence ends at . ! or ? (with closing quotes) before white space and a capital, digit or opening quote,
# unless the dot belongs to an initial or to a common abbreviation.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+\s++(?=[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|St|Mt|Ft|Jr|Sr|Co|Corp|Inc|Ltd|No|Nos|Vol|vs|etc|ca|cf"
    r"|e\.g|i\.e|U\.S|U\.K|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|approx))$"
)
_LONGEST_ABBREVIATION = 8  # characters, with what stands before it


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence. A line break always ends one.

    >>> text = "Dr. No came out in 1962. It was a film."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. No came out in 1962.', 'It was a film.']
    """
    for line in _LINE.finditer(text):
        start = line.start()
        for gap in _SENTENCE_END.finditer(text, line.start(), line.end()):
            if _is_abbreviation(text, start, gap.start()):
                continue
            yield from _strip_span(text, start, gap.end())
            start = gap.end()
        yield from _strip_span(text, start, line.end())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_at(text: str, place: int) -> tuple[int, int]:
    """Return the start and end of the sentence that holds the character at a place; the whole text if none does.

    >>> sentence_at("It rained. It poured.", 13)
    (11, 21)
    """
    for start, end in sentence_spans(text):
        if start <= place < end:
            return start, end
    return 0, len(text)


def excerpt(text: str, start: int, end: int, longest: int) -> tuple[str, str, str]:
    """Return the sentence in which a span stands: what is before the span, the span, what is after it.

    A sentence of more than about `longest` characters is cut between words, on both sides.

    >>> excerpt("It rained. Then Ann won the cup.", 16, 19, 80)
    ('Then ', 'Ann', ' won the cup.')
    >>> excerpt("A long way off, under the hills, Ann won.", 33, 36, 20)
    ('… under the hills, ', 'Ann', ' won.')
    """
    first, last = sentence_at(text, start)
    before, span = text[first:start], text[start:end]
    after = text[end : max(last, end)]
    room = max(longest - len(span), 40) // 2
    if not before:
        room *= 2
    if len(before) > room:
        before = f"… {before[-room:].partition(' ')[2]}"
    if len(after) > room:
        after = f"{after[:room].rpartition(' ')[0]} …"
    return before, span, after


def _is_abbreviation(text: str, start: int, mark: int) -> bool:
    """Tell whether the mark at `mark` is the dot of an abbreviation; the sentence began at `start`."""
    if text[mark] != ".":
        return False
    earliest = max(start, mark - _LONGEST_ABBREVIATION)
    return bool(_ABBREVIATION.search(text, earliest, mark))


def _strip_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without white space at its ends; nothing where it is all white space."""
    piece = text[start:end]
    body = piece.strip()
    if body:
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(body)


# Find in the evidence what was written: an answer, or what supports a sentence.

_LEAST = 0.3  # share of a claim's words that the sentence which supports it has at least


def spans_of(answer: str, hits: Sequence[Hit], most: int = 5) -> tuple[Span, ...]:
    """Return the first occurrence in each passage of the answer's words in a row, in any case; best passages first.

    >>> from whichsense.types import Passage
    >>> hit = Hit(Passage("1", "Dune", "Dune is by Frank  Herbert."), 2.0)
    >>> [span.passage.text[span.start : span.end] for span in spans_of("frank herbert", [hit])]
    ['Frank  Herbert']
    """
    parts = re.findall(r"\w+", answer)
    if not parts:
        return ()
    in_a_row = r"[\W_]+".join(map(re.escape, parts))
    pattern = re.compile(rf"(?<!\w){in_a_row}(?!\w)", re.IGNORECASE)
    spans = []
    for hit in hits:
        match = pattern.search(hit.passage.text)
        if match:
            spans.append(Span(hit.passage, match.start(), match.end(), hit.score))
    return tuple(spans[:most])


def supporting_spans(claims: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return the start and end of the sentence that shares most words with each claim, in the order of the text.

    >>> text = "It is by Tim Burton. Jack Nicholson plays the Joker."
    >>> supporting_spans(["The Joker is played by Jack Nicholson."], text)
    [(21, 52)]
    """
    spans = list(sentence_spans(text))
    supporting = set()
    for claim in claims:
        content = set(words(claim)) - SUMMARY_STOP_WORDS
        best, most = None, _LEAST * len(content)
        for start, end in spans:
            shared = len(content.intersection(words(text[start:end])))
            if shared > most:
                best, most = (start, end), shared
        if best is not None:
            supporting.add(best)
    return sorted(supporting)
