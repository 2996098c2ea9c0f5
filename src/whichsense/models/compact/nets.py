"""The networks in torch, for training, with the arithmetic of int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.errors import BadInput
from whichsense.models.compact.encoder import BEGIN, END, PAD, distance_buckets
from whichsense.models.compact.graphs import GELU_FLOOR, WEIGHT_TOP
from whichsense.models.compact.labeller import NO_FRAME
from whichsense.models.compact.writer import LONGEST, SIGNS, WRITTEN

# Quantization-aware linear layers: 7-bit weights, 8-bit inputs with one fixed scale, as in the
# exported model.

_TOP = 127
UNLEARNT = -3.0  # log(step) of an input's codes before calibration
_LEVELS = 256


class QuantizedLinear(nn.Linear):
    """A linear layer. `scale` is log(step) of its input's codes: learned, and fixed after training."""

    def __init__(self, inputs: int, outputs: int, *, after_gelu: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.scale = nn.Parameter(torch.tensor(UNLEARNT))
        self.after_gelu = after_gelu
        self.quantize_weights = self.quantize_activations = False

    def forward(self, values: Tensor) -> Tensor:
        if self.quantize_activations:
            values = self.coded(values)
        return F.linear(values, self.used_weight(), self.bias)

    def used_weight(self) -> Tensor:
        return quantize_weight(self.weight) if self.quantize_weights else self.weight

    def coded(self, values: Tensor) -> Tensor:
        """Values rounded to their codes. Rounded values stay as they are."""
        step = self.scale.float().exp()
        # The gradient of the step is scaled down by the number of values that it serves (LSQ, Esser et al. 2020).
        share = (values.numel() * _TOP) ** -0.5
        step = step.detach() + (step - step.detach()) * share
        if self.after_gelu:
            low = -torch.round(GELU_FLOOR / step.detach())
        else:
            low = torch.full_like(step, -_TOP - 1)
        codes = _rounded((values.float() / step).clamp(low, low + _LEVELS - 1))
        return torch.mul(codes, step).to(values.dtype)

    def calibrate(self, values: Tensor) -> None:
        """Set the step from a batch, so that 99.99% of the values fit."""
        top = values.detach().abs().float().flatten()
        bound = torch.quantile(top[:: max(1, top.numel() // 1_000_000)], 0.9999)
        highest = 230 if self.after_gelu else _TOP
        self.scale.data.fill_(float(torch.log(bound / highest)))


def quantize_weight(weight: Tensor) -> Tensor:
    """Round weights to 7-bit codes with one step an output. Gradients pass through the rounding."""
    step = weight_steps(weight)
    return _rounded(weight / step) * step


def weight_steps(weight: Tensor) -> Tensor:
    """The step of each output's weights (outputs × 1)."""
    greatest = weight.detach().abs().amax(dim=1, keepdim=True)
    return greatest.clamp(min=1e-8) / WEIGHT_TOP


def _rounded(values: Tensor) -> Tensor:
    return values + (torch.round(values) - values).detach()


# The compact encoder in torch, for training: two halves with their heads.
#
# The exported form (`export.py`) does the same arithmetic in ONNX Runtime.

_VERDICT_WIDTH = 128


@dataclass(frozen=True)
class CompactConfig:
    """The shape of the model. The defaults are gte-small's, cut after its fourth layer."""

    vocabulary: int = 30_522
    width: int = 384
    heads: int = 12
    inner: int = 1536
    positions: int = 512
    layers: int = 12
    early: int = 4
    epsilon: float = 1e-12
    dropout: float = 0.0
    """While training only."""
    buckets: int = 0
    """Of distances between tokens, each of which changes the attention's scores, as in MPNet; 0: none, as in BERT."""


class Attention(nn.Module):
    """Multi-head self-attention. `mask` is True where a key may be attended to."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = QuantizedLinear(config.width, config.width)
        self.key = QuantizedLinear(config.width, config.width)
        self.value = QuantizedLinear(config.width, config.width)
        self.output = QuantizedLinear(config.width, config.width)

    def split(self, states: Tensor) -> Tensor:
        """… × tokens × width → … × heads × tokens × head width."""
        by_head = states.reshape(*states.shape[:-1], self.heads, -1)
        return by_head.transpose(-3, -2)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        query = self.split(self.query(states))
        key = self.split(self.key(states))
        value = self.split(self.value(states))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        output: Tensor = self.output(context.transpose(-3, -2).flatten(-2))
        return output


class CompactLayer(nn.Module):
    """BERT's layer: attention and feed-forward, each followed by its LayerNorm. All four inputs are quantized."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = QuantizedLinear(config.width, config.inner)
        self.narrow = QuantizedLinear(config.inner, config.width, after_gelu=True)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        _share_scale(self.attention.query, self.attention.key, self.attention.value)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        context = self.attention(states, mask)
        states = self.attention_norm(states + self.dropout(context))
        inner = self.narrow(gelu(self.wide(states)))
        output: Tensor = self.norm(states + self.dropout(inner))
        return output


class Score(nn.Module):
    """A head over the [CLS] state: one number a pair."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, states: Tensor) -> Tensor:
        hidden = torch.tanh(self.dense(states[..., 0, :]))
        score: Tensor = self.out(hidden).squeeze(-1)
        return score


class _Verdict(nn.Module):
    """A head that judges each span by itself, from the states of [CLS], of its first token and of its last."""

    def __init__(self, width: int, inner: int = _VERDICT_WIDTH) -> None:
        super().__init__()
        self.dense = nn.Linear(3 * width, inner)
        self.out = nn.Linear(inner, 1)

    def forward(self, states: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """The logits of spans (pairs × spans), given states (pairs × tokens × width) and the spans' first and last
        tokens (pairs × spans each)."""
        width = states.shape[-1]
        begin = states.gather(1, first[..., None].expand(-1, -1, width))
        end = states.gather(1, last[..., None].expand(-1, -1, width))
        whole = states[:, :1].expand_as(begin)
        edges = torch.cat([whole, begin, end], -1)
        logits: Tensor = self.out(gelu(self.dense(edges))).squeeze(-1)
        return logits


class CompactEncoder(nn.Module):
    """`early` runs the first layers on many pairs; `late` runs the others on the best of them."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
        self.places = nn.Embedding(config.positions, config.width)
        self.types = nn.Embedding(2, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(CompactLayer(config) for _ in range(config.layers))
        if config.buckets:
            self.relative = nn.Embedding(config.buckets, config.heads)

    def embed(self, ids: Tensor, types: Tensor) -> Tensor:
        places = self.places.weight[: ids.shape[-1]]
        embedded: Tensor = self.norm(self.words(ids) + places + self.types(types))
        return embedded

    def early(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        embedded = self.embed(ids, types)
        return self._run(embedded, mask, 0, self.config.early)

    def late(self, states: Tensor, mask: Tensor) -> Tensor:
        return self._run(states, mask, self.config.early, self.config.layers)

    def _run(self, states: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        attended = self._attended(mask)
        for layer in self.layers[first:last]:
            states = layer(states, attended)
        return states

    def _attended(self, mask: Tensor) -> Tensor:
        """Which keys are attended to (pairs × 1 × 1 × tokens); with distances, what is added to each score (pairs ×
        heads × tokens × tokens)."""
        attended = mask[:, None, None, :]
        if not self.config.buckets:
            return attended
        numbers = distance_buckets(mask.shape[-1], self.config.buckets)
        bias = self.relative(torch.from_numpy(numbers).to(mask.device))
        by_head: Tensor = bias.permute(2, 0, 1)
        return by_head.masked_fill(~attended, -1e4)


class CompactNet(nn.Module):
    """Encoder and heads."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = CompactEncoder(config)
        self.exit_relevance = Score(config.width)
        self.relevance = Score(config.width)
        self.span = nn.Linear(config.width, 2)
        self.ambiguity = nn.Linear(config.width, 1)
        # Forked, so that this head changes no other initial weight of a given seed.
        with torch.random.fork_rng(devices=[]):
            self.verdict = _Verdict(config.width)

    @property
    def first_half(self) -> list[nn.Module]:
        """The modules of `early` and the head that ranks its pairs."""
        encoder = self.encoder
        return [
            encoder.words,
            encoder.places,
            encoder.types,
            encoder.norm,
            *encoder.layers[: self.config.early],
            self.exit_relevance,
        ]

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile layer by layer: the layers are nearly all of the work, and they are alike."""
        for layer in self.encoder.layers:
            layer.compile(*arguments, **options)

    def read(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """The output of every head for a batch of pairs (pairs × tokens each), all through both halves."""
        early = self.encoder.early(ids, types, mask)
        late = self.encoder.late(early, mask)
        return {
            "exit": self.exit_relevance(early).float(),
            "relevance": self.relevance(late).float(),
            "span": self.span(late).float(),
            "ambiguity": self.ambiguity(late[:, 0]).squeeze(-1).float(),
            "states": late,
        }


def gelu(values: Tensor) -> Tensor:
    """GELU by tanh: on a CPU half the time of the exact one, and never more than 0.0005 from it."""
    return F.gelu(values, approximate="tanh")


def _share_scale(first: nn.Module, *others: nn.Module) -> None:
    """Let layers with one quantized input share its scale."""
    for other in others:
        other.scale = first.scale


def set_quantization(net: nn.Module, *, weights: bool, activations: bool) -> None:
    """Turn the arithmetic of the exported int8 model on or off."""
    for module in net.modules():
        if isinstance(module, QuantizedLinear):
            module.quantize_weights = weights
            module.quantize_activations = activations


def from_bert(weights: dict[str, Any], config: CompactConfig) -> CompactNet:
    """A new model whose encoder has a BERT's weights (names as in its safetensors file)."""
    net = CompactNet(config)
    bert = {_our_name(name): torch.as_tensor(value) for name, value in weights.items()}
    _take_encoder(net, bert, "a BERT")
    return net


def _take_encoder(net: nn.Module, given: Mapping[str, Tensor], kind: str) -> None:
    """Copy the encoder's weights from those of a base, under our names."""
    state = net.state_dict()
    for name, own in state.items():
        if not name.startswith("encoder.") or name.endswith(".scale"):
            continue
        if name not in given or given[name].shape != own.shape:
            raise BadInput(
                f"The base model has no weight for '{name}' of shape {tuple(own.shape)}: give {kind}."
            )
        state[name] = given[name]
    net.load_state_dict(state)


BERT_PARTS = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_TABLES = {
    "word_embeddings": "words",
    "position_embeddings": "places",
    "token_type_embeddings": "types",
}


def _our_name(name: str) -> str:
    """The name in `CompactNet` of a weight of BERT; a name that it does not have, for a weight without a place."""
    area, _, rest = name.removeprefix("bert.").partition(".")
    if area == "embeddings":
        part, _, kind = rest.partition(".")
        return f"encoder.{_TABLES.get(part, 'norm')}.{kind}"
    number, _, rest = rest.removeprefix("layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"encoder.layers.{number}.{BERT_PARTS.get(part, '')}.{kind}"


# The writer in torch, for training. Its layers are initialized from a BERT, which can read prompts
# already.


@dataclass(frozen=True)
class WriterConfig:
    """The shape of the writer. The defaults are eight of gte-small's layers."""

    vocabulary: int = 30_522
    width: int = 384
    heads: int = 12
    inner: int = 1536
    layers: int = 8
    epsilon: float = 1e-12
    dropout: float = 0.0
    """While training only."""


class WriterBatch(NamedTuple):
    """Prompts (prompts × tokens) and what is written behind them (prompts × written).

    `wanted` are the next tokens after each written one; `weights` are their weights in the loss, 0 for padding.
    """

    ids: Tensor
    kinds: Tensor
    mask: Tensor
    written: Tensor
    wanted: Tensor
    weights: Tensor


class WriterCache(NamedTuple):
    """Keys and values of each layer for prompts and for what is written, and a mask of padding (sequences × tokens)."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    mask: Tensor


class _WriterLayer(nn.Module):
    """BERT's layer; `mask` is added to the scores."""

    def __init__(self, config: WriterConfig) -> None:
        super().__init__()
        self.attention = nn.ModuleDict()
        for name in ("query", "key", "value", "output"):
            self.attention[name] = nn.Linear(config.width, config.width)
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = nn.Linear(config.width, config.inner)
        self.narrow = nn.Linear(config.inner, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, prompt: int, prompt_mask: Tensor, mask: Tensor) -> Tensor:
        """The first `prompt` tokens attend to each other, the written ones behind them as `mask` allows."""
        query, key, value = self._parts(states)
        prompt_context = F.scaled_dot_product_attention(
            query[:, :, :prompt], key[:, :, :prompt], value[:, :, :prompt], prompt_mask
        )
        written_context = F.scaled_dot_product_attention(query[:, :, prompt:], key, value, mask)
        return self._after(states, torch.cat([prompt_context, written_context], 2))

    def step(
        self, states: Tensor, past: tuple[Tensor, Tensor] | None, mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The output for new tokens, given keys and values of the past; and keys and values with the new ones."""
        query, key, value = self._parts(states)
        if past is not None:
            key = torch.cat([past[0], key], 2)
            value = torch.cat([past[1], value], 2)
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self._after(states, context), (key, value)

    def _parts(self, states: Tensor) -> list[Tensor]:
        """Query, key and value (sequences × heads × tokens × head width)."""
        parts = []
        for name in ("query", "key", "value"):
            by_head = self.attention[name](states).unflatten(-1, (self.heads, -1))
            parts.append(by_head.transpose(1, 2))
        return parts

    def _after(self, states: Tensor, context: Tensor) -> Tensor:
        """The layer behind its attention."""
        context = context.transpose(1, 2).flatten(2)
        output = self.attention["output"](context)
        states = self.attention_norm(states + self.dropout(output))
        inner = self.narrow(gelu(self.wide(states)))
        normed: Tensor = self.norm(states + self.dropout(inner))
        return normed


class WriterNet(nn.Module):
    """`words` are the encoder's word vectors, which are not trained here."""

    words: Tensor

    def __init__(self, config: WriterConfig, words: Tensor) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("words", words, persistent=False)
        self.signs = nn.Parameter(torch.randn(SIGNS, config.width) * 0.02)
        self.places = nn.Parameter(torch.randn(LONGEST, config.width) * 0.02)
        self.kinds = nn.Parameter(torch.randn(WRITTEN + 1, config.width) * 0.02)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(_WriterLayer(config) for _ in range(config.layers))
        self.out = nn.Linear(config.width, config.width)
        self.out_norm = nn.LayerNorm(config.width, config.epsilon)
        self.out_bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, ids: Tensor, kinds: Tensor, first: int = 0) -> Tensor:
        """`first` is the place of the first token."""
        # Tokens that are not signs get a row of zeros.
        signs = F.pad(self.signs, (0, 0, 0, 1))[ids.clamp(max=SIGNS)]
        places = self.places[first : first + ids.shape[1]]
        embedded = self.words[ids] + signs + self.kinds[kinds] + places
        normed: Tensor = self.dropout(self.norm(embedded))
        return normed

    def forward(self, batch: WriterBatch) -> Tensor:
        """The state after each written token (prompts × written × width)."""
        prompt = batch.ids.shape[1]
        count = batch.written.shape[1]
        written = self.embed(batch.written, torch.full_like(batch.written, WRITTEN))
        states = torch.cat([self.embed(batch.ids, batch.kinds), written], 1)
        is_token = batch.mask[:, None, None, :]
        # A written token attends to its prompt, to itself and to what was written before it.
        causal = torch.ones(count, count, dtype=torch.bool, device=is_token.device).tril()
        reach = torch.cat(
            [is_token.expand(-1, 1, count, -1), causal.expand(len(is_token), 1, -1, -1)], -1
        )
        prompt_mask = _additive(is_token.expand(-1, 1, prompt, -1), states.dtype)
        mask = _additive(reach, states.dtype)
        for layer in self.layers:
            states = layer(states, prompt, prompt_mask, mask)
        return states[:, prompt:]

    def begin(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> WriterCache:
        """Read prompts once; `extend` continues from the cache."""
        return self._step(self.embed(ids, kinds), None, mask)[1]

    def extend(self, cache: WriterCache, written: Tensor, place: int) -> tuple[Tensor, WriterCache]:
        """The state after one more written token of each sequence, the `place`-th."""
        tokens = written[:, None]
        states = self.embed(tokens, torch.full_like(tokens, WRITTEN), place)
        mask = F.pad(cache.mask, (0, 1), value=True)
        states, cache = self._step(states, cache, mask)
        return states[:, 0], cache

    def _step(
        self, states: Tensor, cache: WriterCache | None, mask: Tensor
    ) -> tuple[Tensor, WriterCache]:
        layers = []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, _WriterLayer)
            past = None if cache is None else cache.layers[place]
            states, own = layer.step(states, past, mask[:, None, None, :])
            layers.append(own)
        return states, WriterCache(tuple(layers), mask)

    def scores(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        hidden = self.out_norm(gelu(self.out(states)))
        return F.linear(hidden, self.words.to(hidden.dtype), self.out_bias)

    def loss(self, batch: WriterBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The weighted mean loss of the wanted tokens; the sum of their losses, unweighted; their number."""
        counts = batch.weights > 0
        logits = self.scores(self(batch)[counts]).float()
        losses = F.cross_entropy(logits, batch.wanted[counts], reduction="none")
        weights = batch.weights[counts]
        mean = (losses * weights).sum() / weights.sum().clamp(min=1e-6)
        return mean, losses.detach().sum(), counts.sum()


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as one that is added to scores: 0 or -inf."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, float("-inf"))


def net_from_bert(
    weights: Mapping[str, Any], layers: Sequence[int], config: WriterConfig, words: Tensor
) -> WriterNet:
    """A new writer with some layers of a BERT (names as in its safetensors file)."""
    net = WriterNet(config, words)
    table: dict[str, Tensor] = {}
    for name, value in weights.items():
        table[name.removeprefix("bert.")] = torch.as_tensor(value).float()
    state = {
        "norm.weight": table["embeddings.LayerNorm.weight"],
        "norm.bias": table["embeddings.LayerNorm.bias"],
        "places": table["embeddings.position_embeddings.weight"][:LONGEST],
    }
    # BERT has two types of tokens; the writer's third, what is written, starts near the first.
    kinds = table["embeddings.token_type_embeddings.weight"]
    new = net.kinds.detach()[WRITTEN:]
    if kinds.shape[1] == new.shape[1]:
        kinds = torch.cat([kinds, kinds[:1] + new])
    state["kinds"] = kinds
    for place, number in enumerate(layers):
        for theirs, ours in BERT_PARTS.items():
            for kind in ("weight", "bias"):
                name = f"encoder.layer.{number}.{theirs}.{kind}"
                if name not in table:
                    raise BadInput(
                        f"The base model has no '{name}'. Give layers that it has, of a BERT."
                    )
                state[f"layers.{place}.{ours}.{kind}"] = table[name]
    own = net.state_dict()
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise BadInput(
                f"The base model is of another size than the model whose words it is to share ('{name}')."
            )
    net.load_state_dict(own | state)
    return net


# The tagger in torch, for training: an encoder of its own with heads for answers and for their labels.
#
# The exported form (`graphs.py`) does the same arithmetic in ONNX Runtime.

_PARTS = 3  # that a token may be of: none, the answer, another answer
_HIDDEN = 128
_SELDOM = -2.5  # the logit of a token to be of an answer or of a label, at first


class TagNet(nn.Module):
    """Marks every answer of a question in a passage; where an answer is marked, the words that name its case."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = CompactEncoder(config)
        self.marks = nn.Embedding(_PARTS, config.width)
        nn.init.normal_(self.marks.weight, std=0.02)
        nn.init.zeros_(self.marks.weight[0].data)
        self.tag = nn.Linear(config.width, 3)
        nn.init.constant_(self.tag.bias, _SELDOM)
        self.answers = Score(config.width)
        self.frame_hidden = nn.Linear(3 * config.width, _HIDDEN)
        self.frame_out = nn.Linear(_HIDDEN, NO_FRAME + 1)

    def forward(
        self, ids: Tensor, types: Tensor, marks: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs (pairs × tokens each) → the logits of their tokens to be inside an answer, to begin one, and to be of
        the marked answer's label (pairs × tokens × 3), of the pairs to hold an answer (pairs), and the states."""
        encoder = self.encoder
        places = encoder.places.weight[: ids.shape[-1]]
        embedded = encoder.words(ids) + places + encoder.types(types)
        states = encoder.late(encoder.norm(embedded + self.marks(marks)), mask)
        return self.tag(states).float(), self.answers(states).float(), states

    def frame(self, edges: Tensor) -> Tensor:
        """The states of [CLS] and the mean ones of answer and label, side by side (pairs × 3 · width) → the logits of
        the frames, the last of which is none."""
        logits: Tensor = self.frame_out(torch.tanh(self.frame_hidden(edges)))
        return logits.float()


MPNET_PARTS = {
    "attention.attn.q": "attention.query",
    "attention.attn.k": "attention.key",
    "attention.attn.v": "attention.value",
    "attention.attn.o": "attention.output",
    "attention.LayerNorm": "attention_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_MPNET_ADDED = 4  # tokens that MPNet's vocabulary has before BERT's
_MPNET_PLACES = 2  # places that no token has


def from_mpnet(weights: Mapping[str, Any]) -> TagNet:
    """A new tagger over an MPNet (names as in its safetensors file). Its tokens get BERT's numbers:
    the vocabulary is BERT's, behind four tokens of its own, which stand in for BERT's [CLS] and [SEP]."""
    table = {
        name.removeprefix("mpnet."): torch.as_tensor(value).float()
        for name, value in weights.items()
    }
    if "encoder.relative_attention_bias.weight" not in table:
        raise BadInput("The base model has no distances between tokens: give an MPNet.")
    words = table["embeddings.word_embeddings.weight"]
    own_words = words[_MPNET_ADDED:-1].clone()  # without its mask
    for token, sign in ((PAD, 1), (BEGIN, 0), (END, 2)):
        own_words[token] = words[sign]
    width = words.shape[1]
    relative = table["encoder.relative_attention_bias.weight"]
    places = table["embeddings.position_embeddings.weight"][_MPNET_PLACES:]
    given = {
        "encoder.words.weight": own_words,
        "encoder.places.weight": places,
        "encoder.types.weight": words.new_zeros(2, width),
        "encoder.norm.weight": table["embeddings.LayerNorm.weight"],
        "encoder.norm.bias": table["embeddings.LayerNorm.bias"],
        "encoder.relative.weight": relative,
    }
    layers = sum(name.endswith(".output.dense.weight") for name in table)
    for number in range(layers):
        for theirs, ours in MPNET_PARTS.items():
            for kind in ("weight", "bias"):
                value = table[f"encoder.layer.{number}.{theirs}.{kind}"]
                given[f"encoder.layers.{number}.{ours}.{kind}"] = value
    inner = len(table["encoder.layer.0.intermediate.dense.bias"])
    net = TagNet(
        CompactConfig(
            vocabulary=len(own_words),
            width=width,
            heads=relative.shape[1],
            inner=inner,
            positions=len(places),
            layers=layers,
            early=0,
            epsilon=1e-5,
            buckets=len(relative),
        )
    )
    _take_encoder(net, given, "an MPNet")
    return net


def mean_states(states: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The mean state of a span of each pair (pairs × width)."""
    at = torch.arange(states.shape[1], device=states.device)
    inside = ((at >= first[:, None]) & (at <= last[:, None])).to(states.dtype)
    total = torch.einsum("pt,ptw->pw", inside, states)
    return total / inside.sum(1, keepdim=True).clamp(min=1)


# The support judge's network in torch, for training: the verifier, whose matrices are frozen, with
# small adapters.
#
# Every layer gets low-rank additions to its queries and values, and a narrow network beside its feed-
# forward one. Biases, norms and the steps of the int8 codes are its own, too. The exported form
# (`graphs.py`) refers to the frozen matrices where they lie, so that only the additions are stored.

FROZEN = ("query.weight key.weight value.weight output.weight wide.weight narrow.weight").split()
"""The ends of the names of matrices that are the verifier's."""
TABLES = ("words.weight", "places.weight", "types.weight", "encoder.norm.")


class LowRank(nn.Module):
    """A product of two thin matrices, which begins as zero."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(F.linear(values, self.down), self.up)


class Bottleneck(nn.Module):
    """A narrow feed-forward network, which begins as zero."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(inner, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(inner))
        self.up = nn.Parameter(torch.zeros(width, inner))

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(gelu(F.linear(values, self.down, self.bias)), self.up)


class SupportNet(nn.Module):
    """(Sentence, passage) pairs → the logit that the passage supports the sentence."""

    def __init__(self, config: CompactConfig, rank: int, inner: int) -> None:
        super().__init__()
        self.config = config
        self.rank = rank
        self.inner = inner
        self.encoder = CompactEncoder(config)
        width = config.width
        layers = range(config.layers)
        self.query = nn.ModuleList(LowRank(width, width, rank) for _ in layers)
        self.value = nn.ModuleList(LowRank(width, width, rank) for _ in layers)
        self.beside = nn.ModuleList(Bottleneck(width, inner) for _ in layers)
        self.support = Score(width)

    def freeze(self) -> None:
        """Let only what is the judge's own learn."""
        for name, parameter in self.encoder.named_parameters(prefix="encoder"):
            if name.endswith(tuple(FROZEN)) or any(table in name for table in TABLES):
                parameter.requires_grad_(False)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile what is nearly all of the work."""
        for layer in self.encoder.layers:
            layer.compile(*arguments, **options)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Pairs × tokens each → logits (pairs)."""
        states = self.encoder.embed(ids, types)
        attended = mask[:, None, None, :]
        for number in range(self.config.layers):
            states = self._layer(number, states, attended)
        logits: Tensor = self.support(states)
        return logits.float()

    def _layer(self, number: int, states: Tensor, mask: Tensor) -> Tensor:
        """The encoder's layer with the additions of its adapters."""
        layer: Any = self.encoder.layers[number]
        attention = layer.attention
        query = attention.query(states) + self.query[number](states)
        value = attention.value(states) + self.value[number](states)
        context = F.scaled_dot_product_attention(
            attention.split(query),
            attention.split(attention.key(states)),
            attention.split(value),
            mask,
        )
        output = attention.output(context.transpose(-3, -2).flatten(-2))
        states = layer.attention_norm(states + layer.dropout(output))
        inner = layer.narrow(gelu(layer.wide(states))) + self.beside[number](states)
        normed: Tensor = layer.norm(states + layer.dropout(inner))
        return normed


def own_weights(net: SupportNet) -> dict[str, Tensor]:
    """What the judge does not share with the verifier."""
    own = {}
    for name, value in net.state_dict().items():
        shared = name.endswith(tuple(FROZEN)) or any(table in name for table in TABLES)
        if not shared:
            own[name] = value.detach().cpu()
    return own
