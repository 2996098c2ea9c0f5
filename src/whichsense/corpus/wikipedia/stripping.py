"""Strip wiki markup from pages in worker processes: one core parses a few hundred pages a second.

A page that hangs or kills its worker is stripped by patterns, and the worker is replaced.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from whichsense.corpus.outline import Page
from whichsense.corpus.wikipedia import wikitext
from whichsense.jobs.processes import WorkerLost
from whichsense.jobs.workers import Workers

_BATCH_CHARACTERS = 2**20  # a batch ends here: long pages keep all workers busy too

Item = TypeVar("Item")


class StrippedPage(NamedTuple):
    """The plain text of a page, with its sections as (offset, heading)."""

    text: str
    sections: tuple[tuple[int, str], ...]
    by_patterns: bool
    """Whether the parser was not used: the page is too long, or the parser fails on it."""


@dataclass
class _Batch(Generic[Item]):
    """Items in order, and the texts of those that have one."""

    items: list[Item] = field(default_factory=list)
    has_text: list[bool] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class PageStripper:
    """Strips pages and keeps their order. Use it in a `with` block, which ends its workers."""

    def __init__(
        self,
        workers: int = 0,
        *,
        seconds: float = 20.0,
        seconds_in_batch: float = 0.5,
        batch_pages: int = 128,
        function: str = f"{__name__}:strip_pages",
    ) -> None:
        """Workers: 0 for one a core. A page alone may take `seconds`; a batch also `seconds_in_batch` for each page.
        `function` ('module:name') runs in the workers."""
        self._count = workers or os.cpu_count() or 1
        self._seconds = seconds
        self._seconds_in_batch = seconds_in_batch
        self._batch_pages = batch_pages
        self._workers: Workers[list[str], list[StrippedPage]] = Workers.fresh(
            function, self._count
        )

    def __enter__(self) -> PageStripper:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def strip(
        self, pages: Iterable[tuple[Item, str | None]]
    ) -> Iterator[tuple[Item, StrippedPage | None]]:
        """Each item with its text stripped, in order; an item without a text is handed through."""
        waiting: deque[tuple[_Batch[Item], Future[list[StrippedPage]]]] = deque()
        for batch in _batches(pages, self._batch_pages):
            waiting.append((batch, self._submit(batch.texts)))
            if len(waiting) > 2 * self._count:
                yield from self._join(*waiting.popleft())
        while waiting:
            yield from self._join(*waiting.popleft())

    def _submit(self, texts: list[str]) -> Future[list[StrippedPage]]:
        if texts:
            seconds = self._seconds + self._seconds_in_batch * len(texts)
            return self._workers.submit(texts, seconds)
        nothing: Future[list[StrippedPage]] = Future()
        nothing.set_result([])
        return nothing

    def _join(
        self, batch: _Batch[Item], future: Future[list[StrippedPage]]
    ) -> Iterator[tuple[Item, StrippedPage | None]]:
        try:
            results = future.result()
        except WorkerLost:
            results = self._strip_singly(batch.texts)
        stripped = iter(results)
        for item, has_text in zip(batch.items, batch.has_text, strict=True):
            yield item, next(stripped) if has_text else None

    def _strip_singly(self, texts: list[str]) -> list[StrippedPage]:
        """Strip a failed batch page by page: only the page that breaks the parser is stripped by patterns."""
        futures = [self._workers.submit([text], self._seconds) for text in texts]
        results = []
        for text, future in zip(texts, futures, strict=True):
            try:
                results += future.result()
            except WorkerLost:
                results.append(_strip_by_patterns(text))
        return results


def _batches(
    pages: Iterable[tuple[Item, str | None]], most: int
) -> Iterator[_Batch[Item]]:
    """Group pages: large enough to be worth a message, small enough to keep all workers busy."""
    batch: _Batch[Item] = _Batch()
    characters = 0
    for item, text in pages:
        batch.items.append(item)
        batch.has_text.append(text is not None)
        if text is not None:
            batch.texts.append(text)
            characters += len(text)
        if len(batch.items) >= most or characters >= _BATCH_CHARACTERS:
            yield batch
            batch = _Batch()
            characters = 0
    if batch.items:
        yield batch


def strip_pages(texts: list[str]) -> list[StrippedPage]:
    """Strip the markup of some pages. It runs in the workers."""
    return [_strip_page(text) for text in texts]


def _strip_page(text: str) -> StrippedPage:
    if len(text) > wikitext.LONGEST_PARSED:
        return _strip_by_patterns(text)
    try:
        return _stripped(wikitext.plain(text), by_patterns=False)
    except Exception:
        # A parser that fails on one page must not end a build of millions.
        return _strip_by_patterns(text)


def _strip_by_patterns(text: str) -> StrippedPage:
    return _stripped(wikitext.rough(text), by_patterns=True)


def _stripped(page: Page, *, by_patterns: bool) -> StrippedPage:
    return StrippedPage(page.text, page.sections, by_patterns)
