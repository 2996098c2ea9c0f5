"""Greedy and beam search over a `Network`, many questions at once, with caches of a fixed size.

Every step has the same shapes, so on a GPU it is recorded once as a CUDA graph and replayed. A question's result does
not depend on the others in its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from whichsense.models.seq2seq.network import Layers, Memory, Network, Signs

_FAR = -1e9  # a score that no hypothesis has


@dataclass(frozen=True, slots=True)
class Search:
    """How to search. One beam is greedy."""

    beams: int = 4
    longest: int = 32
    """Tokens of an output, the end's included; a prefix is not counted."""
    length_penalty: float = 1.0
    """Scores are divided by length to this power before finished hypotheses are compared."""
    shortest: int = 0
    """Tokens before which no output ends."""


@dataclass(frozen=True, slots=True)
class Found:
    """An output without its end, and the sum of its tokens' log probabilities."""

    tokens: list[int]
    score: float


class Stepper:
    """One decoding step over buffers that stay where they are: `tokens` and `position` in, scores out."""

    def __init__(
        self, network: Network, layers: Layers, memory: Memory, beams: int, length: int
    ) -> None:
        device, hypotheses = memory.keys[0].device, memory.questions * beams
        self._network, self._layers, self._memory = network, layers, memory
        self._caches = network.caches(hypotheses, length, memory.keys[0].dtype)
        self._tokens = torch.zeros(hypotheses, dtype=torch.int64, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        self._scores: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def step(self, tokens: Tensor, place: int) -> Tensor:
        """Log probabilities of the next token: (hypotheses, vocabulary). The tensor is overwritten by the next step."""
        self._tokens.copy_(tokens)
        self._position.fill_(place)
        if (
            self._tokens.is_cuda
            and self._network.records_steps
            and self._graph is None
            and place > 0
        ):
            self._record()  # behind one step outside, which sets the libraries up
        if self._graph is None:
            return self._compute()
        self._graph.replay()
        assert self._scores is not None
        return self._scores

    def reorder(self, parents: Tensor) -> None:
        """Hypotheses go on from others of their question."""
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
        with torch.cuda.graph(
            graph
        ):  # recording computes nothing: the step is then replayed
            self._scores = self._compute()
        self._graph = graph


@torch.inference_mode()
def search(
    network: Network,
    layers: Layers,
    memory: Memory,
    settings: Search,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Found]]:
    """The best outputs of each question, best first (`beams` of them at most).

    `prefixes` are tokens that each output must begin with; they are part of what is returned.
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
    """(questions, longest prefix): the tokens that outputs begin with; -1 where they are free."""
    rows = prefixes or [()] * questions
    table = torch.full((questions, max(map(len, rows))), -1, dtype=torch.int64)
    for row, tokens in enumerate(rows):
        table[row, : len(tokens)] = torch.tensor(list(tokens), dtype=torch.int64)
    return table.to(device)


def _limits(forced: Tensor, settings: Search) -> Tensor:
    """How many tokens each output may have: its own prefix is not counted, and nobody else's matters."""
    return settings.longest + (forced >= 0).sum(1)


def _constrained(
    scores: Tensor, forced: Tensor, place: int, end: int, settings: Search
) -> Tensor:
    """(questions, beams, vocabulary): only the forced token where there is one; no end before the shortest."""
    if place < settings.shortest:
        scores = scores.clone()
        scores[..., end] = _FAR
    if place >= forced.shape[1]:
        return scores
    token = forced[:, place]
    only = torch.full_like(scores, _FAR).scatter(
        -1, token.clamp(min=0)[:, None, None].expand(*scores.shape[:2], 1), 0.0
    )
    # A forced token costs nothing, so that an output's score is that of what the model chose.
    return torch.where((token >= 0)[:, None, None], only, scores)


def _greedy(
    stepper: Stepper, signs: Signs, forced: Tensor, settings: Search
) -> list[list[Found]]:
    start, end, pad = signs
    questions, device = forced.shape[0], forced.device
    length, limits = settings.longest + forced.shape[1], _limits(forced, settings)
    tokens = torch.full((questions,), start, device=device)
    output = torch.full((questions, length), pad, device=device)
    totals = torch.zeros(questions, device=device)
    done = torch.zeros(questions, dtype=torch.bool, device=device)
    for place in range(length):
        scores = _constrained(
            stepper.step(tokens, place)[:, None, :], forced, place, end, settings
        )[:, 0]
        best, tokens = scores.max(-1)
        tokens = tokens.masked_fill(done, pad)
        totals += best.masked_fill(done, 0.0)
        output[:, place] = tokens
        done |= (tokens == end) | (limits == place + 1)
        if _look(place, device) and bool(done.all()):
            break
    rows = zip(output.tolist(), totals.tolist(), strict=True)
    return [[Found(_until(row, end, pad), total)] for row, total in rows]


