"""How well the words of a reply fit each option: equal words, misspelt ones, other wordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from whichsense.conversation.replies.profiles import Profile, profiles_of
from whichsense.conversation.replies.tokens import (
    Token,
    corrected,
    nearest_word,
    plain,
    tokenize,
)
from whichsense.conversation.replies.vocabulary import CONTROL_WORDS, FILLERS
from whichsense.models.vectors.static import Static
from whichsense.text.answers import same_answer
from whichsense.text.function_words import CLOSED_CLASS_WORDS
from whichsense.types import Clarification

_TYPO = 0.85
_PREFIX = 0.7
_NEAR = 0.33  # the least cosine of two words that mean nearly the same
_NEAR_NAME = (
    0.55  # … of a name in a label, which is near to others of its category, too
)
_NEAR_TEXT = 0.18  # … of a reply and an option of which no word is near
_UNMATCHED = 0.5  # the weight of a word that fits no option
_LEAST = 0.34  # the least score of an option that is meant
_TIE = 0.75  # options with this share of the best score are meant, too


@cache
def shipped_vectors() -> Static:
    """The word vectors that ship with the package; they load when they are first needed."""
    return Static()


@dataclass(frozen=True)
class Matcher:
    """The options of a clarification, ready to be compared with replies."""

    clarification: Clarification
    question: str = ""

    @cached_property
    def profiles(self) -> list[Profile]:
        return profiles_of(self.clarification, self.question)

    @property
    def ids(self) -> list[str]:
        return [profile.id for profile in self.profiles]

    @cached_property
    def category(self) -> set[str]:
        """The stems of the words of the category."""
        return {token.stem for token in tokenize(plain(self.clarification.category))}

    @cached_property
    def asked(self) -> set[str]:
        """The stems of the question's content words."""
        tokens = tokenize(plain(self.question))
        return {token.stem for token in tokens if token.text not in CLOSED_CLASS_WORDS}

    @cached_property
    def option_words(self) -> set[str]:
        """Every word by which an option may be named."""
        names: set[str] = set()
        for profile in self.profiles:
            for field in profile.fields:
                names.update(token.text for token in field.tokens)
        return names

    @cached_property
    def shared(self) -> set[str]:
        """The stems that every label has."""
        stems = [{token.stem for token in one.label.tokens} for one in self.profiles]
        return set.intersection(*stems) if stems else set()

    @cached_property
    def label_words(self) -> set[str]:
        names: set[str] = set()
        for profile in self.profiles:
            names.update(token.text for token in profile.label.tokens)
        return names

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a plain text, misspelt ones corrected."""
        tokens = tokenize(text)
        asked = [token.text for token in tokenize(plain(self.question))]
        return corrected(tokens, self._is_word, self.option_words, CONTROL_WORDS, asked)

    def _is_word(self, word: str) -> bool:
        if len(word) < 4 or word in FILLERS or word in CONTROL_WORDS:
            return True
        return word in self.option_words or shipped_vectors().has_word(word)

    def content(self, tokens: Sequence[Token]) -> list[Token]:
        """Tokens that may name an option: no words that are always around a choice, nor what all options share."""
        kept = []
        for token in tokens:
            is_filler = token.text in FILLERS and token.text not in self.label_words
            if not is_filler and token.stem not in self.category:
                kept.append(token)
            elif token.stem in self.category and self._tells_apart(token):
                kept.append(token)
        return kept

    def _tells_apart(self, token: Token) -> bool:
        having = 0
        for profile in self.profiles:
            having += any(token.stem == one.stem for one in profile.label.tokens)
        return 0 < having < len(self.profiles)

    def labelled(self, text: str) -> str:
        """The id of the option whose label, id or only such text a reply is; '' where there is none."""
        letters = "".join(token.text for token in tokenize(text))
        bare = letters.removeprefix("the") if letters.startswith("the") else letters
        for profile in self.profiles:
            if bare and bare == profile.squeezed:
                return profile.id
        return ""

    def meant(self, tokens: Sequence[Token]) -> tuple[list[str], float]:
        """The options that content tokens name, and their score; none where the tokens fit no option better than the
        rest."""
        table = np.array(
            [self._qualities(token) for token in tokens]
        )  # tokens × options
        if not table.size:
            return [], 0.0
        best_of = table.max(axis=1)
        for token, quality in zip(tokens, best_of, strict=True):
            if quality <= 0 and _is_year(token):
                return [], 0.0  # another year than any option's
        weights = np.where(best_of > 0, 1.0, _UNMATCHED)
        repeated = np.array([token.stem in self.asked for token in tokens])
        weights = np.where(repeated & (best_of <= 0), 0.0, weights)
        # A word that fits all options alike tells nothing.
        shared = (table.min(axis=1) >= best_of - 1e-6) & (best_of > 0)
        weights = np.where(shared, 0.0, weights)
        if not weights.any():
            return [], 0.0
        scores = weights @ table / weights.sum()
        best = float(scores.max())
        if best < _LEAST:
            return self._near_text(tokens)
        ids = []
        for profile, score in zip(self.profiles, scores, strict=True):
            if score >= _TIE * best:
                ids.append(profile.id)
        ids = self._fully_named(ids, tokens) or ids
        return (ids, best) if len(ids) < len(self.profiles) else ([], 0.0)

    def _fully_named(self, ids: Sequence[str], tokens: Sequence[Token]) -> list[str]:
        """Of options that fit alike, those all of whose label is said: "adults" is "adult", not "two adults"."""
        named = []
        for profile in self.profiles:
            said = [
                any(_word_quality(token, own) >= _TYPO for token in tokens)
                for own in profile.label.tokens
            ]
            if profile.id in ids and said and all(said):
                named.append(profile.id)
        return named

    def covers(self, token: Token, everywhere: bool = False) -> bool:
        """Whether a token is a word of a label, or `everywhere` of what else is known of an option."""
        for profile in self.profiles:
            for field in profile.fields if everywhere else (profile.label,):
                if any(_word_quality(token, own) >= _PREFIX for own in field.tokens):
                    return True
        return False

    def _qualities(self, token: Token) -> list[float]:
        """How well a token fits each option: by equal words where there are any, by meaning where there are none."""
        qualities = []
        for profile in self.profiles:
            best = 0.0
            for field in profile.fields:
                for own in field.tokens:
                    best = max(best, field.weight * _word_quality(token, own))
                if token.number is None and _is_name(token, field.text):
                    best = max(best, field.weight)
            qualities.append(best)
        if max(qualities, default=0.0) > 0 or token.number is not None:
            return qualities
        return self._near_words(token)

    def _near_words(self, token: Token) -> list[float]:
        """The nearest word of each option, where one option's is much nearer than that of the rest."""
        nearest = []
        for profile in self.profiles:
            best = 0.0
            for field in profile.fields:
                texts = [own.text for own in field.tokens if own.number is None]
                if texts:
                    cosine = float(_cosines(token.text, tuple(texts)).max())
                    is_name = field is profile.label and field.text[:1].isupper()
                    if not is_name or cosine >= _NEAR_NAME:
                        best = max(best, (0.5 + 0.5 * field.weight) * cosine)
            nearest.append(best)
        top = max(nearest, default=0.0)
        if top < _NEAR:
            return [0.0] * len(nearest)
        return [0.4 + 0.5 * one if one >= _TIE * top else 0.0 for one in nearest]

    def _near_text(self, tokens: Sequence[Token]) -> tuple[list[str], float]:
        """The option whose words as a whole are near to the tokens, where only one is."""
        text = " ".join(token.text for token in tokens if token.number is None)
        known = [token for token in tokens if shipped_vectors().has_word(token.text)]
        if not known or len(known) < len(tokens):
            return [], 0.0
        best = []
        for profile in self.profiles:
            others = [field.text for field in profile.others]
            texts = (_without_names(profile.label.text), *others)
            best.append((float(_cosines(text, texts).max()), profile.id))
        best.sort(reverse=True)
        second = best[1][0] if len(best) > 1 else 0.0
        if best[0][0] < _NEAR_TEXT or best[0][0] < 2 * second:
            return [], 0.0
        return [best[0][1]], best[0][0]


