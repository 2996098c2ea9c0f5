"""Sentences reworded, shortened, joined and made false."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from whichsense.models.compact.support_judge import terms
from whichsense.text.answers import MONTHS
from whichsense.text.words import CLOSED_CLASS_WORDS, sentences
from whichsense.types import Passage


def _pairs(text: str) -> list[tuple[str, str]]:
    """Read pairs of words: "began=started|film=movie"."""
    return [(one, other) for one, _, other in (p.partition("=") for p in text.split("|"))]


# Changes of a sentence that keep it true: parts left out, an order changed, words of the same
# meaning.

# Each entry: two ways to say the same in nearly all sentences.
_SAME = _pairs(
    "began=started|film=movie|died=passed away|located in=situated in|purchased=bought|approximately=about|"
    "received=got|founded=established|children=kids|however=though|several=a number of|created=made|"
    "near=close to|large=big|ended=finished|constructed=built|wrote=was the author of|also known as=also called|"
    "resides=lives|United States=US|United Kingdom=UK|because=since|initially=at first|attempted=tried|"
    "employed=hired|commenced=began|prior to=before|throughout=all through|roughly=about|author=writer|"
    "physician=doctor|nation=country|war between=conflict between|largest=biggest|was killed=lost his life|"
    "married=wed|assisted=helped|required=needed|obtained=got|concluded=ended|attended=went to|remained=stayed|"
    "depicts=shows|portrayed=played|released=brought out|numerous=many|primarily=mainly"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_LEADING = re.compile(
    r"^((?:In|On|At|After|During|Since|By|For|Between|From|Until|Before|As of) [^,]{3,60}), (\w.*)\.$"
)
_RELATIVE = re.compile(
    r",\s+(?:which|who|whose|where|when|including|with|such as|and|but|while|although|after|before|making|becoming|"
    r"leading|as well as|along with|especially|particularly|mostly|followed by|because|since)\s[^,.;]*(?=[,.;]|$)"
)
_APPOSITION = re.compile(r",\s+(?:an?|the)\s[^,.;]{4,60},")
_ADJUNCT = re.compile(
    r"\s(?:in|on|at|by|from|during|after|before|until|since|with|for|near|between|through|throughout) "
    r"(?:the |a |an |its |his |her |their |early |late |about |around )*"
    r"(?:[A-Z0-9][\w'’–-]*(?: (?:of|and|the|de) (?=[A-Z]))?(?:,? (?=[A-Z0-9]))?)+(?=[\s,.;])"
)
_ADVERB = re.compile(
    r"\s(?:also|later|then|eventually|subsequently|initially|originally|mainly|mostly|usually|often|officially|"
    r"successfully|soon|primarily|finally|currently|quickly|largely|generally|typically|famously|briefly)(?=\s)"
)
_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_PRONOUN = re.compile(r"^(?:He|She|It|They) (?=was|is|has|had|were|are|[a-z]+(?:ed|s) )")
_SHORTEST = 5  # words that must be left


def shorten(sentence: str, rng: random.Random) -> str | None:
    """The sentence without one of its adjuncts, clauses, brackets or adverbs; None where there is none.

    It says less: what supports the whole supports the shortened one, and not the other way round.
    """
    # The comma before and after an apposition become none.
    places = [
        (match.start(), match.end(), " " if pattern is _APPOSITION else "")
        for pattern in (_BRACKETS, _RELATIVE, _APPOSITION, _ADJUNCT)
        for match in pattern.finditer(sentence)
    ]
    if not places:
        return None
    start, end, joint = rng.choice(places)
    rest = sentence[end:].lstrip() if joint else sentence[end:]
    shorter = sentence[:start] + joint + rest
    shorter = re.sub(r"\s+([.,;])", r"\1", shorter).strip()
    if len(shorter.split()) < _SHORTEST or shorter == sentence:
        return None
    return shorter if shorter.endswith((".", "!", "?")) else shorter + "."


def reword(sentence: str, title: str, rng: random.Random) -> str:
    """The sentence in other words or in another order, where a rule fits; it says the same."""
    changed = sentence
    if rng.random() < 0.6:
        changed = _move_leading(changed)
    if rng.random() < 0.6:
        changed = _swap_dates(changed)
    if rng.random() < 0.7:
        *_, changed = changed, *_replace_words(changed, _SAME, rng)
    if rng.random() < 0.5:
        changed = _ADVERB.sub("", changed, count=1)
    if title and "(" not in title and rng.random() < 0.5:
        changed = _PRONOUN.sub(lambda _: f"{title} ", changed, count=1)
    return changed


def _move_leading(sentence: str) -> str:
    match = _LEADING.match(sentence)
    if not match:
        return sentence
    adjunct, rest = match.groups()
    return f"{rest[0].upper()}{rest[1:]} {adjunct[0].lower()}{adjunct[1:]}."


def _swap_dates(sentence: str) -> str:
    if _DAY_FIRST.search(sentence):
        return _DAY_FIRST.sub(r"\2 \1, \3", sentence)
    return _MONTH_FIRST.sub(r"\2 \1 \3", sentence)


def _replace_words(
    sentence: str, pairs: Sequence[tuple[str, str]], rng: random.Random
) -> Iterator[str]:
    """Yield a sentence with a word of a pair in the other's place, then with a word of another pair, too, and so on."""
    for one, other in rng.sample(pairs, len(pairs)):
        for old, new in ((one, other), (other, one)):
            pattern = rf"\b{re.escape(old)}\b"
            if re.search(pattern, sentence):
                sentence = re.sub(pattern, new, sentence, count=1)
                yield sentence
                break


