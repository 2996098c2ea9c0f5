"""What operators see: Prometheus counters, and OpenTelemetry spans where its packages are installed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from whichsense.types import Case

disable_created_metrics()  # type: ignore[no-untyped-call]  # times that nobody reads
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Telemetry:
    """The counters of one worker. With several workers, prometheus_client adds up their files."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "whichsense_requests_total",
            "HTTP requests.",
            ("method", "path", "status"),
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "whichsense_request_seconds",
            "Seconds until a response ended.",
            ("path",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._stage_seconds = Histogram(
            "whichsense_stage_seconds",
            "Seconds of each stage.",
            ("stage",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._answers = Counter(
            "whichsense_answers_total",
            "Answers by how they ended: done, refused, deadline, cancelled, failed.",
            ("outcome",),
            registry=self._registry,
        )
        self._lost = Counter(
            "whichsense_traces_lost_total",
            "Cases that could not be written.",
            registry=self._registry,
        )
        self._active = Gauge(
            "whichsense_answers_active",
            "Answers that wait or are worked on.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._tracer = _tracer()

    def count_request(
        self, method: str, path: str, status: int, seconds: float
    ) -> None:
        self._requests.labels(method, path, str(status)).inc()
        self._request_seconds.labels(path).observe(seconds)

    def count_answer(self, outcome: str) -> None:
        self._answers.labels(outcome).inc()

    def count_lost_trace(self) -> None:
        self._lost.inc()

    def set_active(self, count: int) -> None:
        self._active.set(count)

    def observe_stage(self, stage: str, case: Case) -> None:
        """A stage that has just ended."""
        cost = case.spent.get(stage)
        seconds = cost.seconds if cost else 0.0
        self._stage_seconds.labels(stage).observe(seconds)
        if self._tracer is not None:
            ended = time.time_ns()
            begun = ended - int(seconds * 1e9)
            span = self._tracer.start_span(f"whichsense {stage}", start_time=begun)
            span.set_attribute("whichsense.passages", len(case.hits))
            span.set_attribute("whichsense.readings", len(case.readings))
            span.end(ended)

    @contextlib.contextmanager
    def span(self, name: str, parent: Mapping[str, str]) -> Iterator[None]:
        """A span around what runs inside, part of the trace that the parent's headers name."""
        if self._tracer is None:
            yield
            return
        from opentelemetry.propagate import extract

        with self._tracer.start_as_current_span(name, context=extract(parent)):
            yield

    def page(self) -> bytes:
        """The Prometheus text of all workers."""
        folder = os.environ.get(_FOLDER)
        if not folder:
            return generate_latest(self._registry)
        _forget_dead(folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _forget_dead(folder: str) -> None:
    """Leave out the gauges of workers that were killed."""
    for name in os.listdir(folder):
        process = name.removesuffix(".db").rpartition("_")[2]
        if name.startswith("gauge_live") and process.isdigit():
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                mark_process_dead(int(process), folder)  # type: ignore[no-untyped-call]


def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("whichsense")
