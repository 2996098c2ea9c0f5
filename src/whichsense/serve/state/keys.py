"""API keys. A key is shown once, when it is made; the file keeps its scrypt hash."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig, BadInput
from whichsense.files import lock, read_json, write_atomically

FILE = "keys.json"
SCOPES = ("ask", "write")
_PREFIX = "ws"
_COST = 2**14  # scrypt's n: 16 MB and about 50 ms


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as the file keeps it."""

    id: str
    name: str
    scopes: tuple[str, ...]
    salt: str
    digest: str
    created: float
    rate: int | None = None
    """Requests a minute; None: the service's own."""
    revoked: float | None = None

    def fits(self, secret: str) -> bool:
        """Whether this is the key's secret. Takes as long as scrypt does."""
        digest = _digest(secret, bytes.fromhex(self.salt))
        return secrets.compare_digest(digest, self.digest)


def _digest(secret: str, salt: bytes) -> str:
    return hashlib.scrypt(secret.encode(), salt=salt, n=_COST, r=8, p=1).hex()


def make_key(
    name: str, scopes: Iterable[str], rate: int | None = None
) -> tuple[str, ApiKey]:
    """A new key: what its owner is given, and what is kept."""
    key_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    salt = secrets.token_bytes(16)
    kept = ApiKey(
        key_id,
        name,
        tuple(scopes),
        salt.hex(),
        _digest(secret, salt),
        time.time(),
        rate,
    )
    return f"{_PREFIX}_{key_id}_{secret}", kept


def split_key(token: str) -> tuple[str, str] | None:
    """The id and the secret of a key; None where this is no key.

    >>> split_key("ws_0a1b2c3d_abc_def")
    ('0a1b2c3d', 'abc_def')
    >>> split_key("Bearer of news") is None
    True
    """
    prefix, _, rest = token.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != _PREFIX or not key_id or not secret:
        return None
    return key_id, secret


class KeyFile:
    """The keys in a folder. Read again whenever the file has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen: tuple[int, int] | None = None
        self._keys: dict[str, ApiKey] = {}

    def keys(self) -> dict[str, ApiKey]:
        """Every key by its id, revoked ones too."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            self._seen, self._keys = None, {}
            return {}
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._seen:
            self._seen, self._keys = seen, self._read()
        return self._keys

    def _read(self) -> dict[str, ApiKey]:
        keys = {}
        try:
            for row in read_json(self._path)["keys"]:
                key = ApiKey(**row | {"scopes": tuple(row["scopes"])})
                keys[key.id] = key
        except (BadInput, KeyError, TypeError) as error:
            raise BadConfig(
                f"'{self._path}' is damaged ({error}). Restore it, or delete it and make new keys."
            ) from None
        return keys

    def active(self) -> dict[str, ApiKey]:
        return {key.id: key for key in self.keys().values() if key.revoked is None}

    def add(self, name: str, scopes: Iterable[str], rate: int | None = None) -> str:
        """Make a key and keep its hash; the key itself, which cannot be shown again."""
        token, kept = make_key(name, scopes, rate)
        self._change(lambda keys: keys | {kept.id: kept})
        return token

    def revoke(self, name: str) -> list[ApiKey]:
        """Revoke the key with this id, or all keys of this name."""
        chosen = []
        for key in self.active().values():
            if name in (key.id, key.name):
                chosen.append(replace(key, revoked=time.time()))
        if not chosen:
            raise BadInput(
                f"No active key has the id or the name '{name}'. See: whichsense keys list"
            )
        self._change(lambda keys: keys | {key.id: key for key in chosen})
        return chosen

    def _change(self, change: Any) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._path.with_suffix(".lock"), "wb") as guard:
            lock(guard, wait=True)
            rows = [asdict(key) for key in change(self.keys()).values()]
            before = os.umask(0o077)  # for the owner's eyes alone
            try:
                write_atomically(self._path, json.dumps({"keys": rows}, indent=1))
            finally:
                os.umask(before)