def join_sentences(first: str, second: str, rng: random.Random) -> str:
    """Two sentences as one claim, or one after the other."""
    kind = rng.randrange(3)
    if kind == 0:
        return f"{first} {second}"
    begin = first.rstrip(".")
    # A name keeps its capital.
    if second.split(maxsplit=1)[0].lower() in CLOSED_CLASS_WORDS:
        second = second[0].lower() + second[1:]
    return f"{begin}{', and' if kind == 1 else ', while'} {second}"


# Changes of a sentence that make it false: another number or name of the same passage, a negation, an
# opposite.

_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_NUMBER_WORDS = "two three four five six seven eight nine ten twelve twenty thirty".split()
_WORDED = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
_MONTHS = re.compile(rf"\b(?:{_MONTH})\b")
# A run of capitalized words that does not begin a sentence.
_NAME = re.compile(
    r"(?<=[a-z,;)] )(?:[A-Z][\w'’.-]*[\w](?: (?:of|the|de|and) (?=[A-Z])| (?=[A-Z]))?)+"
)
_NEGATABLE = re.compile(r"\b(was|is|were|are|had|has|have|can|could|will|would|did|does)\b(?! not)")
_DENIED = re.compile(r"\b(was|is|were|are|had|has|have|can|could|will|would|did|does) not\b")
_OPPOSITES = _pairs(
    "first=last|before=after|north=south|northern=southern|east=west|eastern=western|won=lost|"
    "increased=decreased|larger=smaller|largest=smallest|highest=lowest|older=younger|oldest=youngest|"
    "father=mother|son=daughter|brother=sister|husband=wife|began=ended|started=finished|more=fewer|most=least|"
    "many=few|early=late|earlier=later|bought=sold|born=buried|opened=closed|male=female|men=women|king=queen|"
    "actor=director|written by=directed by|wrote=published|directed=produced|album=single|film=novel|all=some|"
    "always=rarely|often=never|above=below|left=joined|defeated=lost to|success=failure|positive=negative|"
    "rejected=accepted|winner=runner-up|president=vice president|city=village|river=lake|same=opposite|"
    "long=short|high=low|old=new|minor=major|public=private|until=since|over=under|with=without"
)
_Edit = Callable[[str, str, random.Random], str | None]


def falsify(sentence: str, passage: str, rng: random.Random) -> str | None:
    """The sentence with one change that its passage does not bear; None where no rule fits."""
    edits: list[_Edit] = [
        _other_year,
        _other_number,
        _other_name,
        _other_name,
        _swapped_names,
        _opposite,
        _negated,
    ]
    rng.shuffle(edits)
    for edit in edits:
        changed = edit(sentence, passage, rng)
        if changed is not None and changed != sentence and changed not in passage:
            return changed
    return None


