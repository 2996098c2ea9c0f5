"""Models that metrics need: SQuAD 2.0 answers and token vectors of a published checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, require


def _model_folder(path: str | Path) -> Path:
    """Return the folder of a local checkpoint; raise `BadInput` where there is none."""
    if not (Path(path) / "config.json").is_file():
        raise BadInput(
            f"'{path}' holds no model: a folder with config.json, weights and tokenizer is needed."
        )
    return Path(path)


# The reader of Disambig-F1: any local SQuAD 2.0 checkpoint, used as the official script uses RoBERTa.

_WINDOW, _STRIDE = 384, 128  # tokens
_LONGEST = 30  # tokens of an answer
_BEST = 20  # likeliest first and last tokens of a window
_NULL_THRESHOLD = 0.0
_ScoredSpan = tuple[float, int, int]
"""(score, start, end), in characters of the text."""


class SquadReader:
    """Answers questions from a text, or finds no answer in it. It loads on first use.

    Texts are split into windows of 384 tokens that overlap by 128. The answer is the best span of at most 30 tokens
    over all windows, unless "no answer" scores higher.
    """

    def __init__(self, path: str | Path, batch: int = 16, device: str = "cpu") -> None:
        self.path = _model_folder(path)
        self.batch = batch
        self.device = device

    @property
    def name(self) -> str:
        """The path of the checkpoint, which results name."""
        return str(self.path)

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        torch = require("torch", "train")
        transformers = require("transformers", "train")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path, use_fast=True)
        model = transformers.AutoModelForQuestionAnswering.from_pretrained(self.path)
        return torch, tokenizer, model.to(self.device).eval()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return an answer for each (question, text) pair; the empty string if there is none."""
        answers: list[str] = []
        for start in range(0, len(pairs), self.batch):
            answers += self._read(pairs[start : start + self.batch])
        return answers

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        windows: list[list[tuple[float, list[_ScoredSpan]]]] = [[] for _ in pairs]
        for number, null, spans in self._windows(pairs):
            windows[number].append((null, spans))
        return [best_answer(text, own) for (_, text), own in zip(pairs, windows, strict=True)]

    def _windows(
        self, pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[int, float, list[_ScoredSpan]]]:
        """Yield for each window: the number of its pair, the score of "no answer", and its best spans."""
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
        offsets = encoded.pop("offset_mapping")
        owner = encoded.pop("overflow_to_sample_mapping")
        inputs = {key: value.to(self.device) for key, value in encoded.items()}
        with torch.inference_mode():
            output = model(**inputs)
        # Both windows × tokens.
        starts = output.start_logits.float().cpu().numpy()
        ends = output.end_logits.float().cpu().numpy()
        for row in range(len(starts)):
            places: dict[int, tuple[int, ...]] = {}
            for token, part in enumerate(encoded.sequence_ids(row)):
                if part == 1:  # the text; part 0 is the question
                    places[token] = tuple(map(int, offsets[row][token]))
            null = float(starts[row][0] + ends[row][0])
            yield int(owner[row]), null, list(_spans(starts[row], ends[row], places))


def _spans(starts: Any, ends: Any, places: dict[int, tuple[int, ...]]) -> Iterator[_ScoredSpan]:
    """Yield the spans of a window between its likeliest first and last tokens. `places` are the text's tokens."""
    best_starts = starts.argsort()[::-1][:_BEST].tolist()
    best_ends = ends.argsort()[::-1][:_BEST].tolist()
    for first in best_starts:
        for last in best_ends:
            in_text = first in places and last in places
            if in_text and first <= last < first + _LONGEST:
                score = float(starts[first] + ends[last])
                yield score, places[first][0], places[last][1]


def best_answer(text: str, windows: Sequence[tuple[float, list[_ScoredSpan]]]) -> str:
    """Return the best span over all windows, or "" if "no answer" scores higher."""
    best: _ScoredSpan | None = None
    for _, spans in windows:
        for span in spans:
            if best is None or span[0] > best[0]:
                best = span
    if best is None:
        return ""
    score, start, end = best
    null = min(window_null for window_null, _ in windows)
    return "" if null - score > _NULL_THRESHOLD else text[start:end]


# A vector for each token of a text, from any local checkpoint, for BERTScore.

# The layer that agreed best with people, by kind and depth of the model (Zhang et al., 2020).
_BEST_LAYER = {
    ("roberta", 24): 17,
    ("roberta", 12): 10,
    ("bert", 24): 18,
    ("bert", 12): 9,
    ("distilbert", 6): 5,
}


class TokenVectors:
    """Unit vectors of each text's tokens, without special tokens. It loads on first use.

    `layer` counts from 1. By default it is the layer known to be best for the model, or else the last.
    """

    def __init__(self, path: str | Path, layer: int | None = None) -> None:
        self.path = _model_folder(path)
        self.layer = layer

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any, int]:
        torch = require("torch", "train")
        transformers = require("transformers", "train")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
        network = transformers.AutoModel.from_pretrained(self.path).eval()
        depth = network.config.num_hidden_layers
        layer = self.layer or _BEST_LAYER.get((network.config.model_type, depth), depth)
        if not 1 <= layer <= depth:
            raise BadInput(f"The model has layers 1 to {depth}; {layer} was asked for.")
        return torch, tokenizer, network, layer

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """Return a matrix for each text (tokens × width)."""
        torch, tokenizer, network, layer = self._parts
        # RoBERTa numbers its positions from 2.
        positions = network.config.max_position_embeddings - 2
        encoded = tokenizer(
            [text.strip() for text in texts],
            padding=True,
            truncation=True,
            max_length=min(tokenizer.model_max_length, positions),
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        is_own = encoded.pop("special_tokens_mask") == 0
        with torch.inference_mode():
            output = network(**encoded, output_hidden_states=True)
        states = output.hidden_states[layer]
        states = torch.nn.functional.normalize(states.float(), dim=-1)
        return [row[mask].numpy() for row, mask in zip(states, is_own, strict=True)]
