"""Clients of the service: the same records as in Python, over HTTP. Sync and async share every request.

with Client("http://localhost:8000", key="ws_…") as client:
    client.ask("Who played the Joker?").case.readings
    for event in client.stream("Who played the Joker?"):
        ...
"""

from whichsense.client.asynchronous import AsyncClient
from whichsense.client.blocking import Client
from whichsense.client.calls import PassageInContext, ServedConversation
from whichsense.client.errors import ServiceError
from whichsense.client.streams import StreamEvent

__all__ = [
    "AsyncClient",
    "Client",
    "PassageInContext",
    "ServedConversation",
    "ServiceError",
    "StreamEvent",
]
