"""The HTTP client beneath the official one: a reply that never ends is broken off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whichsense.errors import require

LARGEST_REPLY = 4 * 2**20
"""Bytes. A reply with the log probabilities of a thousand tokens has one million."""


class ReplyTooLarge(Exception):
    """The server sends more than any prompt asks for."""


def http_client() -> Any:
    """A client that reads at most `LARGEST_REPLY` bytes of a reply."""
    openai = require("openai", "llm")
    return openai.DefaultHttpxClient(event_hooks={"response": [_bound]})


def connection_errors() -> tuple[type[Exception], ...]:
    """What a connection that breaks raises beneath the official client."""
    return (OSError, require("httpx2", "llm").HTTPError)


def _bound(response: Any) -> None:
    """Told of every response before its body is read."""
    response.stream = bounded_stream(response.stream)


def bounded_stream(stream: Any, largest: int = LARGEST_REPLY) -> Any:
    """A stream of bytes that raises `ReplyTooLarge` behind `largest` bytes."""
    httpx2 = require("httpx2", "llm")

    class Bounded(httpx2.SyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            count = 0
            for chunk in stream:
                count += len(chunk)
                if count > largest:
                    raise ReplyTooLarge
                yield chunk

        def close(self) -> None:
            stream.close()

    return Bounded()
