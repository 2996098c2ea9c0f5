"""The reader behind Disambig-F1: any local SQuAD 2.0 checkpoint, used as the official script uses RoBERTa."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require

_WINDOW, _STRIDE, _LONGEST, _BEST = 384, 128, 30, 20
_NULL_THRESHOLD = 0.0


class SquadReader:
    """Answers questions from a text, or says that it holds none. Loads its weights when it is first called.

    Long texts are read in windows of 384 tokens that overlap by 128; the answer is the best span of at most 30
    tokens over all windows, unless "no answer" scores higher.
    """

    def __init__(self, path: str | Path, batch: int = 16, device: str = "cpu") -> None:
        self.path, self.batch, self.device = Path(path), batch, device
        if not (self.path / "config.json").is_file():
            raise BadInput(
                f"'{path}' holds no model: a folder with config.json, weights and tokenizer is needed."
            )

    @property
    def name(self) -> str:
        """What results call it: where it lies, as that tells which checkpoint gave the numbers."""
        return str(self.path)

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        torch, transformers = (
            require("torch", "train"),
            require("transformers", "train"),
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path, use_fast=True)
        model = (
            transformers.AutoModelForQuestionAnswering.from_pretrained(self.path)
            .to(self.device)
            .eval()
        )
        return torch, tokenizer, model

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """An answer for each (question, text) pair; the empty string where there is none."""
        answers: list[str] = []
        for start in range(0, len(pairs), self.batch):
            answers += self._read(pairs[start : start + self.batch])
        return answers

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        windows = sorted(self._windows(pairs), key=lambda window: window[0])
        found = {
            pair: [window[1:] for window in group]
            for pair, group in groupby(windows, key=lambda w: w[0])
        }
        return [_best_span(text, found.get(i, [])) for i, (_, text) in enumerate(pairs)]

    def _windows(
        self, pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[int, float, list[tuple[float, int, int]]]]:
        """For each window: its pair, the score of "no answer", and its best spans as (score, start, end)."""
        torch, tokenizer, model = self._parts
        encoded = tokenizer(
            [question.lstrip() for question, _ in pairs],
            [text for _, text in pairs],
            truncation="only_second",
            max_length=min(_WINDOW, tokenizer.model_max_length),
            stride=min(_STRIDE, tokenizer.model_max_length // 3),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
        )
        offsets, owner = (
            encoded.pop("offset_mapping"),
            encoded.pop("overflow_to_sample_mapping"),
        )
        with torch.inference_mode():
            output = model(
                **{key: value.to(self.device) for key, value in encoded.items()}
            )
        starts, ends = (
            output.start_logits.float().cpu().numpy(),
            output.end_logits.float().cpu().numpy(),
        )
        for row in range(len(starts)):
            places = {
                i: tuple(map(int, offsets[row][i]))
                for i, part in enumerate(encoded.sequence_ids(row))
                if part == 1
            }
            null = float(starts[row][0] + ends[row][0])
            yield int(owner[row]), null, list(_spans(starts[row], ends[row], places))


def _spans(
    starts: Any, ends: Any, places: dict[int, tuple[int, ...]]
) -> Iterator[tuple[float, int, int]]:
    best_ends = [int(i) for i in ends.argsort()[::-1][:_BEST]]
    for begin in (int(i) for i in starts.argsort()[::-1][:_BEST]):
        for end in best_ends:
            if begin in places and end in places and begin <= end < begin + _LONGEST:
                yield float(starts[begin] + ends[end]), places[begin][0], places[end][1]


def _best_span(
    text: str, windows: Sequence[tuple[float, list[tuple[float, int, int]]]]
) -> str:
    spans = [span for _, found in windows for span in found]
    if not spans:
        return ""
    score, start, end = max(spans, key=lambda span: span[0])
    null = min(none for none, _ in windows)
    return "" if null - score > _NULL_THRESHOLD else text[start:end]