def _word_quality(one: Token, other: Token) -> float:
    """1 for the same word or number, less for one that is misspelt or derived."""
    if one.number is not None or other.number is not None:
        return float(_same_number(one, other))
    if one.text == other.text or one.stem == other.stem:
        return 1.0
    if min(len(one.text), len(other.text)) < 4:
        return 0.0
    if len(one.text) >= 5 and nearest_word(one.text, [other.text]):
        return _TYPO
    return _PREFIX if _share_prefix(one.text, other.text) else 0.0


def _is_year(token: Token) -> bool:
    return token.number is not None and 1000 <= token.number <= 2100


def _same_number(one: Token, other: Token) -> bool:
    if one.number is None or other.number is None:
        return False
    if one.is_short_year and other.number >= 1000:
        return other.number % 100 == one.number
    return one.number == other.number


def _share_prefix(one: str, other: str) -> bool:
    """Derived from one word: "submitting" and "submission", "deep" and "deepest"."""
    short, long = sorted((one, other), key=len)
    least = max(4, round(0.6 * len(long)))
    return short[:least] == long[:least]


def _is_name(token: Token, text: str) -> bool:
    """Whether a text is what an abbreviation stands for: "uk" and "United Kingdom"."""
    if not 2 <= len(token.text) <= 4 or len(text) > 60:
        return False
    return same_answer(token.text.upper(), text)


def _without_names(text: str) -> str:
    """A name in a label is near to others of its category, which are no option: Austria to Germany."""
    return " ".join(word for word in text.split() if not word[:1].isupper())


@cache
def _cosines(word: str, texts: tuple[str, ...]) -> np.ndarray:
    vectors = shipped_vectors().encode_passages([word, *texts])
    return np.asarray(vectors[1:] @ vectors[0])
