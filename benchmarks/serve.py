"""The service under load: throughput, latency, /healthz, memory; beside the pipeline itself and beside Hayhooks.

    python benchmarks/serve.py [--clients 200] [--seconds 60] [--workers 1] [--hayhooks COMMAND] [--out results.json]

Everything runs on this machine, over the embedded sample's questions. Clients ask without pause; one that is refused
with 429 waits as long as it is told. A process of its own asks for /healthz ten times a second. The pipeline is called
directly, by as many threads as the service has, before and after the service is measured.

--hayhooks is that command, from a Python that also has this package's requirements: the same index is searched as one
component of a Haystack pipeline, by the same clients.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from whichsense.lab.provenance import provenance

_PROBE = """
import http.client, json, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
host, port = sys.argv[1].split(":")
seconds = []
try:
    while True:
        begun = time.perf_counter()
        probe = http.client.HTTPConnection(host, int(port), timeout=30)
        probe.request("GET", "/healthz")
        assert probe.getresponse().read()
        probe.close()
        seconds.append(time.perf_counter() - begun)
        time.sleep(0.1)
except KeyboardInterrupt:
    print(json.dumps(seconds))
"""
_WRAPPER = """
from haystack import Pipeline, component
from hayhooks import BasePipelineWrapper
from whichsense import records, sample
from whichsense.index import Index

@component
class Search:
    def __init__(self):
        self.index = sample.open_index()

    @component.output_types(hits=list)
    def run(self, question: str, k: int = 10):
        return {"hits": records.encode(tuple(self.index.search(question, k)))}

class PipelineWrapper(BasePipelineWrapper):
    def setup(self) -> None:
        self.pipeline = Pipeline()
        self.pipeline.add_component("search", Search())

    def run_api(self, question: str, k: int = 10) -> dict:
        return self.pipeline.run({"search": {"question": question, "k": k}})["search"]
"""


async def _client(
    address: tuple[str, int],
    path: str,
    bodies: Iterator[bytes],
    log: list[tuple[int, float, float]],
) -> None:
    """One client with a connection that it keeps: status and seconds of each request, and when it ended."""
    reader = writer = None
    while True:
        if writer is None:
            reader, writer = await asyncio.open_connection(*address)
        body = next(bodies)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        begun = time.perf_counter()
        try:
            writer.write(head.encode() + body)
            assert reader is not None
            status, wait, keep = await _response(reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            status, wait, keep = 0, 0.0, False
        ended = time.perf_counter()
        log.append((status, ended - begun, ended))
        if not keep:
            writer.close()
            writer = None
        if wait:
            await asyncio.sleep(wait)


async def _response(reader: asyncio.StreamReader) -> tuple[int, float, bool]:
    """Status, Retry-After, and whether the connection stays open."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    await reader.readexactly(int(headers["content-length"]))
    keep = headers.get("connection", "").lower() != "close"
    return int(lines[0].split()[1]), float(headers.get("retry-after", 0)), keep


def load(address: str, path: str, pid: int, options: argparse.Namespace) -> dict[str, Any]:
    """All clients for the given seconds. The server's processor time tells most where the machine is not idle."""
    host, port = address.split(":")
    bodies = itertools.cycle(_bodies(path))
    log: list[tuple[int, float, float]] = []

    async def all_clients() -> None:
        clients = []
        for _ in range(options.clients):
            clients.append(_client((host, int(port)), path, bodies, log))
        # What is still on its way at the end is not counted: its clients go away.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(options.seconds):
                await asyncio.gather(*clients)

    used = cpu_seconds(pid)
    asyncio.run(all_clients())
    used = cpu_seconds(pid) - used
    seconds = sorted(each for status, each, _ in log if status == 200)
    return {
        "per_second": round(rate([ended for status, _, ended in log if status == 200]), 3),
        "cpu_ms_each": round(1000 * used / max(1, len(seconds)), 2),
        "statuses": dict(Counter(status for status, _, _ in log)),
        "p50_ms": round(1000 * percentile(seconds, 0.5), 1),
        "p99_ms": round(1000 * percentile(seconds, 0.99), 1),
    }


def rate(ended: list[float]) -> float:
    """Answers a second, from the end of the first to that of the last: what is on its way at the end of a measurement
    was worked on, but has not ended."""
    return (len(ended) - 1) / (max(ended) - min(ended))


def _bodies(path: str) -> list[bytes]:
    bodies = []
    for question in questions():
        table: dict[str, Any] = {"question": question}
        if not path.endswith("/ask"):
            table["k"] = 10
        bodies.append(json.dumps(table).encode())
    return bodies


def questions() -> list[str]:
    from whichsense.lab.datasets import load as load_dataset

    return [question.text for question in load_dataset("sample/questions")]


def percentile(ordered: list[float], share: float) -> float:
    return ordered[int(share * (len(ordered) - 1))] if ordered else float("nan")


