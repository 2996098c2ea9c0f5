"""Does a passage say what a sentence says? Terms, windows, features, and the judge over them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from whichsense.models.compact.encoder import CompactModel, Pair, Tokenizer, damaged, once, pair
from whichsense.models.compact.scorer import Net, linear
from whichsense.text.answers import parse_numbers
from whichsense.text.words import SMALL_WORDS, porter_stem, sentences

# The terms of a text: what must be said in a passage that supports a sentence.

Kind = Literal["number", "name", "word"]
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?(?!\w)|\w+(?:['’]\w+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n]['\"”’)\]]*\s+)[\"'“‘(\[]*$")
_BEFORE = 6  # characters before a word that tell whether a sentence begins with it
# BERT's vocabulary is sorted by frequency: the first words, and the last.
_MOST_FREQUENT = 1996
_RAREST = 30_522
_LEAST_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Term:
    """A content word, a name's word or a number, in the form in which it is compared."""

    form: str
    kind: Kind
    word: str
    """As it stands in the text, in lower case."""


def terms(text: str) -> list[Term]:
    """Return the terms of a text, in order. Function words are left out.

    >>> [(term.form, term.kind) for term in terms("In 1,990 the Beatles' five songs")]
    [('1990', 'number'), ('beatl', 'name'), ('5', 'number'), ('song', 'word')]
    """
    collected = []
    for match in _TOKEN.finditer(text):
        surface = match.group()
        word = surface.lower()
        if word in SMALL_WORDS:
            continue
        form, is_number = _form(word)
        kind: Kind = "number" if is_number else "word"
        if kind == "word" and surface[0].isupper():
            before = text[max(0, match.start() - _BEFORE) : match.start()]
            if not _SENTENCE_START.search(before):
                kind = "name"
        collected.append(Term(form, kind, word))
    return collected


@lru_cache(maxsize=2**16)
def _form(word: str) -> tuple[str, bool]:
    """Return the form of a word in lower case, and whether it is a number: figures without commas, else a stem.

    >>> _form("2,300"), _form("twelve"), _form("3rd"), _form("third"), _form("1890s")
    (('2300', True), ('12', True), ('3', True), ('3', True), ('1890s', True))
    """
    bare = re.sub(r"['’]s?$", "", word)
    if re.fullmatch(r"\d+s", bare):
        return bare, True
    # "second" is mostly a unit of time or an order, "one" mostly a pronoun: both are words here.
    if bare not in ("one", "second"):
        numbers, others = parse_numbers(bare)
        if len(numbers) == 1 and not others:
            return f"{numbers[0][0]:.12g}", True
    return porter_stem(bare), any(map(str.isdigit, bare))


def term_weight(term: Term, vocabulary: Mapping[str, int]) -> float:
    """Return how much it matters that a term is said: the rarer, the more; numbers and names more than other words."""
    rank = vocabulary.get(term.word, _RAREST)
    rarity = math.log(max(rank, _MOST_FREQUENT) / _MOST_FREQUENT)
    rarity /= math.log(_RAREST / _MOST_FREQUENT)
    weight = _LEAST_WEIGHT + (1 - _LEAST_WEIGHT) * min(rarity, 1.0)
    return weight if term.kind == "word" else 0.5 + weight


# Windows of a passage: short excerpts, in one of which a sentence should find all its support.

WINDOW = 144  # tokens of a window; one longer sentence is a window of its own
_LEAST_ROOM = 8  # tokens: a digest with less room is full
_LONGEST_TITLE = 120  # characters


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
        """Return a passage's sentences. A first line that is no sentence is its title."""
        title, text = split_title(passage)
        collected: list[Sentence] = []
        for sentence in sentences(text):
            collected += _cut(sentence, tokenizer)
        return cls(title, tuple(collected))

    def window(self, claim: Sequence[Term], vocabulary: Mapping[str, int]) -> Window:
        """Return the sentences that together say most of a claim, wherever they are; all of them if they fit."""
        if sum(sentence.tokens for sentence in self.sentences) <= WINDOW:
            return Window(self.title, self.sentences)
        weights: dict[str, float] = {}
        for term in claim:
            weights[term.form] = term_weight(term, vocabulary)
        places = self._digest(weights)
        return Window(self.title, tuple(self.sentences[place] for place in places))

    def _digest(self, weights: Mapping[str, float]) -> list[int]:
        """Return places of sentences, each of which says the most that is not said yet, until the window is full."""
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
    """Return a sentence, in parts where it does not fit into a window."""
    pieces = tokenizer.pieces(sentence)
    if len(pieces) <= WINDOW:
        return [Sentence(sentence, len(pieces))]
    parts = []
    for start in range(0, len(pieces), WINDOW):
        end = min(start + WINDOW, len(pieces))
        text = sentence[pieces.starts[start] : pieces.ends[end - 1]]
        parts.append(Sentence(text, end - start))
    return parts


