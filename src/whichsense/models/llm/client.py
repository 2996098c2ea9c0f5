"""The endpoint: one call at a time through the official client, with what servers refuse left out from then on."""

from __future__ import annotations

import random
import re
import time
import weakref
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from whichsense.errors import BadConfig, require
from whichsense.jobs.limits import Limits
from whichsense.models.llm.cache import ReplyCache
from whichsense.models.llm.capabilities import Capabilities, reply_of
from whichsense.models.llm.exchange import LLMFault, Reply, Request
from whichsense.models.llm.settings import LLMSettings, find_key, resolve
from whichsense.models.llm.transport import (
    ReplyTooLarge,
    connection_errors,
    http_client,
)
from whichsense.models.llm.waiting import TookTooLong, items_within

if TYPE_CHECKING:
    from openai import OpenAI

_FIRST_PAUSE = 0.5  # seconds before a call is tried again; doubled each time
_LONGEST_PAUSE = 20.0
_TRIED_AGAIN = (408, 409, 429)  # and 5xx
_LISTING = 10.0  # seconds for the list of a server's models
_DOWN = 10.0  # seconds for which an endpoint that failed is not asked again
_SECRET = re.compile(r"\b(?:sk|key|Bearer)[-_ ][\w.*-]{4,}", re.IGNORECASE)


