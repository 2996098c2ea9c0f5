"""The corpus over HTTP: a file is added and asked about, then deleted; who may do that, and what cannot be added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_service import make_index
from test_serve_ask import events

from whichsense.index import folder as folders
from whichsense.serve.state.keys import KeyFile

Start = Callable[..., Any]
PATH = "/v1/corpus/sources"
LYNX = b"# Lynx\n\nThe lynx has tufted ears.\n"


@pytest.fixture
def own(start: Start, tmp_path: Path) -> Iterator[Any]:
    """A client of a service over an index of its own."""
    yield start(index=make_index(tmp_path))


def search(client: Any) -> list[str]:
    body = {"question": "tufted ears"}
    hits = client.post("/v1/search", json=body).json()["hits"]
    return [hit["passage"]["source"] for hit in hits]


def test_a_file_is_added_and_deleted(own: Any, tmp_path: Path) -> None:
    assert own.get("/v1/corpus").json()["writable"]
    assert search(own) == []
    added = own.put(f"{PATH}/notes.md", content=LYNX)
    assert added.json() == {"source": "notes", "passages": 4, "changed": 1}
    (source,) = search(own)
    assert own.get("/v1/corpus").json()["sources"][-1] == "notes.md"
    deleted = own.delete(f"{PATH}/{source}")
    assert deleted.json()["changed"] == -1 and search(own) == []
    assert own.delete(f"{PATH}/{source}").status_code == 404
    assert not list((tmp_path / "uploads").iterdir())


def test_progress_is_streamed(own: Any) -> None:
    headers = {"Accept": "text/event-stream"}
    lines = "".join(f'{{"title": "T{n}", "text": "Word {n}."}}\n' for n in range(300))
    with own.stream(
        "PUT", f"{PATH}/many.jsonl", content=lines.encode(), headers=headers
    ) as response:
        seen = list(events(response.iter_lines()))
    assert seen[-1] == ("done", {"source": "many", "passages": 303, "changed": 300})
    assert seen[0][0] == "progress" and seen[-2][1]["done"] == 1.0


def test_what_cannot_be_added_is_a_problem(own: Any, tmp_path: Path) -> None:
    for name, body, status in (
        ("empty.md", b"", 422),
        ("x.unknown", b"\x00\x01\x02", 422),
        ("..%2Fescape.md", LYNX, 404),
        (".hidden.md", LYNX, 422),
    ):
        response = own.put(f"{PATH}/{name}", content=body)
        assert response.status_code == status, (name, response.text)
        assert str(tmp_path) not in response.text
    with folders.writing(tmp_path / "index", "a test"):
        response = own.put(f"{PATH}/notes.md", content=LYNX)
    assert response.status_code == 409 and "index-busy" in response.text


def test_files_are_bounded(start: Start, tmp_path: Path) -> None:
    client = start(index=make_index(tmp_path), upload_bytes=1000)
    response = client.put(f"{PATH}/large.md", content=b"x" * 2000)
    assert response.status_code == 413


def test_writing_needs_its_scope_and_an_index_of_ones_own(
    start: Start, tmp_path: Path
) -> None:
    assert start(index="sample").put(f"{PATH}/n.md", content=LYNX).status_code == 409
    key = KeyFile(tmp_path).add("reader", ["ask"])
    client = start(index=make_index(tmp_path))
    headers = {"Authorization": f"Bearer {key}"}
    response = client.put(f"{PATH}/n.md", content=LYNX, headers=headers)
    assert response.status_code == 403 and "write" in response.json()["fix"]
