"""The support judge at run time: (sentence, passage) → the probability that the passage supports the sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from whichsense.models.compact.encoder.inputs import Pair, pair
from whichsense.models.compact.encoder.lazy import once
from whichsense.models.compact.encoder.runtime import CompactModel, damaged
from whichsense.models.compact.scorer.scorer import Net, linear
from whichsense.models.compact.support.features import Claim, word_features
from whichsense.models.compact.support.windows import Evidence, Window
from whichsense.text.function_words import SUMMARY_STOP_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.words import words

NETWORK = "support.onnx"
NETS = "support.json"
SAYS = "says"  # the feature that is the network's logit
LONGEST_CLAIM = 80  # tokens
LONGEST_PAIR = 256
_NUMBER = re.compile(r"\d")
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class SupportNets:
    """Logistic regressions over the features of a sentence and a window."""

    words: Net = field(default_factory=lambda: replace(linear(said=10.0), bias=-8.0))
    """Over what words alone say: of a model without the network."""
    network: Net = field(default_factory=lambda: linear(says=1.0))

    @classmethod
    def load(cls, path: Path) -> SupportNets:
        """Read a file. A folder without one has the defaults."""
        if not path.exists():
            return cls()
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{name: Net.from_table(net) for name, net in table.items()})
        except _UNREADABLE as error:
            raise damaged(path, error) from None

    def save(self, path: Path) -> None:
        table = {"words": self.words.to_table(), "network": self.network.to_table()}
        path.write_text(json.dumps(table) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Excerpt:
    """A window that a sentence is judged beside, and the features of both."""

    window: Window
    features: dict[str, float]


@dataclass(frozen=True)
class SupportJudge:
    """Judges sentences. A passage may be of any length: the windows that say most of a sentence are read."""

    model: CompactModel = field(default_factory=CompactModel)

    @once
    def nets(self) -> SupportNets:
        self.model.require_config()
        return SupportNets.load(self.model.folder / NETS)

    @once
    def _network(self) -> Any:
        return self.model.session(NETWORK)

    def supports(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """For each pair (sentence, passage) the probability that the passage says all that the sentence says.

        A first line of the passage that is no sentence is its title. An empty sentence or passage gives 0.
        """
        excerpts = self.excerpts(pairs)
        has_network = not self.model.lacks(NETWORK)
        net = self.nets.network if has_network else self.nets.words
        best = []
        for own in excerpts:
            features = [excerpt.features for excerpt in own]
            best.append(max(net.probabilities(features), default=0.0))
        return best

    def excerpts(self, pairs: Sequence[tuple[str, str]]) -> list[list[Excerpt]]:
        """The windows that each pair is judged by; none where sentence or passage is empty."""
        tokenizer = self.model.tokenizer
        evidence_of: dict[str, Evidence] = {}
        excerpts: list[list[Excerpt]] = []
        inputs: list[Pair] = []
        for sentence, passage in pairs:
            if passage not in evidence_of:
                evidence_of[passage] = Evidence.of(passage, tokenizer)
            evidence = evidence_of[passage]
            claim = Claim(sentence.strip(), tokenizer)
            own = []
            if claim.text and evidence.sentences:
                for window in evidence.windows(claim.terms, tokenizer.vocabulary):
                    features = word_features(claim, window, self.model.words)
                    own.append(Excerpt(window, features))
                    ids = tokenizer.ids(claim.text, LONGEST_CLAIM)
                    read = pair(tokenizer, ids, window.title, window.text, LONGEST_PAIR)
                    inputs.append(read)
            excerpts.append(own)
        self._add_logits(excerpts, inputs)
        return excerpts

    def _add_logits(
        self, excerpts: Sequence[Sequence[Excerpt]], inputs: Sequence[Pair]
    ) -> None:
        """Add what the network says, if there is one. All pairs are encoded in one call, which fills all cores."""
        if self.model.lacks(NETWORK):
            return
        session = self._network
        embeddings = self.model.words
        shape: Mapping[str, int] = self.model.config["shape"]
        self.model.work.add(layers=len(inputs) * shape["layers"], pairs=len(inputs))

        def encode(read: Pair) -> float:
            embedded = embeddings.embed_pair(read)
            return float(session.run(["support"], {"embedded": embedded})[0][0])

        logits = iter(self.model.map(encode, inputs))
        for own in excerpts:
            for excerpt in own:
                excerpt.features[SAYS] = next(logits)


class WordOverlap:
    """For weights without a judge: the share of a sentence's content words that a passage holds; a number that it lacks
    halves it."""

    def supports(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """
        >>> passage = "Batman is a 1989 film with Jack Nicholson as the Joker."
        >>> pairs = [("Jack Nicholson is the Joker in Batman.", passage), ("Batman is a 2008 film.", passage)]
        >>> WordOverlap().supports(pairs)
        [1.0, 0.3333333333333333]
        """
        return [_held_share(sentence, passage) for sentence, passage in pairs]


def _held_share(sentence: str, passage: str) -> float:
    content = set(words(sentence)) - SUMMARY_STOP_WORDS
    if not content:
        return 0.0
    known = {porter_stem(word) for word in words(passage)}
    held = 0
    lacks_number = False
    for word in content:
        if porter_stem(word) in known:
            held += 1
        elif _NUMBER.search(word):
            lacks_number = True
    share = held / len(content)
    return share / 2 if lacks_number else share