# How much of a sentence a window says, by words.


@dataclass(frozen=True)
class Claim:
    """A sentence that a passage should support."""

    text: str
    tokenizer: Tokenizer

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return tuple(terms(self.text))

    def share_said(self, window: Window) -> float:
        """Return the share of the sentence's terms, by weight, that a window has; 1 if it has none to say."""
        vocabulary = self.tokenizer.vocabulary
        weights = [term_weight(term, vocabulary) for term in self.terms]
        said = 0.0
        for term, weight in zip(self.terms, weights, strict=True):
            said += weight * (term.form in window.forms)
        return said / sum(weights) if weights else 1.0


# The support judge at run time: (sentence, passage) → the probability that the passage supports the
# sentence.

NETWORK = "support.onnx"
NETS = "support.json"
SAYS = "says"  # the feature that is the network's logit
SAID = "said"  # the share of a sentence that a window says
LONGEST_CLAIM = 80  # tokens
LONGEST_PAIR = 256
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class SupportNets:
    """A logistic regression over what is known of a sentence beside a window."""

    network: Net = field(default_factory=lambda: linear(says=1.0))
    """Over the network's logit and the share of the sentence that is said."""
    words: Net = field(default_factory=lambda: replace(linear(said=10.0), bias=-8.0))
    """Over the share alone: of a model without the network."""

    @classmethod
    def load(cls, path: Path) -> SupportNets:
        """Read a file. A folder without one has the defaults."""
        if not path.exists():
            return cls()
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            return cls(network=Net.from_table(table["network"]))
        except _UNREADABLE as error:
            raise damaged(path, error) from None

    def save(self, path: Path) -> None:
        table = {"network": self.network.to_table()}
        path.write_text(json.dumps(table) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class SupportJudge:
    """Judges sentences. A passage may be of any length: its sentences that together say most of the claim are read."""

    model: CompactModel = field(default_factory=CompactModel)

    @once
    def nets(self) -> SupportNets:
        self.model.require_config()
        return SupportNets.load(self.model.folder / NETS)

    @once
    def _network(self) -> Any:
        return self.model.session(NETWORK)

    def supports(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair (sentence, passage) the probability that the passage says all that the sentence says.

        A first line of the passage that is no sentence is its title. An empty sentence or passage gives 0.
        """
        net = self.nets.words if self.model.lacks(NETWORK) else self.nets.network
        chances = []
        for row in self.features(pairs):
            chances.append(net.probabilities([row])[0] if row else 0.0)
        return chances

    def features(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, float]]:
        """Return what each pair is judged by; nothing where sentence or passage is empty."""
        tokenizer = self.model.tokenizer
        evidence_of: dict[str, Evidence] = {}
        rows: list[dict[str, float]] = []
        inputs: list[Pair] = []
        for sentence, passage in pairs:
            if passage not in evidence_of:
                evidence_of[passage] = Evidence.of(passage, tokenizer)
            evidence = evidence_of[passage]
            claim = Claim(sentence.strip(), tokenizer)
            if not claim.text or not evidence.sentences:
                rows.append({})
                continue
            window = evidence.window(claim.terms, tokenizer.vocabulary)
            rows.append({SAID: claim.share_said(window)})
            ids = tokenizer.ids(claim.text, LONGEST_CLAIM)
            inputs.append(pair(tokenizer, ids, window.title, window.text, LONGEST_PAIR))
        if not self.model.lacks(NETWORK):
            logits = iter(self._logits(inputs))
            for row in filter(None, rows):
                row[SAYS] = next(logits)
        return rows

    def _logits(self, inputs: Sequence[Pair]) -> list[float]:
        """Return what the network says. All pairs are encoded in one call, which fills all cores."""
        session = self._network
        embeddings = self.model.words
        shape: Mapping[str, int] = self.model.config["shape"]
        self.model.work.add(layers=len(inputs) * shape["layers"], pairs=len(inputs))

        def encode(read: Pair) -> float:
            embedded = embeddings.embed_pair(read)
            return float(session.run(["support"], {"embedded": embedded})[0][0])

        return list(self.model.map(encode, inputs))
