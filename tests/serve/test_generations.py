"""An index that is built anew under a running service: without vectors, with another encoder, for a method it lacks."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_service import QUESTION, RECORDS, build
from test_serve_ask import ask, wait_for

from whichsense.index import Index
from whichsense.models.static import load_encoder
from whichsense.pipeline import Pipeline
from whichsense.stages.retrieve import IndexRetriever
from whichsense.testing import FakeEncoder

Start = Callable[..., Any]
LYNX = {"title": "Lynx", "text": "The lynx has tufted ears."}


def build_vectors(folder: Path) -> None:
    Index.build(RECORDS, folder, encoder=load_encoder("static")).close()


def generation(client: Any) -> int:
    return int(client.get("/v1/info").json()["generation"])


def is_ready(client: Any) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return bool(client.get("/readyz").status_code == 200)
    return False


def faults(client: Any) -> dict[str, str]:
    """Why an index stays at its generation, by its name."""
    table: dict[str, str] = client.get("/readyz").json()["faults"]
    return table


def test_the_usual_method_follows_the_index(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_vectors(folder)
    command = [sys.executable, "-m", "whichsense", "serve", "--port", "0"]
    command += ["--index", str(folder), "--state", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        with httpx2.Client(base_url=found[0], timeout=60) as client:
            wait_for(lambda: is_ready(client), 120)
            assert client.get("/v1/info").json()["method"] == "hybrid"
            assert ask(client).status_code == 200
            Index.build([*RECORDS, LYNX], folder, encoder=None).close()
            wait_for(lambda: generation(client) == 2, 120)
            assert client.get("/v1/info").json()["method"] == "bm25"
            assert ask(client).status_code == 200
            assert client.get("/readyz").status_code == 200
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def test_a_method_that_was_named_is_not_given_up(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "index"
    build_vectors(folder)

    def by_meaning(index: Index) -> Pipeline:
        return replace(build(index), retriever=IndexRetriever(index, "dense"))

    client = start(systems=by_meaning, index=str(folder), method="dense")
    assert is_ready(client)
    with caplog.at_level(logging.ERROR, "whichsense.serve"):
        Index.build([*RECORDS, LYNX], folder, encoder=None).close()
        wait_for(lambda: faults(client), 120)
        assert "'index' has no vectors" in faults(client)["index"]
        assert str(tmp_path) not in client.get("/readyz").text
        # The generation before goes on.
        assert ask(client).status_code == 200 and generation(client) == 1
        assert is_ready(client)
        Index.build([*RECORDS, LYNX], folder, encoder=FakeEncoder()).close()
        wait_for(lambda: "fake" in faults(client).get("index", ""), 120)
        build_vectors(folder)
        wait_for(lambda: not faults(client), 120)
    assert generation(client) == 4 and ask(client).status_code == 200
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told


def test_another_encoder_takes_the_place_of_the_first(tmp_path: Path) -> None:
    Index.build(RECORDS, tmp_path, encoder=FakeEncoder()).close()
    index = Index.open(tmp_path, FakeEncoder())
    assert index.search(QUESTION, method="dense")
    build_vectors(tmp_path)
    newer = index.refreshed()
    assert newer.manifest.encoder == "static-1"
    assert newer.search(QUESTION, method="dense")
