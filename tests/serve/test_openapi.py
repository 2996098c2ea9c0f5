"""The OpenAPI description: examples that work, and requests made from it by schemathesis."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whichsense.serve.settings import SCOPES, KeyFile

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
Start = Callable[..., Any]
CASES = int(os.environ.get("WHICHSENSE_SCHEMA_CASES", "75"))


def test_examples_work(client: Any) -> None:
    description = client.get("/openapi.json").json()
    schemas = description["components"]["schemas"]
    for path, name in (
        ("/v1/ask", "AskRequest"),
        ("/v1/search", "SearchRequest"),
        ("/v1/chat/completions", "ChatRequest"),
        ("/v1/responses", "ResponsesRequest"),
    ):
        (example,) = schemas[name]["examples"]
        assert client.post(path, json=example).status_code == 200
    for methods in description["paths"].values():
        for operation in methods.values():
            assert operation["description"]


# Bytes at random are no file that can be read: 422.
OWN = ["--exclude-path", "/v1/corpus/sources/{name}"]
# What no schema can say: which message is the last one, and that it asks something.
OPENAI = ["--exclude-checks", "positive_data_acceptance"]
for path in ("/v1/chat/completions", "/v1/responses"):
    OWN += ["--exclude-path", path]
    OPENAI += ["--include-path", path]


@pytest.mark.parametrize("selection", [OWN, OPENAI], ids=["own", "openai"])
def test_requests_made_from_the_description(
    start: Start, tmp_path: Path, selection: list[str]
) -> None:
    """No 5xx, no hang, every response as described."""
    key = KeyFile(tmp_path).add("schemathesis", SCOPES, rate=1_000_000)
    client = start()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"{client.base_url}/openapi.json",
            *("--max-examples", str(max(1, CASES // 15))),
            *("--phases", "examples,coverage,fuzzing", "--seed", "7"),
            *("--header", f"Authorization: Bearer {key}"),
            *selection,
            *("--request-timeout", "600", "--generation-deterministic", "--no-color"),
        ],
        cwd=tmp_path,  # it leaves a cache
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    print(done.stdout[-1500:])  # noqa: T201  # how many cases were made: pytest -rP
