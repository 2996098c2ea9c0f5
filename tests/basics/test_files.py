"""Files as they lie there: JSON made to break parsers, checksums, the cache folder."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from whichsense.errors import BadInput
from whichsense.files import cache_folder, read_json, read_jsonl, sha256, sha256_unpacked

DEEP = "[" * 200_000
LONG = "7" * 5_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f'{{"a": "]][[",\n"b":\n{DEEP}', ": brackets nested too deep"),
        (f'["{DEEP}",\n{LONG}]', ": a number with too many digits"),
        ("[1,\n2,,3]", ", line 2: not valid JSON"),
        ("", ", line 1: not valid JSON"),
    ],
)
def test_bad_json_is_named_by_file_and_line(tmp_path: Path, body: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(body, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read_json(path)
    assert f"'{path}'{message}" in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (DEEP, "nested too deep"),
        (LONG, "too many digits"),
        ("{", "not valid JSON"),
        ("\udcff", "not UTF-8"),
    ],
    ids=["deep", "long", "open", "bytes"],
)
def test_bad_json_lines_are_named_too(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"1\n\n" + line.encode("utf-8", "surrogateescape") + b"\n")
    values = read_jsonl(path)
    assert next(values) == (1, 1)
    with pytest.raises(BadInput, match=rf"x\.jsonl', line 3: .*{message}"):
        next(values)


def test_the_two_checksums(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(b"text")
    packed.write_bytes(gzip.compress(b"text"))
    digest = hashlib.sha256(b"text").hexdigest()
    assert sha256(plain) == sha256_unpacked(plain) == sha256_unpacked(packed) == digest
    assert sha256(packed) == hashlib.sha256(packed.read_bytes()).hexdigest() != digest


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "whichsense"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "whichsense"
