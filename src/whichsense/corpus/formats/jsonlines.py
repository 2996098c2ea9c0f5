"""JSON lines of {title, text, …}: ours, WikiExtractor's, BEIR's, Pyserini's."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whichsense.corpus.feed import Feed, Step, not_in, numbered, too_long


def read_jsonl(feed: Feed, whole: bool = False) -> Iterator[Step]:
    """A document for each line. Lines consumed earlier are passed over without being parsed."""
    with feed.open_text() as reader:
        head = reader.peek(1)[: 2**16].removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"["):
            raise feed.fault(
                as_lines(feed.path, "one JSON list, not JSON lines", "'.[]'")
            )
        if _spread(head):
            raise feed.fault(
                as_lines(feed.path, "a JSON object over several lines, not JSON lines")
            )
        if head.startswith(b"<doc "):
            raise feed.fault(
                "is WikiExtractor's own format. Run WikiExtractor with --json."
            )
        encoding = feed.encoding or "utf-8"
        for number, line in feed.lines(reader):
            if line is not None and (line.isspace() or line == b"\xef\xbb\xbf"):
                feed.tick()
                continue
            if not feed.passed():
                yield _step(feed, number, line, encoding, whole)


def as_lines(path: Path, what: str, program: str = ".") -> str:
    """What a file holds in place of JSON lines, and the command that makes them of it."""
    stem = path.name.partition(".")[0] or path.name
    target = f"{stem}.jsonl" if path.name != f"{stem}.jsonl" else f"{stem}-lines.jsonl"
    source, target = shlex.quote(path.name), shlex.quote(target)
    return f"holds {what}. Run: jq -c {program} {source} > {target}"


def _spread(head: bytes) -> bool:
    """Whether the first object goes on behind its line, which no single broken line would look like."""
    first, _, rest = head.partition(b"\n")
    if not first.startswith(b"{") or not first.rstrip().endswith(
        (b"{", b"[", b",", b":")
    ):
        return False
    return bool(rest := rest.lstrip()) and not rest.startswith(b"{")


def read_passages(feed: Feed) -> Iterator[Step]:
    """The same for lines that are passages already: they stay whole."""
    return read_jsonl(feed, whole=True)


def _step(
    feed: Feed, number: int, line: bytes | None, encoding: str, whole: bool
) -> Step:
    try:
        if line is None:
            raise ValueError(too_long(feed))
        record = _record(
            line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, encoding
        )
        return document_of(feed, record, number, f"line {number}", whole)
    except ValueError as error:
        return feed.broken(f"line {number}", str(error))


_one_value = json.JSONDecoder().raw_decode


def _record(line: bytes, encoding: str) -> dict[str, Any]:
    """The object of a line; ValueError with the reason where there is none."""
    try:
        text = line.decode(encoding)
        if text.startswith("{"):
            record, end = _one_value(text)  # as json.loads, in two thirds of the time
            if end != len(text) and text[end:] != "\n":
                record = json.loads(text)
        else:
            record = json.loads(text)
        if "\\" in text and (
            "\\ud" in text or "\\uD" in text
        ):  # half of a surrogate pair could be written nowhere
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise ValueError(not_in(encoding)) from None
    except UnicodeEncodeError:
        raise ValueError(
            "half of a surrogate pair (\\ud8… alone). Write whole characters."
        ) from None
    except (ValueError, RecursionError) as error:
        why = (
            error.msg
            if isinstance(error, json.JSONDecodeError)
            else "too deep, or a number too long"
        )
        raise ValueError(f"not valid JSON ({why}).") from None
    if not isinstance(record, dict):
        raise ValueError('not a JSON object. Write {"title": …, "text": …}.')
    return record


def document_of(
    feed: Feed, record: Mapping[str, Any], number: int, where: str, whole: bool = False
) -> Step:
    """The document of a JSON object; ValueError with the reason where it is not one."""
    title = record.get("title") or ""
    text = record.get("text")
    if text is None:
        text = record.get("contents")
        if (
            isinstance(text, str) and not title and text.startswith('"')
        ):  # Pyserini: "title" on the first line
            first, _, rest = text.partition("\n")
            title, text = (first.strip().strip('"'), rest) if rest else (title, text)
    if not isinstance(text, str) or not text or text.isspace():
        if text is None:
            raise ValueError("no text. Each record needs a key 'text' (or 'contents').")
        raise ValueError(
            "the text is empty."
            if isinstance(text, str)
            else "the text is not a string."
        )
    if not isinstance(title, str):
        raise ValueError("the title is not a string.")
    key = record.get("id", record.get("_id"))
    section = record.get("section")
    return feed.document(
        where,
        numbered(number) if key is None or not (key := str(key).strip()) else key,
        title,
        text,
        source=_source(record.get("source")),
        sections=((0, section),) if section and isinstance(section, str) else (),
        whole=whole,
    )


def _source(value: Any) -> str:
    """A record's own source: a string, or a list of strings joined by a comma."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else ""
