"""What the tests of the OpenAI-compatible face share: clients, and a chat that repeats its messages."""

from __future__ import annotations

from typing import Any

import pytest

from patience import LONGEST

openai = pytest.importorskip("openai", reason="needs the extra 'llm'")


def connect(client: Any, key: str = "none") -> Any:
    """OpenAI's client over a test's connection, which the test closes; it does not try again."""
    address = f"{str(client.base_url).rstrip('/')}/v1"
    options = {"http_client": client, "max_retries": 0, "timeout": LONGEST}
    return openai.OpenAI(base_url=address, api_key=key, **options)


class Chat:
    """Says one thing after the other; the service gets the whole history each time."""

    def __init__(self, api: Any, model: str = "whichsense", stream: bool = False):
        self.api = api
        self.model = model
        self.stream = stream
        self.messages: list[dict[str, Any]] = []
        self.annotations: list[Any] = []

    def say(self, content: Any, **options: Any) -> str:
        self.messages.append({"role": "user", "content": content})
        asked = {"model": self.model, "messages": self.messages, **options}
        if self.stream:
            text = self._stream(asked)
        else:
            message = self.api.chat.completions.create(**asked).choices[0].message
            text = message.content
            self.annotations = message.annotations
        self.messages.append({"role": "assistant", "content": text})
        return text

    def _stream(self, asked: dict[str, Any]) -> str:
        text = ""
        self.annotations = []
        for chunk in self.api.chat.completions.create(stream=True, **asked):
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for annotation in getattr(delta, "annotations", None) or []:
                place = annotation["url_citation"]
                self.annotations.append(place)
        return text
