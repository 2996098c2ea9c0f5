"""Processes that take the markup out of pages, because one core does a few hundred pages a second.

Plain subprocesses that speak pickle over pipes. Unlike multiprocessing's they do not import the caller's main module
again, so a script needs no guard; they end when their input does, so nothing outlives a killed parent; and one that
hangs on a page is ended and replaced, and that page is stripped by patterns.
"""

from __future__ import annotations

import os
import pickle
import queue
import selectors
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from whichsense.errors import WhichsenseError

SECONDS_A_PAGE, PAGES_A_SECOND = 20.0, 2
_BATCH_PAGES, _BATCH_SIZE = 128, 2**20

_READY = b"ready"

T = TypeVar("T")

Stripped = tuple[str, tuple[tuple[int, str], ...], bool]
"""Text, sections, and whether patterns alone did it."""


class _Process:
    """One worker. It is started when it is first needed, and again after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, texts: list[str], seconds: float) -> list[Stripped] | None:
        """The texts stripped, or None where that took too long or the process broke down."""
        process = self._running()
        if process is None:
            return None
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(texts, process.stdin)
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                if selector.select(seconds):
                    answer: list[Stripped] = pickle.load(process.stdout)
                    return answer
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            pass
        self.end()
        return None

    def _running(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and not self._closed:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        "from whichsense.corpus.wikipedia.strippers import serve; serve()",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join(
                            path for path in sys.path if path
                        ),
                    },
                    start_new_session=True,  # Ctrl-C is for the parent, which ends its workers in order
                )
                assert self._process.stdout is not None
                if (
                    self._process.stdout.read(len(_READY)) != _READY
                ):  # its start does not count as a page's time
                    raise WhichsenseError(
                        f"'{sys.executable}' cannot run whichsense to strip wiki markup. Reinstall it."
                    )
            return self._process

    def end(self, for_good: bool = False) -> None:
        with self._lock:
            process, self._process = self._process, None
            self._closed = self._closed or for_good
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()


class _Threads:
    """A pool of threads for which nobody waits when the program ends, as ThreadPoolExecutor's exit would."""

    def __init__(self, count: int) -> None:
        self._jobs: queue.SimpleQueue[
            tuple[Future[list[Stripped]], list[str]] | None
        ] = queue.SimpleQueue()
        self.all: list[threading.Thread] = []
        self._count = count

    def start(self, work: Callable[[list[str]], list[Stripped]]) -> None:
        self.all = [
            threading.Thread(target=self._serve, args=(work,), daemon=True)
            for _ in range(self._count)
        ]
        for thread in self.all:
            thread.start()

    def submit(self, texts: list[str]) -> Future[list[Stripped]]:
        future: Future[list[Stripped]] = Future()
        self._jobs.put((future, texts))
        return future

    def end(self) -> None:
        """What was not begun is dropped."""
        with suppress(queue.Empty):
            while job := self._jobs.get_nowait():
                job[0].cancel()
        for _ in self.all:
            self._jobs.put(None)

    def _serve(self, work: Callable[[list[str]], list[Stripped]]) -> None:
        while (job := self._jobs.get()) is not None:
            future, texts = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work(texts))
                except BaseException as error:
                    future.set_exception(error)


class Strippers:
    """A few workers that keep the order of the pages. Use it in a `with` block, which ends them."""

    def __init__(self, workers: int = 0, seconds: float = SECONDS_A_PAGE) -> None:
        self.workers, self.seconds = workers or os.cpu_count() or 1, seconds

    def __enter__(self) -> Strippers:
        self._all = [_Process() for _ in range(self.workers)]
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)
        self._ended = False
        self._threads = _Threads(self.workers)
        self._threads.start(self._stripped)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._threads.end()
        for process in self._all:
            process.end(for_good=True)
        for thread in self._threads.all:
            thread.join(0.5)  # its process is gone, so that it ends at once

    def strip(
        self, pages: Iterable[tuple[T, str | None]]
    ) -> Iterator[tuple[T, Stripped | None]]:
        """Each page with its text stripped, in order; one that comes without a text is handed through."""
        waiting: deque[tuple[list[tuple[T, bool]], Future[list[Stripped]]]] = deque()
        for items, texts in _batches(pages):
            waiting.append((items, self._threads.submit(texts)))
            if len(waiting) > 2 * self.workers:
                yield from _joined(*waiting.popleft())
        while waiting:
            yield from _joined(*waiting.popleft())

    def _stripped(self, texts: list[str]) -> list[Stripped]:
        """A batch. Where it fails as a whole, page by page: the one that breaks the parser is found and stripped
        by patterns."""
        if not texts:
            return []
        process = self._idle.get()
        try:
            answer = process.ask(texts, self.seconds + len(texts) / PAGES_A_SECOND)
            if answer is not None:
                return answer
            return [
                one[0]
                if (one := process.ask([text], self.seconds))
                else _by_patterns(text)
                for text in texts
                if not self._ended  # nobody waits for it any more
            ]
        finally:
            self._idle.put(process)


def _batches(
    pages: Iterable[tuple[T, str | None]],
) -> Iterator[tuple[list[tuple[T, bool]], list[str]]]:
    """Pages in groups large enough to be worth a message, small enough to keep all workers busy."""
    items: list[tuple[T, bool]] = []
    texts: list[str] = []
    size = 0
    for item, text in pages:
        items.append((item, text is not None))
        if text is not None:
            texts.append(text)
            size += len(text)
        if len(items) >= _BATCH_PAGES or size >= _BATCH_SIZE:
            yield items, texts
            items, texts, size = [], [], 0
    if items:
        yield items, texts


def _joined(
    items: list[tuple[T, bool]], future: Future[list[Stripped]]
) -> Iterator[tuple[T, Stripped | None]]:
    answers = iter(future.result())
    for item, has_text in items:
        yield item, next(answers) if has_text else None


def _by_patterns(text: str) -> Stripped:
    from whichsense.corpus.wikipedia.wikitext import rough

    page = rough(text)
    return page.text, page.sections, True


def strip_one(text: str) -> Stripped:
    """One page: by the parser, or by patterns where it is too long or the parser fails."""
    from whichsense.corpus.wikipedia import wikitext

    if len(text) <= wikitext.LONGEST_PARSED:
        try:
            page = wikitext.plain(text)
        except (
            Exception
        ):  # a parser that fails on one page must not end a build of millions
            return _by_patterns(text)
        return page.text, page.sections, False
    return _by_patterns(text)


def serve() -> None:
    """The worker's side: batches in, batches out, until the input ends."""
    from whichsense.corpus.wikipedia import wikitext  # noqa: F401 (loaded before the first page's time begins to count)

    batches, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(_READY)
    answers.flush()
    while True:
        try:
            texts = pickle.load(batches)
        except EOFError:
            return
        pickle.dump([strip_one(text) for text in texts], answers)
        answers.flush()
