"""fetch, against a server of our own: success, interruption, corruption, no network."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from whichsense import datasets
from whichsense.errors import DamagedData, MissingData
from whichsense.lab.datasets.catalog import Download, Entry, Release, entry

ROW = {"id": "1", "question": "Who?", "annotations": [{"type": "singleAnswer", "answer": ["A"]}]}
BODY = json.dumps([ROW] * 400).encode()


class Handler(BaseHTTPRequestHandler):
    """Gives `files`; breaks off in the middle of the paths in `broken`, as often as they say."""

    files: dict[str, bytes]
    broken: dict[str, int]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.broken.get(self.path, 0):
            self.broken[self.path] -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    class Ours(Handler):
        pass

    Ours.files, Ours.broken, Ours.asked = {}, {}, []

    running = ThreadingHTTPServer(("127.0.0.1", 0), Ours)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}", Ours
    running.shutdown()
    thread.join()
    running.server_close()


def use(monkeypatch: pytest.MonkeyPatch, download: Download) -> None:
    def changed(name: str) -> Entry:
        known = entry(name)
        if name == "ambignq/dev":
            return replace(known, download=download, releases=(Release(("dev_light.json",)),))
        return replace(known, download=None)

    monkeypatch.setattr("whichsense.lab.datasets.fetching.entry", changed)


def test_a_plain_file(
    server: tuple[str, type[Handler]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = server
    handler.files["/dev.json"] = BODY
    use(monkeypatch, Download(f"{url}/dev.json", hashlib.sha256(BODY).hexdigest()))
    told: list[tuple[float | None, int]] = []
    path = datasets.fetch(
        "ambignq/dev", tmp_path, progress=lambda done, count: told.append((done, count))
    )
    assert path == tmp_path / "ambignq" / "dev_light.json"
    assert path.read_bytes() == BODY
    assert told[-1][0] == 1.0
    assert [item.name for item in path.parent.iterdir()] == ["dev_light.json"], (
        "nothing else is left"
    )
    datasets.fetch("ambignq/dev", tmp_path)
    assert len(handler.asked) == 1, "what is there is not fetched again"
    datasets.fetch("ambignq/dev", tmp_path, force=True)
    assert len(handler.asked) == 2


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive(
    server: tuple[str, type[Handler]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("folder/dev.json", BODY)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            info = tarfile.TarInfo("folder/dev.json")
            info.size = len(BODY)
            tar.addfile(info, io.BytesIO(BODY))
    url, handler = server
    handler.files[f"/x.{kind}"] = packed.getvalue()
    use(monkeypatch, Download(f"{url}/x.{kind}", member="dev.json"))
    path = datasets.fetch("ambignq/dev", tmp_path)
    assert path.read_bytes() == BODY
    assert [item.name for item in path.parent.iterdir()] == ["dev_light.json"]
    use(monkeypatch, Download(f"{url}/x.{kind}", member="other.json"))
    with pytest.raises(DamagedData, match=r"does not hold 'other\.json'"):
        datasets.fetch("ambignq/dev", tmp_path, force=True)
    handler.files[f"/x.{kind}"] = packed.getvalue()[:60]
    use(monkeypatch, Download(f"{url}/x.{kind}", member="dev.json"))
    with pytest.raises(DamagedData, match="not a whole archive"):
        datasets.fetch("ambignq/dev", tmp_path, force=True)
    assert path.read_bytes() == BODY, "what was there is still there"


def test_an_interrupted_download_leaves_nothing(
    server: tuple[str, type[Handler]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = server
    handler.files["/dev.json"], handler.broken["/dev.json"] = BODY, 1
    use(monkeypatch, Download(f"{url}/dev.json"))
    with pytest.raises(MissingData, match=r"broke after .* of .* bytes; run it again"):
        datasets.fetch("ambignq/dev", tmp_path)
    assert list((tmp_path / "ambignq").iterdir()) == [], "half a file is no file"
    assert datasets.fetch("ambignq/dev", tmp_path).read_bytes() == BODY


def test_corrupt_data_changes_nothing(
    server: tuple[str, type[Handler]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = server
    handler.files["/dev.json"] = b"<html>log in first</html>"
    use(monkeypatch, Download(f"{url}/dev.json", hashlib.sha256(BODY).hexdigest()))
    with pytest.raises(DamagedData, match="wrong checksum"):
        datasets.fetch("ambignq/dev", tmp_path)
    assert list((tmp_path / "ambignq").iterdir()) == []


def test_no_network_and_no_such_file(
    server: tuple[str, type[Handler]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = server
    use(monkeypatch, Download(f"{url}/none.json"))
    with pytest.raises(MissingData, match=r"HTTP Error 404.*put it at '.*dev_light\.json'"):
        datasets.fetch("ambignq/dev", tmp_path)
    use(monkeypatch, Download("http://127.0.0.1:9/dev.json"))
    with pytest.raises(MissingData, match=r"Connection refused.*Are you offline\?.*put it at"):
        datasets.fetch("ambignq/dev", tmp_path)


def test_what_has_no_address_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        MissingData, match=r"cannot be downloaded automatically: get it from https://"
    ):
        datasets.fetch("cambignq/train", tmp_path)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, r"No space left on device\. Free some"),
        (errno.EACCES, r"Permission denied\. Check"),
    ],
)
def test_a_full_disk_is_not_a_missing_network(
    server: tuple[str, type[Handler]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    message: str,
) -> None:
    url, handler = server
    handler.files["/dev.json"] = BODY
    use(monkeypatch, Download(f"{url}/dev.json"))

    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("whichsense.lab.datasets.fetching._download", full)
    with pytest.raises(MissingData, match=message) as error:
        datasets.fetch("ambignq/dev", tmp_path)
    assert "offline" not in str(error.value)
