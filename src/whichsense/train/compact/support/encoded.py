"""Examples as token numbers, in a few arrays."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.files import write_atomically
from whichsense.models.compact.encoder.inputs import pair
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.models.compact.support.features import Claim
from whichsense.models.compact.support.judge import LONGEST_CLAIM, LONGEST_PAIR
from whichsense.models.compact.support.windows import WINDOW, Evidence
from whichsense.train.compact.data.pack import Ints, RaggedArray
from whichsense.train.compact.support.examples import SupportExample, is_held_out

_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile)


@dataclass(frozen=True, slots=True)
class EncodedExamples:
    """Pairs of a claim and the window that says most of it."""

    ids: RaggedArray
    passage_at: Ints
    """The place of the passage's first token in each pair."""
    supported: NDArray[np.bool_]
    held_out: NDArray[np.bool_]
    kinds: Ints
    """The number of each example's source."""
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.supported)

    @classmethod
    def encode(
        cls, examples: Iterable[SupportExample], tokenizer: Tokenizer
    ) -> EncodedExamples:
        rows: list[Sequence[int]] = []
        passage_at = []
        examples = list(examples)
        sources = sorted({example.source for example in examples})
        for example in examples:
            title, text = _best_window(example, tokenizer)
            ids = tokenizer.ids(example.claim, LONGEST_CLAIM)
            built = pair(tokenizer, ids, title, text, LONGEST_PAIR)
            rows.append(built.ids)
            passage_at.append(built.title[0])
        return cls(
            RaggedArray.from_rows(rows, np.uint16),
            np.array(passage_at, np.int32),
            np.array([example.supported for example in examples], bool),
            np.array([is_held_out(example) for example in examples], bool),
            np.array([sources.index(example.source) for example in examples]),
            tuple(sources),
        )

    def save(self, path: Path) -> None:
        body = io.BytesIO()
        np.savez_compressed(
            body,
            values=self.ids.values,
            starts=self.ids.starts,
            passage_at=self.passage_at,
            supported=self.supported,
            held_out=self.held_out,
            kinds=self.kinds,
            sources=np.array(self.sources),
        )
        write_atomically(path, body.getvalue())

    @classmethod
    def load(cls, path: Path) -> EncodedExamples:
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls(
                    RaggedArray(file["values"], file["starts"]),
                    file["passage_at"],
                    file["supported"],
                    file["held_out"],
                    file["kinds"],
                    tuple(file["sources"].tolist()),
                )
        except _UNREADABLE:
            raise BadInput(
                f"'{path}' holds no examples that can be read. Remove it: it is built again."
            ) from None


def _best_window(example: SupportExample, tokenizer: Tokenizer) -> tuple[str, str]:
    """Title and text that the claim is read with: of the passage if it fits, else of its best window."""
    if len(tokenizer.ids(example.text)) <= WINDOW:
        return example.title, example.text
    claim = Claim(example.claim, tokenizer)
    evidence = Evidence.of(example.passage, tokenizer)
    window = evidence.windows(claim.terms, tokenizer.vocabulary)[0]
    return window.title, window.text
