"""Searches that were answered before: the same body to the same generation of the index gets the same bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

Key = tuple[int, str, bytes]
"""Generation, content type, body."""
_LONGEST_BODY = 4_096


class Recall:
    """Responses by their request, least recently used ones forgotten first. Lives in the event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._bodies: OrderedDict[Key, bytes] = OrderedDict()

    def find(self, key: Key) -> bytes | None:
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
        return body

    def add(self, key: Key, body: bytes) -> None:
        if len(key[2]) > _LONGEST_BODY or key in self._bodies:
            return
        self._bodies[key] = body
        self._size += _weight(key, body)
        while self._size > self._most and self._bodies:
            self._size -= _weight(*self._bodies.popitem(last=False))


def _weight(key: Key, body: bytes) -> int:
    return len(key[2]) + len(body) + 500  # what the objects themselves take


class RecallingRoute(APIRoute):
    """A route that is answered from memory, where it can be, before the body is even parsed. The caller is checked."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            service = request.app.state.service
            if not service.engine.is_ready:
                return await answer(request)
            generation = service.served.index.manifest.generation
            kind = request.headers.get("content-type", "")
            key = (generation, kind, await request.body())
            known = service.recall.find(key)
            if known is not None:
                await service.access.check(request, "ask")
                return Response(known, media_type="application/json")
            response = await answer(request)
            if response.status_code == 200:
                service.recall.add(key, bytes(response.body))
            return response

        return handle
