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
_REMEMBERED = 50_000  # passages: about 30 MB


@dataclass(frozen=True, slots=True)
class Form:
    """How a question and its passages become input. The defaults are REFUEL's: 100 passages of 32 + 128 tokens."""

    fusion: bool = True
    """Each passage alone with the question (Fusion-in-Decoder); or all in one input, cut at `input_tokens`."""
    passages: int = 100
    question_tokens: int = 32
    """Of the question, with the answers that go before it, in each fused input."""
    passage_tokens: int = 128
    """Of a passage with its title, in each fused input."""
    input_tokens: int = 1024
    """Of a concatenated input: AmbigQA's, the most that BART reads."""
    around: int = 0
    """Of a passage that holds the answer which a rewriter is given, only so many words on either side of it; those
    passages come first, and of others as much is read. 0: passages as they are, in their order."""
    output_tokens: int = 30
    """Of an output, as in AmbigQA's code; what is longer is cut in training."""
    lowercase: bool = False
    """Both papers' code lowercases questions, passages and answers."""

    def __post_init__(self) -> None:
        for name in (
            "passages",
            "question_tokens",
            "passage_tokens",
            "input_tokens",
            "output_tokens",
        ):
            if getattr(self, name) < (0 if name == "passages" else 1):
                raise BadInput(f"The form's {name} cannot be {getattr(self, name)}.")
        if self.around < 0:
            raise BadInput(f"The form's around cannot be {self.around}.")


@dataclass(frozen=True)
class Codec:
    """A tokenizer with the few special tokens that inputs and outputs are built of."""

    tokenizer: Any
    kind: Literal["bart", "t5", "causal"]
    lowercase: bool = False
    _bodies: dict[Passage, array[int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def bodies(self, passages: Sequence[Passage]) -> list[array[int]]:
        """The tokens of passages with their titles. Remembered: reading, rewriting and verifying see the same ones."""
        found = {passage: self._bodies.get(passage) for passage in passages}
        new = [passage for passage, body in found.items() if body is None]
        titles, texts = (
            self.all_ids([one.title for one in new]),
            self.all_ids([one.text for one in new]),
        )
        made = {
            passage: array("i", self._body(title, text))
            for passage, title, text in zip(new, titles, texts, strict=True)
        }
        if len(self._bodies) + len(made) > _REMEMBERED:
            self._bodies.clear()
        self._bodies.update(made)
        return [found[passage] or made[passage] for passage in passages]

    def _body(self, title: list[int], text: list[int]) -> list[int]:
        if self.kind == "bart":
            return [*title, self.end, *text]
        if self.kind == "causal":
            return [*title, *self.ids(": "), *text]
        return [*self.ids(" title: "), *title, *self.ids(" context: "), *text]

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without special ones."""
        found: list[int] = self.tokenizer.encode(
            self._plain(text), add_special_tokens=False
        )
        return found

    def all_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many, in one call of the tokenizer."""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(
            [self._plain(text) for text in texts],
            add_special_tokens=False,
            verbose=False,
        )["input_ids"]
        return found

    def _plain(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def text(self, ids: Iterable[int]) -> str:
        """An output as text; the separator stays visible."""
        kept = [token for token in ids if token not in self._silent]
        return str(
            self.tokenizer.decode(
                kept, skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        ).strip()

    def texts(self, ids: Iterable[int]) -> list[str]:
        """The parts of an output between separators, each once, in order."""
        parts: list[list[int]] = [[]]
        for token in ids:
            if token == self.separator:
                parts.append([])
            else:
                parts[-1].append(token)
        return list(dict.fromkeys(text for part in parts if (text := self.text(part))))

    def target(self, texts: Sequence[str], limit: int) -> list[int]:
        """What the decoder is to say: texts with separators between them, and the end. Cut at `limit` tokens."""
        tokens = list(self.lead)
        for number, part in enumerate(self.all_ids(texts)):
            tokens += ([self.separator] if number else []) + part
        return [*tokens[: limit - 1], self.end]

    @property
    def lead(self) -> list[int]:
        """What every output begins with: BART's outputs have a start token of their own behind the decoder's."""
        return [int(self.tokenizer.bos_token_id)] if self.kind == "bart" else []

    @cached_property
    def start(self) -> list[int]:
        """What every input begins with: of models that only continue, those have something that put it there."""
        if self.kind != "causal" or self.tokenizer.bos_token_id is None:
            return self.lead
        first = self.tokenizer("a")["input_ids"][:1]
        return [int(one) for one in first if one == self.tokenizer.bos_token_id]

    @property
    def end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def separator(self) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(SEPARATOR))

    @property
    def _silent(self) -> set[int]:
        return set(self.tokenizer.all_special_ids) - {self.separator}
