"""Open an index and search it; hits that were saved for a whole dataset."""

from __future__ import annotations

import bisect
import bz2
import gzip
import itertools
import json
import lzma
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeGuard, cast, get_args

from whichsense.errors import BadInput, DamagedIndex, NoIndex, did_you_mean
from whichsense.files import read_jsonl, sha256
from whichsense.index import folder as folders
from whichsense.index.folder import Manifest
from whichsense.index.object_store import local_folder
from whichsense.index.shards import (
    LocalShards,
    MergingRanker,
    Shard,
    Shards,
    Spread,
    ask_all,
    check_labels,
    hits_of,
)
from whichsense.index.store import Names, unpack
from whichsense.jobs.limits import Progress, silent, unsaid
from whichsense.jobs.parts import closable
from whichsense.jobs.workers import Executor, run_here
from whichsense.protocols import Encoder
from whichsense.text.words import words
from whichsense.types import Hit, Method, Passage, Sense

if TYPE_CHECKING:
    from whichsense.corpus.reading import GivenRecord, Sources
    from whichsense.index.growth import Cutting

# An opened index: one immutable generation, searched by words, by meaning, or by both.

_LONGEST_QUESTION = 10_000  # characters
# How deep each half is searched before both are joined.
_FUSION_DEPTH = 100
# The weight of a cosine beside the score by words, tuned on AmbigNQ train. Each encoder has its own spread of cosines.
_COSINE_WEIGHTS = {"static-1": 60.0}
_OTHER_COSINE_WEIGHT = 90.0


