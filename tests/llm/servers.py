"""Real local servers that misbehave, each in its own way, and what tests ask through them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from patience import LONGEST
from whichsense.models.compact.scene import Compact
from whichsense.models.llm.endpoint import Endpoint
from whichsense.models.llm.prompts import LLMSettings
from whichsense.pipeline import Pipeline
from whichsense.stages.detect import LLMDetector
from whichsense.stages.disambiguate import LLMDisambiguator
from whichsense.stages.read import LLMReader
from whichsense.stages.rerank import CompactReranker
from whichsense.stages.verify import LLMVerifier
from whichsense.testing import FakeRetriever, passage_hit
from whichsense.types import Hit

QUESTION = "Who directed Harbour Lights?"
HITS = (
    passage_hit(
        "Harbour Lights is a 1996 drama film. It was directed by Ida Morrow and stars Tom Keel as a ferryman.",
        "Harbour Lights (1996 film)",
    ),
    passage_hit(
        "Harbour Lights is a 2014 thriller film. It was directed by Per Lund, who also wrote the script.",
        "Harbour Lights (2014 film)",
    ),
    passage_hit("The Cobalt Bridge is 310 metres long and opened in 1932.", "Bridge"),
)


@dataclass
class Asked:
    """What a server was asked: the bodies of its requests, and their headers."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    models: list[str] = field(default_factory=lambda: ["only"])
    """What the server says that it has."""


Behaviour = Callable[[BaseHTTPRequestHandler, Asked], None]


@contextlib.contextmanager
def served(behave: Behaviour) -> Iterator[tuple[str, Asked]]:
    """A server that answers every POST as `behave` does: its URL, and what it was asked."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            asked.bodies.append(json.loads(self.rfile.read(length)))
            names = {name.lower(): value for name, value in self.headers.items()}
            asked.headers.append(names)
            with contextlib.suppress(OSError):  # the client has gone
                behave(self, asked)

        def do_GET(self) -> None:
            names = [{"id": name, "object": "model"} for name in asked.models]
            send(self, 200, {"object": "list", "data": names})

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def completion(text: str) -> dict[str, Any]:
    """A chat completion with this text."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def send(handler: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(raw)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(raw)


def says(text: str) -> Behaviour:
    return lambda handler, asked: send(handler, 200, completion(text))


def answers_status(status: int, message: str = "no") -> Behaviour:
    return lambda handler, asked: send(handler, status, {"error": {"message": message}})


def hangs(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    time.sleep(2 * LONGEST)


def trickles_headers(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """A byte now and then: no time limit of a socket ever ends this."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(20 * int(LONGEST)):
        handler.wfile.write(b"a")
        handler.wfile.flush()
        time.sleep(0.1)


def breaks_off(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """Half a JSON, then the connection is closed."""
    raw = json.dumps(completion('{"answered": "yes", "answers": ["Ida')).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw[: len(raw) // 2])
    handler.wfile.flush()
    handler.connection.close()


def sends_much(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    send(handler, 200, completion("x" * 10 * 2**20))


def sends_garbage(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    send(handler, 200, b"<html>It works!</html>")


def repeats_prompt(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    send(handler, 200, completion(asked.bodies[-1]["messages"][-1]["content"]))


def settings_for(url: str, **changes: Any) -> LLMSettings:
    """Settings for tests: no cache, a named model."""
    usual: dict[str, Any] = {
        "url": url,
        "model": "m",
        "timeout": LONGEST,
        "deadline": 2 * LONGEST,
        "retries": 1,
        "cache": False,
    }
    return LLMSettings(**(usual | changes))


def pipeline_for(settings: LLMSettings, compact: Compact, hits: tuple[Hit, ...] = HITS) -> Pipeline:
    """Every thinking stage by the language model, over a few passages."""
    endpoint = Endpoint(settings, {})
    return Pipeline(
        FakeRetriever(hits),
        CompactReranker(compact),
        LLMReader(endpoint, compact),
        LLMDisambiguator(endpoint, compact),
        LLMVerifier(endpoint, compact),
        detector=LLMDetector(endpoint, compact),
    )