class Endpoint:
    """An OpenAI-compatible server and the model that is asked there. Threads may share it."""

    def __init__(
        self, settings: LLMSettings, environment: Mapping[str, str] | None = None
    ) -> None:
        from whichsense.models.llm.settings import current_environment

        variables = current_environment() if environment is None else environment
        self.settings = resolve(settings, variables)
        self._key = find_key(self.settings, variables)
        self._capabilities = Capabilities(self.settings)
        self._down_until = 0.0
        self._down_because = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.settings.url!r}, {self.settings.model!r})"

    @cached_property
    def cache(self) -> ReplyCache | None:
        from pathlib import Path

        from whichsense.files import cache_folder

        if not self.settings.cache:
            return None
        folder = self.settings.cache_folder or cache_folder() / "llm"
        return ReplyCache(Path(folder), self.settings.cache_megabytes)

    @cached_property
    def model(self) -> str:
        """The model that is asked; without a name, the only one that the server has."""
        if self.settings.model:
            return self.settings.model
        self._check_up()
        ends_at = time.monotonic() + min(self.settings.timeout, _LISTING)
        try:
            names = list(items_within(self._list_models, ends_at, Limits()))
        except TookTooLong:
            raise self._down("it did not reply in time") from None
        except Exception as error:
            self._pause_after(error, 1)
            raise self._down(self._reason(error)) from None
        if len(names) != 1:
            listed = ", ".join(sorted(names)[:10]) or "none"
            raise BadConfig(
                f"{self.settings.url} has {len(names)} models ({listed}). Name one: --model NAME, or [llm] model."
            )
        return names[0]

    def _list_models(self) -> Iterator[str]:
        for model in self._client.models.list():
            yield str(model.id)

    @cached_property
    def _client(self) -> OpenAI:
        openai = require("openai", "llm")
        client: OpenAI = openai.OpenAI(
            base_url=self.settings.url,
            api_key=self._key,
            max_retries=0,  # tried again here, where the deadline is known
            timeout=self.settings.timeout,
            http_client=http_client(),
            # The environment may name a vendor's organization: it is nobody else's business.
            default_headers={
                "OpenAI-Organization": openai.omit,
                "OpenAI-Project": openai.omit,
            },
        )
        weakref.finalize(self, client.close)
        return client

    def cached(self, request: Request) -> Reply | None:
        return self.cache.get(self._cache_key(request)) if self.cache else None

    def keep(self, request: Request, reply: Reply) -> None:
        """Keep a reply that could be used."""
        if self.cache:
            self.cache.put(self._cache_key(request), reply)

    def _cache_key(self, request: Request) -> str:
        return request.key(self.settings.url, self.model, self.settings.extra)

    def complete(
        self, request: Request, ends_at: float, limits: Limits
    ) -> tuple[Reply, int]:
        """The reply to a request, and how often the server was asked. Raises `LLMFault` when the time is over or the
        server cannot be used."""
        ends_at = min(ends_at, time.monotonic() + self.settings.timeout)
        for attempt in range(1, self.settings.retries + 2):
            self._check_up()
            try:
                for reply in items_within(lambda: self._send(request), ends_at, limits):
                    return reply, attempt
            except TookTooLong:
                raise self._down("it did not reply in time") from None
            except Exception as error:
                pause = self._pause_after(error, attempt)
                if attempt > self.settings.retries:
                    raise self._down(self._reason(error)) from None
                if time.monotonic() + pause >= ends_at:
                    raise self._down(self._reason(error)) from None
                time.sleep(pause)
        raise self._down("it gave no reply")

    def stream(
        self, request: Request, ends_at: float, limits: Limits
    ) -> Iterator[str | Reply]:
        """The pieces of a reply as they come, and at the end the whole of it. It is not tried again once begun."""
        self._check_up()
        ends_at = min(ends_at, time.monotonic() + self.settings.timeout)
        try:
            yield from items_within(
                lambda: self._send_streamed(request), ends_at, limits
            )
        except TookTooLong:
            raise self._down("it did not reply in time") from None
        except Exception as error:
            self._pause_after(error, 1)
            raise self._down(self._reason(error)) from None

    def _send(self, request: Request) -> Iterator[Reply]:
        """One call; what the server refuses is left out, and asked for no more."""
        openai = require("openai", "llm")
        while True:
            parameters = self._capabilities.parameters(request, self.model)
            try:
                completion = self._client.chat.completions.create(**parameters)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._capabilities.leave_out(request, str(error)):
                    raise
                continue
            yield reply_of(completion)
            return

    def _send_streamed(self, request: Request) -> Iterator[str | Reply]:
        parameters = self._capabilities.parameters(request, self.model)
        parameters["stream"] = True
        pieces = []
        with self._client.chat.completions.create(**parameters) as chunks:
            for chunk in chunks:
                for choice in chunk.choices or ():
                    piece = choice.delta.content if choice.delta else None
                    if piece:
                        pieces.append(str(piece))
                        yield pieces[-1]
        text = "".join(pieces)
        yield Reply(
            text, (), request.estimated_tokens - request.max_tokens, len(text) // 4
        )

    def _pause_after(self, error: Exception, attempt: int) -> float:
        """Seconds to wait before the call is tried again; raises `LLMFault` where that would not help."""
        openai = require("openai", "llm")
        if isinstance(error, openai.APIStatusError):
            status = error.status_code
            if status < 500 and status not in _TRIED_AGAIN:
                raise LLMFault(self._sentence(self._reason(error))) from None
            asked = error.response.headers.get("retry-after", "")
            if asked.isdigit():
                return min(float(asked), _LONGEST_PAUSE)
        elif isinstance(error, ReplyTooLarge) or isinstance(
            error.__cause__, ReplyTooLarge
        ):
            raise LLMFault(self._sentence("its reply is too large")) from None
        elif not isinstance(
            error, (openai.APIError, *connection_errors(), ValueError, TypeError)
        ):
            raise error
        pause = _FIRST_PAUSE * 2 ** (attempt - 1)
        return float(min(pause, _LONGEST_PAUSE) * random.uniform(0.75, 1.25))

    def _reason(self, error: Exception) -> str:
        """Why a call failed, in one line, without anything that may be a key."""
        openai = require("openai", "llm")
        if isinstance(error, openai.APITimeoutError):
            return "it did not reply in time"
        if isinstance(error, openai.APIStatusError):
            if error.status_code in (401, 403):
                return f"it refuses the key (status {error.status_code})"
            said = " ".join(str(error.message).split())[:160].replace(self._key, "…")
            return f"status {error.status_code}: {_SECRET.sub('…', said)}"
        if isinstance(error, (openai.APIConnectionError, *connection_errors())):
            return "the connection failed"
        return "its reply cannot be read"

    def _sentence(self, reason: str) -> str:
        return (
            f"The language model at {self.settings.url} cannot be used: {reason}. "
            "Check that the server runs, its URL, the model's name and the key."
        )

    def _down(self, reason: str) -> LLMFault:
        """The error of an endpoint that is not asked again for a while."""
        self._down_because = reason
        self._down_until = time.monotonic() + _DOWN
        return LLMFault(self._sentence(reason))

    def _check_up(self) -> None:
        if time.monotonic() < self._down_until:
            raise LLMFault(self._sentence(self._down_because))