class Index:
    """Open with `Index.open(folder)`. Many may be open at once, in one process or in many."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        encoder: Encoder | None = None,
        shards: Shards | None = None,
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self._names = Names(folder / manifest.folder / "names.sqlite")
        self._shards = shards or _open_shards(folder, manifest)
        self._ranker = MergingRanker(self._shards, manifest.shard_passages)
        self._encoder = encoder
        self.origin: str | Path = folder
        """What was opened: the folder, or the URL that it is a copy of."""
        self._cleanup: weakref.finalize[..., Index] | None = None

    @classmethod
    def build(
        cls,
        sources: Sources,
        folder: str | Path,
        *,
        cutting: Cutting | None = None,
        encoder: Encoder | str | None = "static",
        format: str | None = None,
        encoding: str | None = None,
        progress: Progress = silent,
        say: Callable[[str], None] = unsaid,
        shards: Spread | None = None,
    ) -> Index:
        """Build an index in a folder and open it.

        `sources` are a file or folder, several of them, or records. An index that is in the folder already is served
        until the new one is complete; a build that was stopped resumes. With `shards` it is spread over several.
        Passages are also encoded as vectors, by an encoder or the one of a name; None: they are found by words alone.
        """
        from whichsense.index.write import build_index

        encoder = _loaded(encoder)
        build_index(
            sources,
            folder,
            cutting=cutting,
            encoder=encoder,
            format=format,
            encoding=encoding,
            progress=progress,
            say=say,
            shards=shards,
        )
        return cls.open(folder, encoder)

    @classmethod
    def of(
        cls,
        records: Iterable[GivenRecord],
        *,
        cutting: Cutting | None = None,
        encoder: Encoder | str | None = "static",
    ) -> Index:
        """Build an index of records for this process: {"title": …, "text": …}, a Document or a Passage each.

        It is in a temporary folder, which is removed when the index is closed or garbage-collected.

        >>> index = Index.of([{"title": "Jaguar", "text": "A large cat."}, {"title": "Puma", "text": "It screams."}])
        >>> index.search("Which cat is large?")[0].passage.title
        'Jaguar'
        """
        from whichsense.index.write import build_index

        encoder = _loaded(encoder)
        folder = Path(tempfile.mkdtemp(prefix="whichsense-index-"))
        try:
            build_index(list(records), folder, cutting=cutting, encoder=encoder)
            index = cls.open(folder, encoder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        index._cleanup = weakref.finalize(index, _remove_temporary, folder, os.getpid())
        return index

    def close(self) -> None:
        """Close the files. An index of records (`Index.of`) is gone then."""
        self._names.close()
        if self._cleanup is not None:
            self._cleanup()

    @classmethod
    def open(cls, folder: str | Path, encoder: Encoder | None = None) -> Index:
        """Return the generation that is served now. A writer may publish the next one in this very moment: then try
        again.
        """
        origin, folder = folder, local_folder(folder)
        seen = None  # the generation that could not be opened
        while True:
            manifest = folders.read_manifest(folder)
            try:
                if manifest.sharding:
                    check_labels(manifest.roots(folder), manifest.sharding)
                folders.verify_sizes(folder, manifest)
                index = cls(folder, manifest, encoder)
                index.origin = origin
                # Nothing was swept away while it was opened.
                folders.verify_sizes(folder, manifest)
                return index
            except (DamagedIndex, NoIndex, OSError):
                if manifest.generation == seen:
                    raise
                seen = manifest.generation

    def refreshed(self) -> Index:
        """Return this index, or its newer generation if one was published since. Another encoder is loaded by its
        name.
        """
        newest = folders.read_manifest(self.folder)
        if newest.generation == self.manifest.generation:
            return self
        index = Index.open(self.folder)
        if self._encoder and self._encoder.name == index.manifest.encoder:
            index._encoder = self._encoder
        return index

    def __len__(self) -> int:
        return self.manifest.passages

    def describe(self) -> dict[str, Any]:
        """Return what decides the hits: when the index was built, and how many passages it has."""
        return {"index": self.manifest.created, "passages": len(self)}

    def search(self, question: str, k: int = 100, method: Method | None = None) -> list[Hit]:
        """Return the best k passages for a question."""
        return self.search_many([question], k, method)[0]

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """Return the best k passages for each question, none for one without a word; questions are encoded together."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least one passage.")
        k = min(k, max(len(self), 1))
        for question in questions:
            check_question(question)
        method = self.method(method)
        ranker = self._ranker
        if method == "bm25":
            return [hits_of(ranker.by_words(question, k)) for question in questions]
        # questions × dimensions
        encoded = self._load_encoder().encode_questions(list(questions))
        weight = _COSINE_WEIGHTS.get(self.manifest.encoder or "", _OTHER_COSINE_WEIGHT)
        depth = max(k, _FUSION_DEPTH)
        results: list[list[Hit]] = []
        for question, vector in zip(questions, encoded, strict=True):
            if not words(question):
                results.append([])
            elif method == "dense":
                results.append(hits_of(ranker.by_meaning(vector, k)))
            else:
                results.append(hits_of(ranker.by_both(question, vector, k, depth, weight)))
        return results

    def passage(self, passage_id: str) -> Passage:
        """Return a passage by its id."""
        for passage in self._everywhere("named", [passage_id]):
            if passage.id == passage_id:
                return passage
        raise BadInput(f"No passage has the id '{passage_id}' in '{self.folder}'.")

    def document(self, passage_id: str) -> list[Passage]:
        """Return all passages of the document that a passage is from, in the document's order."""
        passage = self.passage(passage_id)
        document_id, cut, _ = passage.id.rpartition("#")
        if not cut:
            return [passage]
        passages = self._everywhere("named", [document_id])
        return sorted(passages, key=lambda one: one.start)

    def of_source(self, source: str) -> list[Passage]:
        """Return all passages of a source, in the index's order."""
        return self._everywhere("named", [], [source])

    def passages(self) -> list[Passage]:
        """Return every passage, in the index's order. Large indexes have too many for this."""
        return self._everywhere("every")

    def _everywhere(self, verb: str, *arguments: Any) -> list[Passage]:
        """Return what all shards answer, in the index's order."""
        everywhere = dict.fromkeys(range(len(self.manifest.shard_rows)), arguments)
        answers: list[tuple[int, Passage]] = []
        for answer in ask_all(self._shards, verb, everywhere).values():
            answers += answer
        return [passage for _, passage in sorted(answers, key=lambda pair: pair[0])]

    def at(self, rows: Sequence[int]) -> list[Passage]:
        """Return passages by row, from 0 to `manifest.next_row`, shard after shard; deleted ones are still there."""
        ends = list(itertools.accumulate(self.manifest.shard_rows))
        passages = []
        for row in rows:
            shard = bisect.bisect_right(ends, row)
            own = row - (ends[shard - 1] if shard else 0)
            (stored,), _ = ask_all(self._shards, "read", {shard: ([own],)})[shard]
            passages.append(unpack(stored))
        return passages

    def senses(self, name: str) -> list[Sense]:
        """Return what a name may mean, from the corpus's disambiguation pages."""
        return self._names.senses(name)

    def redirect(self, name: str) -> str | None:
        """Return where a name is redirected to, if it is."""
        return self._names.redirect(name)

    def method(self, method: Method | None = None) -> Method:
        """Return the method that a search will use: the given one, or the best that this index has."""
        if method is None:
            return "hybrid" if self.manifest.encoder else "bm25"
        if method not in get_args(Method):
            raise BadInput(
                f"There is no method '{method}'. {did_you_mean(method, get_args(Method))}"
            )
        if method != "bm25" and not self.manifest.encoder:
            raise BadInput(
                f"'{self.folder}' has no vectors, so it cannot be searched by '{method}'. "
                "Build it without --no-dense, or use --method bm25."
            )
        return method

    def _load_encoder(self) -> Encoder:
        from whichsense.index.dense_writer import encoder_of

        self._encoder = encoder_of(self.manifest.encoder, self._encoder)
        if self._encoder is None:
            raise DamagedIndex(
                f"'{self.folder}' has vectors, but its manifest names no encoder. Build the index again."
            )
        return self._encoder


