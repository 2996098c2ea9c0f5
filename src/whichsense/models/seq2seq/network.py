"""The network: a transformers model, computed without padding, with all passages of a question fused in the decoder.

One passage for each question is the concatenated form; many are Fusion-in-Decoder. The parameters are those of the
transformers model inside, under its names: whatever it can load and save, this can.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from whichsense.errors import BadConfig
from whichsense.models.seq2seq.families import Bart, family_of
from whichsense.models.seq2seq.fused.embedding import fused_embedding
from whichsense.models.seq2seq.fused.layer import fused_encoder
from whichsense.models.seq2seq.fused.memory import absorbed, absorbs, keys_values
from whichsense.models.seq2seq.fused.plan import Plan, has_kernels, is_fusable
from whichsense.models.seq2seq.fused.precision import cast_together
from whichsense.models.seq2seq.fused.trial import failures, reading_failures
from whichsense.models.seq2seq.ragged import Ragged, has_kernel
from whichsense.models.seq2seq.transformer import (
    DecoderLayer,
    EncoderLayer,
    Read,
    decoder_layer,
    decoder_step,
    encoder_layer,
    encoder_noise,
    memory_of,
)

IGNORED = -100  # a label that adds nothing to the loss


class Signs(NamedTuple):
    """The tokens that stand for no text: what an output begins with, its end, and what fills the room behind."""

    start: int
    end: int
    pad: int


class Batch(NamedTuple):
    """Token ids end to end; where passages and questions lie in them; what is to be generated."""

    ids: Tensor
    passages: Ragged
    questions: Ragged
    labels: Tensor
    """(questions, length); IGNORED behind the end."""
    weights: Tensor | None = None
    """How much each label counts; None: one."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The weights of all layers, gathered: parameters in training, a joined copy in the working precision in use."""

    encoder: list[EncoderLayer]
    decoder: list[DecoderLayer]


@dataclass(frozen=True, slots=True)
class Memory:
    """What the decoder reads, computed once for each question and kept over all steps and all beams.

    Keys and values of each decoder layer: (questions, heads, tokens, width), or, where `mask` says where each question
    lies, end to end without padding: (tokens, heads, width).
    """

    keys: list[Tensor]
    values: list[Tensor]
    mask: Tensor | Ragged | None
    """(questions, 1, 1, tokens), or where each question lies."""
    questions: int