@contextlib.contextmanager
def service(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """whichsense serve: its address, and its process."""
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
        command += ["--state", state, "--queue", "256", "--deadline", "600"]
        command += ["--workers", str(options.workers)]
        command += ["--parallel", str(options.parallel)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as begun:
            assert begun.stdout is not None
            address = begun.stdout.readline().split()[2].removeprefix("http://")
            try:
                wait_until_ready(address, "/readyz")
                yield address, begun.pid
            finally:
                begun.terminate()


def wait_until_ready(address: str, path: str) -> None:
    from urllib.error import URLError
    from urllib.request import urlopen

    for _ in range(600):
        with contextlib.suppress(URLError, ConnectionError, TimeoutError):
            urlopen(f"http://{address}{path}", timeout=5)
            return
        time.sleep(0.2)
    raise SystemExit(f"nothing answers at {address}{path}")


@contextlib.contextmanager
def watched(address: str, pid: int, result: dict[str, Any]) -> Iterator[None]:
    """Ask for /healthz meanwhile; note the memory before and after."""
    result["memory_mb_before"] = memory_mb(pid)
    probe = subprocess.Popen(
        [sys.executable, "-c", _PROBE, address], stdout=subprocess.PIPE, text=True
    )
    try:
        yield
    finally:
        probe.send_signal(signal.SIGINT)
        output, _ = probe.communicate()
        seconds = sorted(json.loads(output))
        result["healthz_p99_ms"] = round(1000 * percentile(seconds, 0.99), 1)
        result["healthz_max_ms"] = round(1000 * seconds[-1], 1)
        result["memory_mb_after"] = memory_mb(pid)


def memory_mb(pid: int) -> int:
    """The memory of a process and of those that it started."""
    pages = sum(int(fields[21]) for fields in family(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def cpu_seconds(pid: int) -> float:
    """The processor time of a process and of those that it started."""
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in family(pid))
    return ticks / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[list[str]]:
    """The fields of /proc/…/stat behind the command, of a process and of its children."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if str(pid) in (stat.parent.name, fields[1]):
                members.append(fields)
    return members


def direct(options: argparse.Namespace, seconds: float) -> tuple[float, float]:
    """Answers a second of the pipeline itself, by as many threads; and processor time of each, in ms."""
    from whichsense.systems import load as load_pipeline

    pipeline = load_pipeline(threads=1)
    asked = itertools.cycle(questions())
    pipeline.ask(next(asked))
    ends_at = time.monotonic() + seconds

    def answer_some() -> list[float]:
        ended = []
        while time.monotonic() < ends_at:
            pipeline.ask(next(asked))
            ended.append(time.monotonic())
        return ended

    used = time.process_time()
    with ThreadPoolExecutor(options.parallel) as pool:
        running = [pool.submit(answer_some) for _ in range(options.parallel)]
        ended = [at for one in running for at in one.result()]
    used = time.process_time() - used
    # After the end one thread after the other has nothing to do.
    return rate([at for at in ended if at <= ends_at]), 1000 * used / len(ended)


def hayhooks(options: argparse.Namespace) -> dict[str, Any]:
    """The same search as a Haystack pipeline behind Hayhooks."""
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "search" / "pipeline_wrapper.py"
        wrapper.parent.mkdir()
        wrapper.write_text(_WRAPPER, encoding="utf-8")
        command = [options.hayhooks, "run", "--port", "18416"]
        command += ["--pipelines-dir", folder, "--workers", str(options.workers)]
        source = str(Path(__file__).parents[1] / "src")
        log = open(Path(folder) / "log", "w", encoding="utf-8")  # a full pipe would stop it
        environment = os.environ | {"PYTHONPATH": source}
        with log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as begun:
            try:
                wait_until_ready("127.0.0.1:18416", "/status")
                return load("127.0.0.1:18416", "/search/run", begun.pid, options)
            finally:
                begun.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--paths", nargs="+", default=["/v1/search", "/v1/ask"])
    parser.add_argument("--hayhooks", metavar="COMMAND")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"clients": options.clients, "workers": options.workers}
    asks = "/v1/ask" in options.paths
    pipeline = [direct(options, options.seconds / 2)] if asks else []
    with service(options) as (address, pid):
        for path in options.paths:
            result[path] = {}
            with watched(address, pid, result[path]):
                result[path] |= load(address, path, pid, options)
            print(path, json.dumps(result[path]), flush=True)
    if asks:
        pipeline.append(direct(options, options.seconds / 2))
        result["pipeline_per_second"] = statistics.mean(rate for rate, _ in pipeline)
        result["pipeline_cpu_ms_each"] = statistics.mean(cpu for _, cpu in pipeline)
        share = result["/v1/ask"]["per_second"] / result["pipeline_per_second"]
        result["share_of_pipeline"] = round(share, 3)
    if options.hayhooks:
        result["hayhooks"] = hayhooks(options)
        share = result["/v1/search"]["per_second"] / result["hayhooks"]["per_second"]
        result["times_hayhooks"] = round(share, 2)
    result["provenance"] = provenance()
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
