"""Inputs of BERT-like encoders, how they run in batches, and how a trained one is saved."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from whichsense.errors import BadInput, require
from whichsense.files import read_json, write_atomically
from whichsense.jobs.limits import check_limits
from whichsense.models.bases import load_base, load_tokenizer
from whichsense.types import Passage, frozen

# An encoder's inputs: `[CLS] question [SEP] title [SEP] passage [SEP]`, with offsets in the passage's
# text.

_LONGEST_QUESTION = 64  # tokens
_CACHE_SIZE = 8192  # texts: about 140 MB
Places = tuple[tuple[int, int], ...]
"""(start, end) in characters, for each token."""


@frozen
class InputRow:
    """One input: token ids, their segments, and the character offsets of the passage's text."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]
    text_start: int = 0
    """The first token of the text in `ids`."""
    places: Places = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Inputs:
    """Builds rows for one tokenizer. Question and passages are tokenized once each, not once a pair."""

    tokenizer: Any
    longest: int
    _cache: dict[str, tuple[list[int], Places]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Texts that were tokenized last: round-trip prediction asks several questions over the same passages."""

    def single(self, texts: Sequence[str]) -> list[InputRow]:
        """Return rows of single texts: `[CLS] text [SEP]`."""
        before, after = self._frame
        room = self.longest - len(before) - len(after)
        return [self._row([*before, *ids[:room], *after]) for ids in self._tokens(texts)]

    def pairs(
        self, question: str, passages: Sequence[Passage], *, places: bool = True
    ) -> list[InputRow]:
        """Return rows of the question with each passage; character offsets only if `places`."""
        longest_question = min(_LONGEST_QUESTION, self.longest // 2)
        asked = self._tokens([question])[0][:longest_question]
        titles = self._tokens([passage.title for passage in passages])
        bodies = [passage.text for passage in passages]
        texts: Iterable[tuple[list[int], Places]]
        texts = self._with_places(bodies) if places else [(ids, ()) for ids in self._tokens(bodies)]
        before, between, after = self._pair_frame
        lead = [*before, *asked, *between]
        rows = []
        for title, (ids, offsets) in zip(titles, texts, strict=True):
            head = [*lead, *title[: self.longest // 4]]
            if title:
                head.append(self.tokenizer.sep_token_id)
            room = max(0, self.longest - len(head) - len(after))
            body = [*head, *ids[:room], *after]
            rows.append(self._row(body, len(lead), len(head), offsets[:room]))
        return rows

    def passages(self, texts: Sequence[tuple[str, str]]) -> list[InputRow]:
        """Return rows of titles and texts for a dual encoder: `[CLS] title [SEP] text [SEP]`."""
        before, between, after = self._pair_frame
        rows = []
        titles, bodies = (self._tokens([pair[part] for pair in texts]) for part in range(2))
        for title_ids, body in zip(titles, bodies, strict=True):
            head = list(before)
            if title_ids:
                head += [*title_ids[: self.longest // 4], *between]
            room = max(0, self.longest - len(head) - len(after))
            rows.append(self._row([*head, *body[:room], *after], len(head)))
        return rows

    def _row(
        self, ids: list[int], first: int = 0, text_start: int = 0, places: Places = ()
    ) -> InputRow:
        """Return a row whose second segment begins at token `first`, if the tokenizer has segments."""
        second = len(ids) - first if first and self._has_segments else 0
        segments = (0,) * (len(ids) - second) + (1,) * second
        return InputRow(tuple(ids), segments, text_start, places)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        ids: list[list[int]] = self._tokenize(texts)["input_ids"]
        return ids

    def _with_places(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Places]]:
        # A thread may prepare batches while another evaluates and clears the cache: entries in use are copied here.
        cache = self._cache
        known = {text: entry for text in texts if (entry := cache.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            encoded = self._tokenize(new, return_offsets_mapping=True)
            if len(cache) + len(new) > _CACHE_SIZE:
                cache.clear()
            for text, ids, offsets in zip(
                new, encoded["input_ids"], encoded["offset_mapping"], strict=True
            ):
                places = [(int(start), int(end)) for start, end in offsets]
                known[text] = cache[text] = (ids, tuple(places))
        for text in texts:
            yield known[text]

    def _tokenize(self, texts: Sequence[str], **options: bool) -> Any:
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
        """The special tokens before and after a text, by example: BERT and RoBERTa differ."""
        encoded = self.tokenizer("a")
        ids = encoded["input_ids"]
        first, end = _span_of(encoded.sequence_ids(0), 0)
        return ids[:first], ids[end:]

    @cached_property
    def _pair_frame(self) -> tuple[list[int], list[int], list[int]]:
        """The special tokens before, between and after two texts."""
        encoded = self.tokenizer("a", "a")
        ids = encoded["input_ids"]
        parts = encoded.sequence_ids(0)
        first, first_end = _span_of(parts, 0)
        second, second_end = _span_of(parts, 1)
        return ids[:first], ids[first_end:second], ids[second_end:]

    @cached_property
    def _has_segments(self) -> bool:
        return 1 in (self.tokenizer("a", "a").get("token_type_ids") or ())


def _span_of(parts: Sequence[int | None], part: int) -> tuple[int, int]:
    """(first, last + 1) of the tokens of one text."""
    inside = [place for place, own in enumerate(parts) if own == part]
    return inside[0], inside[-1] + 1


def padded(rows: Sequence[InputRow], pad: int) -> dict[str, Tensor]:
    """Return rows as the tensors that transformers takes (rows × longest)."""
    shape = (len(rows), max(map(len, rows)))
    # Filled in numpy, which reads tuples of numbers many times faster than torch does.
    ids = np.full(shape, pad, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    segments = np.zeros(shape, dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row.ids
        mask[place, : len(row)] = 1
        segments[place, : len(row)] = row.segments
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask),
        "token_type_ids": torch.from_numpy(segments),
    }


def text_mask(rows: Sequence[InputRow]) -> Tensor:
    """Return True at the tokens of the passages' texts (rows × longest)."""
    mask = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.bool)
    for place, row in enumerate(rows):
        mask[place, row.text_start : row.text_start + len(row.places)] = True
    return mask


