"""Change an index as a whole: build, add, delete; and check it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from whichsense.corpus import Seen, Sources, make_corpus
from whichsense.corpus.cutting import fingerprint
from whichsense.errors import BadInput, IndexFault
from whichsense.index import folder as folders
from whichsense.index.dense_writer import encode_rows, encoder_of, put_into_lists
from whichsense.index.folder import Manifest
from whichsense.index.growth import (
    Cutting,
    Growth,
    Staging,
    load_fingerprints,
    now,
    save_deleted,
    save_fingerprints,
    staged_job,
)
from whichsense.index.lexical import LexicalWriter, Texts
from whichsense.index.object_store import url_of
from whichsense.index.sharded_build import grow_shards
from whichsense.index.shards import KEYS, Spread, check_labels, without, write_labels
from whichsense.index.store import Names
from whichsense.jobs.limits import Progress, Stopped, silent, stop_requested, unsaid
from whichsense.jobs.workers import Executor, run_here
from whichsense.protocols import Encoder
from whichsense.types import Passage

# Changing an index: build, add, delete. Each stages a whole next generation and publishes it at the
# end.

_PROGRESS_SECONDS = 0.2


def build_index(
    sources: Sources,
    folder: str | Path,
    *,
    cutting: Cutting | None = None,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
    checkpoint_seconds: float = 60.0,
    shards: Spread | None = None,
) -> Manifest:
    """Build an index of the sources. An index that is there already is served until the new one is complete."""
    _check_local(folder)
    corpus = make_corpus(sources, format=format, encoding=encoding)
    corpus.find_files()  # so that a wrong path is an error before a folder is made
    own = (cutting or Cutting()).of(corpus)
    growth = Growth(Path(folder), corpus, own, encoder, None, progress, say)
    with folders.writing(growth.folder, "index build"):
        if shards:
            return grow_shards(growth, shards)
        return _grow(growth, checkpoint_seconds)


def add(
    sources: Sources,
    folder: str | Path,
    *,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
    checkpoint_seconds: float = 60.0,
    executor: Executor | None = None,
) -> Manifest:
    """Add sources to an index, cut and encoded as the rest of it was. An executor does the work of a sharded one."""
    _check_local(folder)
    # The file's name goes into the ids, so that document 1 of this file is not document 1 of another.
    corpus = make_corpus(sources, format=format, encoding=encoding, prefix=True)
    # Both before the lock, which makes the folder: a mistyped folder or source is an error and nothing else.
    folders.read_manifest(Path(folder))
    corpus.find_files()
    with folders.writing(Path(folder), "index add"):
        base = folders.read_manifest(Path(folder))
        growth = Growth(
            Path(folder),
            corpus,
            Cutting(**base.settings),
            encoder_of(base.encoder, encoder),
            base,
            progress,
            say,
        )
        if base.sharding:
            return grow_shards(growth, Spread.of(base.sharding, executor))
        return _grow(growth, checkpoint_seconds)


def delete(
    folder: str | Path, ids: Iterable[str] = (), sources: Iterable[str] = ()
) -> tuple[Manifest, int]:
    """Delete passages by document id, passage id or source. Returns the new manifest and how many were deleted."""
    _check_local(folder)
    folder = Path(folder)
    folders.read_manifest(folder)  # before the lock, which makes the folder
    with folders.writing(folder, "index delete"):
        base = folders.read_manifest(folder)
        deleted = [Texts(root).named(ids, sources) for root in base.roots(folder)]
        total = sum(map(len, deleted))
        if not total:
            return base, 0
        content = folders.stage(folder, base) / "content"
        roots = folders.shard_roots(content, base.sharding)
        for root, passages in zip(roots, deleted, strict=True):
            if passages:
                _delete_passages(root, passages)
        draft = dataclasses.replace(
            base,
            generation=folders.next_generation(folder),
            passages=base.passages - total,
            created=now(),
        )
        if base.sharding:
            sharding = without(base.sharding, list(map(len, deleted)))
            write_labels(content, sharding)
            draft = dataclasses.replace(draft, sharding=sharding)
        return folders.publish(folder, base, draft), total


def _check_local(folder: str | Path) -> None:
    """Raise BadInput for a URL: an index is changed in a folder, and copied."""
    url = url_of(folder)
    if url:
        raise BadInput(
            f"'{url}' is a URL. Build and change an index in a folder, then copy it: whichsense index copy DIR URL"
        )


def _delete_passages(content: Path, deleted: Mapping[int, Passage]) -> None:
    writer = LexicalWriter(content / "lexical")
    for first, last in _ranges(sorted(deleted)):
        writer.delete(first, last)
    writer.commit()
    writer.close()
    _forget(content, deleted)


def _ranges(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of consecutive rows."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] != row + 1:
            yield rows[first], row
            first = place + 1


def _forget(content: Path, deleted: Mapping[int, Passage]) -> None:
    """A deleted passage may be added again later, and is no longer found by its vector."""
    hashes = [fingerprint(passage.title, passage.text) for passage in deleted.values()]
    # Their fingerprints go, so that they do not count as duplicates.
    remaining = np.setdiff1d(
        load_fingerprints(content).to_array(), np.array(hashes, dtype=np.uint64)
    )
    save_fingerprints(content, Seen.from_array(remaining))
    save_deleted(content, deleted)
    if (content / "vectors").exists():
        from whichsense.index.dense_writer import VectorsWriter

        with VectorsWriter(content / "vectors") as vectors:
            vectors.remove(np.fromiter(deleted, dtype=np.uint64))
            vectors.save()


def _grow(growth: Growth, checkpoint_seconds: float) -> Manifest:
    """Stage the next generation, or resume it, and publish it."""
    job = growth.job
    # A run of this very job may have been killed just before it was served.
    if staged_job(growth.folder) == job:
        manifest = folders.finished(growth.folder)
        if manifest:
            return manifest
    base = growth.base
    staging = Staging.resume_or_start(growth.folder, base, job, growth.id_prefix)
    try:
        if not staging.state.read_all:
            _read(growth, staging, checkpoint_seconds)
    finally:
        staging.close()
    state = staging.state
    if growth.encoder is not None:
        rows = range(base.next_row if base else 0, state.next_row)
        content, encoder = staging.content, growth.encoder
        encode_rows(content, encoder, rows, growth.progress, growth.say)
        put_into_lists(content, encoder)
    draft = growth.draft(state.passages, state.next_row, state.report)
    return folders.publish(growth.folder, base, draft)


def _read(growth: Growth, staging: Staging, checkpoint_seconds: float) -> None:
    corpus, state = growth.corpus, staging.state
    last_checkpoint = last_progress = time.monotonic()
    with stop_requested() as stop, contextlib.ExitStack() as stack:

        def idle() -> None:
            """A stop also takes effect in a run of broken or skipped records."""
            if stop():
                staging.checkpoint(corpus.position)
                raise _stopped()

        records = corpus.records(staging.report, skip=state.position, idle=idle)
        # The reader of a dump has processes to end.
        stack.enter_context(contextlib.closing(records))
        growth.progress(0.0, state.passages)
        for record in records:
            staging.put(record, growth.cutting)
            now = time.monotonic()
            if now - last_progress > _PROGRESS_SECONDS:
                growth.progress(corpus.done, state.passages)
                last_progress = now
            if stop() or now - last_checkpoint > checkpoint_seconds:
                staging.checkpoint(corpus.position)
                last_checkpoint = time.monotonic()
            if stop():
                raise _stopped()
        growth.progress(1.0, state.passages)
        staging.finish_reading(corpus.position)


def _stopped() -> Stopped:
    return Stopped("Stopped. Run the same command again: it resumes where it was.")


# Find and name damage, and say which generation of an index is served.


@dataclass(frozen=True, slots=True)
class Health:
    """What `check` found: problems are damage, notes are harmless."""

    manifest: Manifest | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.problems

    def summary(self) -> str:
        """Return some lines for a person."""
        lines = []
        if self.manifest:
            generation = f"generation {self.manifest.generation}"
            passages = f"{self.manifest.passages:,} passages"
            lines.append(f"served: {generation}, {passages}, from {self.manifest.created}")
        for problem in self.problems:
            lines.append(f"damage: {problem}")
        for note in self.notes:
            lines.append(f"note:   {note}")
        verdict = "sound"
        if not self.sound:
            verdict = "DAMAGED: build the index again, or restore the files named above"
        return "\n".join([*lines, verdict])


def check(folder: str | Path, executor: Executor = run_here) -> Health:
    """Read every byte of an index and compare it with its manifest. An executor may read its parts elsewhere."""
    folder = Path(folder)
    try:
        manifest = folders.read_manifest(folder)
    except IndexFault as error:
        return Health(None, (str(error),), ())
    parts = folders.parts_of(manifest)
    damage = dict(executor(partial(_read_part, folder.resolve(), manifest), parts))
    # In the manifest's order, whoever was first.
    problems = [line for part in parts for line in damage[part]]
    problems += folders.unknown_files(folder, manifest)
    problems += _shard_faults(folder, manifest)
    problems += _contradictions(folder, manifest)
    notes = [
        f"{name}: left by a write that was interrupted or is under way; harmless, the next write uses or removes it"
        for name in folders.leftovers(folder, manifest)
    ]
    return Health(manifest, tuple(problems), tuple(notes))


def _read_part(folder: Path, manifest: Manifest, part: str) -> list[str]:
    return list(folders.damaged_files(folder, manifest, part))


def _shard_faults(folder: Path, manifest: Manifest) -> Iterator[str]:
    if manifest.sharding:
        try:
            check_labels(manifest.roots(folder), manifest.sharding)
        except IndexFault as error:
            yield str(error)


def _contradictions(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield parts that are whole but do not belong together."""
    yield from _tried("names", _check_names(folder / manifest.folder))
    counts = zip(manifest.shard_passages, manifest.shard_rows, strict=True)
    for root, (passages, rows) in zip(manifest.roots(folder), counts, strict=True):
        where = f"{root.name}: " if manifest.sharding else ""
        yield from _tried(f"{where}texts", _check_texts(root, passages, rows))
        prints = _check_fingerprints(root, passages)
        yield from _tried(f"{where}fingerprints", prints)
        if manifest.sharding:
            yield from _tried(f"{where}keys", _check_keys(root, rows))
        if manifest.encoder:
            vectors = _check_vectors(root, passages)
            yield from _tried(f"{where}vectors", vectors)


