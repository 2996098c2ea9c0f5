"""Changes of a sentence that keep it true: parts left out, an order changed, words of the same meaning."""

from __future__ import annotations

import random
import re

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
