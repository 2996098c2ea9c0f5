"""Spans, where the OpenTelemetry packages are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_serve_ask import QUESTION

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def test_each_answer_is_a_span_with_its_stages(start: Callable[..., Any]) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client = start()
    body = {"question": QUESTION}
    client.post("/v1/ask", json=body, headers={"traceparent": parent})
    spans = {span.name: span for span in exporter.get_finished_spans()}
    whole, read = spans["whichsense answer"], spans["whichsense read"]
    assert f"{whole.context.trace_id:032x}" in parent
    assert read.parent.span_id == whole.context.span_id
    assert read.attributes["whichsense.passages"] == 2
