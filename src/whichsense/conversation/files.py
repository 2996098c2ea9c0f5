"""Conversations in files: one JSON object each."""

from __future__ import annotations

import json
from pathlib import Path

from whichsense.conversation.records import Conversation
from whichsense.errors import BadInput
from whichsense.files import write_atomically

_LARGEST = 64 * 2**20  # bytes; 50 turns with evidence are a few


def save(conversation: Conversation, path: Path) -> None:
    """Write a conversation; a file that is there is replaced as a whole."""
    body = json.dumps(conversation.to_json(), ensure_ascii=False)
    try:
        write_atomically(path, body.encode("utf-8", "replace"))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"'{path}' could not be written: {reason}. Choose another place."
        ) from None


def load_conversation(path: Path) -> Conversation:
    """Read what `save` wrote. Raises `BadInput` that says what is wrong with the file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"'{path}' is too large for a conversation. Check the path.")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"There is no file '{path}'. Check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"'{path}' is a folder; a file is needed.") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"'{path}' holds no conversation: it is not JSON ({error}). Use a file that /save or --conversation wrote."
        ) from None
    try:
        return Conversation.from_json(value)
    except BadInput as error:
        raise BadInput(f"'{path}': {error}") from None