def _replace(sentence: str, match: re.Match[str], new: str) -> str:
    return sentence[: match.start()] + new + sentence[match.end() :]


def _pick(pattern: re.Pattern[str], text: str, rng: random.Random) -> re.Match[str] | None:
    matches = list(pattern.finditer(text))
    return rng.choice(matches) if matches else None


def _others(pattern: re.Pattern[str], passage: str, sentence: str) -> list[str]:
    """What else of a kind the passage has: the hardest to tell from the truth."""
    found = {match.group() for match in pattern.finditer(passage)}
    return sorted(one for one in found if one not in sentence)


def _other_year(sentence: str, passage: str, rng: random.Random) -> str | None:
    match = _pick(_YEAR, sentence, rng)
    if match is None:
        return None
    others = _others(_YEAR, passage, sentence)
    if others and rng.random() < 0.6:
        return _replace(sentence, match, rng.choice(others))
    shift = rng.choice([-10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20])
    return _replace(sentence, match, str(int(match.group()) + shift))


def _other_number(sentence: str, passage: str, rng: random.Random) -> str | None:
    for pattern, choices in ((_MONTHS, MONTHS), (_WORDED, _NUMBER_WORDS)):
        match = _pick(pattern, sentence, rng)
        if match is not None and rng.random() < 0.6:
            others: Sequence[str] = [one for one in choices if one not in sentence]
            return _replace(sentence, match, rng.choice(others))
    match = _pick(_NUMBER, sentence, rng)
    if match is None:
        return None
    others = _others(_NUMBER, passage, sentence)
    if others and rng.random() < 0.6:
        return _replace(sentence, match, rng.choice(others))
    return _replace(sentence, match, _with_other_digit(match.group(), rng))


def _with_other_digit(number: str, rng: random.Random) -> str:
    place = rng.choice([at for at, char in enumerate(number) if char.isdigit()])
    new = rng.choice([digit for digit in "123456789" if digit != number[place]])
    return number[:place] + new + number[place + 1 :]


def _other_name(sentence: str, passage: str, rng: random.Random) -> str | None:
    match = _pick(_NAME, sentence, rng)
    if match is None:
        return None
    # A part of the same name, or a name that the sentence's is part of, may still be true.
    others = [
        name
        for name in _others(_NAME, passage, sentence)
        if not set(name.split()) & set(sentence.split())
    ]
    if not others:
        return None
    return _replace(sentence, match, rng.choice(others))


def _swapped_names(sentence: str, passage: str, rng: random.Random) -> str | None:
    """Two names of the sentence in each other's place; not those of a list, which may be in any order."""
    matches = list(_NAME.finditer(sentence))
    pairs = []
    for one, other in pairwise(matches):
        between = sentence[one.end() : other.start()]
        if len(between.split()) >= 2 and not re.search(r",|\band\b|\bor\b", between):
            pairs.append((one, other))
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    middle = sentence[one.end() : other.start()]
    tail = sentence[other.end() :]
    return f"{sentence[: one.start()]}{other.group()}{middle}{one.group()}{tail}"


def _opposite(sentence: str, passage: str, rng: random.Random) -> str | None:
    return next(_replace_words(sentence, _OPPOSITES, rng), None)


def _negated(sentence: str, passage: str, rng: random.Random) -> str | None:
    if _DENIED.search(sentence):
        return _DENIED.sub(r"\1", sentence, count=1)
    if rng.random() < 0.5:
        return None
    return _NEGATABLE.sub(r"\1 not", sentence, count=1)


# Claims of a passage's own sentences, each with the text that supports it or not.
#
# What supports a sentence supports its shortened form; a passage that says less than the sentence does not support it.

_FEWEST_WORDS, _MOST_WORDS = 7, 45
_Maker = Callable[["ClaimSource", random.Random], tuple[str, str] | None]


