"""Settings of the service, and the API keys that its state folder holds."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig, BadInput
from whichsense.files import cache_folder, lock, read_json, write_atomically
from whichsense.types import Method

# What a service is told before it starts.

_ROOT_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)


def state_folder() -> Path:
    """Where keys and traces are kept: in the user's state folder (XDG_STATE_HOME is honoured)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "whichsense"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """One service. Workers get a copy."""

    index: str = ""
    """A folder, or "sample" or "handbook"; empty: the sample."""
    indexes: Mapping[str, str] = field(default_factory=dict)
    """Several in place of that one, by the names that requests use; the first is the default."""
    cluster: str = ""
    """The Ray cluster on which the index's shards are searched; empty: this process searches."""
    replicas: int = 1
    """Actors of each shard there."""
    system: str = "compact"
    """What answers: a system's file, or "compact"."""
    compare: tuple[str, ...] = ()
    """Systems that can be asked beside it, by name."""
    method: Method | None = None
    threshold: float | None = None
    """The least probability of an answer that is shown, where a request names none; None: the system chooses."""
    weights: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Processes; each has its own models."""
    parallel: int = 2
    """Questions that one worker answers at once."""
    threads: int = 1
    """Cores that the embedded model uses for one question."""
    queue: int = 64
    """Questions that wait in one worker; one more is refused with 429."""
    deadline: float = 60.0
    """Seconds for one answer at most, with its time in the queue."""
    rejoin: float = 15.0
    """Seconds for which a stream that nobody follows any more goes on."""
    grace: float = 10.0
    """Seconds that running answers get when the service is stopped."""
    heartbeat: float = 10.0
    """Seconds of silence after which a stream sends a comment."""
    body_bytes: int = 65_536
    history_bytes: int = 2**20
    """The largest body of an OpenAI-compatible request, which repeats the whole conversation."""
    upload_bytes: int = 64 * 2**20
    """The largest file that may be added to the index."""
    body_seconds: float = 10.0
    """Seconds in which a request's body has to arrive; a file gets that long for each megabyte."""
    rate: int = 600
    """Requests a minute for a key that has no rate of its own."""
    failures: int = 30
    """Wrong keys a minute from one address; who sends more has to wait."""
    root_path: str = ""
    """What a proxy puts before every path: "/whichsense"."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of the proxies whose forwarded headers are believed."""
    access_log: str = ""
    """The file that gets a line of JSON for each request; "-": standard error; empty: none."""
    log_questions: bool = False
    """Whether these lines have the questions, too."""
    state: Path = field(default_factory=state_folder)
    """The folder of keys and traces."""
    traces: bool = True
    """Keep every answered case."""
    hosts: tuple[str, ...] = ()
    """Host names under which the service may be asked, beside its address."""
    origins: tuple[str, ...] = ()
    """Origins of other pages that may ask; none: CORS stays closed."""
    api_key: str = field(default="", repr=False)
    """A key from the environment, beside those of the key file."""
    api_key_scopes: tuple[str, ...] = ("ask",)
    shared: Path | None = None
    """The folder that the workers of this service share while it runs; `run` makes it."""

    def __post_init__(self) -> None:
        for name in ("workers", "parallel", "threads", "deadline", "rate", "failures"):
            if getattr(self, name) <= 0:
                raise BadConfig(f"'{name}' must be more than 0.")
        if self.queue < 0:
            raise BadConfig("'queue' must be at least 0.")
        if self.root_path and not _ROOT_PATH.fullmatch(self.root_path):
            raise BadConfig(
                f"'{self.root_path}' is no root path. Begin it with '/', and end it without: /whichsense"
            )
        for name in self.indexes:
            if not _NAME.fullmatch(name):
                raise BadConfig(
                    f"'{name}' cannot name an index. Use up to 60 letters, digits, '-', '_' and '.'."
                )

    @property
    def places(self) -> Mapping[str, str]:
        """Every index that is served by its name, the default first."""
        from whichsense.sample import corpus_name  # which loads what searches

        return self.indexes or {corpus_name(self.index): self.index}

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can reach the service."""
        return is_loopback(self.host)


def is_embedded(place: str) -> bool:
    """Whether an index is one that ships with the package, which is never written to."""
    if place in ("", "sample", "handbook"):
        return True
    return cache_folder().resolve() in Path(place).resolve().parents


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# API keys. A key is shown once, when it is made; the file keeps its scrypt hash.

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
    indexes: tuple[str, ...] = ()
    """The names of those that it may use; none: all."""
    expires: float | None = None
    """Seconds since 1970; None: never."""
    quota: int | None = None
    """Bytes of files that it may upload in a day; None: as many as there is room for."""

    @property
    def is_active(self) -> bool:
        is_due = self.expires is not None and time.time() >= self.expires
        return self.revoked is None and not is_due

    def fits(self, secret: str) -> bool:
        """Whether this is the key's secret. Takes as long as scrypt does."""
        digest = _digest(secret, bytes.fromhex(self.salt))
        return secrets.compare_digest(digest, self.digest)


def _digest(secret: str, salt: bytes) -> str:
    return hashlib.scrypt(secret.encode(), salt=salt, n=_COST, r=8, p=1).hex()


def _make_key(name: str, scopes: Iterable[str], **bounds: Any) -> tuple[str, ApiKey]:
    """A new key: what its owner is given, and what is kept."""
    key_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    salt = secrets.token_bytes(16)
    digest = _digest(secret, salt)
    kept = ApiKey(key_id, name, tuple(scopes), salt.hex(), digest, time.time(), **bounds)
    return f"{_PREFIX}_{key_id}_{secret}", kept


NO_KEY = ApiKey("", "", (), "00" * 16, "", 0.0)
"""Whose secret nobody has: an id that there is not takes as long to refuse as one that there is."""


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
                for name in ("scopes", "indexes"):
                    row[name] = tuple(row.get(name, ()))
                key = ApiKey(**row)
                keys[key.id] = key
        except (BadInput, KeyError, TypeError) as error:
            raise BadConfig(
                f"'{self._path}' is damaged ({error}). Restore it, or delete it and make new keys."
            ) from None
        return keys

    def active(self) -> dict[str, ApiKey]:
        return {key.id: key for key in self.keys().values() if key.is_active}

    def add(self, name: str, scopes: Iterable[str], **bounds: Any) -> str:
        """Make a key and keep its hash; the key itself, which cannot be shown again. `bounds` are fields of an ApiKey:
        `rate`, `indexes`, `expires`, `quota`."""
        token, kept = _make_key(name, scopes, **bounds)
        self._change(lambda keys: keys | {kept.id: kept})
        return token

    def revoke(self, name: str) -> list[ApiKey]:
        """Revoke the key with this id, or all keys of this name."""
        chosen = [
            replace(key, revoked=time.time())
            for key in self.active().values()
            if name in (key.id, key.name)
        ]
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
