"""What Open WebUI shows beside the text: stages as they end, sources with their text, options to click.

A chunk of its stream with the key `event` goes to its page as it is. Other clients never get one: Open WebUI is known
by the headers that it sends with ENABLE_FORWARD_USER_INFO_HEADERS=true, or that are set for its connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from whichsense.serve.openai.writing import Written

_HEADER = "x-openwebui-"


def is_open_webui(headers: Mapping[str, str]) -> bool:
    """Whether a request is Open WebUI's.

    >>> is_open_webui({"x-openwebui-chat-id": "1"}), is_open_webui({"user-agent": "curl"})
    (True, False)
    """
    return any(name.lower().startswith(_HEADER) for name in headers)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def status_event(description: str, done: bool = False) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


def events_of(written: Written) -> Iterator[dict[str, Any]]:
    """Its events at the end: the sources by their numbers, and the options of a question back."""
    for source in written.sources:
        yield {
            "type": "source",
            "data": {
                "source": {"name": source.title, "url": source.url},
                "document": [source.text],
                "metadata": [{"source": source.url, "name": source.title}],
            },
        }
    if written.options:
        yield {
            "type": "chat:message:follow_ups",
            "data": {"follow_ups": list(written.options)},
        }
    yield status_event(_summary(written), done=True)


def _summary(written: Written) -> str:
    """The status that stays above the text."""
    if written.options:
        return f"{_count(len(written.options), 'reading')}: which is meant?"
    if written.sources:
        return f"From {_count(len(written.sources), 'passage')}"
    return "Done"
