"""The memory of a service over minutes of load: the resident size of every process, and its slope after a minute.

    python benchmarks/memory.py [--clients 200] [--seconds 240] [--workers 2] [--pause 2] [--out results.json]

One client in ten asks without pause. The others search, with a pause between two searches that leaves time for answers;
few searches are the same, so that what is remembered of them reaches its bound.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from faults import Load, clients, workers
from serve import wait_until_ready
from whichsense.lab.provenance import provenance

_EVERY = 5.0  # seconds
_WARM = 60.0  # seconds until models are loaded and memories are full


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


async def watch(
    load: Load, parent: int, options: argparse.Namespace
) -> dict[str, list[tuple[float, float]]]:
    """Of each process its size by time."""
    processes = {"parent": parent}
    for number, pid in enumerate(workers(parent), 1):
        processes[f"worker {number}"] = pid
    sizes: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    begun = time.monotonic()
    async with clients(load, options.clients):
        while (passed := time.monotonic() - begun) < options.seconds:
            for name, pid in processes.items():
                sizes[name].append((round(passed, 1), resident_mb(pid)))
            await asyncio.sleep(_EVERY)
    return sizes


def slope(sizes: list[tuple[float, float]]) -> float:
    """MB a minute after the first minute, by least squares."""
    late = [one for one in sizes if one[0] >= _WARM]
    times = [time for time, _ in late]
    return 60 * statistics.linear_regression(times, [mb for _, mb in late]).slope


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
        command += ["--state", state, "--workers", str(options.workers)]
        command += ["--queue", "256", "--deadline", "600"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                place = server.stdout.readline().split()[2].removeprefix("http://")
                wait_until_ready(place, "/readyz")
                host, port = place.split(":")
                load = Load((host, int(port)), pause=options.pause)
                sizes = asyncio.run(watch(load, server.pid, options))
            finally:
                server.terminate()
    slopes = {name: round(slope(some), 2) for name, some in sizes.items()}
    return {
        "clients": options.clients,
        "workers": options.workers,
        "seconds": options.seconds,
        **load.summary("quiet"),
        "mb_a_minute_after_the_first": slopes,
        "mb": sizes,
        "provenance": provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pause", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = run(options)
    print(json.dumps(result))
    if options.out:
        options.out.write_text(json.dumps(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
