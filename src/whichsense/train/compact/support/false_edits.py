"""Changes of a sentence that make it false: another number or name of the same passage, a negation, an opposite."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_NUMBER_WORDS = (
    "two three four five six seven eight nine ten twelve twenty thirty".split()
)
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
# A run of capitalized words that does not begin a sentence.
_NAME = re.compile(
    r"(?<=[a-z,;)] )(?:[A-Z][\w'’.-]*[\w](?: (?:of|the|de|and) (?=[A-Z])| (?=[A-Z]))?)+"
)
_NEGATABLE = re.compile(
    r"\b(was|is|were|are|had|has|have|can|could|will|would|did|does)\b(?! not)"
)
_DENIED = re.compile(
    r"\b(was|is|were|are|had|has|have|can|could|will|would|did|does) not\b"
)
_OPPOSITES = (
    ("first", "last"),
    ("before", "after"),
    ("north", "south"),
    ("northern", "southern"),
    ("east", "west"),
    ("eastern", "western"),
    ("won", "lost"),
    ("increased", "decreased"),
    ("larger", "smaller"),
    ("largest", "smallest"),
    ("highest", "lowest"),
    ("older", "younger"),
    ("oldest", "youngest"),
    ("father", "mother"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("husband", "wife"),
    ("began", "ended"),
    ("started", "finished"),
    ("more", "fewer"),
    ("most", "least"),
    ("many", "few"),
    ("early", "late"),
    ("earlier", "later"),
    ("bought", "sold"),
    ("born", "buried"),
    ("opened", "closed"),
    ("male", "female"),
    ("men", "women"),
    ("king", "queen"),
    ("actor", "director"),
    ("written by", "directed by"),
    ("wrote", "published"),
    ("directed", "produced"),
    ("album", "single"),
    ("film", "novel"),
    ("all", "some"),
    ("always", "rarely"),
    ("often", "never"),
    ("above", "below"),
    ("left", "joined"),
    ("defeated", "lost to"),
    ("success", "failure"),
    ("positive", "negative"),
    ("rejected", "accepted"),
    ("winner", "runner-up"),
    ("president", "vice president"),
    ("city", "village"),
    ("river", "lake"),
    ("same", "opposite"),
    ("long", "short"),
    ("high", "low"),
    ("old", "new"),
    ("minor", "major"),
    ("public", "private"),
    ("until", "since"),
    ("over", "under"),
    ("with", "without"),
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


def _pick(
    pattern: re.Pattern[str], text: str, rng: random.Random
) -> re.Match[str] | None:
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
    words = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
    months = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b")
    for pattern, choices in ((months, _MONTHS), (words, _NUMBER_WORDS)):
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
    digits = [place for place, char in enumerate(match.group()) if char.isdigit()]
    place = rng.choice(digits)
    old = match.group()
    new = rng.choice([d for d in "123456789" if d != old[place]])
    return _replace(sentence, match, old[:place] + new + old[place + 1 :])


def _other_name(sentence: str, passage: str, rng: random.Random) -> str | None:
    match = _pick(_NAME, sentence, rng)
    if match is None:
        return None
    others = []
    for name in _others(_NAME, passage, sentence):
        # A part of the same name, or a name that the sentence's is part of, may still be true.
        if not set(name.split()) & set(sentence.split()):
            others.append(name)
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
    for one, other in rng.sample(_OPPOSITES, len(_OPPOSITES)):
        for old, new in ((one, other), (other, one)):
            pattern = rf"\b{re.escape(old)}\b"
            if re.search(pattern, sentence):
                return re.sub(pattern, new, sentence, count=1)
    return None


def _negated(sentence: str, passage: str, rng: random.Random) -> str | None:
    if _DENIED.search(sentence):
        return _DENIED.sub(r"\1", sentence, count=1)
    if rng.random() < 0.5:
        return None
    return _NEGATABLE.sub(r"\1 not", sentence, count=1)
