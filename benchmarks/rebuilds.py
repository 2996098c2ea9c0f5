"""The service while its index is built anew: without vectors, with another encoder, broken, empty.

    python benchmarks/rebuilds.py [--clients 50] [--seconds 180] [--out results.json]

It needs MiniLM's weights (docs/dense.md).

One worker serves an index of the embedded sample. One client in ten asks, the others search, without an end; in rounds
the index is built anew in its folder, and a broken generation is put in its place: its manifest names a file that is
cut off. What is built from nothing is refused by the builder, and what was there is served on; then all that is in the
index is deleted from it. Twice a second another client asks /readyz and /v1/info.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from faults import Load, clients, get
from serve import wait_until_ready
from whichsense import index as indexes
from whichsense import sample
from whichsense.errors import WhichsenseError
from whichsense.files import write_atomically
from whichsense.lab.provenance import provenance
from whichsense.models.static import load_encoder

_BETWEEN = 4.0  # seconds: a generation is looked for every second
_EVERY = 0.5


def build(folder: Path, encoder: str = "", source: Path = sample.PASSAGES) -> None:
    chosen = load_encoder(encoder) if encoder else None
    indexes.Index.build(source, folder, encoder=chosen).close()


def break_it(folder: Path) -> None:
    """Publish a generation whose files are cut off. No file of the one that is served changes."""
    manifest = json.loads((folder / "manifest.json").read_text())
    served = folder / f"generation-{manifest['generation']}"
    manifest["generation"] += 1
    place = folder / f"generation-{manifest['generation']}"
    for path in served.rglob("*"):
        if path.is_file():
            copy = place / path.relative_to(served)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes()[:10])
    write_atomically(folder / "manifest.json", json.dumps(manifest).encode())


async def change(load: Load, folder: Path, seconds: float) -> dict[str, Any]:
    """Round after round of changes; how many of each, and what was said of them."""
    empty = folder.with_name("empty.jsonl")
    empty.write_text("")
    changes = {
        "without vectors": lambda: build(folder),
        "static": lambda: build(folder, "static"),
        "broken": lambda: break_it(folder),
        "minilm": lambda: build(folder, "minilm"),
        "empty": lambda: build(folder, source=empty),
        "emptied": lambda: indexes.delete(folder, sources=["passages"]),
    }
    done: Counter[str] = Counter()
    said = set()
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        for name, make in changes.items():
            load.phase = name
            try:
                await asyncio.to_thread(make)
            except WhichsenseError as error:
                said.add(f"{name}: {error}".replace(str(folder.parent), ""))
            done[name] += 1
            await asyncio.sleep(_BETWEEN)
    return {"changes": dict(done), "said": sorted(said)}


async def sample_ready(load: Load, samples: list[dict[str, Any]]) -> None:
    """Whether /readyz says what is so: that questions can be asked, or are refused."""
    while True:
        ready = json.loads(await get(load.address, "/readyz"))
        info = json.loads(await get(load.address, "/v1/info"))
        samples.append(
            {
                "phase": load.phase,
                "ready": ready.get("status") == "ready",
                "can": "passages" in info,
                "faults": sorted(set(ready.get("faults", {}).values())),
            }
        )
        await asyncio.sleep(_EVERY)


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    index = folder / "index"
    build(index, "static")
    command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
    command += ["--index", str(index), "--state", str(folder / "state")]
    command += ["--deadline", "300", "--queue", "256"]
    with (
        open(folder / "log", "w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            place = server.stdout.readline().split()[2].removeprefix("http://")
            wait_until_ready(place, "/readyz")
            host, port = place.split(":")
            load = Load((host, int(port)))
            samples: list[dict[str, Any]] = []
            async with clients(load, options.clients):
                looking = asyncio.create_task(sample_ready(load, samples))
                result = await change(load, index, options.seconds)
                looking.cancel()
        finally:
            server.terminate()
            server.wait(60)
    statuses = Counter(f"{one.path} {one.status}" for one in load.exchanges)
    failed = Counter(f"{one.phase}: {one.status}" for one in load.exchanges if one.status != 200)
    lines = (folder / "log").read_text().splitlines()
    return {
        "clients": options.clients,
        "seconds": options.seconds,
        **result,
        "statuses": dict(statuses),
        "failed": dict(failed),
        "samples": len(samples),
        "samples_that_were_untrue": sum(one["ready"] != one["can"] for one in samples),
        "faults_said": sorted({fault for one in samples for fault in one["faults"]}),
        "log": sorted({line.replace(str(folder), "") for line in lines})[:20],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=180)
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