def by_length(rows: Sequence[InputRow], tokens: int) -> Iterator[list[int]]:
    """Yield batches of rows (by number) of similar length, each of at most so many tokens with padding."""
    batch: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: -len(rows[place])):
        if batch and len(rows[batch[0]]) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


# Inference: device, precision, batches.

# Tokens in a batch, padding included: enough to keep the device busy, and within its memory.
_CPU_TOKENS = 4096
_GPU_TOKENS = 65_536


def best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def compile_layers(encoder: nn.Module, *arguments: Any, **options: Any) -> None:
    """Compile layer by layer, in place. The layers are alike: one compilation serves all."""
    for part in encoder.modules():
        if not isinstance(part, nn.ModuleList):
            continue
        for layer in part:
            layer.compile(*arguments, **options)


def in_full(tensor: torch.Tensor) -> torch.autocast:
    """Return a context in float32: bfloat16 is too coarse for scores that are compared."""
    return torch.autocast(tensor.device.type, enabled=False)


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, bfloat16 on a GPU; the model's mode is restored afterwards.

    A compiled model runs in eager mode: batches of all shapes would be compiled one after another.
    """
    training = model.training
    kind = _device_of(model).type
    model.eval()
    eager = torch.compiler.set_stance("force_eager")
    try:
        with (
            eager,
            torch.inference_mode(),
            torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"),
        ):
            yield
    finally:
        model.train(training)


def outputs(
    model: nn.Module, rows: Sequence[InputRow], pad: int
) -> Iterator[tuple[list[int], Any]]:
    """Yield the model's outputs for rows, in batches of similar length: the numbers of the rows, and their output."""
    device = _device_of(model)
    most = _CPU_TOKENS if device.type == "cpu" else _GPU_TOKENS
    for places in by_length(rows, most):
        check_limits()
        batch = padded([rows[place] for place in places], pad)
        yield places, model({name: tensor.to(device) for name, tensor in batch.items()})


# Model folders: an encoder's config, tokenizer and weights, with its trained heads.

ABOUT = "bert.json"
WEIGHTS = "model.safetensors"


@frozen
class Described:
    """A folder, the task that its model was trained for, and that task's options."""

    folder: Path
    task: str
    options: Mapping[str, Any]


def encoder(base: str | Path) -> nn.Module:
    """Return a pretrained encoder without a pooler: nothing here uses it."""
    return _without_pooler(partial(load_base, base))


def _without_pooler(make: Callable[..., nn.Module]) -> nn.Module:
    try:
        return make(add_pooling_layer=False)
    except TypeError:  # the architecture has none
        return make()


def save(
    folder: Path,
    model: nn.Module,
    inputs: Inputs,
    *,
    task: str,
    config: Any,
    options: Mapping[str, Any],
) -> None:
    """Write a model's folder. `config` is the encoder's own."""
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    inputs.tokenizer.save_pretrained(folder)
    weights = {
        name: tensor.detach().to("cpu").contiguous() for name, tensor in model.state_dict().items()
    }
    save_file(weights, folder / WEIGHTS)
    about = {"task": task, "longest": inputs.longest, "options": dict(options)}
    write_atomically(folder / ABOUT, json.dumps(about, indent=2) + "\n")


def described(folder: str | Path, task: str = "") -> Described:
    """Describe a folder. Reject one without a trained model, or with a model for another task."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise BadInput(
            f"'{folder}' holds no trained model: there is no {ABOUT}. Train one first: whichsense train …"
        )
    about = read_json(folder / ABOUT)
    if task and about["task"] != task:
        raise BadInput(f"'{folder}' was trained as '{about['task']}', and '{task}' is needed here.")
    return Described(folder, about["task"], about["options"])


def tokenizer_of(folder: Path) -> Inputs:
    """Return the inputs that a folder's model was trained with."""
    longest = int(read_json(folder / ABOUT)["longest"])
    return Inputs(load_tokenizer(folder), longest)


def empty_encoder(folder: Path) -> nn.Module:
    """Return the encoder of a folder's config, without its weights."""
    transformers = require("transformers", "train")
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng():
        model = _without_pooler(partial(transformers.AutoModel.from_config, config))
    return model.to(torch.float32)


def fill(model: nn.Module, folder: Path) -> None:
    """Load the trained weights of a folder into a model. Every name must fit."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError) as error:
        why = str(error).strip().splitlines()[0]
        raise BadInput(
            f"'{folder / WEIGHTS}' does not fit its config: {why}. Train it again."
        ) from None
