"""Features of a sentence beside a window of a passage: how much of it the window says, and what is missing there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from whichsense.models.compact.encoder.runtime import Embeddings, Floats
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.models.compact.support.terms import Term, term_weight, terms
from whichsense.models.compact.support.windows import Window
from whichsense.text.words import words

_NEGATIONS = frozenset("not no never none neither nor without cannot".split())
_STRONG = frozenset(
    "only first last most least all every always best largest biggest highest longest oldest sole solely entire".split()
)
_NEAR = 3  # terms: two that stand as near in a sentence of the window are said together
_MOST_COUNTED = 4  # missing terms of a kind
_SIMILAR = 0.4  # cosine from which a word counts as partly said


@dataclass(frozen=True)
class Claim:
    """A sentence that a passage should support."""

    text: str
    tokenizer: Tokenizer

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return tuple(terms(self.text))

    @cached_property
    def weights(self) -> tuple[float, ...]:
        vocabulary = self.tokenizer.vocabulary
        return tuple(term_weight(term, vocabulary) for term in self.terms)


def word_features(claim: Claim, window: Window, table: Embeddings) -> dict[str, float]:
    """The features of a claim beside a window."""
    missing = [term for term in claim.terms if term.form not in window.forms]
    nearest = _nearest_sentence(claim, window)
    counts = {"number": 0, "name": 0, "word": 0}
    for term in missing:
        counts[term.kind] += 1
    said_by_sentence = window.title_forms | nearest
    features = {
        "said": _share_said(claim, window.forms),
        "said_in_sentence": _share_said(claim, said_by_sentence),
        "similar": _share_similar(claim, window, table),
        "near": _share_near(claim, window),
        "copied": _share_copied(claim.text, window.text),
        "missing_strong": float(_missing_of(_STRONG, claim.text, window.text)),
        "negation": float(_negation_differs(claim.text, window, nearest)),
        "all_said": float(not missing),
    }
    for kind, count in counts.items():
        features[f"missing_{kind}s"] = math.log1p(min(count, _MOST_COUNTED))
    not_nearest = [term for term in claim.terms if term.form not in said_by_sentence]
    numbers = sum(term.kind == "number" for term in not_nearest)
    features["numbers_elsewhere"] = math.log1p(min(numbers, _MOST_COUNTED))
    return features


def _share_said(claim: Claim, forms: frozenset[str]) -> float:
    said = [float(term.form in forms) for term in claim.terms]
    return _weighted(said, claim.weights)


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted mean; 1 of nothing, for a sentence without terms claims nothing."""
    total = sum(weights)
    if not total:
        return 1.0
    return sum(v * w for v, w in zip(values, weights, strict=True)) / total


def _nearest_sentence(claim: Claim, window: Window) -> frozenset[str]:
    """The forms of the window's sentence that says most of the claim."""
    best = max(
        window.sentences, key=lambda one: _share_said(claim, one.forms), default=None
    )
    return best.forms if best else frozenset()


def _share_similar(claim: Claim, window: Window, table: Embeddings) -> float:
    """The share of the claim that is said in these or in similar words, by word vectors."""
    candidates = {
        term.word
        for sentence in window.sentences
        for term in sentence.terms
        if term.kind == "word"
    }
    vectors = _word_vectors(sorted(candidates), claim.tokenizer, table)
    values = []
    for term in claim.terms:
        if term.form in window.forms:
            values.append(1.0)
        elif term.kind != "word" or not len(vectors):
            values.append(0.0)
        else:
            own = _word_vectors([term.word], claim.tokenizer, table)
            cosine = float((vectors @ own[0]).max())
            values.append(max(0.0, (cosine - _SIMILAR) / (1 - _SIMILAR)))
    return _weighted(values, claim.weights)


def _word_vectors(
    spelled: Sequence[str], tokenizer: Tokenizer, table: Embeddings
) -> Floats:
    """Unit vectors of words (words × width): means of their pieces' vectors."""
    rows = []
    for word in spelled:
        vector = table.vectors(tokenizer.ids(word)).mean(axis=0)
        rows.append(vector / max(float(np.linalg.norm(vector)), 1e-6))
    return np.array(rows, dtype=np.float32)


def _share_near(claim: Claim, window: Window) -> float:
    """The share of adjacent terms of the claim that stand near each other in a sentence of the window."""
    forms = [term.form for term in claim.terms]
    pairs = set(pairwise(forms))
    if not pairs:
        return 1.0
    found = set()
    for sentence in window.sentences:
        own = [term.form for term in sentence.terms]
        for place, form in enumerate(own):
            for other in own[place + 1 : place + 1 + _NEAR]:
                found |= {(form, other), (other, form)}
    return len(pairs & found) / len(pairs)


def _share_copied(claim: str, text: str) -> float:
    """The longest run of the claim's words that stands in the text, as a share of the claim."""
    own, other = words(claim), words(text)
    places: dict[str, list[int]] = {}
    for place, word in enumerate(other):
        places.setdefault(word, []).append(place)
    best = 0
    runs: Mapping[int, int] = {}  # the run's length, by its last place in the text
    for word in own:
        grown = {}
        for place in places.get(word, ()):
            grown[place] = runs.get(place - 1, 0) + 1
            best = max(best, grown[place])
        runs = grown
    return best / len(own) if own else 1.0


def _missing_of(kind: frozenset[str], claim: str, text: str) -> bool:
    """Whether the claim has a word of a kind that the text does not have."""
    return bool((kind & set(words(claim))) - set(words(text)))


def _negation_differs(claim: str, window: Window, nearest: frozenset[str]) -> bool:
    """Whether only one of claim and nearest sentence denies something."""
    for sentence in window.sentences:
        if sentence.forms == nearest:
            return _denies(claim) != _denies(sentence.text)
    return _denies(claim)


def _denies(text: str) -> bool:
    return bool(_NEGATIONS & set(words(text))) or "n't" in text or "n’t" in text
