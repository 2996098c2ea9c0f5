"""Greedy and beam search over a `Network`, for many questions at once, with caches of a fixed size.

Every step has the same shapes, so on a GPU it is recorded once as a CUDA graph and replayed. A question's result does
not depend on the others in its batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whichsense.jobs.limits import check_limits
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import EncodedInputs, LayerWeights, SpecialTokens
from whichsense.types import frozen

_FAR = -1e9  # below the score of any hypothesis


@frozen
class Search:
    """The settings of a search. One beam is greedy."""

    beams: int = 4
    longest: int = 32
    """Tokens of an output, with its end and without a prefix."""
    shortest: int = 0
    """The fewest tokens of an output."""


@frozen
class Output:
    """The tokens of an output without its end, and the sum of their log probabilities."""

    tokens: list[int]
    score: float


class Stepper:
    """One decoding step over fixed buffers: tokens and position in, scores out."""

    def __init__(
        self, network: Network, layers: LayerWeights, memory: EncodedInputs, beams: int, length: int
    ) -> None:
        device = memory.keys[0].device
        hypotheses = memory.questions * beams
        self._network = network
        self._layers = layers
        self._memory = memory
        self._caches = network.caches(hypotheses, length, memory.keys[0].dtype)
        self._tokens = torch.zeros(hypotheses, dtype=torch.int64, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        self._scores: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def step(self, tokens: Tensor, place: int) -> Tensor:
        """Return log probabilities of the next token: (hypotheses, vocabulary). The next step overwrites the tensor."""
        self._tokens.copy_(tokens)
        self._position.fill_(place)
        can_record = self._tokens.is_cuda and self._network.records_steps
        # The first step runs unrecorded: it initializes the libraries.
        if can_record and self._graph is None and place > 0:
            self._record()
        if self._graph is None:
            return self._compute()
        self._graph.replay()
        assert self._scores is not None
        return self._scores

    def reorder(self, parents: Tensor) -> None:
        """Let each hypothesis continue from its parent, another one of its question."""
        for keys, values in self._caches:
            keys.copy_(keys.index_select(0, parents))
            values.copy_(values.index_select(0, parents))

    def _compute(self) -> Tensor:
        scores = self._network.step(
            self._tokens, self._position, self._caches, self._memory, self._layers
        )
        return scores.log_softmax(-1)

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Recording computes nothing: the step is replayed afterwards.
        with torch.cuda.graph(graph):
            self._scores = self._compute()
        self._graph = graph


@torch.inference_mode()
def run_search(
    network: Network,
    layers: LayerWeights,
    memory: EncodedInputs,
    settings: Search,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Output]]:
    """Return the best outputs of each question, best first, at most `beams` of them.

    `prefixes` are tokens that each output must begin with. They are part of the output.
    """
    forced = _forced(memory.questions, prefixes, memory.keys[0].device)
    length = settings.longest + forced.shape[1]
    stepper = Stepper(network, layers, memory, settings.beams, length)
    if settings.beams == 1:
        return _greedy(stepper, network.signs, forced, settings)
    return _Beams(stepper, network.signs, forced, settings).run()


def _forced(
    questions: int, prefixes: Sequence[Sequence[int]] | None, device: torch.device
) -> Tensor:
    """Return the prefixes as a table (questions, longest prefix), with -1 for padding."""
    rows = prefixes or [()] * questions
    table = torch.full((questions, max(map(len, rows))), -1, dtype=torch.int64)
    for row, tokens in enumerate(rows):
        table[row, : len(tokens)] = torch.tensor(list(tokens), dtype=torch.int64)
    return table.to(device)


def _limits(forced: Tensor, settings: Search) -> Tensor:
    """Return the most tokens of each output, with its own prefix (questions)."""
    return settings.longest + (forced >= 0).sum(1)


def _constrained(scores: Tensor, forced: Tensor, place: int, end: int, settings: Search) -> Tensor:
    """Limit scores (questions, beams, vocabulary): allow only a forced token, and no end before the shortest."""
    if place < settings.shortest:
        scores = scores.clone()
        scores[..., end] = _FAR
    if place >= forced.shape[1]:
        return scores
    token = forced[:, place]
    index = token.clamp(min=0)[:, None, None].expand(*scores.shape[:2], 1)
    # A forced token scores 0: an output's score is that of the tokens that the model chose.
    only = torch.full_like(scores, _FAR).scatter(-1, index, 0.0)
    return torch.where((token >= 0)[:, None, None], only, scores)


def _greedy(
    stepper: Stepper, signs: SpecialTokens, forced: Tensor, settings: Search
) -> list[list[Output]]:
    start, end, pad = signs
    device = forced.device
    questions = forced.shape[0]
    length = settings.longest + forced.shape[1]
    limits = _limits(forced, settings)
    tokens = torch.full((questions,), start, device=device)
    output = torch.full((questions, length), pad, device=device)
    totals = torch.zeros(questions, device=device)
    done = torch.zeros(questions, dtype=torch.bool, device=device)
    for place in range(length):
        check_limits()
        scores = stepper.step(tokens, place)[:, None, :]
        scores = _constrained(scores, forced, place, end, settings)[:, 0]
        best, tokens = scores.max(-1)
        tokens = tokens.masked_fill(done, pad)
        totals += best.masked_fill(done, 0.0)
        output[:, place] = tokens
        done |= (tokens == end) | (limits == place + 1)
        if _checks_end(place, device) and bool(done.all()):
            break
    rows = zip(output.tolist(), totals.tolist(), strict=True)
    return [[Output(_strip(row, end, pad), total)] for row, total in rows]


def _checks_end(place: int, device: torch.device) -> bool:
    """Tell whether to check if all are done: on a GPU at every eighth token, since the check waits for the GPU."""
    return device.type == "cpu" or place % 8 == 7


def _strip(tokens: list[int], end: int, pad: int) -> list[int]:
    """Return the tokens of an output before its end, without padding."""
    if end in tokens:
        tokens = tokens[: tokens.index(end)]
    return [token for token in tokens if token != pad]


class _Beams:
    """The state of a beam search: live hypotheses, and finished ones with their normalized scores."""

    def __init__(
        self, stepper: Stepper, signs: SpecialTokens, forced: Tensor, settings: Search
    ) -> None:
        self.stepper = stepper
        self.forced = forced
        self.settings = settings
        self.length = settings.longest + forced.shape[1]
        self.limits = _limits(forced, settings)
        self.start, self.end, self.pad = signs
        device = forced.device
        questions = forced.shape[0]
        beams = settings.beams
        # The first hypothesis of each question: (questions, 1).
        self.first = (torch.arange(questions, device=device) * beams)[:, None]
        self.tokens = torch.full((questions, beams, self.length), self.pad, device=device)
        self.scores = torch.full((questions, beams), _FAR, device=device)
        self.scores[:, 0] = 0.0  # all beams start equal: only the first counts
        # A question that is over stays over while others of its batch continue: more tokens could raise a mean again.
        self.over = torch.zeros(questions, dtype=torch.bool, device=device)
        self.finished = self.tokens.clone()
        self.finished_scores = torch.full((questions, beams), _FAR, device=device)
        self.finished_sums = torch.full((questions, beams), _FAR, device=device)

    def run(self) -> list[list[Output]]:
        shape = (self.first.shape[0], self.settings.beams)
        last = self.tokens.new_full(shape, self.start)
        for place in range(self.length):
            check_limits()
            last = self._step(last, place)
            self.over |= self._is_over(place + 1)
            if _checks_end(place, last.device) and bool(self.over.all()):
                break
        return self._best()

    def _step(self, last: Tensor, place: int) -> Tensor:
        """Extend all hypotheses by a token and return the tokens (questions, beams)."""
        questions, beams = last.shape
        scores = self.stepper.step(last.flatten(), place).view(questions, beams, -1)
        scores = _constrained(scores, self.forced, place, self.end, self.settings)
        scores = scores + self.scores[..., None]
        vocabulary = scores.shape[-1]
        # Twice as many candidates as beams: even if half of them end, enough continue.
        sums, chosen = scores.flatten(1).topk(2 * beams, dim=-1)
        parents = chosen // vocabulary
        tokens = chosen % vocabulary
        index = parents[..., None].expand(-1, -1, self.length)
        history = self.tokens.gather(1, index).clone()
        history[:, :, place] = tokens
        ends = tokens == self.end
        # An end finishes a hypothesis only if it is among the best `beams` candidates.
        is_best = (torch.arange(2 * beams, device=ends.device) < beams)[None, :]
        finishes = ends & is_best & (~self.over[:, None] & (sums > _FAR / 2))
        normalized = (sums / (place + 1)).masked_fill(~finishes, _FAR)
        self._keep(history, sums, normalized)
        self.scores, order = sums.masked_fill(ends, _FAR).topk(beams, dim=-1)
        self.tokens = history.gather(1, order[..., None].expand(-1, -1, self.length))
        self._cut(place + 1)
        self.stepper.reorder((self.first + parents.gather(1, order)).flatten())
        return tokens.gather(1, order)

    def _cut(self, length: int) -> None:
        """Finish the hypotheses that have reached their limit without an end."""
        cut = (self.limits == length)[:, None]
        excluded = ~cut | (self.scores < _FAR / 2) | self.over[:, None]
        normalized = (self.scores / length).masked_fill(excluded, _FAR)
        self._keep(self.tokens, self.scores, normalized)
        self.scores = self.scores.masked_fill(cut, _FAR)

    def _is_over(self, place: int) -> Tensor:
        """Tell whether no live hypothesis can beat the worst of the finished ones (questions)."""
        hope = self.scores.amax(-1) / max(place, 1)
        over: Tensor = self.finished_scores.amin(-1) >= hope
        return over

    def _keep(self, tokens: Tensor, sums: Tensor, scores: Tensor) -> None:
        """Keep the best of the finished hypotheses and these."""
        all_scores = torch.cat([self.finished_scores, scores], 1)
        self.finished_scores, best = all_scores.topk(self.settings.beams, dim=-1)
        self.finished_sums = torch.cat([self.finished_sums, sums], 1).gather(1, best)
        all_tokens = torch.cat([self.finished, tokens], 1)
        index = best[..., None].expand(-1, -1, self.length)
        self.finished = all_tokens.gather(1, index)

    def _best(self) -> list[list[Output]]:
        rows = zip(
            self.finished.tolist(),
            self.finished_sums.tolist(),
            self.finished_scores.tolist(),
            strict=True,
        )
        outputs = []
        for row in rows:
            own = [
                Output(_strip(tokens, self.end, self.pad), total)
                for tokens, total, score in zip(*row, strict=True)
                if score > _FAR / 2
            ]
            outputs.append(own)
        return outputs
