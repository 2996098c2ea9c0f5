"""Labels, what an answer depends on and tentative answers in JSON, and in the texts of OpenAI's API and MCP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labelled import HITS, QUESTION, LabelDisambiguator, pipeline

pytest.importorskip("mcp", reason="needs the extra 'serve'")

from whichsense.conversation import ServedConversation, begin, show_readings
from whichsense.index import Index
from whichsense.pipeline import Pipeline
from whichsense.serve.mcp_outputs import turn_output, turn_text
from whichsense.testing import FakeReader, FakeRetriever

Start = Callable[..., Any]
ONLY = pipeline(
    retriever=FakeRetriever(HITS[:1]),
    reader=FakeReader({"12": "six months"}),
    disambiguator=LabelDisambiguator(confidence=0.4),
)


def build(index: Index) -> Pipeline:
    return pipeline()


def build_unsure(index: Index) -> Pipeline:
    return ONLY


def chat(client: Any, model: str = "whichsense") -> str:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": model, "messages": messages}
    response = client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_every_reading_has_its_label_and_options_are_bound_to_them(start: Start) -> None:
    body = {"question": QUESTION, "clarify": True}
    case = start(build).post("/v1/ask", json=body).json()["case"]
    labels = [reading["label"] for reading in case["readings"]]
    assert labels == ["Skerry 12", "Skerry 24"] and case["is_ambiguous"] is True
    offered = case["clarification"]["options"]
    assert [one["label"] for one in offered] == labels
    assert [one["readings"][0]["label"] for one in offered] == labels


def test_the_api_of_openai_asks_with_labels_and_shows_them(start: Start) -> None:
    client = start(build)
    asked = chat(client)
    assert "1. **Skerry 12**" in asked and "2. **Skerry 24**" in asked
    told = chat(client, "whichsense-readings")
    assert told.startswith("This depends on what is meant.")
    assert "**six months** [1] – *Skerry 12* · 80%" in told and "Perhaps" not in told


def test_the_api_of_openai_calls_a_tentative_answer_so(start: Start) -> None:
    assert chat(start(build_unsure)).startswith("Perhaps: **six months** [1]")


def output(asked: Pipeline) -> Any:
    return turn_output(ServedConversation(begin(asked, QUESTION), "1"))


def test_tools_show_labels_and_what_the_answer_depends_on() -> None:
    asked = output(pipeline())
    assert asked.clarification is not None and not asked.dependence
    assert [one.label for one in asked.clarification.options] == ["Skerry 12", "Skerry 24"]
    assert "- six months – Skerry 12 (80%)" in turn_text(asked)
    every = show_readings(begin(pipeline(), QUESTION))
    shown = turn_output(ServedConversation(every, "1"))
    assert [one.told_apart for one in shown.readings] == ["Skerry 12", "Skerry 24"]
    assert turn_text(shown).startswith("This depends on what is meant.\n\n1. six")


def test_tools_call_a_tentative_answer_so() -> None:
    only = output(ONLY)
    assert only.tentative and only.readings[0].label == "Skerry 12"
    assert turn_text(only).startswith("Perhaps: six months – Skerry 12 (40%)")
