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
    """Return the step of each output's weights (outputs × 1)."""
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

    def __init__(self, config: CompactConfig, linear: type[nn.Linear]) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = linear(config.width, config.width)
        self.key = linear(config.width, config.width)
        self.value = linear(config.width, config.width)
        self.output = linear(config.width, config.width)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        # Pairs × heads × tokens × head width
        query, key, value = (
            layer(states).unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for layer in (self.query, self.key, self.value)
        )
        context = F.scaled_dot_product_attention(query, key, value, mask)
        output: Tensor = self.output(context.transpose(-3, -2).flatten(-2))
        return output


class CompactLayer(nn.Module):
    """BERT's layer: attention and feed-forward, each followed by its LayerNorm. All four inputs are quantized, but for
    layers of plain `nn.Linear`."""

    def __init__(self, config: CompactConfig, linear: type[nn.Linear] = QuantizedLinear) -> None:
        super().__init__()
        self.attention = Attention(config, linear)
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = linear(config.width, config.inner)
        self.narrow = linear(config.inner, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.beside: nn.Module | None = None  # an adapter of the feed-forward network
        if isinstance(self.narrow, QuantizedLinear):
            self.narrow.after_gelu = True
            _share_scale(self.attention)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        context = self.attention(states, mask)
        states = self.attention_norm(states + self.dropout(context))
        inner = self.narrow(gelu(self.wide(states)))
        if self.beside is not None:
            inner = inner + self.beside(states)
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
        """Return the logits of spans (pairs × spans), given states (pairs × tokens × width) and the spans' first and
        last tokens (pairs × spans each)."""
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

    def compile_layers(self, *arguments: Any, **options: Any) -> None:
        for layer in self.layers:
            layer.compile(*arguments, **options)

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
        """Return which keys are attended to (pairs × 1 × 1 × tokens); with distances, what is added to each score
        (pairs × heads × tokens × tokens)."""
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
        self.encoder.compile_layers(*arguments, **options)

    def read(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return the output of every head for a batch of pairs (pairs × tokens each), all through both halves."""
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


def _share_scale(attention: Attention) -> None:
    """Let queries, keys and values, which have one quantized input, share its scale."""
    for other in (attention.key, attention.value):
        other.scale = attention.query.scale


def set_quantization(net: nn.Module, *, weights: bool, activations: bool) -> None:
    """Turn the arithmetic of the exported int8 model on or off."""
    for module in net.modules():
        if isinstance(module, QuantizedLinear):
            module.quantize_weights = weights
            module.quantize_activations = activations


def from_bert(weights: Mapping[str, Any], config: CompactConfig) -> CompactNet:
    """Return a new model whose encoder has a BERT's weights (names as in its safetensors file)."""
    net = CompactNet(config)
    given = {f"encoder.{name}": value for name, value in _our_names(weights).items()}
    _take(net, given, ("encoder.",), "a BERT")
    return net


def _take(
    net: nn.Module, given: Mapping[str, Tensor], prefixes: tuple[str, ...], kind: str
) -> None:
    """Copy the weights whose names begin so from those of a base, under our names."""
    state = net.state_dict()
    for name, own in state.items():
        if not name.startswith(prefixes) or name.endswith(".scale"):
            continue
        if name not in given or given[name].shape != own.shape:
            raise BadInput(
                f"The base model has no weight for '{name}' of shape {tuple(own.shape)}: give {kind}."
            )
        state[name] = given[name]
    net.load_state_dict(state)


_PARTS_OF_BASES = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "attention.attn.q": "attention.query",
    "attention.attn.k": "attention.key",
    "attention.attn.v": "attention.value",
    "attention.attn.o": "attention.output",
    "attention.LayerNorm": "attention_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
    "word_embeddings": "words",
    "position_embeddings": "places",
    "token_type_embeddings": "types",
    "relative_attention_bias": "relative",
    "LayerNorm": "norm",
}


def _our_names(weights: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of a BERT or an MPNet under the names that `CompactEncoder` gives them; what it does not have
    is left out."""
    table = {}
    for name, value in weights.items():
        path = name.removeprefix("bert.").removeprefix("mpnet.")
        _, _, path = path.partition(".")  # embeddings or encoder
        number, _, rest = path.removeprefix("layer.").partition(".")
        is_layer = path.startswith("layer.")
        part, _, kind = (rest if is_layer else path).rpartition(".")
        ours = _PARTS_OF_BASES.get(part)
        if ours is not None:
            table[f"layers.{number}.{ours}.{kind}" if is_layer else f"{ours}.{kind}"] = (
                torch.as_tensor(value).float()
            )
    return table


# The writer in torch, for training. Its layers are initialized from a BERT, which can read prompts
# already.


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


class WriterNet(nn.Module):
    """A prefix language model. `words` are the encoder's word vectors, which are not trained here."""

    words: Tensor

    def __init__(self, config: CompactConfig, words: Tensor) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("words", words, persistent=False)
        self.signs = nn.Parameter(torch.randn(SIGNS, config.width) * 0.02)
        self.places = nn.Parameter(torch.randn(LONGEST, config.width) * 0.02)
        self.kinds = nn.Parameter(torch.randn(WRITTEN + 1, config.width) * 0.02)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(CompactLayer(config, nn.Linear) for _ in range(config.layers))
        self.out = nn.Linear(config.width, config.width)
        self.out_norm = nn.LayerNorm(config.width, config.epsilon)
        self.out_bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, ids: Tensor, kinds: Tensor) -> Tensor:
        # Tokens that are not signs get a row of zeros.
        signs = F.pad(self.signs, (0, 0, 0, 1))[ids.clamp(max=SIGNS)]
        embedded = self.words[ids] + signs + self.kinds[kinds] + self.places[: ids.shape[1]]
        normed: Tensor = self.dropout(self.norm(embedded))
        return normed

    def forward(self, batch: WriterBatch) -> Tensor:
        """Return the state after each written token (prompts × written × width)."""
        prompt = batch.ids.shape[1]
        size = prompt + batch.written.shape[1]
        written = self.embed(batch.written, torch.full_like(batch.written, WRITTEN))
        states = torch.cat([self.embed(batch.ids, batch.kinds), written], 1)
        # All tokens attend to the prompt, a written one to itself and to what was written before it, too.
        mask = states.new_ones(size, size, dtype=torch.bool).tril()
        mask[:prompt] = False
        mask = mask.repeat(len(states), 1, 1, 1)
        mask[..., :prompt] = batch.mask[:, None, None]
        for layer in self.layers:
            states = layer(states, mask)
        return states[:, prompt:]

    def scores(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        hidden = self.out_norm(gelu(self.out(states)))
        return F.linear(hidden, self.words.to(hidden.dtype), self.out_bias)

    def loss(self, batch: WriterBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the weighted mean loss of the wanted tokens; the sum of their losses, unweighted; their number."""
        counts = batch.weights > 0
        logits = self.scores(self(batch)[counts]).float()
        losses = F.cross_entropy(logits, batch.wanted[counts], reduction="none")
        weights = batch.weights[counts]
        mean = (losses * weights).sum() / weights.sum().clamp(min=1e-6)
        return mean, losses.detach().sum(), counts.sum()


def net_from_bert(
    weights: Mapping[str, Any], layers: Sequence[int], config: CompactConfig, words: Tensor
) -> WriterNet:
    """Return a new writer with some layers of a BERT (names as in its safetensors file)."""
    net = WriterNet(config, words)
    table = _our_names(weights)
    kinds = table["types.weight"]
    given = {
        "norm.weight": table["norm.weight"],
        "norm.bias": table["norm.bias"],
        "places": table["places.weight"][:LONGEST],
        # BERT has two types of tokens; the writer's third, what is written, starts near the first.
        "kinds": torch.cat([kinds, kinds[:1] + 0.02 * torch.randn_like(kinds[:1])]),
    }
    for place, number in enumerate(layers):
        for name, value in table.items():
            if name.startswith(f"layers.{number}."):
                given[name.replace(f".{number}.", f".{place}.", 1)] = value
    kind = f"a BERT with the layers {', '.join(map(str, layers))}, as wide as the encoder"
    _take(net, given, ("norm.", "places", "kinds", "layers."), kind)
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
        """Turn the states of [CLS] and the mean ones of answer and label, side by side (pairs × 3 · width), into the
        logits of the frames, the last of which is none."""
        logits: Tensor = self.frame_out(torch.tanh(self.frame_hidden(edges)))
        return logits.float()


_MPNET_ADDED = 4  # tokens that MPNet's vocabulary has before BERT's
_MPNET_PLACES = 2  # places that no token has


def from_mpnet(weights: Mapping[str, Any]) -> TagNet:
    """Return a new tagger over an MPNet (names as in its safetensors file). Its tokens get BERT's numbers:
    the vocabulary is BERT's, behind four tokens of its own, which stand in for BERT's [CLS] and [SEP]."""
    table = _our_names(weights)
    if "relative.weight" not in table:
        raise BadInput("The base model has no distances between tokens: give an MPNet.")
    own_words = table["words.weight"][_MPNET_ADDED:-1].clone()  # without its mask
    for token, sign in ((PAD, 1), (BEGIN, 0), (END, 2)):
        own_words[token] = table["words.weight"][sign]
    vocabulary, width = own_words.shape
    table["words.weight"] = own_words
    table["places.weight"] = table["places.weight"][_MPNET_PLACES:]
    table["types.weight"] = own_words.new_zeros(2, width)
    net = TagNet(
        CompactConfig(
            vocabulary=vocabulary,
            width=width,
            heads=table["relative.weight"].shape[1],
            inner=len(table["layers.0.wide.bias"]),
            positions=len(table["places.weight"]),
            layers=sum(name.endswith(".wide.bias") for name in table),
            early=0,
            epsilon=1e-5,
            buckets=len(table["relative.weight"]),
        )
    )
    _take(net.encoder, table, ("",), "an MPNet")
    return net


def mean_states(states: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Return the mean state of a span of each pair (pairs × width)."""
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

FROZEN = tuple(f"{name}.weight" for name in "query key value output wide narrow".split())
"""The ends of the names of matrices that are the verifier's."""
TABLES = ("words.weight", "places.weight", "types.weight", "encoder.norm.")


class AdaptedLinear(QuantizedLinear):
    """A linear layer with the product of two thin matrices beside its own, which begins as zero."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__(inputs, outputs)
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, values: Tensor) -> Tensor:
        return super().forward(values) + F.linear(F.linear(values, self.down), self.up)


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
        self.encoder = CompactEncoder(config)
        width = config.width
        for layer in self.encoder.layers:
            assert isinstance(layer, CompactLayer)
            layer.attention.query = AdaptedLinear(width, width, rank)
            layer.attention.value = AdaptedLinear(width, width, rank)
            _share_scale(layer.attention)
            layer.beside = Bottleneck(width, inner)
        self.support = Score(width)

    def freeze(self) -> None:
        """Let only what is the judge's own learn."""
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(not _is_shared(name))

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile what is nearly all of the work."""
        self.encoder.compile_layers(*arguments, **options)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Return the logits of pairs (pairs × tokens each)."""
        states = self.encoder.late(self.encoder.early(ids, types, mask), mask)
        logits: Tensor = self.support(states)
        return logits.float()


def _is_shared(name: str) -> bool:
    return name.endswith(FROZEN) or any(table in name for table in TABLES)


def own_weights(net: SupportNet) -> dict[str, Tensor]:
    """Return what the judge does not share with the verifier."""
    own = {}
    for name, value in net.state_dict().items():
        if not _is_shared(name):
            own[name] = value.detach().cpu()
    return own
