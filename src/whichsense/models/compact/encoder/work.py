"""How much a model has encoded: what a question costs, without a clock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Work:
    """How much was encoded so far. Threads may add at the same time."""

    pairs: int = 0
    """(question, passage) pairs that entered the encoder."""
    prompts: int = 0
    """Prompts that the writer read."""
    layers: int = 0
    """Pairs and prompts, times the layers that they went through."""
    _lock: threading.Lock = field(
        default_factory=threading.Lock, repr=False, compare=False
    )

    def add(self, *, layers: int, pairs: int = 0, prompts: int = 0) -> None:
        with self._lock:
            self.pairs += pairs
            self.prompts += prompts
            self.layers += layers
