"""The corpus over HTTP: a file is added and asked about, then deleted; who may do that, and what cannot be added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_service import RECORDS, make_index
from test_serve_ask import events

from whichsense.index import folder as folders
from whichsense.serve.settings import KeyFile

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
    body = added.json()
    assert (body["source"], body["passages"], body["changed"]) == ("notes.md", 4, 1)
    (source,) = search(own)
    assert source == body["source"]
    assert own.get("/v1/corpus").json()["sources"][-1] == "notes.md"
    deleted = own.delete(f"{PATH}/{source}")
    assert deleted.json()["changed"] == -1 and search(own) == []
    assert own.delete(f"{PATH}/{source}").status_code == 404
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["parts"]
    assert not list((tmp_path / "uploads" / "parts").iterdir())


def test_progress_is_streamed(own: Any) -> None:
    headers = {"Accept": "text/event-stream"}
    lines = "".join(f'{{"title": "T{n}", "text": "Word {n}."}}\n' for n in range(300))
    with own.stream(
        "PUT", f"{PATH}/many.jsonl", content=lines.encode(), headers=headers
    ) as response:
        seen = list(events(response.iter_lines()))
    assert seen[-1][0] == "done"
    assert seen[-1][1]["source"] == "many" and seen[-1][1]["changed"] == 300
    assert seen[0][0] == "progress" and seen[-2][1]["done"] == 1.0


def test_what_cannot_be_added_is_a_problem(own: Any, tmp_path: Path) -> None:
    for name, body, status in (
        ("empty.md", b"", 422),
        ("x.unknown", b"\x00\x01\x02", 422),
        ("..%2Fescape.md", LYNX, 405),
        (".hidden.md", LYNX, 422),
    ):
        response = own.put(f"{PATH}/{name}", content=body)
        assert response.status_code == status, (name, response.text)
        assert str(tmp_path) not in response.text
    with folders.writing(tmp_path / "index", "a test"):
        response = own.put(f"{PATH}/notes.md", content=LYNX)
    assert response.status_code == 409 and "index-busy" in response.text
    assert response.headers["retry-after"]


def test_what_is_wrong_with_a_file_is_told(own: Any, tmp_path: Path) -> None:
    for name, body, reason in (
        ("latin.txt", "caf\xe9".encode("latin-1"), "not utf-8 (byte 3)"),
        ("cut (1).pdf", b"%PDF-1.4 broken", "cannot be read as pdf"),
        ("none.jsonl", b"nothing\n", "nothing usable"),
    ):
        told = own.put(f"{PATH}/{name}", content=body).json()
        assert reason in told["title"] and told["fix"], told
        assert "--" not in told["fix"] and "/" not in told["title"]
    lines = b'{"title": "Ocelot", "text": "It is spotted."}\nnothing\n'
    added = own.put(f"{PATH}/some.jsonl", content=lines).json()
    assert added["added"] == 1 and added["left_out"] == 1
    assert added["why"][0].startswith("line 2: ")


def test_names_that_hide_something_and_pictures_are_refused(own: Any) -> None:
    for name, reason in (
        ("%20.md", "blank"),
        ("notes%E2%80%AEfdp.md", "control characters"),
        ("no%07tes.md", "control characters"),
        (".notes.md", "begins with a dot"),
    ):
        told = own.put(f"{PATH}/{name}", content=LYNX)
        assert told.status_code == 422 and reason in told.text, (name, told.text)
        assert "name" in told.json()["fix"]
    for name, body in (
        ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00"),
        ("photo.txt", b"\xff\xd8\xff\xe0\x00\x10JFIF"),
    ):
        told = own.put(f"{PATH}/{name}", content=body)
        assert told.status_code == 422 and "picture" in told.json()["title"]
        assert "utf" not in told.text.lower()


def test_a_file_takes_the_place_of_its_earlier_self(own: Any) -> None:
    own.put(f"{PATH}/notes.md", content=LYNX)
    again = own.put(f"{PATH}/notes.md", content=LYNX).json()
    assert (again["changed"], again["replaced"], again["added"]) == (0, 1, 1)
    other = own.put(f"{PATH}/notes.md", content=b"# Lynx\n\nIt has a short tail.\n")
    assert other.json()["replaced"] == 1 and search(own) == []
    broken = own.put(f"{PATH}/notes.md", content=b"\x00\x01")
    assert broken.status_code == 422
    (first, *_) = own.get(f"{PATH}").json()["sources"]
    assert first == {"source": "notes.md", "title": "Lynx", "documents": 1, "passages": 1}


def test_the_text_of_another_source_is_refused_by_its_name(own: Any) -> None:
    tail = b"# Lynx\n\nIt has a short tail.\n"
    assert own.put(f"{PATH}/notes.md", content=tail).json()["added"] == 1
    assert own.put(f"{PATH}/copy.md", content=LYNX).json()["added"] == 1
    # What was there under the name stays.
    copy = own.put(f"{PATH}/copy.md", content=tail)
    assert copy.status_code == 422 and "'notes.md' has its text" in copy.json()["title"]
    assert search(own) == ["copy.md"]
    lines = "\n".join(map(json.dumps, [RECORDS[0], {"title": "Ounce", "text": "It is."}]))
    both = own.put(f"{PATH}/both.jsonl", content=lines.encode())
    assert (both.json()["added"], both.json()["duplicates"]) == (1, 1)


def test_a_file_is_sent_in_pieces_and_goes_on_after_a_break(start: Start, tmp_path: Path) -> None:
    upload = "/v1/corpus/uploads/notes-33-1700000000"
    index = make_index(tmp_path)
    client = start(index=index)
    none = client.put(f"{PATH}/notes.md", params={"upload": "notes-33-1700000000"})
    assert none.status_code == 409 and "incomplete" in none.text
    assert client.get(upload).json() == {"received": 0}

    def send(offset: int, body: bytes) -> Any:
        headers = {"Upload-Offset": str(offset)}
        return client.patch(upload, content=body, headers=headers)

    assert send(0, LYNX[:10]).json() == {"received": 10}
    gap = send(20, LYNX[20:])
    assert gap.status_code == 409 and "Upload-Offset: 10" in gap.json()["fix"]
    client = start(index=index)  # another service with the same state
    assert client.get(upload).json() == {"received": 10}
    assert send(5, LYNX[5:]).json() == {"received": len(LYNX)}
    added = client.put(f"{PATH}/notes.md", params={"upload": "notes-33-1700000000"})
    assert added.json()["added"] == 1 and search(client) == ["notes.md"]
    assert client.get(upload).json() == {"received": 0}
    assert client.patch(upload, content=b"x").status_code == 422  # no offset


def test_files_are_bounded(start: Start, tmp_path: Path) -> None:
    client = start(index=make_index(tmp_path), upload_bytes=1000)
    response = client.put(f"{PATH}/large.md", content=b"x" * 2000)
    assert response.status_code == 413
    for offset, status in ((0, 200), (900, 413)):
        response = client.patch(
            "/v1/corpus/uploads/large-md-2000",
            content=b"x" * 900,
            headers={"Upload-Offset": str(offset)},
        )
        assert response.status_code == status


def test_writing_needs_its_scope_and_an_index_of_ones_own(start: Start, tmp_path: Path) -> None:
    assert start(index="sample").put(f"{PATH}/n.md", content=LYNX).status_code == 409
    key = KeyFile(tmp_path).add("reader", ["ask"])
    client = start(index=make_index(tmp_path))
    headers = {"Authorization": f"Bearer {key}"}
    response = client.put(f"{PATH}/n.md", content=LYNX, headers=headers)
    assert response.status_code == 403 and "write" in response.json()["fix"]
    described = client.get("/v1/corpus", headers=headers).json()
    assert not described["writable"] and "--scope write" in described["fix"]
