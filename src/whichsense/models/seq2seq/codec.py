"""Text to tokens and back, for every family, with one extra token that separates answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from whichsense.errors import BadInput
from whichsense.types import Passage

SEPARATOR = "<SEP>"
_CACHE_SIZE = 50_000  # passages: about 30 MB


@dataclass(frozen=True, slots=True)
class InputForm:
    """The form of inputs and outputs. The defaults are REFUEL's: 100 passages of 32 + 128 tokens."""

    fusion: bool = True
    """Each passage with the question (Fusion-in-Decoder), or all in one input, truncated to `input_tokens`."""
    passages: int = 100
    question_tokens: int = 32
    """Of the question, with the answers before it, in each fused input."""
    passage_tokens: int = 128
    """Of a passage with its title, in each fused input."""
    input_tokens: int = 1024
    """Of a concatenated input, as in AmbigQA: the most that BART reads."""
    around: int = 0
    """Words on either side of a rewriter's answer to which passages are cut. Passages with the answer come first, and
    others are cut to the same length. 0: whole passages, in their order."""
    output_tokens: int = 30
    """Of an output, as in AmbigQA's code; longer targets are truncated in training."""
    lowercase: bool = False
    """Both papers' code lowercases questions, passages and answers."""

    def __post_init__(self) -> None:
        least = {
            "passages": 0,
            "question_tokens": 1,
            "passage_tokens": 1,
            "input_tokens": 1,
            "output_tokens": 1,
            "around": 0,
        }
        for name, lowest in least.items():
            value = getattr(self, name)
            if value < lowest:
                raise BadInput(f"The form's {name} cannot be {value}.")


@dataclass(frozen=True)
class Codec:
    """A tokenizer with the special tokens of inputs and outputs."""

    tokenizer: Any
    kind: Literal["bart", "t5", "causal"]
    lowercase: bool = False
    _bodies: dict[Passage, array[int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def bodies(self, passages: Sequence[Passage]) -> list[array[int]]:
        """The tokens of passages with their titles. They are cached: several stages read the same ones."""
        known: dict[Passage, array[int]] = {}
        new: list[Passage] = []
        for passage in dict.fromkeys(passages):
            body = self._bodies.get(passage)
            if body is None:
                new.append(passage)
            else:
                known[passage] = body
        new_titles = []
        new_texts = []
        for passage in new:
            new_titles.append(passage.title)
            new_texts.append(passage.text)
        titles = self.all_ids(new_titles)
        texts = self.all_ids(new_texts)
        if len(self._bodies) + len(new) > _CACHE_SIZE:
            self._bodies.clear()
        for passage, title, text in zip(new, titles, texts, strict=True):
            body = array("i", self._body(title, text))
            known[passage] = self._bodies[passage] = body
        return [known[passage] for passage in passages]

    def _body(self, title: list[int], text: list[int]) -> list[int]:
        if self.kind == "bart":
            return [*title, self.end, *text]
        if self.kind == "causal":
            return [*title, *self.ids(": "), *text]
        return [*self.ids(" title: "), *title, *self.ids(" context: "), *text]

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without special ones."""
        ids: list[int] = self.tokenizer.encode(
            self._plain(text), add_special_tokens=False
        )
        return ids

    def all_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many, in one call of the tokenizer."""
        if not texts:
            return []
        plain = list(map(self._plain, texts))
        encoded = self.tokenizer(plain, add_special_tokens=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def _plain(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def text(self, ids: Iterable[int]) -> str:
        """An output as text; the separator stays visible."""
        silent = self._silent
        visible = [token for token in ids if token not in silent]
        text = self.tokenizer.decode(
            visible, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text).strip()

    def texts(self, ids: Iterable[int]) -> list[str]:
        """The parts of an output between separators, each once, in order."""
        parts: list[list[int]] = [[]]
        for token in ids:
            if token == self.separator:
                parts.append([])
            else:
                parts[-1].append(token)
        texts = dict.fromkeys(map(self.text, parts))
        texts.pop("", None)
        return list(texts)

    def target(self, texts: Sequence[str], limit: int) -> list[int]:
        """The target of texts: their tokens with separators between them, and the end, truncated to `limit` tokens."""
        tokens = list(self.lead)
        for number, part in enumerate(self.all_ids(texts)):
            if number:
                tokens.append(self.separator)
            tokens += part
        return [*tokens[: limit - 1], self.end]

    @property
    def lead(self) -> list[int]:
        """The first tokens of every output: BART's have a start token of their own behind the decoder's."""
        return [int(self.tokenizer.bos_token_id)] if self.kind == "bart" else []

    @cached_property
    def start(self) -> list[int]:
        """The first tokens of every input. Of decoder-only models, only some tokenizers add one."""
        if self.kind != "causal" or self.tokenizer.bos_token_id is None:
            return self.lead
        start = self.tokenizer.bos_token_id
        first = self.tokenizer("a")["input_ids"][:1]
        return [int(start)] if start in first else []

    @property
    def end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def separator(self) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(SEPARATOR))

    @property
    def _silent(self) -> set[int]:
        return set(self.tokenizer.all_special_ids) - {self.separator}
