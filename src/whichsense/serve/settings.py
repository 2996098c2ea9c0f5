"""What a service is told before it starts."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from whichsense.errors import BadConfig
from whichsense.files import cache_folder
from whichsense.types import Method


def state_folder() -> Path:
    """Where keys and traces are kept: in the user's state folder (XDG_STATE_HOME is honoured)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "whichsense"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """One service. Workers get a copy."""

    index: str = ""
    """A folder, or "sample" or "handbook"; empty: the sample."""
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
    recall_bytes: int = 32 * 2**20
    """Memory for searches that were answered before; 0: none is remembered."""
    rate: int = 600
    """Requests a minute for a key that has no rate of its own."""
    state: Path = field(default_factory=state_folder)
    """The folder of keys and traces."""
    traces: bool = True
    """Keep every answered case."""
    hosts: tuple[str, ...] = ()
    """Host names under which the service may be asked, beside its address."""
    origins: tuple[str, ...] = ()
    """Origins of other pages that may ask; none: CORS stays closed."""
    api_key: str = field(default="", repr=False)
    """A key with the scope "ask" from the environment, beside those of the key file."""
    shared: Path | None = None
    """The folder that the workers of this service share while it runs; `run` makes it."""

    def __post_init__(self) -> None:
        for name in ("workers", "parallel", "threads", "deadline", "rate"):
            if getattr(self, name) <= 0:
                raise BadConfig(f"'{name}' must be more than 0.")
        if self.queue < 0:
            raise BadConfig("'queue' must be at least 0.")

    @property
    def is_embedded(self) -> bool:
        """Whether the index is one that ships with the package, which is never written to."""
        if self.index in ("", "sample", "handbook"):
            return True
        return cache_folder().resolve() in Path(self.index).resolve().parents

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine can reach the service."""
        return is_loopback(self.host)


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