def _look(place: int, device: torch.device) -> bool:
    """Whether to ask if all are done: on a GPU seldom, as asking waits for it."""
    return device.type == "cpu" or place % 8 == 7


def _until(tokens: list[int], end: int, pad: int) -> list[int]:
    """An output up to its end."""
    if end in tokens:
        tokens = tokens[: tokens.index(end)]
    return [token for token in tokens if token != pad]


class _Beams:
    """The state of a beam search: hypotheses that go on, and finished ones with their normalised scores."""

    def __init__(
        self, stepper: Stepper, signs: Signs, forced: Tensor, settings: Search
    ) -> None:
        self.stepper, self.forced, self.settings = stepper, forced, settings
        self.length, self.limits = (
            settings.longest + forced.shape[1],
            _limits(forced, settings),
        )
        self.start, self.end, self.pad = signs
        questions, beams, device = forced.shape[0], settings.beams, forced.device
        self.first = (torch.arange(questions, device=device) * beams)[:, None]
        self.tokens = torch.full(
            (questions, beams, self.length), self.pad, device=device
        )
        self.scores = torch.full((questions, beams), _FAR, device=device)
        self.scores[:, 0] = 0.0  # all beams begin alike: only the first counts
        # What is over stays so, however long the others of its batch go on: more tokens could raise a mean again.
        self.over = torch.zeros(questions, dtype=torch.bool, device=device)
        self.finished = self.tokens.clone()
        self.finished_scores = torch.full((questions, beams), _FAR, device=device)
        self.finished_sums = torch.full((questions, beams), _FAR, device=device)

    def run(self) -> list[list[Found]]:
        last = self.tokens.new_full(
            (self.first.shape[0], self.settings.beams), self.start
        )
        for place in range(self.length):
            last = self._step(last, place)
            self.over |= self._is_over(place + 1)
            if _look(place, last.device) and bool(self.over.all()):
                break
        return self._best()

    def _step(self, last: Tensor, place: int) -> Tensor:
        questions, beams = last.shape
        scores = self.stepper.step(last.flatten(), place).view(questions, beams, -1)
        scores = (
            _constrained(scores, self.forced, place, self.end, self.settings)
            + self.scores[..., None]
        )
        vocabulary = scores.shape[-1]
        # Twice as many as beams: even if half of them end, enough go on.
        sums, chosen = scores.flatten(1).topk(2 * beams, dim=-1)
        parents, tokens = chosen // vocabulary, chosen % vocabulary
        history = self.tokens.gather(
            1, parents[..., None].expand(-1, -1, self.length)
        ).clone()
        history[:, :, place] = tokens
        ends = tokens == self.end
        over = self.over[:, None]
        # An end that is not among the best `beams` candidates is none: others are better than it.
        closing = (
            ends
            & (torch.arange(2 * beams, device=ends.device) < beams)[None, :]
            & ~over
            & (sums > _FAR / 2)
        )
        self._keep(
            history, sums, self._normal(sums, place + 1).masked_fill(~closing, _FAR)
        )
        self.scores, order = sums.masked_fill(ends, _FAR).topk(beams, dim=-1)
        self.tokens = history.gather(1, order[..., None].expand(-1, -1, self.length))
        self._cut(place + 1)
        self.stepper.reorder((self.first + parents.gather(1, order)).flatten())
        return tokens.gather(1, order)

    def _cut(self, length: int) -> None:
        """What has not ended when its room is used up competes as it is."""
        cut = (self.limits == length)[:, None]
        left_out = ~cut | (self.scores < _FAR / 2) | self.over[:, None]
        self._keep(
            self.tokens,
            self.scores,
            self._normal(self.scores, length).masked_fill(left_out, _FAR),
        )
        self.scores = self.scores.masked_fill(cut, _FAR)

    def _normal(self, sums: Tensor, length: int) -> Tensor:
        return sums / float(length**self.settings.length_penalty)

    def _is_over(self, place: int) -> Tensor:
        """Whether nothing that goes on can still beat the worst of the finished ones."""
        hope = self._normal(self.scores.amax(-1), max(place, 1))
        over: Tensor = self.finished_scores.amin(-1) >= hope
        return over

    def _keep(self, tokens: Tensor, sums: Tensor, scores: Tensor) -> None:
        beams = self.settings.beams
        self.finished_scores, best = torch.cat([self.finished_scores, scores], 1).topk(
            beams, dim=-1
        )
        self.finished_sums = torch.cat([self.finished_sums, sums], 1).gather(1, best)
        every = torch.cat([self.finished, tokens], 1)
        self.finished = every.gather(1, best[..., None].expand(-1, -1, self.length))

    def _best(self) -> list[list[Found]]:
        rows = zip(
            self.finished.tolist(),
            self.finished_sums.tolist(),
            self.finished_scores.tolist(),
            strict=True,
        )
        return [
            [
                Found(_until(tokens, self.end, self.pad), total)
                for tokens, total, score in zip(*row, strict=True)
                if score > _FAR / 2
            ]
            for row in rows
        ]
