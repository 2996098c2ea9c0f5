"""The network that finds labels, in torch, for training: layers over the encoder's first ones, and two heads.

The exported form (`graph.py`) does the same arithmetic in ONNX Runtime.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from whichsense.models.compact.encoder.net import CompactConfig, CompactLayer
from whichsense.models.compact.label.frames import NO_FRAME

OTHER_TOKEN, OWN_ANSWER, OTHER_ANSWER = 0, 1, 2
"""What a token is part of."""
_HIDDEN = 128
_SELDOM = -2.5  # the logit of a token to be of the label, at first


class LabelNet(nn.Module):
    """Reads a pair of a question and a passage in which one answer is marked, and the others of the question."""

    def __init__(self, config: CompactConfig, layers: int) -> None:
        super().__init__()
        self.config = config
        self.marks = nn.Embedding(3, config.width)
        nn.init.normal_(self.marks.weight, std=0.1)
        self.layers = nn.ModuleList(CompactLayer(config) for _ in range(layers))
        self.label = nn.Linear(config.width, 1)
        nn.init.constant_(self.label.bias, _SELDOM)
        self.frame_hidden = nn.Linear(3 * config.width, _HIDDEN)
        self.frame_out = nn.Linear(_HIDDEN, NO_FRAME + 1)

    def forward(
        self, states: Tensor, marks: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The early states of pairs (pairs × tokens × width) → the logits of their tokens to be of the label (pairs ×
        tokens), and the states behind them."""
        states = states + self.marks(marks)
        for layer in self.layers:
            states = layer(states, mask[:, None, None, :])
        return self.label(states).squeeze(-1), states

    def frame(self, edges: Tensor) -> Tensor:
        """The states of [CLS] and the mean ones of answer and label, side by side (pairs × 3 · width) → the logits of
        the frames, the last of which is none."""
        logits: Tensor = self.frame_out(torch.tanh(self.frame_hidden(edges)))
        return logits


def mean_states(states: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The mean state of a span of each pair (pairs × width)."""
    at = torch.arange(states.shape[1], device=states.device)
    inside = ((at >= first[:, None]) & (at <= last[:, None])).to(states.dtype)
    total = torch.einsum("pt,ptw->pw", inside, states)
    return total / inside.sum(1, keepdim=True).clamp(min=1)
