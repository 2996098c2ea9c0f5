"""The OpenAPI description: examples that work, and requests made from it by schemathesis."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import QUESTION, make_index

from whichsense.corpus.file_formats import SUFFIXES
from whichsense.serve.settings import SCOPES, KeyFile

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
Start = Callable[..., Any]
CASES = int(os.environ.get("WHICHSENSE_SCHEMA_CASES", "75"))


def test_every_example_works(start: Start, tmp_path: Path) -> None:
    """Each operation of the description is sent with each of the examples that it gives."""
    client = start(index=make_index(tmp_path))
    description = client.get("/openapi.json").json()
    question = {"question": QUESTION}
    found = client.post("/v1/search", json=question).json()["hits"][0]["passage"]
    sent = 0
    for path, method, operation in operations_of(description):
        assert operation["description"]
        for body in examples_of(description, operation):
            talk = client.post("/v1/conversations", json=question).json()
            ids = {"case_id": talk["case_id"], "conversation_id": talk["id"]}
            ids |= {"passage_id": found["id"], "model_id": "whichsense"}
            ids |= {"name": "lynx.md", "key": "abcdefgh"}
            response = client.request(
                method,
                path.format(**ids),
                json=body,
                content=None if body else CONTENT.get(method),
                headers={"Upload-Offset": "0"},
            )
            assert response.status_code in (200, 204), (method, path, response.text)
            sent += 1
    assert sent > 25


def test_the_description_of_an_answer_is_that_of_its_records(client: Any) -> None:
    """What is sent has the fields that are described, in the records' own words."""
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    answer = client.post("/v1/ask", json={"question": QUESTION, "clarify": True})
    talk = client.post("/v1/conversations", json={"question": QUESTION}).json()
    answer = answer.json()
    state = client.get(f"/v1/cases/{answer['id']}").json()
    for sent, name in (
        (answer, "AnswerModel"),
        (answer["case"], "CaseRecord"),
        (answer["case"]["readings"][0], "Reading"),
        (answer["case"]["clarification"], "Clarification"),
        (state, "CaseState"),
        (talk, "ConversationModel"),
        (talk["conversation"], "ConversationRecord"),
    ):
        assert set(sent) == set(schemas[name]["properties"]), name
    told = schemas["CaseRecord"]["properties"]["answerable"]["description"]
    assert told.startswith("The probability that the evidence holds an answer")


def test_the_page_offers_every_format_that_has_a_suffix(client: Any) -> None:
    """But dumps, which are too large to send."""
    offered = re.search('name="formats" content="([^"]+)"', client.get("/").text)
    assert offered
    kinds = {SUFFIXES[suffix] for suffix in offered[1].split(",")}
    assert kinds == set(SUFFIXES.values()) - {"wikipedia"}


CONTENT = {"put": b"The lynx has tufted ears.", "patch": b"The lynx"}
ORDER = ("get", "post", "put", "patch", "delete")


def operations_of(description: Any) -> list[tuple[str, str, Any]]:
    """Path, method and operation; what deletes comes last."""
    found = []
    for path, methods in description["paths"].items():
        found += [(path, method, methods[method]) for method in methods]
    return sorted(found, key=lambda one: ORDER.index(one[1]))


def examples_of(description: Any, operation: Any) -> list[Any]:
    """The bodies that an operation gives as examples; one without a body has None."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    if schema is None:
        return [None]
    examples = []
    for one in schema.get("anyOf", [schema]):
        name = one["$ref"].rpartition("/")[2]
        examples += description["components"]["schemas"][name]["examples"]
    return examples


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
    client = start(failures=1_000_000)  # wrong keys, many of them, get 401 each
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