class Network(nn.Module):
    """Encode, score targets, and step through a decoder."""

    records_steps = True
    """Whether a step may be recorded as a CUDA graph."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.family = family_of(model)
        self._encoder_layer: Callable[..., Tensor] = encoder_layer
        self._saves_memory = self._compiled = self._float8 = self._told = False
        self._tried: Plan | None = None
        self._wrong: list[str] = []
        self._misread: list[str] | None = None
        self.label_smoothing = 0.0

    @property
    def signs(self) -> Signs:
        config = self.model.config
        return Signs(
            int(config.decoder_start_token_id),
            int(config.eos_token_id),
            int(config.pad_token_id),
        )

    def token_bytes(self) -> int:
        """Of memory, for the keys and values of one input token in all layers."""
        style, layers = (
            self.family.decoder_style,
            len(self.family.decoder_layers(self.model)),
        )
        return 2 * layers * style.heads * style.width * self.dtype.itemsize

    @property
    def dtype(self) -> torch.dtype:
        """The working precision: autocast's where it is on, else the parameters'."""
        kind = self.model.device.type
        if torch.is_autocast_enabled(kind):
            return torch.get_autocast_dtype(kind)
        found: torch.dtype = self.model.dtype
        return found

    def compile(self, *arguments: Any, **options: Any) -> None:
        """One compiled encoder layer serves all: where nearly all the time of training goes.

        On a GPU, BART's layers over passages are computed by kernels of our own instead.
        """
        self._compiled = True
        self._encoder_layer = torch.compile(encoder_layer, *arguments, **options)

    def float8_enable(self) -> None:
        """Train with the encoder's products in eight bits, where the chip has them."""
        style = getattr(getattr(self, "family", None), "encoder_style", None)
        if style is None or not is_fusable(style):
            raise BadConfig(
                "train.float8 is built for BART checkpoints. Leave it out, or take one of those."
            )
        device = self.model.device
        if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
            name = torch.cuda.get_device_name(device)
            raise BadConfig(
                f"{name} does not compute in eight bits, as Ada, Hopper and later do. Leave train.float8 out."
            )
        self._float8 = True

    def gradient_checkpointing_enable(self, **_: Any) -> None:
        """Keep only each encoder layer's input, and compute the layer anew when its gradient is wanted."""
        self._saves_memory = True

    def layers(self, dtype: torch.dtype | None = None) -> Layers:
        """The weights as they are; with `dtype`, a copy for use without gradients."""
        if dtype is None:
            return Layers(
                self.family.encoder_layers(self.model),
                self.family.decoder_layers(self.model),
            )
        with torch.no_grad():
            found = self.layers()
            return Layers(
                [_cast(one, dtype) for one in found.encoder],
                [_cast(one, dtype) for one in found.decoder],
            )

    def encode(
        self, ids: Tensor, passages: Ragged, layers: Layers | None = None
    ) -> Tensor:
        """Each passage alone, all in one call: (tokens, size)."""
        dtype = self.dtype
        with torch.autocast(ids.device.type, enabled=False):
            style = self.family.encoder_style
            size = style.heads * style.width  # of BART, for which plans are
            plan = self._plan(
                torch.empty((0, size), dtype=dtype, device=ids.device), passages.longest
            )
            if plan is not None and isinstance(self.family, Bart):
                tables = self.family.encoder_embedding(self.model)
                first = fused_embedding(ids, passages.position, tables, plan, dtype)
                found = self.family.encoder_layers(
                    self.model
                )  # gathered while the GPU is busy
                return fused_encoder(
                    first, found, passages, plan, saves_memory=self._saves_memory
                )
            x = self.family.embedded(
                self.model, "encoder", ids, passages.position, dtype
            )
            found = layers.encoder if layers else self.family.encoder_layers(self.model)
            bias = self.family.encoder_bias(self.model, passages.longest, dtype)
            for weights in found:
                noise = encoder_noise(x, weights, style) if self.training else None
                rest = (x, weights, passages, bias, noise, style, self.training)
                if self._saves_memory and self.training:
                    x = checkpoint(self._encoder_layer, *rest, use_reentrant=False)
                else:
                    x = self._encoder_layer(*rest)
            return self.family.encoded(self.model, x)

    def _plan(self, x: Tensor, longest: int) -> Plan | None:
        """How to compute a training step in few kernels, where that is wanted and built; None elsewhere.

        `x` is like what the layers read.
        """
        style = self.family.encoder_style
        if (
            not self.training
            or not is_fusable(style)
            or not (self._float8 or (self._compiled and x.is_cuda))
        ):
            return None
        plan = Plan.of(style, float8=self._float8)
        if x.is_cuda and not has_kernels(x, style, longest):
            if self._float8 and not self._told:
                self._told = True
                warnings.warn(
                    "Passages as long as these are not computed in eight bits (train.float8).",
                    stacklevel=2,
                )
            return None
        return plan if not x.is_cuda or self._passes(plan, x) else None

    def _passes(self, plan: Plan, x: Tensor) -> bool:
        """Whether the kernels compute on this machine what they should: tried once."""
        if self._tried != plan:
            inner = self.family.encoder_layers(self.model)[0].feed.up.weight.shape[0]
            self._wrong, self._tried = (
                failures(x.shape[1], inner, plan, x.dtype, x.device),
                plan,
            )
        if self._wrong and plan.float8:
            raise BadConfig(
                f"train.float8 cannot be used: its kernels, as compiled here, err ({', '.join(self._wrong)}). "
                "Leave it out, or try another release of PyTorch."
            )
        return not self._wrong

    def logits(
        self,
        memory: Tensor,
        questions: Ragged,
        inputs: Tensor,
        layers: Layers | None = None,
    ) -> Tensor:
        """Scores of the next token at every place of `inputs`: (questions, length, vocabulary)."""
        dtype, length = memory.dtype, inputs.shape[1]
        with torch.autocast(inputs.device.type, enabled=False):
            place = torch.arange(length, device=inputs.device)[None, :]
            x = self.family.embedded(self.model, "decoder", inputs, place, dtype)
            bias = self.family.decoder_bias(self.model, length, dtype)
            style, found = (
                self.family.decoder_style,
                layers.decoder if layers else self._decoder_layers(dtype),
            )
            for weights, read in zip(
                found, self._reads(memory, questions, length, found), strict=True
            ):
                x = decoder_layer(
                    x, weights, read, questions, bias, style, self.training
                )
            return self.family.logits(self.model, x)

    def _decoder_layers(self, dtype: torch.dtype) -> list[DecoderLayer]:
        found = self.family.decoder_layers(self.model)
        return found if self.model.dtype == dtype else cast_together(found, dtype)

    def _reads(
        self,
        memory: Tensor,
        questions: Ragged,
        length: int,
        layers: Sequence[DecoderLayer],
    ) -> Sequence[Tensor | tuple[Tensor, Tensor] | Read]:
        """How each decoder layer reads the memory: in training in the way that is least work."""
        style, cross = self.family.decoder_style, [weights.cross for weights in layers]
        if self.training and (self._float8 or (self._compiled and memory.is_cuda)):
            if absorbs(memory, questions.longest, length, style) and self._reads_well(
                memory
            ):
                return absorbed(memory, questions, cross, length, style)
            if self._float8 and (self._tried is not None or not memory.is_cuda):
                return keys_values(memory, cross, style)
        return [memory] * len(layers)

    def _reads_well(self, memory: Tensor) -> bool:
        """Whether the kernels of absorbed attention compute on this machine what they should: tried once."""
        if self._misread is None:
            plan = Plan.of(self.family.decoder_style, float8=False)
            self._misread = (
                reading_failures(plan, memory.dtype, memory.device)
                if memory.is_cuda
                else []
            )
        return not self._misread

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the labels, each weighted if the batch says so."""
        memory = self.encode(batch.ids, batch.passages)
        return self.mean_loss(
            self.logits(memory, batch.questions, self.shifted(batch.labels)), batch
        )

    def mean_loss(self, scores: Tensor, batch: Batch) -> Tensor:
        losses = F.cross_entropy(
            scores.float().flatten(0, 1),
            batch.labels.flatten(),
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=self.label_smoothing,
        ).view(batch.labels.shape)
        if batch.weights is not None:
            losses = losses * batch.weights
        return losses.sum() / (batch.labels != IGNORED).sum()

    def shifted(self, labels: Tensor) -> Tensor:
        """What the decoder has seen when it is to say each label."""
        signs = self.signs
        inputs = labels.new_full(labels.shape, signs.pad)
        inputs[:, 0] = signs.start
        inputs[:, 1:] = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, signs.pad)
        return inputs

    def remember(self, memory: Tensor, questions: Ragged, layers: Layers) -> Memory:
        """Keys and values of every decoder layer, once."""
        style = self.family.decoder_style
        pairs = [memory_of(memory, weights.cross, style) for weights in layers.decoder]
        keys, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if not questions.is_full and has_kernel(keys[0]):
            return Memory(keys, values, questions, questions.rows)
        keys = [questions.padded(key).transpose(1, 2) for key in keys]
        values = [questions.padded(value).transpose(1, 2) for value in values]
        mask = questions.mask()
        return Memory(
            keys,
            values,
            None if mask is None else mask[:, None, None, :],
            questions.rows,
        )

    def caches(
        self, hypotheses: int, length: int, dtype: torch.dtype
    ) -> list[tuple[Tensor, Tensor]]:
        """Room for what `length` places of each hypothesis give, in every decoder layer."""
        style = self.family.decoder_style
        shape = (hypotheses, style.heads, length, style.width)
        count, device = len(self.family.decoder_layers(self.model)), self.model.device
        return [
            (
                torch.zeros(shape, dtype=dtype, device=device),
                torch.zeros(shape, dtype=dtype, device=device),
            )
            for _ in range(count)
        ]

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        caches: list[tuple[Tensor, Tensor]],
        memory: Memory,
        layers: Layers,
    ) -> Tensor:
        """Scores of the token behind `tokens`, one for each hypothesis, which stand at `position` (one number)."""
        dtype, length = caches[0][0].dtype, caches[0][0].shape[2]
        with torch.autocast(tokens.device.type, enabled=False):
            x = self.family.embedded(self.model, "decoder", tokens, position, dtype)
            bias = self.family.step_bias(self.model, position, length, dtype)
            style = self.family.decoder_style
            for weights, cache, key, value in zip(
                layers.decoder, caches, memory.keys, memory.values, strict=True
            ):
                x = decoder_step(
                    x, weights, cache, position, bias, (key, value), memory.mask, style
                )
            return self.family.logits(self.model, x).float()


def _cast(part: Any, dtype: torch.dtype) -> Any:
    """The same named tuples, with every tensor in another precision."""
    if isinstance(part, Tensor):
        return part.to(dtype)
    return None if part is None else type(part)(*(_cast(one, dtype) for one in part))
