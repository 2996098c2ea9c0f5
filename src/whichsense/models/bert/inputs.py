"""What an encoder reads: `[CLS] question [SEP] title [SEP] passage [SEP]`, with where each token stands in the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from whichsense.types import Passage

LONGEST_QUESTION = 64
_REMEMBERED = 8192  # texts: about 140 MB
Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One input: token ids, their segments, and for the tokens of the passage's text its characters."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    text_start: int = 0
    """Where in `ids` the text begins."""
    places: Places = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Inputs:
    """Builds rows for one tokenizer. Question and passage are cut up once each, however many pairs they make."""

    tokenizer: Any
    longest: int
    _remembered: dict[str, tuple[list[int], Places]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Texts that were cut up last: round-trip prediction asks several questions over the same passages."""

    def single(self, texts: Sequence[str]) -> list[Row]:
        """A text alone: `[CLS] text [SEP]`."""
        before, after = self._frame
        room = self.longest - len(before) - len(after)
        return [
            self._row([*before, *ids[:room], *after]) for ids in self._tokens(texts)
        ]

    def pairs(
        self, question: str, passages: Sequence[Passage], *, places: bool = True
    ) -> list[Row]:
        """The question with each passage. Where tokens stand in the text is left out if nobody asks."""
        asked = self._tokens([question])[0][: min(LONGEST_QUESTION, self.longest // 2)]
        titles = self._tokens([passage.title for passage in passages])
        bodies = [passage.text for passage in passages]
        texts = (
            self._with_places(bodies)
            if places
            else ((ids, ()) for ids in self._tokens(bodies))
        )
        before, between, after = self._pair_frame
        lead = [*before, *asked, *between]
        rows = []
        for title, (ids, where) in zip(titles, texts, strict=True):
            head = [
                *lead,
                *title[: self.longest // 4],
                *([self.tokenizer.sep_token_id] if title else []),
            ]
            room = max(0, self.longest - len(head) - len(after))
            body = [*head, *ids[:room], *after]
            rows.append(self._row(body, len(lead), len(head), where[:room]))
        return rows

    def passages(self, texts: Sequence[tuple[str, str]]) -> list[Row]:
        """Titles and texts: `[CLS] title [SEP] text [SEP]`, as a dual encoder reads passages."""
        before, between, after = self._pair_frame
        bodies = self._tokens([text for _, text in texts])
        rows = []
        for title, body in zip(
            self._tokens([title for title, _ in texts]), bodies, strict=True
        ):
            head = (
                [*before, *title[: self.longest // 4], *between]
                if title
                else list(before)
            )
            room = max(0, self.longest - len(head) - len(after))
            rows.append(self._row([*head, *body[:room], *after], len(head)))
        return rows

    def _row(
        self, ids: list[int], first: int = 0, text_start: int = 0, places: Places = ()
    ) -> Row:
        second = len(ids) - first if first and self._has_segments else 0
        return Row(
            tuple(ids), (0,) * (len(ids) - second) + (1,) * second, text_start, places
        )

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        found: list[list[int]] = self._called(texts)["input_ids"]
        return found

    def _with_places(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Places]]:
        # Batches are made in a thread while the main one may evaluate: what is read here is kept here.
        own = {text: self._remembered.get(text) for text in texts}
        if new := [text for text, known in own.items() if known is None]:
            found = self._called(new, return_offsets_mapping=True)
            if len(self._remembered) + len(new) > _REMEMBERED:
                self._remembered.clear()
            for text, ids, offsets in zip(
                new, found["input_ids"], found["offset_mapping"], strict=True
            ):
                own[text] = self._remembered[text] = (
                    ids,
                    tuple((int(start), int(end)) for start, end in offsets),
                )
        for text in texts:
            known = own[text]
            assert known is not None
            yield known

    def _called(self, texts: Sequence[str], **options: bool) -> Any:
        return self.tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=True,
            max_length=self.longest,
            return_attention_mask=False,
            return_token_type_ids=False,
            **options,
        )

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        """The tokens that a tokenizer puts around a text, learnt from what it does: BERT and RoBERTa differ."""
        encoded = self.tokenizer("a")
        inside = [
            place for place, part in enumerate(encoded.sequence_ids(0)) if part == 0
        ]
        ids = encoded["input_ids"]
        return ids[: inside[0]], ids[inside[-1] + 1 :]

    @cached_property
    def _pair_frame(self) -> tuple[list[int], list[int], list[int]]:
        encoded = self.tokenizer("a", "a")
        parts, ids = encoded.sequence_ids(0), encoded["input_ids"]
        first = [place for place, part in enumerate(parts) if part == 0]
        second = [place for place, part in enumerate(parts) if part == 1]
        return ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :]

    @cached_property
    def _has_segments(self) -> bool:
        return 1 in (self.tokenizer("a", "a").get("token_type_ids") or ())


def padded(rows: Sequence[Row], pad: int) -> dict[str, Tensor]:
    """Rows as the tensors that transformers takes, as wide as the longest."""
    wide = max(map(len, rows))
    found = {
        "input_ids": [row.ids + (pad,) * (wide - len(row)) for row in rows],
        "attention_mask": [(1,) * len(row) + (0,) * (wide - len(row)) for row in rows],
        "token_type_ids": [row.segments + (0,) * (wide - len(row)) for row in rows],
    }
    # By way of numpy, which reads tuples of numbers many times faster than torch does.
    return {
        name: torch.from_numpy(np.array(body, dtype=np.int64))
        for name, body in found.items()
    }


def text_mask(rows: Sequence[Row]) -> Tensor:
    """Where the tokens of the passages' texts are."""
    mask = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.bool)
    for place, row in enumerate(rows):
        mask[place, row.text_start : row.text_start + len(row.places)] = True
    return mask


def by_length(rows: Sequence[Row], tokens: int) -> Iterator[list[int]]:
    """The numbers of rows in batches of about one length, each within a number of tokens, padding included."""
    batch: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: -len(rows[place])):
        if batch and len(rows[batch[0]]) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
