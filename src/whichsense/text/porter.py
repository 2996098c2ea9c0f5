"""Porter's stemmer with NLTK's extensions: the one inside the `rouge-score` package."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

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
    "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(),
    "",
)


def _shape(word: str) -> str:
    """Consonants and vowels, as a string of c and v. A y after a consonant is a vowel."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    """How often a vowel is followed by a consonant."""
    return _shape(stem).count("vc")


def _ends_short(stem: str) -> bool:
    """Consonant, vowel, consonant other than w, x, y; or a word of a vowel and a consonant."""
    shape = _shape(stem)
    return (shape.endswith("cvc") and stem[-1] not in "wxy") or shape == "vc"


def _replace(
    word: str, table: dict[str, str], holds: Callable[[str, str], bool]
) -> str:
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
        word,
        _STEP_2,
        lambda stem, suffix: _measure(stem + "l" if suffix == "logi" else stem) > 0,
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
    """The stem of a lower-case word.

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
