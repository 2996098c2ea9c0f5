"""Members: who takes part, in which role; invitations on API keys, and the sessions of browsers."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.errors import BadInput
from whichsense.serve.settings import ApiKey, KeyFile, split_key
from whichsense.studio.database import Database, events, sessions
from whichsense.studio.history import read_events, record

ROLES = ("annotator", "adjudicator", "owner")
"""Each may do what those before it may."""
_SESSION = 30 * 86_400.0  # seconds
_LONGEST_NAME = 100
_REMEMBERED = 1000  # keys that need no second scrypt


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who was invited."""

    id: str
    name: str
    role: str
    paused: str = ""
    """Why nothing new is given to them; empty: they may work."""

    def may(self, role: str) -> bool:
        """Whether the member has a role's rights."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser holds after an invitation was accepted."""

    member: Member
    token: str
    """To be sent back with every change, in the header X-CSRF-Token."""
    cookie: str = ""


class Revoked(Exception):
    """The membership has ended since the request began."""


class Paused(Exception):
    """Nothing new is given to the member, for this reason."""


class Members:
    """The members of a project: keys in its folder, sessions and pauses in its database."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._file = KeyFile(folder)
        self._database = database
        self._pepper = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}  # keyed hash of an invitation → its id
        self._one_at_a_time = threading.Lock()  # scrypt takes 16 MB

    def invite(self, name: str, role: str = "annotator") -> str:
        """Make an invitation, which cannot be shown again. It is the member's API key too."""
        name = name.strip()
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise BadInput(f"A name has 1 to {_LONGEST_NAME} printable characters.")
        if role not in ROLES:
            raise BadInput(f"There is no role '{role}'. Roles: {', '.join(ROLES)}.")
        if name in (key.name for key in self._file.active().values()):
            raise BadInput(
                f"'{name}' is invited already. Choose another name, or revoke the member first."
            )
        token = self._file.add(name, (role,))
        parts = split_key(token)
        if parts is not None:
            self._record(parts[0], "invite", {"name": name, "role": role})
        return token

    def all(self) -> list[Member]:
        """Every member who was not revoked, in the order of invitation."""
        with self._database.reading() as connection:
            changes = read_events(connection, item=0, kinds=("pause", "resume"))
        latest = {one.annotator: one.payload for one in changes}
        return [_member(key, _reason(latest.get(key.id))) for key in self._file.active().values()]

    def names(self) -> dict[str, str]:
        """The name of everyone who ever was a member, by id."""
        with self._database.reading() as connection:
            invited = read_events(connection, item=0, kinds=("invite",))
        return {one.annotator: str(one.payload["name"]) for one in invited}

    def find(self, member_id: str) -> Member | None:
        """A member by id; None where there is none, or no longer."""
        key = self._file.active().get(member_id)
        if key is None:
            return None
        with self._database.reading() as connection:
            return _member(key, read_pause(connection, member_id))

    def revoke(self, member_id: str, by: str) -> None:
        """End a membership. What the member has written is kept."""
        owners = [one for one in self.all() if one.role == "owner"]
        if [one.id for one in owners] == [member_id]:
            raise BadInput("This is the only owner. Invite another one first.")
        self._file.revoke(member_id)
        self._record(member_id, "revoke", {"by": by})

    def pause(self, member_id: str, reason: str, by: str = "") -> None:
        """Give a member nothing new."""
        self._record(member_id, "pause", {"reason": reason, "by": by})

    def resume(self, member_id: str, by: str) -> None:
        self._record(member_id, "resume", {"by": by})

    def _record(self, member_id: str, kind: str, payload: Mapping[str, Any]) -> None:
        with self._database.writing() as connection:
            record(connection, kind, payload, annotator=member_id)

    # Who asks.

    @contextmanager
    def writing(self, member: Member) -> Iterator[Connection]:
        """A transaction of a member. Raises `Revoked` where the membership has ended by now."""
        with self._database.writing() as connection:
            if read_events(connection, 0, member.id, ("revoke",)):
                raise Revoked
            yield connection

    def of_key(self, token: str) -> Member | None:
        """The member whose key this is. scrypt runs once for each key and process."""
        parts = split_key(token) if token.isascii() else None
        key = self._file.active().get(parts[0]) if parts else None
        if parts is None or key is None:
            return None
        mark = hmac.digest(self._pepper, token.encode(), hashlib.sha256)
        if self._known.get(mark) != key.id:
            with self._one_at_a_time:
                fits = key.fits(parts[1])
            if not fits:
                return None
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[mark] = key.id
        return self.find(key.id)

    def begin_session(self, invitation: str) -> Session | None:
        """Accept an invitation; None where it is none."""
        member = self.of_key(invitation)
        if member is None:
            return None
        cookie, token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = time.time()
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.until < now))
            connection.execute(
                sessions.insert().values(
                    digest=_digest(cookie), member=member.id, token=token, until=now + _SESSION
                )
            )
            record(connection, "join", {}, annotator=member.id)
        return Session(member, token, cookie)

    def session(self, cookie: str) -> Session | None:
        """The session of a cookie; None where it has ended."""
        pause = _latest_pause(sessions.c.member)
        query = sa.select(sessions.c.member, sessions.c.token, pause).where(
            sessions.c.digest == _digest(cookie), sessions.c.until > time.time()
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        key = self._file.active().get(row.member) if row else None
        return Session(_member(key, _reason(row[2])), row.token) if row and key else None

    def end_session(self, cookie: str) -> None:
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.digest == _digest(cookie)))


def invitation_link(base: str, token: str) -> str:
    """Return the link of an invitation. What is behind # is sent to no server by itself, and stands in no log."""
    return f"{base.rstrip('/')}/#invitation={token}"


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode(errors="replace")).hexdigest()


def _member(key: ApiKey, paused: str) -> Member:
    role = key.scopes[0] if key.scopes and key.scopes[0] in ROLES else ROLES[0]
    return Member(key.id, key.name, role, paused)


def read_pause(connection: Connection, member_id: str) -> str:
    """Why a member is paused; empty where they may work."""
    return _reason(connection.scalar(sa.select(_latest_pause(sa.literal(member_id)))))


def _latest_pause(member_id: sa.ColumnElement[str]) -> sa.ScalarSelect[str]:
    """The payload of a member's latest pause, or of its end."""
    query = sa.select(events.c.payload).where(
        events.c.item == 0, events.c.annotator == member_id, events.c.kind.in_(("pause", "resume"))
    )
    return query.order_by(events.c.id.desc()).limit(1).scalar_subquery()


def _reason(payload: Mapping[str, Any] | str | None) -> str:
    """Why a member is paused, by the payload of what happened last; a pause alone has a reason."""
    known = json.loads(payload) if isinstance(payload, str) else payload or {}
    return str(known["reason"] or "paused") if "reason" in known else ""
