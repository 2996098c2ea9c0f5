"""Who asks: the API key of a request, its scopes, its rate."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from whichsense.serve.problems import Problem, Refused, busy
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state.keys import SCOPES, ApiKey, KeyFile, split_key
from whichsense.serve.state.shared import Shared

_BURST = 0.25  # of a minute's requests may come at once
_REMEMBERED = 1000  # keys that need no second scrypt


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever made a request. Cases belong to the key that asked."""

    id: str
    scopes: tuple[str, ...]
    rate: int | None = None
    """Requests a minute; None: as many as there is room for."""

    @property
    def sees(self) -> str | None:
        """The owner whose cases may be seen; None: everyone's."""
        return None if "write" in self.scopes else self.id


_NOBODY = Caller("", SCOPES)  # without keys, on this machine alone
_UNKNOWN = Problem(
    401,
    "key",
    "This needs a valid API key.",
    "Send the header: Authorization: Bearer ws_…; the operator makes keys with whichsense keys add.",
    headers={"WWW-Authenticate": 'Bearer realm="whichsense"'},
)


class Access:
    """Checks keys. scrypt runs once for each key and process, in a thread; after that a keyed hash is compared."""

    def __init__(self, settings: ServiceSettings, shared: Shared) -> None:
        self._file = KeyFile(settings.state)
        self._default_rate = settings.rate
        self._given = settings.api_key.encode()
        self._is_local = settings.is_local
        self._shared = shared
        self._pepper = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}  # keyed hash of a whole key → its id
        self._one_at_a_time = asyncio.Semaphore(1)  # scrypt takes 16 MB

    def needs_key(self) -> bool:
        """Always at a public address, and wherever there is or was a key: revoking the last one opens nothing."""
        return bool(self._given or not self._is_local or self._file.keys())

    async def identify(self, authorization: str) -> Caller:
        """The caller behind an Authorization header; Refused where there is none."""
        if not self.needs_key():
            return _NOBODY
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token.isascii():
            raise Refused(_UNKNOWN)
        if self._given and secrets.compare_digest(token.encode(), self._given):
            return Caller("environment", ("ask",), self._default_rate)
        key = await self._verified(token)
        return Caller(key.id, key.scopes, key.rate or self._default_rate)

    async def _verified(self, token: str) -> ApiKey:
        parts = split_key(token)
        key = self._file.active().get(parts[0]) if parts else None
        if parts is None or key is None:
            raise Refused(_UNKNOWN)
        mark = hmac.digest(self._pepper, token.encode(), hashlib.sha256)
        if self._known.get(mark) == key.id:
            return key
        async with self._one_at_a_time:
            fits = await asyncio.to_thread(key.fits, parts[1])
        if not fits:
            raise Refused(_UNKNOWN)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[mark] = key.id
        return key

    async def admit(self, caller: Caller) -> None:
        """Count a request of a key, or refuse it with the time to wait."""
        if caller.rate is None:
            return
        burst = max(1, int(caller.rate * _BURST))
        wait = await asyncio.to_thread(
            self._shared.admit, caller.id, caller.rate, burst
        )
        if wait > 0:
            raise Refused(busy("rate", "This key has asked too often.", wait + 0.5))

    async def check(self, request: Request, scope: str) -> Caller:
        """The caller of a request, who must have a scope and keep within the rate."""
        caller = await self.identify(request.headers.get("authorization", ""))
        if scope not in caller.scopes:
            raise Refused(
                Problem(
                    403,
                    "scope",
                    f"This key lacks the scope '{scope}'.",
                    f"Use a key made with: whichsense keys add NAME --scope {scope}",
                )
            )
        await self.admit(caller)
        return caller


# For the OpenAPI description; the check itself is ours, so that errors are problems.
_bearer = HTTPBearer(auto_error=False, description="A key of `whichsense keys add`.")


def requires(scope: str) -> Callable[..., object]:
    """A dependency: the caller, who must have a scope."""

    async def caller(request: Request, _: object = Depends(_bearer)) -> Caller:
        access: Access = request.app.state.service.access
        return await access.check(request, scope)

    return caller
