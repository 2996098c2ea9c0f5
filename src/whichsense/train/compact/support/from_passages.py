"""Examples from passages alone: their own sentences, shortened, reworded, joined or made false.

What supports a sentence supports its shortened form; a passage that says less than the sentence does not support it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from whichsense.models.compact.support.terms import terms
from whichsense.protocols import Searchable
from whichsense.text.sentences import sentences
from whichsense.train.compact.support.examples import SupportExample
from whichsense.train.compact.support.false_edits import falsify
from whichsense.train.compact.support.rewording import join_sentences, reword, shorten
from whichsense.types import Passage

_FEWEST_WORDS, _MOST_WORDS = 7, 45
_EXAMPLES = 4  # of a passage
_NEIGHBOURS = 12  # passages that are looked at for a sentence
# Of the terms of a sentence: from which share on a neighbour supports it, and from which to which it does not.
_SILVER_TRUE = 0.95
_SILVER_FALSE = (0.3, 0.8)
_Maker = Callable[["_Source", random.Random], tuple[str, str, bool] | None]


class _Source:
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


def _is_claim(sentence: str) -> bool:
    """Whether a sentence is whole, of a usual length, and names or counts something."""
    count = len(sentence.split())
    whole = sentence[:1].isupper() and sentence.endswith(".")
    if not whole or not _FEWEST_WORDS <= count <= _MOST_WORDS:
        return False
    return any(term.kind != "word" for term in terms(sentence))


def passage_examples(
    passage: Passage, rng: random.Random, most: int = _EXAMPLES
) -> Iterator[SupportExample]:
    """Examples of a passage's sentences, supported and unsupported ones in turn."""
    source = _Source(passage)
    if not source.claims or len(source.sentences) < 2:
        return
    group = f"page {passage.title}"
    for number in range(most):
        makers = _TRUE if number % 2 else _FALSE
        maker = rng.choice(makers)
        example = maker(source, rng)
        if example is None:
            continue
        claim, text, supported = example
        kind = maker.__name__.strip("_")
        yield SupportExample(claim, source.title, text, supported, kind, group)


def _reworded_claim(source: _Source, rng: random.Random) -> tuple[str, str, bool]:
    claim = reword(rng.choice(source.claims), source.title, rng)
    return claim, source.text, True


def _shortened_claim(source: _Source, rng: random.Random) -> tuple[str, str, bool]:
    claim = rng.choice(source.claims)
    shorter = shorten(claim, rng) or claim
    return reword(shorter, source.title, rng), source.text, True


def _reworded_text(source: _Source, rng: random.Random) -> tuple[str, str, bool]:
    claim = rng.choice(source.claims)
    text = source.without(claim, reword(claim, source.title, rng))
    return shorten(claim, rng) or claim, text, True


def _joined(source: _Source, rng: random.Random) -> tuple[str, str, bool] | None:
    if len(source.claims) < 2:
        return None
    first, second = rng.sample(source.claims, 2)
    claim = join_sentences(shorten(first, rng) or first, second, rng)
    return claim, source.text, True


def _false_claim(source: _Source, rng: random.Random) -> tuple[str, str, bool] | None:
    claim = rng.choice(source.claims)
    if rng.random() < 0.5:
        claim = shorten(claim, rng) or claim
    changed = falsify(claim, source.text, rng)
    if changed is None:
        return None
    return reword(changed, source.title, rng), source.text, False


def _unsaid(source: _Source, rng: random.Random) -> tuple[str, str, bool] | None:
    """A sentence that was taken out of the passage."""
    claim = rng.choice(source.claims)
    text = source.without(claim)
    if not source.adds(claim, text):
        return None
    return reword(claim, source.title, rng), text, False


def _says_less(source: _Source, rng: random.Random) -> tuple[str, str, bool] | None:
    """A sentence of which the passage says only a part."""
    claim = rng.choice(source.claims)
    shorter = shorten(claim, rng)
    if shorter is None:
        return None
    text = source.without(claim, shorter)
    if not source.adds(claim, text):
        return None
    return claim, text, False


def _half_unsaid(source: _Source, rng: random.Random) -> tuple[str, str, bool] | None:
    """Two sentences, one of which the passage does not say or contradicts."""
    if len(source.claims) < 2:
        return None
    first, second = rng.sample(source.claims, 2)
    if rng.random() < 0.5:
        text = source.without(second)
        if not source.adds(second, text):
            return None
        return join_sentences(first, second, rng), text, False
    changed = falsify(second, source.text, rng)
    if changed is None:
        return None
    if rng.random() < 0.5:
        first, changed = changed, first
    return join_sentences(first, changed, rng), source.text, False


_TRUE: tuple[_Maker, ...] = (_reworded_claim, _shortened_claim, _reworded_text, _joined)
_FALSE: tuple[_Maker, ...] = (
    _false_claim,
    _false_claim,
    _unsaid,
    _says_less,
    _half_unsaid,
)


def neighbour_examples(
    passage: Passage, index: Searchable, rng: random.Random
) -> Iterator[SupportExample]:
    """A sentence beside passages that a search finds for it: silver labels, by what of it they say.

    At most one neighbour that supports it and one that does not, though it is about the same.
    """
    source = _Source(passage)
    if not source.claims:
        return
    claim = rng.choice(source.claims)
    own = terms(claim)
    group = f"page {passage.title}"
    wanted = {True, False}
    hits = index.search_many([claim], _NEIGHBOURS, "bm25")[0]
    for hit in hits:
        neighbour = hit.passage
        if neighbour.id == passage.id or claim in neighbour.text:
            continue
        said = {term.form for term in terms(f"{neighbour.title}. {neighbour.text}")}
        share = sum(term.form in said for term in own) / len(own)
        is_all = all(term.form in said for term in own if term.kind != "word")
        supported = share >= _SILVER_TRUE and is_all
        unsupported = _SILVER_FALSE[0] <= share <= _SILVER_FALSE[1] and not is_all
        if not (supported or unsupported) or supported not in wanted:
            continue
        wanted.discard(supported)
        yield SupportExample(
            claim, neighbour.title, neighbour.text, supported, "neighbour", group
        )
