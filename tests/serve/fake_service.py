"""A service without weights: the fakes of `whichsense.testing` over a real index. Also run as a program."""

from __future__ import annotations

import json
import re
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whichsense.index import Index
from whichsense.jobs.limits import check_limits
from whichsense.pipeline import Pipeline
from whichsense.stages.retrieve import IndexRetriever
from whichsense.testing import (
    FakeClarifier,
    FakeDisambiguator,
    FakeReader,
    FakeSummarizer,
    FakeVerifier,
)
from whichsense.types import Case

RECORDS = [
    {"title": "Batman (film)", "text": "Jack Nicholson played the Joker in 1989."},
    {"title": "The Dark Knight", "text": "Heath Ledger played the Joker in 2008."},
    {"title": "Puma", "text": "The puma is a large cat of the Americas."},
]
ANSWERS = {"Nicholson": "Jack Nicholson", "Ledger": "Heath Ledger"}
QUESTION = "Who played the Joker?"
HELD = f"{QUESTION} Wait"
"""A question whose answer waits until a test lets it go: see the fixture `let_go`."""
PATIENT = {"deadline": 3600.0, "body_seconds": 600.0, "rejoin": 600.0}
"""Settings for tests: a machine that is busy runs into no limit that a test does not mean."""
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For `verify`: these tests speak plain HTTP, and reading all certificates takes longer than a request."""
let_go = threading.Event()
_SECONDS = re.compile(r"^(?:Who played|What about) .* ([0-9]+(?:\.[0-9]+)?)$")


@dataclass(frozen=True)
class SlowReader(FakeReader):
    """Takes as many seconds as some questions say at their end: "Who played the Joker? 0.5"; or waits to be let go."""

    def read(self, cases: Sequence[Case]) -> list[Case]:
        for case in cases:
            if "fail" in case.question:
                raise RuntimeError("a secret in hidden/place.py")
            while case.question.endswith("Wait") and not let_go.is_set():
                check_limits()
                time.sleep(0.01)
            wanted = _SECONDS.search(case.question)
            ends_at = time.monotonic() + (float(wanted[1]) if wanted else 0)
            while time.monotonic() < ends_at:
                check_limits()
                time.sleep(0.01)
        return super().read(cases)


def build(index: Index) -> Pipeline:
    return Pipeline(
        IndexRetriever(index),
        reader=SlowReader(ANSWERS),
        disambiguator=FakeDisambiguator(),
        verifier=FakeVerifier(),
        clarifier=FakeClarifier(),
        summarizer=FakeSummarizer(),
        depth=5,
    )


def build_slowly(index: Index) -> Pipeline:
    """As models that take a while to load."""
    time.sleep(0.5)
    return build(index)


def make_index(folder: Path) -> str:
    Index.build(RECORDS, folder / "index", encoder=None).close()
    return str(folder / "index")


def main() -> None:
    """Serve with the settings that the first argument gives as JSON; over stdio, if a second one says so."""
    from whichsense.serve.settings import ServiceSettings

    given = json.loads(sys.argv[1])
    settings = ServiceSettings(**PATIENT | given | {"state": Path(given["state"])})
    if sys.argv[2:] == ["stdio"]:
        from whichsense.serve.mcp import serve_stdio

        serve_stdio(settings, build)
        return
    from whichsense.serve import app

    app._SILENCE = 120  # a worker of a busy machine is not replaced for being slow
    settings = replace(settings, port=0)
    app.serve(settings, build=build_slowly, say=say)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
