"""What was said so far, from the messages that a client repeats with every request.

A conversation is kept under a digest of its owner and of every message in it. The next request has the same messages
before its newest one, so any worker finds the conversation again; a digest tells nothing of what was said.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.serve.state.conversations import Conversations, KeptConversation

USER = "user"
ASSISTANT = "assistant"
REPLAYED = 3
"""Messages of the person that are answered again where the conversation is not known any more."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the person or of the service."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the person says now, and what was said before it."""

    text: str
    history: tuple[Message, ...] = ()
    tokens: int = 0
    """Of the whole request, with the system's messages."""


@dataclass(frozen=True, slots=True)
class Found:
    """The conversation so far: what is kept of it, and what has to be answered again to get to now."""

    digest: str
    """Of all messages before the newest; empty where they are not all known."""
    kept: KeptConversation | None = None
    replayed: tuple[str, ...] = ()


def count_tokens(text: str) -> int:
    """Words and marks: what `usage` counts.

    >>> count_tokens("Who played the Joker?")
    5
    """
    return len(_WORD.findall(text))


def first_digest(owner: str) -> str:
    """The digest of a conversation in which nothing was said."""
    return _digest("", owner)


def next_digest(digest: str, message: Message) -> str:
    """The digest with one more message. White space, which clients change, does not count.

    >>> one = next_digest(first_digest(""), Message("user", "Who won? "))
    >>> one == next_digest(first_digest(""), Message("user", "Who won?"))
    True
    """
    return _digest(digest, message.role, " ".join(message.text.split()))


def _digest(*parts: str) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def find_conversation(
    store: Conversations, owner: str, history: Sequence[Message]
) -> Found:
    """The longest beginning of the history that is kept, and the messages of the person after it. In a thread."""
    digests = [first_digest(owner)]
    for message in history:
        digests.append(next_digest(digests[-1], message))
    replayed: list[str] = []
    for place in range(len(history), 0, -1):
        message = history[place - 1]
        if message.role == ASSISTANT:
            kept = store.find(digests[place], owner)
            if kept is not None:
                return Found(digests[-1], kept, tuple(reversed(replayed)))
        elif len(replayed) < REPLAYED:
            replayed.append(message.text)
        else:
            break
    return Found(digests[-1], None, tuple(reversed(replayed)))
