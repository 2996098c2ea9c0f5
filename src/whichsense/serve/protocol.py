"""HTTP on the wire: uvicorn's own protocol, with a bound on how long and how large a request's head may be."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from whichsense.serve.problems import Problem

HEAD_SECONDS = 20.0
"""For the request line and the headers."""
HEAD_BYTES = 65_536
_READ_ON = 2**20  # bytes of a head that was refused: who still sends has not read why
_TOO_LARGE = Problem(
    431,
    "head",
    "The head of the request is too large.",
    "Send less in its headers, and the question in its body.",
    headers={"Connection": "close"},
)


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request does not begin, or whose headers do not end; refuses headers that are too
    large."""

    _head_bytes = 0
    _is_refused = False
    _in_head = True
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(
            len(name) + len(value) for name, value in self.headers
        )
        if size > HEAD_BYTES:
            self._refuse_head()
            raise ValueError("the head is too large")  # the parser stops
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _READ_ON:
                self.transport.close()
            elif self._head_bytes > HEAD_BYTES and not self._is_refused:
                self._refuse_head()

    def _refuse_head(self) -> None:
        """Say why, and read on for a while: a connection that is closed on unread data loses the answer."""
        self._is_refused = True
        response = _TOO_LARGE.response()
        lines = [STATUS_LINE[response.status_code]]
        for name, value in response.raw_headers:
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*lines, b"\r\n", bytes(response.body)]))
        self.transport.write_eof()

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._in_head, self._head_bytes = True, 0
        self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
