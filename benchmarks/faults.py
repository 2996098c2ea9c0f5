"""The service under load while things break: a killed worker, a changing index, a full disk, slow clients.

    python benchmarks/faults.py [--clients 200] [--seconds 40] [--out results.json]

Two workers serve an index of the embedded sample. One client in ten asks, the others search; each takes a new
connection after a few requests, so that every worker gets some. All faults happen in one run, one after another:

kill    a worker is killed with SIGKILL. It is stopped for a moment first, to list the connections that it holds: only
        requests on these may fail. Afterwards there are two workers again, and both are connected to.
index   documents are added, and the index is built anew.
disk    the file system of the traces is filled up, and freed again.
slow    50 clients connect and say nothing, or send half a head, or a body byte by byte, or do not read their stream.

At the end every answer's id is looked for among the traces. The traces lie on a small tmpfs, which only root may mount:
`unshare --user --map-root-user --mount python benchmarks/faults.py` makes one of anybody.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serve import percentile, questions, wait_until_ready
from whichsense import index as indexes
from whichsense import sample
from whichsense.lab.provenance import provenance

Fault = Callable[[], Awaitable[dict[str, Any]]]
_REQUESTS = 20  # on one connection
_DISK = "12m"
_SLOW = 50


@dataclass(frozen=True)
class Exchange:
    """One request: when it ended, in which phase, and how. Status 0: the connection was cut."""

    phase: str
    path: str
    status: int
    seconds: float
    port: int
    """Of the client's end of the connection."""
    case_id: str = ""


