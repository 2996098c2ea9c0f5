"""What operators see: Prometheus counters, and OpenTelemetry spans where its packages are installed."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from logging.handlers import WatchedFileHandler
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from whichsense.serve.events import Shared, is_process
from whichsense.serve.settings import ServiceSettings
from whichsense.types import Case, Cost

disable_created_metrics()  # type: ignore[no-untyped-call]  # times that nobody reads
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
RESTARTS = "whichsense_worker_restarts"
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Telemetry:
    """The counters of one worker. With several workers, prometheus_client adds up their files."""

    def __init__(self) -> None:
        self._record: ContextVar[Record] = ContextVar("whichsense_record")
        self._registry = CollectorRegistry()
        kept: Any = {"registry": self._registry}
        timed = kept | {"buckets": _BUCKETS}
        self._requests = Counter(
            "whichsense_requests_total", "HTTP requests.", ("method", "path", "status"), **kept
        )
        self._request_seconds = Histogram(
            "whichsense_request_seconds", "Seconds until a response ended.", ("path",), **timed
        )
        self._stage_seconds = Histogram(
            "whichsense_stage_seconds", "Seconds of each stage.", ("stage",), **timed
        )
        self.answers = Counter(
            "whichsense_answers_total",
            "Answers by how they ended: done, refused, deadline, cancelled, failed.",
            ("outcome",),
            **kept,
        )
        self.lost = Counter(
            "whichsense_traces_lost_total", "Cases that could not be written.", **kept
        )
        self.active = Gauge(
            "whichsense_answers_active",
            "Answers that wait or are worked on.",
            multiprocess_mode="livesum",
            **kept,
        )
        self.refused_keys = Counter(
            "whichsense_keys_refused_total",
            "Requests without a valid key: none, unknown, secret, inactive.",
            ("reason",),
            **kept,
        )
        self._tracer = _tracer()

    def begin_record(self, request_id: str) -> Record:
        """Begin the record of a request; what runs for it finds it as `record`."""
        record = Record(request_id)
        self._record.set(record)
        return record

    @property
    def record(self) -> Record:
        """Of the request that is answered now; outside of one, a record that nobody reads."""
        return self._record.get(Record(""))

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        method = method if path != "other" else path
        self._requests.labels(method, path, str(status)).inc()
        self._request_seconds.labels(path).observe(seconds)

    def observe_stage(self, stage: str, case: Case) -> None:
        """A stage that has just ended."""
        seconds = case.spent.get(stage, Cost()).seconds
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

    def page(self, shared: Shared) -> bytes:
        """The Prometheus text of all workers."""
        whole = CollectorRegistry()
        whole.register(_Restarts(shared))
        folder = os.environ.get(_FOLDER)
        if not folder:
            return generate_latest(self._registry) + generate_latest(whole)
        _forget_dead(folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(whole)


class _Restarts(Collector):
    """What the process that holds the workers counts."""

    def __init__(self, shared: Shared) -> None:
        self._count = shared.counted(RESTARTS)

    def collect(self) -> Iterator[Metric]:
        about = "Workers that died and were replaced."
        yield CounterMetricFamily(RESTARTS, about, value=self._count)


def _forget_dead(folder: str) -> None:
    """Leave out the gauges of workers that were killed."""
    for name in os.listdir(folder):
        process = name.removesuffix(".db").rpartition("_")[2]
        is_live = name.startswith("gauge_live") and process.isdigit()
        if is_live and not is_process(int(process)):
            mark_process_dead(int(process), folder)  # type: ignore[no-untyped-call]


# The log: a line for each request, and what the service has to say, as JSON where that is wanted.


@dataclass(slots=True)
class Record:
    """What the log says of a request, filled in on its way."""

    request: str
    key: str = ""
    """The id of its key."""
    index: str = ""
    question: str = ""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each."""


class AccessLog:
    """One line of JSON for each request."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._with_questions = settings.log_questions
        self._log = logging.Logger("whichsense.access")
        if settings.access_log == "-":
            self._log.addHandler(logging.StreamHandler())
        elif settings.access_log:
            # Begun anew when another program has moved the file away.
            self._log.addHandler(WatchedFileHandler(settings.access_log, delay=True))

    def write(self, record: Record, method: str, route: str, status: int, seconds: float) -> None:
        if not self._log.handlers:
            return
        stages = {name: round(spent, 4) for name, spent in record.stages.items()}
        table = {
            "time": _now(),
            **asdict(record),
            "stages": stages,
            "method": method,
            "route": route,
            "status": status,
            "seconds": round(seconds, 4),
        }
        if not self._with_questions:
            del table["question"]
        self._log.info(json.dumps(table))


def begin_log(settings: ServiceSettings) -> None:
    """Have the service's own log written to standard error: lines of JSON beside those of requests, else plain ones."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    if settings.access_log == "-":
        handler.setFormatter(_JsonFormatter())
    log = logging.getLogger("whichsense.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        table = {
            "time": _now(),
            "level": record.levelname,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info:
            table["exception"] = self.formatException(record.exc_info)
        return json.dumps(table)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("whichsense")
