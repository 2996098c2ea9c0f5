"""Clients of the Model Context Protocol, as they are: of both versions, with and without forms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp import Client
from mcp.client import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import CallToolResult, ElicitResult

from patience import LONGEST

MODERN, OLDER = "auto", "legacy"  # 2026-07-28 and 2025-11-25
MODES = (MODERN, OLDER)
WITH_APPS = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})


@dataclass
class User:
    """Fills in forms: one reply after the other."""

    replies: list[ElicitResult]
    asked: list[Any] = field(default_factory=list)

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        return self.replies.pop(0)


def accepts(**content: Any) -> User:
    return User([ElicitResult(action="accept", content=content)])


def refuses(action: Any) -> User:
    return User([ElicitResult(action=action)])


def talk(
    server: Any,
    conversation: Callable[[Client], Awaitable[Any]],
    *,
    mode: str = MODERN,
    user: User | None = None,
    apps: bool = False,
    headers: dict[str, str] | None = None,
) -> Any:
    """What a conversation with a server comes to. Headers are sent with every request, where it is at an address."""

    async def run() -> Any:
        if headers is None:
            return await connected(server)
        async with httpx2.AsyncClient(headers=headers, timeout=LONGEST) as http:
            return await connected(streamable_http_client(server, http_client=http))

    async def connected(to: Any) -> Any:
        async with Client(
            to,
            mode=mode,
            elicitation_callback=user,
            extensions=[WITH_APPS] if apps else None,
            read_timeout_seconds=LONGEST,
        ) as client:
            version = "2025-11-25" if mode == OLDER else "2026-07-28"
            assert client.protocol_version == version
            return await conversation(client)

    return asyncio.run(run())


def call(server: Any, tool: str, arguments: Any, **options: Any) -> CallToolResult:
    """What one call of a tool gives."""

    async def once(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments)

    result: CallToolResult = talk(server, once, **options)
    return result


def text_of(result: CallToolResult) -> str:
    return str(getattr(result.content[0], "text", ""))


def answers(result: CallToolResult) -> list[str]:
    assert not result.is_error, text_of(result)
    return [one["answer"] for one in result.structured_content["readings"]]
