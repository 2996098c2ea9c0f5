"""Conversations that can be resumed by their id, in another worker or after a restart."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.conversation import Conversation
from whichsense.serve.state.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, at REAL, owner TEXT, case_id TEXT, mark INTEGER, body BLOB, system TEXT DEFAULT ''
);
"""
# What earlier versions did not keep.
_LATER = {"system": "TEXT DEFAULT ''"}
_IN_MEMORY = 200  # conversations that are remembered while they cannot be written
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation, and the id of the case that it is about."""

    conversation: Conversation
    case_id: str
    owner: str = ""
    system: str = ""
    """The system that answers in it; empty: the first that is served."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.conversation.id,
            "case_id": self.case_id,
            "system": self.system,
            "tentative": self.conversation.last.is_tentative,
            "conversation": self.conversation.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], owner: str) -> KeptConversation:
        """Read what `to_json` wrote."""
        conversation = Conversation.from_json(value["conversation"])
        case_id, system = str(value["case_id"]), str(value["system"])
        return cls(conversation, case_id, owner, system)


class Changed(Exception):
    """Someone else replied in the same moment."""


class Conversations:
    """The store. While the disk is full, the latest conversations are kept in memory."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA)
        self._database.add_columns("conversations", _LATER)
        self._unwritten: OrderedDict[str, KeptConversation] = OrderedDict()

    def save(self, kept: KeptConversation, before: KeptConversation | None) -> None:
        """Keep a conversation in the place of `before`; `Changed` where that is not what is there any more."""
        conversation = kept.conversation
        body = zlib.compress(json.dumps(conversation.to_json()).encode(), 1)
        row = (conversation.id, time.time(), kept.owner, kept.case_id, body)
        # Every turn changes the last one, whose checksum stands for the whole.
        mark = _mark(conversation)
        try:
            if before is None or conversation.id in self._unwritten:
                written = self._database.rows(
                    "INSERT OR REPLACE INTO conversations (id, at, owner, case_id, body, mark, system)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    (*row, mark, kept.system),
                )
            else:
                written = self._database.rows(
                    "UPDATE conversations SET at = ?2, case_id = ?4, mark = ?6, body = ?5"
                    " WHERE id = ?1 AND owner = ?3 AND mark = ?7 RETURNING id",
                    (*row, mark, _mark(before.conversation)),
                )
        except (sqlite3.Error, OSError) as error:
            _log.error("a conversation cannot be written (%s); it goes on", error)
            self._unwritten[conversation.id] = kept
            while len(self._unwritten) > _IN_MEMORY:
                self._unwritten.popitem(last=False)
            return
        self._unwritten.pop(conversation.id, None)
        if not written:
            raise Changed(conversation.id)

    def find(
        self, conversation_id: str, owner: str | None = None
    ) -> KeptConversation | None:
        """A conversation by its id; with an owner, only that owner's."""
        kept = self._unwritten.get(conversation_id)
        if kept is None:
            for body, *about in self._database.rows(
                "SELECT body, case_id, owner, system FROM conversations WHERE id = ?",
                (conversation_id,),
            ):
                value = json.loads(zlib.decompress(body))
                kept = KeptConversation(Conversation.from_json(value), *about)
        if kept is None or owner not in (None, kept.owner):
            return None
        return kept

    def delete(self, conversation_id: str) -> None:
        self._unwritten.pop(conversation_id, None)
        self._database.rows(
            "DELETE FROM conversations WHERE id = ?", (conversation_id,)
        )

    def delete_older(self, seconds: float) -> None:
        before = (time.time() - seconds,)
        self._database.rows("DELETE FROM conversations WHERE at < ?", before)

    def close(self) -> None:
        self._database.close()


def _mark(conversation: Conversation) -> int:
    """A number that another turn changes, also where the oldest turns were dropped."""
    said = json.dumps([turn.said for turn in conversation.turns])
    return zlib.crc32(f"{len(conversation.turns)} {said}".encode())
