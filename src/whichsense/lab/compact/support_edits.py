"""Sentences reworded and made false, and answers to questions as statements."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

# Statements: a question and its answer as one sentence, by rules. It need not be elegant, but it must
# say the same.

_BE = "is|are|was|were"
_HELPERS = f"{_BE}|do|does|did|has|have|had|can|could|will|would|should|may|might"
_WH = r"(?:in |on |at |for |from |by |to |with |of )?(?:who|whom|what|which|when|where|why|how|whose)"
_BE_QUESTION = re.compile(rf"^(?:who|what) (?P<be>{_BE}) (?P<rest>.+)$", re.I)
_NOUN_BE = re.compile(
    rf"^(?:what|which) (?P<noun>[\w' -]+?) (?P<be>{_BE}) (?P<rest>.+)$", re.I
)
_SUBJECT = re.compile(rf"^who (?!(?:{_HELPERS})\b)(?P<rest>\w+ .+)$", re.I)
_NOUN_SUBJECT = re.compile(
    rf"^(?:what|which) \w+ (?!(?:{_HELPERS})\b)(?P<rest>\w+(?:ed|s|won|made|wrote|began|became|held|has|had) .+)$",
    re.I,
)
_HELPER = re.compile(rf"^(?P<wh>{_WH}[\w' -]*?) (?:{_HELPERS}) (?P<rest>.+)$", re.I)
_PREPOSITIONS = ("in", "on", "at", "for", "from", "by", "to", "with", "of")


def state(question: str, answer: str) -> str:
    """The statement that an answer makes of a question.

    >>> state("Who wrote Dubliners?", "James Joyce")
    'James Joyce wrote Dubliners.'
    >>> state("what is the capital of Peru", "Lima")
    'Lima is the capital of Peru.'
    >>> state("When did the siege of Vienna end?", "12 September 1683")
    'The siege of Vienna end in 12 September 1683.'
    >>> state("How many moons does Mars have?", "two")
    'How many moons Mars have: two.'
    """
    asked = question.strip().rstrip("?. ")
    reply = answer.strip().rstrip(".")
    for pattern in (_BE_QUESTION, _NOUN_BE, _SUBJECT, _NOUN_SUBJECT):
        match = pattern.match(asked)
        if not match:
            continue
        parts = match.groupdict()
        between = f" {parts['be']} " if parts.get("be") else " "
        return _capitalize(f"{reply}{between}{parts['rest']}.")
    match = _HELPER.match(asked)
    if not match:
        return f"{_capitalize(asked)}: {reply}."
    wh, rest = match["wh"].lower(), match["rest"]
    first = wh.split()[0]
    if first in _PREPOSITIONS:
        return _capitalize(f"{rest} {first} {reply}.")
    if wh == "when" or wh.endswith((" year", " date", " day")):
        return _capitalize(f"{rest} in {reply}.")
    if wh in ("where", "who", "whom", "what", "why"):
        joint = (
            " in " if wh == "where" and not reply.startswith(("in ", "at ")) else " "
        )
        return _capitalize(f"{rest}{joint}{reply}.")
    return _capitalize(f"{match['wh']} {rest}: {reply}.")


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


# Changes of a sentence that keep it true: parts left out, an order changed, words of the same
# meaning.

# Each entry: two ways to say the same in nearly all sentences.
_SAME = (
    ("began", "started"),
    ("film", "movie"),
    ("died", "passed away"),
    ("located in", "situated in"),
    ("purchased", "bought"),
    ("approximately", "about"),
    ("received", "got"),
    ("founded", "established"),
    ("children", "kids"),
    ("however", "though"),
    ("several", "a number of"),
    ("created", "made"),
    ("near", "close to"),
    ("large", "big"),
    ("ended", "finished"),
    ("constructed", "built"),
    ("wrote", "was the author of"),
    ("also known as", "also called"),
    ("resides", "lives"),
    ("United States", "US"),
    ("United Kingdom", "UK"),
    ("because", "since"),
    ("initially", "at first"),
    ("attempted", "tried"),
    ("employed", "hired"),
    ("commenced", "began"),
    ("prior to", "before"),
    ("throughout", "all through"),
    ("roughly", "about"),
    ("author", "writer"),
    ("physician", "doctor"),
    ("nation", "country"),
    ("war between", "conflict between"),
    ("largest", "biggest"),
    ("was killed", "lost his life"),
    ("married", "wed"),
    ("assisted", "helped"),
    ("required", "needed"),
    ("obtained", "got"),
    ("concluded", "ended"),
    ("attended", "went to"),
    ("remained", "stayed"),
    ("depicts", "shows"),
    ("portrayed", "played"),
    ("released", "brought out"),
    ("numerous", "many"),
    ("primarily", "mainly"),
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
_DAY_FIRST = re.compile(
    r"\b(\d{1,2}) (January|February|March|April|May|June|July|August|September|October|November|December) (\d{4})\b"
)
_MONTH_FIRST = re.compile(
    r"\b(January|February|March|April|May|June|July|August|September|October|November|December) (\d{1,2}), (\d{4})\b"
)
_PRONOUN = re.compile(
    r"^(?:He|She|It|They) (?=was|is|has|had|were|are|[a-z]+(?:ed|s) )"
)
_SHORTEST = 5  # words that must be left


def shorten(sentence: str, rng: random.Random) -> str | None:
    """The sentence without one of its adjuncts, clauses, brackets or adverbs; None where there is none.

    It says less: what supports the whole supports the shortened one, and not the other way round.
    """
    places = []
    for pattern in (_BRACKETS, _RELATIVE, _APPOSITION, _ADJUNCT):
        for match in pattern.finditer(sentence):
            # The comma before and after an apposition become none.
            places.append(
                (match.start(), match.end(), " " if pattern is _APPOSITION else "")
            )
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
        changed = _same_words(changed, rng)
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


def _same_words(sentence: str, rng: random.Random) -> str:
    for one, other in rng.sample(_SAME, len(_SAME)):
        for old, new in ((one, other), (other, one)):
            pattern = rf"\b{re.escape(old)}\b"
            if re.search(pattern, sentence):
                sentence = re.sub(pattern, new, sentence, count=1)
                break
    return sentence


def join_sentences(first: str, second: str, rng: random.Random) -> str:
    """Two sentences as one claim, or one after the other."""
    kind = rng.randrange(3)
    if kind == 0:
        return f"{first} {second}"
    begin = first.rstrip(".")
    # A name keeps its capital.
    word = second.split(maxsplit=1)[0]
    if word in (
        "He",
        "She",
        "It",
        "They",
        "The",
        "In",
        "A",
        "An",
        "This",
        "His",
        "Her",
    ):
        second = second[0].lower() + second[1:]
    return f"{begin}{', and' if kind == 1 else ', while'} {second}"


# Changes of a sentence that make it false: another number or name of the same passage, a negation, an
# opposite.

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
