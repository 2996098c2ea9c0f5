"""The threshold of a request and of the service: what is shown, what is kept apart, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fake_service import ANSWERS, QUESTION, build

from whichsense.index import Index
from whichsense.pipeline import Pipeline
from whichsense.testing import FakeReader

Start = Callable[..., Any]
OPENAI = ("/v1/chat/completions", "/v1/responses")
BODIES = {
    "/v1/ask": {"question": QUESTION},
    "/v1/conversations": {"question": QUESTION},
    "/v1/conversations/none/replies": {"text": "the first"},
    "/v1/chat/completions": {
        "model": "whichsense",
        "messages": [{"role": "user", "content": QUESTION}],
    },
    "/v1/responses": {"model": "whichsense", "input": QUESTION},
}


def build_unsure(index: Index) -> Pipeline:
    """Three answers of the same probability, a third."""
    answers = ANSWERS | {"2008": "2008"}
    return replace(build(index), reader=FakeReader(answers))


def counts(client: Any, **options: Any) -> tuple[int, int]:
    """How many readings are shown, and how many are kept apart."""
    response = client.post("/v1/ask", json={"question": QUESTION, **options})
    assert response.status_code == 200, response.text
    case = response.json()["case"]
    assert case["is_ambiguous"] == (len(case["readings"]) > 1)
    return len(case["readings"]), len(case["possible"])


def test_a_request_says_how_probable_an_answer_must_be(client: Any) -> None:
    assert counts(client) == counts(client, threshold=0.5) == (2, 0)
    assert counts(client, threshold=0.51) == counts(client, threshold=1) == (1, 1)
    assert counts(client, threshold=None) == (2, 0)


def test_the_service_has_a_threshold_for_requests_without_one(start: Start) -> None:
    client = start(threshold=0.9)
    assert counts(client) == (1, 1)
    assert counts(client, threshold=0.1) == (2, 0)


def test_a_conversation_asks_back_where_several_readings_are_shown(client: Any) -> None:
    for threshold, shown in ((0.1, "clarification"), (0.9, "answer")):
        body = {"question": QUESTION, "threshold": threshold}
        begun = client.post("/v1/conversations", json=body).json()
        assert begun["conversation"]["turns"][-1]["shown"] == shown
    # A new question in the conversation has a threshold of its own.
    path = f"/v1/conversations/{begun['id']}/replies"
    body = {"text": "Who played the Joker in a film?", "threshold": 0.1}
    said = client.post(path, json=body).json()
    assert len(said["conversation"]["case"]["readings"]) == 2


def test_an_only_answer_that_is_not_probable_is_tentative(start: Start) -> None:
    client = start(build_unsure)
    for path in ("/v1/ask", "/v1/conversations"):
        for threshold, is_tentative in ((0.5, True), (0.3, False)):
            body = {"question": QUESTION, "threshold": threshold}
            answered = client.post(path, json=body).json()
            assert answered["tentative"] is is_tentative
    asked = client.post("/v1/ask", json={"question": QUESTION, "threshold": 0.5})
    kept = client.get(f"/v1/cases/{asked.json()['id']}").json()
    assert kept["tentative"] is True and kept["state"] == "finished"


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("wrong", [0, -0.1, 1.01, "much", True])
def test_nonsense_is_refused_with_the_range(path: str, wrong: object, client: Any) -> None:
    response = client.post(path, json=BODIES[path] | {"threshold": wrong})
    # The routes that speak OpenAI's API refuse every body as that does.
    assert response.status_code == (400 if path in OPENAI else 422)
    assert "threshold" in response.text
    if isinstance(wrong, int | float) and not isinstance(wrong, bool):
        assert ("greater than 0" in response.text) == (wrong <= 0)
        assert ("less than or equal to 1" in response.text) == (wrong > 1)
