"""What is asked of a language model, and what it replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from whichsense.errors import WhichsenseError

MARK = "\x00mark\x00"
"""Stands in a prompt for the mark that fences data; each call that is sent draws another one."""


class LLMFault(WhichsenseError):
    """A language model that cannot be used: refused, too late, over a limit, or without a usable reply."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call: which prompt, its messages, and how it is decoded."""

    prompt: str
    """The name of the prompt file."""
    system: str
    user: str
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    seed: int = 0
    top_logprobs: int = 0
    """How many alternatives of each token are wanted, with their log probabilities."""

    def key(self, url: str, model: str, extra: Mapping[str, Any]) -> str:
        """What a reply is cached under: everything that decides it. The mark of the fences does not."""
        parts = {"url": url, "model": model, "extra": extra, **asdict(self)}
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def estimated_tokens(self) -> int:
        """How many tokens it may take, read and written: words are 1.3 tokens or so, four characters are one."""
        return (len(self.system) + len(self.user)) // 3 + self.max_tokens


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply and its likeliest alternatives, itself among them."""

    text: str
    logprob: float
    alternatives: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `tokens` is empty where the server gives no log probabilities."""

    text: str
    tokens: tuple[Token, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def mean_logprob(self) -> float | None:
        if not self.tokens:
            return None
        return sum(token.logprob for token in self.tokens) / len(self.tokens)

    def to_json(self) -> str:
        rows = [
            [token.text, token.logprob, dict(token.alternatives)]
            for token in self.tokens
        ]
        return json.dumps([self.text, rows, self.tokens_in, self.tokens_out])

    @classmethod
    def from_json(cls, text: str) -> Reply:
        """Read what `to_json` wrote. Raises ValueError, TypeError or KeyError where it is something else."""
        reply, rows, tokens_in, tokens_out = json.loads(text)
        tokens = []
        for own, logprob, alternatives in rows:
            tokens.append(Token(str(own), float(logprob), dict(alternatives)))
        return cls(str(reply), tuple(tokens), int(tokens_in), int(tokens_out))