@dataclass
class Load:
    """All clients, and what they saw."""

    address: tuple[str, int]
    phase: str = "quiet"
    pause: float = 0.3
    """Seconds between the searches of one client."""
    exchanges: list[Exchange] = field(default_factory=list)

    async def client(self, path: str, asked: Iterator[str]) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
            except OSError:
                self.exchanges.append(Exchange(self.phase, path, 0, 0.0, 0))
                continue
            try:
                await self._some_requests(path, asked, reader, writer)
            finally:
                writer.close()

    async def _some_requests(
        self,
        path: str,
        asked: Iterator[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        port = writer.get_extra_info("sockname")[1]
        for _ in range(_REQUESTS if path == "/v1/search" else 1):
            begun = time.perf_counter()
            body = json.dumps({"question": next(asked)}).encode()
            try:
                writer.write(_head(path, len(body)) + body)
                status, answer = await _read(reader)
            except (ConnectionError, asyncio.IncompleteReadError):
                status, answer = 0, b""
            took = time.perf_counter() - begun
            case_id = ""
            if status == 200 and path == "/v1/ask":
                case_id = json.loads(answer)["id"]
            self.exchanges.append(Exchange(self.phase, path, status, took, port, case_id))
            if status != 200:
                return
            if path == "/v1/search":
                await asyncio.sleep(self.pause * 2 * random.random())

    def answered(self, phase: str) -> int:
        """How many questions were answered in a phase so far."""
        return sum(bool(one.case_id) for one in self.exchanges if one.phase == phase)

    def summary(self, phase: str) -> dict[str, Any]:
        chosen = [one for one in self.exchanges if one.phase == phase]
        seconds = [one.seconds for one in chosen if one.path == "/v1/search"]
        statuses: dict[str, dict[int, int]] = {}
        for path in ("/v1/search", "/v1/ask"):
            counts = Counter(one.status for one in chosen if one.path == path)
            statuses[path] = dict(counts)
        seconds.sort()
        return {
            "statuses": statuses,
            "search_p50_ms": round(1000 * percentile(seconds, 0.5), 1),
            "search_p99_ms": round(1000 * percentile(seconds, 0.99), 1),
        }


def _head(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of a response."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
    assert length is not None
    return int(head.split()[1]), await reader.readexactly(int(length[1]))


@contextlib.asynccontextmanager
async def clients(load: Load, count: int) -> AsyncIterator[None]:
    """So many clients until the block ends. What is searched for is two questions: few searches are remembered ones."""
    plain = itertools.cycle(questions())
    pairs = itertools.cycle(itertools.permutations(questions(), 2))
    asked = (" ".join(pair) for pair in pairs)
    tasks = []
    for number in range(count):
        path, source = ("/v1/ask", plain) if number % 10 == 0 else ("/v1/search", asked)
        tasks.append(asyncio.create_task(load.client(path, source)))
    try:
        yield
        for task in tasks:
            if task.done():
                await task  # a client that ended by itself has failed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def kill(load: Load, parent: int, seconds: float) -> dict[str, Any]:
    before = workers(parent)
    victim = before[0]
    os.kill(victim, signal.SIGSTOP)
    held = client_ports(victim)
    os.kill(victim, signal.SIGKILL)
    begun = time.monotonic()
    back = 0.0
    while time.monotonic() - begun < seconds or not back:
        await asyncio.sleep(0.2)
        new = set(workers(parent)) - set(before)
        if not back and any(client_ports(pid) for pid in new):
            back = time.monotonic() - begun
    failed = [one for one in load.exchanges if one.phase == "kill" and not one.status]
    elsewhere = [one for one in failed if one.port not in held]
    return {
        "connections_of_the_killed_worker": len(held),
        "requests_cut": len(failed),
        "requests_cut_on_other_connections": len(elsewhere),
        "seconds_until_a_new_worker_is_connected_to": round(back, 1),
    }


async def change_index(load: Load, folder: Path, seconds: float) -> dict[str, Any]:
    begun = time.monotonic()
    changes = 0
    for number in range(3):
        text = f"The lynx number {number} has tufted ears."
        more = folder.parent / f"lynx-{number}.jsonl"
        more.write_text(json.dumps({"title": "Lynx", "text": text}) + "\n")
        await asyncio.to_thread(indexes.add, [str(more)], folder)
        await asyncio.sleep(seconds / 8)
        changes += 1
    built = await asyncio.to_thread(indexes.Index.build, sample.PASSAGES, folder)
    passages = len(built)
    built.close()
    await asyncio.sleep(max(3.0, begun + seconds - time.monotonic()))
    served = await get(load.address, "/v1/info")
    assert json.loads(served)["passages"] == passages, "the new index is not served"
    return {"added_to": changes, "built_anew": 1}


async def fill_disk(load: Load, state: Path, seconds: float) -> dict[str, Any]:
    ballast = state / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    await answers(load, "disk", 4, seconds)
    said = set()
    for _ in range(8):  # each worker has its own traces; some answers come from each
        said.add(json.loads(await get(load.address, "/readyz"))["traces"])
    metrics = (await get(load.address, "/metrics")).decode()
    lost = re.search(r"^whichsense_traces_lost_total (\S+)", metrics, re.MULTILINE)
    full = load.answered("disk")
    ballast.unlink()
    load.phase = "freed"
    await answers(load, "freed", 6, seconds)
    return {
        "answers_while_full": full,
        "lost_says_metrics": int(float(lost[1])) if lost else 0,
        "readyz_says": sorted(said),
    }


async def answers(load: Load, phase: str, count: int, seconds: float) -> None:
    """Wait for so many answers, and for these seconds at least."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at or load.answered(phase) < count:
        await asyncio.sleep(0.2)


async def slow_clients(load: Load, seconds: float) -> dict[str, Any]:
    body = json.dumps({"question": "Who played the Joker?", "stream": True}).encode()
    head = _head("/v1/ask", len(body))
    beginnings = [b"", head[:20], head + body[:5], head + body]
    writers = []
    for number in range(_SLOW):
        _, writer = await asyncio.open_connection(*load.address, limit=1)
        writer.write(beginnings[number % 4])
        writers.append((number % 4, writer))
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        await asyncio.sleep(1)
        for kind, writer in writers:
            if kind == 2 and not writer.is_closing():
                writer.write(b" ")
    for _, writer in writers:
        writer.close()
    return {"slow_clients": _SLOW}


async def get(address: tuple[str, int], path: str) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    _, body = await _read(reader)
    writer.close()
    return body


def workers(parent: int) -> list[int]:
    """The worker processes of a service."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            command = stat.with_name("cmdline").read_bytes()
            if int(fields[1]) == parent and b"spawn_main" in command:
                pids.append(int(stat.parent.name))
    return sorted(pids)


def client_ports(pid: int) -> set[int]:
    """The ports of the clients that a process is connected to."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    ports = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        # number, local address, remote address, state, …, inode at place 9
        fields = line.split()
        if fields[9] in inodes and fields[3] != "0A":  # 0A: it listens
            ports.add(int(fields[2].rpartition(":")[2], 16))
    return ports


def check_traces(load: Load, state: Path, lost: int) -> dict[str, Any]:
    """Whether every answer has its whole trace, but for those of the time in which the disk was full."""
    ids: dict[str, list[str]] = {}
    for one in load.exchanges:
        if one.case_id:
            ids.setdefault(one.phase, []).append(one.case_id)
    database = sqlite3.connect(state / "traces.sqlite")
    integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
    kept = {row[0] for row in database.execute("SELECT id FROM traces")}
    gaps = database.execute("SELECT lost, reason FROM gaps").fetchall()
    database.close()
    exported = subprocess.run(
        [*(sys.executable, "-m", "whichsense", "traces", "export"), "--state", state],
        capture_output=True,
        text=True,
        check=True,
    )
    whole = {json.loads(line)["id"] for line in exported.stdout.splitlines()}
    missing = {phase: len(set(some) - kept) for phase, some in ids.items()}
    return {
        "answers": {phase: len(some) for phase, some in ids.items()},
        "answers_without_trace": missing,
        "torn": len(kept - whole),
        "integrity_check": integrity,
        "gaps": gaps,
        "lost_says_metrics": lost,
    }


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    index, state = folder / "index", folder / "state"
    indexes.Index.build(sample.PASSAGES, index).close()
    command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
    command += ["--index", str(index), "--state", str(state), "--workers", "2"]
    command += ["--deadline", "300", "--queue", "256"]
    log = open(folder / "log", "w", encoding="utf-8")
    with (
        log,
        small_disk(state),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            place = server.stdout.readline().split()[2].removeprefix("http://")
            wait_until_ready(place, "/readyz")
            host, port = place.split(":")
            load = Load((host, int(port)))
            result = await run_phases(load, server.pid, index, state, options)
        finally:
            server.terminate()
            server.wait(60)
        lost = result["disk"]["lost_says_metrics"]
        result["traces"] = check_traces(load, state, lost)
    result["log"] = sorted(set((folder / "log").read_text().splitlines()))
    return result


async def run_phases(
    load: Load, parent: int, index: Path, state: Path, options: argparse.Namespace
) -> dict[str, Any]:
    result: dict[str, Any] = {"clients": options.clients, "workers": 2}
    seconds = options.seconds
    async with clients(load, options.clients):
        await answers(load, "quiet", 4, seconds)
        faults: dict[str, Fault] = {
            "kill": lambda: kill(load, parent, seconds),
            "index": lambda: change_index(load, index, seconds),
            "disk": lambda: fill_disk(load, state, seconds),
            "slow": lambda: slow_clients(load, seconds),
        }
        for phase, fault in faults.items():
            load.phase = phase
            result[phase] = await fault()
            print(phase, json.dumps(result[phase] | load.summary(phase)), flush=True)
    for phase in ("quiet", "kill", "index", "disk", "freed", "slow"):
        result.setdefault(phase, {}).update(load.summary(phase))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=40, help="of each fault")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(run(options, Path(folder)))
    result["provenance"] = provenance()
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