def _remove_temporary(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy of the owner must not take its index away
        shutil.rmtree(folder, ignore_errors=True)


def _loaded(encoder: Encoder | str | None) -> Encoder | None:
    if not isinstance(encoder, str):
        return encoder
    from whichsense.models.static import load_encoder

    return load_encoder(encoder)


def _open_shards(folder: Path, manifest: Manifest) -> LocalShards:
    dense = bool(manifest.encoder)
    return LocalShards([Shard(root, dense=dense) for root in manifest.roots(folder)])


def check_question(question: str) -> None:
    """Raise BadInput for a question that cannot be searched for."""
    if not question.strip():
        raise BadInput("The question is empty. Ask something.")
    if len(question) > _LONGEST_QUESTION:
        raise BadInput(
            f"The question has {len(question):,} characters; at most {_LONGEST_QUESTION:,} are read."
        )
    if any("\ud800" <= character <= "\udfff" for character in question):
        raise BadInput(
            "The question is not valid UTF-8. Check the terminal's or the file's encoding."
        )


# Hits in a file: search once, then train and predict as often as you like, also where the index is
# missing.
#
# The file is JSON lines, compressed by the name's ending. The first line says what was searched, and
# how. Then come, for each question, the passages that no earlier question had, and the question with
# the ids and scores of its hits, best first:
#     {"kept": 1, "index": "2026-11-15T06:34:14+0000", "passages": 1112130, "method": "hybrid", "k": 100}
#     {"id": "12/3", "title": "Dune (novel)", "text": "…"}
#     {"question": "who made dune", "hits": [["12/3", 17.5], …]}

_BATCH = 64  # questions that are searched together
_FIX = "Write it again: whichsense retrieve"
_HEAD_KEYS = {"index", "passages", "method", "k"}
_REQUIRED = ("id", "title", "text")


@dataclass(frozen=True)
class SavedHits:
    """The hits in a file, searched like an index: by questions that were searched when it was written."""

    path: Path
    about: Mapping[str, Any]
    _hits: Mapping[str, Sequence[tuple[str, float]]]
    """Ids and scores by question."""
    _passages: Mapping[str, Passage]

    @classmethod
    def open(cls, path: str | Path) -> SavedHits:
        lines = read_jsonl(path)
        _, about = next(lines, (0, None))
        if not _is_head(about):
            raise BadInput(f"'{path}' holds no hits of a search. {_FIX}.")
        hits: dict[str, list[tuple[str, float]]] = {}
        passages: dict[str, Passage] = {}
        for number, record in lines:
            try:
                if "question" in record:
                    hits[record["question"]] = _ids_and_scores(record["hits"])
                else:
                    passages[record["id"]] = _passage(record)
            except (KeyError, TypeError, ValueError):
                raise BadInput(
                    f"'{path}', line {number}: neither a passage nor a question. {_FIX}."
                ) from None
        for ranked in hits.values():
            for passage_id, _ in ranked:
                if passage_id not in passages:
                    raise BadInput(
                        f"'{path}' lacks the passage '{passage_id}', which is a hit in it. {_FIX}."
                    )
        return cls(Path(path), about, hits, passages)

    def __len__(self) -> int:
        return len(self._passages)

    def __contains__(self, question: object) -> bool:
        """Tell whether the question was searched when the file was written."""
        return question in self._hits

    def describe(self) -> dict[str, Any]:
        """Return what decides the hits: the index that was searched, and this very file."""
        about = {name: self.about[name] for name in ("index", "passages")}
        return about | {"hits": sha256(self.path)}

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """Return the first k hits of each question; `method`, if given, must be the one that they were found with."""
        own = self.about["method"]
        if method not in (None, own):
            raise BadInput(
                f"'{self.path}' holds what '{own}' found, and '{method}' is asked for. {_FIX} … --method {method}"
            )
        if k > self.about["k"]:
            raise BadInput(
                f"'{self.path}' keeps {self.about['k']} hits of each question, and {k} are asked for. {_FIX} … --k {k}"
            )
        return [self._search(question, k) for question in questions]

    def _search(self, question: str, k: int) -> list[Hit]:
        if question not in self._hits:
            raise BadInput(
                f"'{self.path}' has no hits for the question '{question}'. {_FIX} … with its dataset."
            )
        return [
            Hit(self._passages[passage_id], score) for passage_id, score in self._hits[question][:k]
        ]

    def passage(self, passage_id: str) -> Passage:
        """Return a passage by its id."""
        if passage_id not in self._passages:
            raise BadInput(
                f"No passage has the id '{passage_id}' in '{self.path}'. Use the index itself."
            )
        return self._passages[passage_id]


def save_hits(
    index: Index,
    questions: Iterable[str],
    path: str | Path,
    *,
    k: int = 100,
    method: Method | None = None,
    progress: Progress = silent,
    executor: Executor = run_here,
) -> int:
    """Search for all questions, each once, and write the hits. The file appears when all are searched.

    An executor may search elsewhere, where the index's folder is opened once more.
    """
    unique = list(dict.fromkeys(questions))
    head = {
        "kept": 1,
        "index": index.manifest.created,
        "passages": len(index),
        "method": index.method(method),
        "k": k,
    }
    written: set[str] = set()  # ids of passages
    with _line_writer(Path(path)) as write:
        write(head)
        done = 0
        for batch, results in _searched(index, unique, k, method, executor):
            for question, hits in zip(batch, results, strict=True):
                ranked = []
                for hit in hits:
                    passage = hit.passage
                    ranked.append([passage.id, round(hit.score, 6)])
                    if passage.id not in written:
                        written.add(passage.id)
                        write(_record(passage))
                write({"question": question, "hits": ranked})
            done += len(batch)
            progress(done / len(unique), done)
    return len(unique)


class _Searching:
    """What a worker does: search for a batch of questions, over an index that it opens once."""

    def __init__(self, index: Index, k: int, method: Method | None) -> None:
        self._place = index.origin
        self._k = k
        self._method = method
        self._index: Index | None = index

    def __getstate__(self) -> dict[str, Any]:
        """It travels without what is open."""
        return self.__dict__ | {"_index": None}

    def __call__(self, batch: _Batch) -> list[list[Hit]]:
        if self._index is None:
            self._index = Index.open(self._place)
        return self._index.search_many(batch.questions, self._k, self._method)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Questions that are searched together."""

    number: int
    questions: Sequence[str]


def _searched(
    index: Index, questions: Sequence[str], k: int, method: Method | None, executor: Executor
) -> Iterator[tuple[Sequence[str], list[list[Hit]]]]:
    """Yield batches of questions with their hits, in order, however they are completed."""
    batches: list[_Batch] = []
    for start in range(0, len(questions), _BATCH):
        batches.append(_Batch(len(batches), questions[start : start + _BATCH]))
    work = _Searching(index, k, method)
    early: dict[int, list[list[Hit]]] = {}
    following = 0
    with closing(closable(executor(work, batches))) as completed:
        for batch, results in completed:
            early[batch.number] = results
            while following in early:
                yield batches[following].questions, early.pop(following)
                following += 1


def _is_head(record: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(record, dict) or record.get("kept") != 1:
        return False
    return record.keys() >= _HEAD_KEYS


def _passage(record: Mapping[str, Any]) -> Passage:
    """Reject records whose id, title or text is not a string."""
    for name in _REQUIRED:
        if not isinstance(record[name], str):
            raise TypeError(f"The passage's {name} is not a string.")
    return Passage(**record)


def _ids_and_scores(hits: Sequence[Any]) -> list[tuple[str, float]]:
    ranked = []
    for passage_id, value in hits:
        score = float(value)
        if not math.isfinite(score):
            raise ValueError("The score is not a number.")
        ranked.append((passage_id, score))
    return ranked


def _record(passage: Passage) -> dict[str, Any]:
    """Return the passage as JSON. Fields that hold their default are left out."""
    record = {}
    for field in fields(Passage):
        value = getattr(passage, field.name)
        if field.name in _REQUIRED or value != field.default:
            record[field.name] = value
    return record


@contextmanager
def _line_writer(path: Path) -> Iterator[Callable[[Any], None]]:
    """Write records as lines of a file beside the path, which is renamed into place when nothing went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as raw:
            with _compress(path.suffix.lower(), raw) as file:

                def write(record: Any) -> None:
                    line = json.dumps(record, ensure_ascii=False)
                    file.write(line.encode() + b"\n")

                yield write
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


_Writer = AbstractContextManager[IO[bytes]]


def _compress(suffix: str, raw: IO[bytes]) -> _Writer:
    """Return a file that compresses into `raw`, by the ending of the name."""
    if suffix == ".gz":
        # Without a time, so that the same hits are the same file.
        return cast(_Writer, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0))
    if suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    if suffix == ".zst":
        import zstandard

        return cast(_Writer, zstandard.ZstdCompressor(level=10).stream_writer(raw, closefd=False))
    return nullcontext(raw)
