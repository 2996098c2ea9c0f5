"""Windows of a passage: short excerpts, in one of which a sentence should find all its support."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.models.compact.support.terms import Term, term_weight, terms
from whichsense.text.sentences import sentences

WINDOW = 144  # tokens of a window; one longer sentence is a window of its own
_LEAST_ROOM = 8  # tokens: a digest with less room is full
_LONGEST_TITLE = 120  # characters
_BEST_RUNS = 2  # windows of adjacent sentences that are judged, beside the digest


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, or a part of one that is too long."""

    text: str
    tokens: int

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return tuple(terms(self.text))

    @cached_property
    def forms(self) -> frozenset[str]:
        return frozenset(term.form for term in self.terms)


@dataclass(frozen=True)
class Window:
    """Sentences of a passage that are read together, and the passage's title."""

    title: str
    sentences: tuple[Sentence, ...]

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @cached_property
    def title_forms(self) -> frozenset[str]:
        return frozenset(term.form for term in terms(self.title))

    @cached_property
    def forms(self) -> frozenset[str]:
        """The forms of all terms, of the title too."""
        return self.title_forms.union(*(one.forms for one in self.sentences))


@dataclass(frozen=True)
class Evidence:
    """A passage as the judge reads it."""

    title: str
    sentences: tuple[Sentence, ...]

    @classmethod
    def of(cls, passage: str, tokenizer: Tokenizer) -> Evidence:
        """A passage's sentences. A first line that is no sentence is its title."""
        title, text = split_title(passage)
        collected: list[Sentence] = []
        for sentence in sentences(text):
            collected += _cut(sentence, tokenizer)
        return cls(title, tuple(collected))

    @cached_property
    def whole(self) -> Window:
        return Window(self.title, self.sentences)

    def windows(
        self, claim: Sequence[Term], vocabulary: Mapping[str, int]
    ) -> list[Window]:
        """The windows that could support a claim, best first; the whole passage if it fits into one.

        The digest has the sentences that together say most of the claim, wherever they stand; the others are runs of
        adjacent sentences.
        """
        if sum(sentence.tokens for sentence in self.sentences) <= WINDOW:
            return [self.whole]
        weights: dict[str, float] = {}
        for term in claim:
            weights[term.form] = term_weight(term, vocabulary)
        digest = self._digest(weights)
        runs = sorted(self._runs(), key=lambda run: -self._said(run, weights))
        chosen = [digest]
        for run in runs[:_BEST_RUNS]:
            if run not in chosen:
                chosen.append(run)
        return [self._window(places) for places in chosen]

    def _window(self, places: Sequence[int]) -> Window:
        return Window(self.title, tuple(self.sentences[place] for place in places))

    def _digest(self, weights: Mapping[str, float]) -> list[int]:
        """Places of sentences, each of which says the most that is not said yet, until the window is full."""
        said: dict[int, frozenset[str]] = {}
        for place, sentence in enumerate(self.sentences):
            forms = sentence.forms & weights.keys()
            if forms:
                said[place] = forms
        missing = frozenset(weights)

        def gain(place: int) -> tuple[float, float, int]:
            new = _total(said[place] & missing, weights)
            return new, _total(said[place], weights), -place

        room = WINDOW
        chosen: list[int] = []
        while said and room > _LEAST_ROOM:
            best = max(said, key=gain)
            forms = said.pop(best)
            if self.sentences[best].tokens <= room:
                room -= self.sentences[best].tokens
                missing -= forms
                chosen.append(best)
        return sorted(chosen) or [0]

    def _said(self, places: Sequence[int], weights: Mapping[str, float]) -> float:
        forms: set[str] = set()
        for place in places:
            forms |= self.sentences[place].forms
        return _total(forms & weights.keys(), weights)

    def _runs(self) -> list[list[int]]:
        """Runs of adjacent sentences that fit into a window: each starts in the middle of the one before."""
        runs: list[list[int]] = []
        start = 0
        while start < len(self.sentences):
            end, room = start, WINDOW
            while end < len(self.sentences) and (
                end == start or self.sentences[end].tokens <= room
            ):
                room -= self.sentences[end].tokens
                end += 1
            runs.append(list(range(start, end)))
            if end == len(self.sentences):
                break
            start += max(1, (end - start) // 2)
        return runs


def _total(forms: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights[form] for form in forms)


def split_title(passage: str) -> tuple[str, str]:
    """Title and text of a passage whose first line may be its title.

    >>> split_title("Dubliners\\nA book by Joyce. It has 15 stories.")
    ('Dubliners', 'A book by Joyce. It has 15 stories.')
    >>> split_title("It rained. It poured.\\nThe end.")
    ('', 'It rained. It poured.\\nThe end.')
    """
    first, _, rest = passage.strip().partition("\n")
    title = first.strip()
    if rest.strip() and len(title) <= _LONGEST_TITLE and title[-1:] not in ".!?":
        return title, rest.strip()
    return "", passage.strip()


def _cut(sentence: str, tokenizer: Tokenizer) -> list[Sentence]:
    """A sentence, in parts where it does not fit into a window."""
    pieces = tokenizer.pieces(sentence)
    if len(pieces) <= WINDOW:
        return [Sentence(sentence, len(pieces))]
    parts = []
    for start in range(0, len(pieces), WINDOW):
        end = min(start + WINDOW, len(pieces))
        text = sentence[pieces.starts[start] : pieces.ends[end - 1]]
        parts.append(Sentence(text, end - start))
    return parts