class ClaimSource:
    """A passage, and the sentences of it that can be claims."""

    def __init__(self, passage: Passage) -> None:
        self.title = passage.title
        self.text = " ".join(passage.text.split())
        self.sentences = sentences(self.text)
        self.claims = [one for one in self.sentences if _is_claim(one)]

    def without(self, sentence: str, instead: str = "") -> str:
        kept = [instead if one == sentence else one for one in self.sentences]
        return " ".join(one for one in kept if one)

    def adds(self, sentence: str, text: str) -> bool:
        """Whether a sentence has a number or a name that a text and the title lack."""
        said = {term.form for term in (*terms(text), *terms(self.title))}
        own = [term for term in terms(sentence) if term.kind != "word"]
        return any(term.form not in said for term in own)

    def draw(self, rng: random.Random, *, supported: bool) -> tuple[str, str, str] | None:
        """Make a claim that a text supports or not, by one of the rules: (claim, text, rule); None where it does not
        fit."""
        if not self.claims or len(self.sentences) < 2:
            return None
        maker = rng.choice(_TRUE if supported else _FALSE)
        made = maker(self, rng)
        return (*made, maker.__name__.strip("_")) if made else None


def _is_claim(sentence: str) -> bool:
    """Whether a sentence is whole, of a usual length, and names or counts something."""
    count = len(sentence.split())
    whole = sentence[:1].isupper() and sentence.endswith(".")
    if not whole or not _FEWEST_WORDS <= count <= _MOST_WORDS:
        return False
    return any(term.kind != "word" for term in terms(sentence))


def _reworded_claim(source: ClaimSource, rng: random.Random) -> tuple[str, str]:
    return reword(rng.choice(source.claims), source.title, rng), source.text


def _shortened_claim(source: ClaimSource, rng: random.Random) -> tuple[str, str]:
    claim = rng.choice(source.claims)
    shorter = shorten(claim, rng) or claim
    return reword(shorter, source.title, rng), source.text


def _reworded_text(source: ClaimSource, rng: random.Random) -> tuple[str, str]:
    claim = rng.choice(source.claims)
    text = source.without(claim, reword(claim, source.title, rng))
    return shorten(claim, rng) or claim, text


def _joined(source: ClaimSource, rng: random.Random) -> tuple[str, str] | None:
    if len(source.claims) < 2:
        return None
    first, second = rng.sample(source.claims, 2)
    return join_sentences(shorten(first, rng) or first, second, rng), source.text


def _false_claim(source: ClaimSource, rng: random.Random) -> tuple[str, str] | None:
    claim = rng.choice(source.claims)
    if rng.random() < 0.5:
        claim = shorten(claim, rng) or claim
    changed = falsify(claim, source.text, rng)
    if changed is None:
        return None
    return reword(changed, source.title, rng), source.text


def _unsaid(source: ClaimSource, rng: random.Random) -> tuple[str, str] | None:
    """A sentence that was taken out of the passage."""
    claim = rng.choice(source.claims)
    text = source.without(claim)
    if not source.adds(claim, text):
        return None
    return reword(claim, source.title, rng), text


def _says_less(source: ClaimSource, rng: random.Random) -> tuple[str, str] | None:
    """A sentence of which the passage says only a part."""
    claim = rng.choice(source.claims)
    shorter = shorten(claim, rng)
    if shorter is None:
        return None
    text = source.without(claim, shorter)
    if not source.adds(claim, text):
        return None
    return claim, text


def _half_unsaid(source: ClaimSource, rng: random.Random) -> tuple[str, str] | None:
    """Two sentences, one of which the passage does not say or contradicts."""
    if len(source.claims) < 2:
        return None
    first, second = rng.sample(source.claims, 2)
    if rng.random() < 0.5:
        text = source.without(second)
        if not source.adds(second, text):
            return None
        return join_sentences(first, second, rng), text
    changed = falsify(second, source.text, rng)
    if changed is None:
        return None
    if rng.random() < 0.5:
        first, changed = changed, first
    return join_sentences(first, changed, rng), source.text


_TRUE: tuple[_Maker, ...] = (_reworded_claim, _shortened_claim, _reworded_text, _joined)
_FALSE: tuple[_Maker, ...] = (_false_claim, _false_claim, _unsaid, _says_less, _half_unsaid)