def _tried(part: str, problems: Iterator[str]) -> Iterator[str]:
    try:
        for problem in problems:
            yield f"{part}: {problem}"
    except (IndexFault, OSError, ValueError, EOFError) as error:
        yield f"{part}: {error}"


def _check_texts(root: Path, passages: int, rows: int) -> Iterator[str]:
    texts = Texts(root)
    yield from _miscounted(texts.lexical.count, passages)
    yield from texts.passages.problems()
    yield from _miscounted(texts.passages.next_row, rows)


def _check_names(root: Path) -> Iterator[str]:
    yield from filter(None, [Names(root / "names.sqlite").problem()])


def _check_fingerprints(root: Path, passages: int) -> Iterator[str]:
    fingerprints = np.load(root / "fingerprints.npy")  # one for each passage
    yield from _miscounted(len(fingerprints), passages)


def _check_keys(root: Path, rows: int) -> Iterator[str]:
    keys = np.load(root / KEYS)  # one for each row, ascending
    yield from _miscounted(len(keys), rows)
    if np.any(keys[1:] <= keys[:-1]):
        yield "not in order"


def _check_vectors(root: Path, passages: int) -> Iterator[str]:
    from whichsense.index.dense import Vectors

    vectors = Vectors.open(root / "vectors")
    yield from vectors.check()
    yield from _miscounted(vectors.count, passages)


def _miscounted(count: int, expected: int) -> Iterator[str]:
    if count != expected:
        yield f"{count:,} passages instead of {expected:,}"
