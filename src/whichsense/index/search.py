"""An opened index: one immutable generation, searched by words, by meaning, or by both."""

from __future__ import annotations

import bisect
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from whichsense.corpus.memory import GivenRecord, Sources
from whichsense.errors import BadInput, DamagedIndex, NoIndex, did_you_mean
from whichsense.index import folder as folders
from whichsense.index.dense.encode import encoder_of
from whichsense.index.folder import Manifest
from whichsense.index.growth import Cutting
from whichsense.index.names import Names
from whichsense.index.object_store import local_folder
from whichsense.index.shards.gather import Gatherer, LocalShards, ask_all
from whichsense.index.shards.layout import Spread, check_labels
from whichsense.index.shards.ranker import Shards
from whichsense.index.shards.shard import Shard
from whichsense.index.store import unpack
from whichsense.index.write import build_index
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.protocols import Encoder
from whichsense.types import Hit, Method, Passage, Sense

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
        self._gatherer = Gatherer(self._shards, manifest.shard_passages)
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
        encoder: Encoder | None = None,
        format: str | None = None,
        encoding: str | None = None,
        progress: Progress = silent,
        say: Callable[[str], None] = unsaid,
        shards: Spread | None = None,
    ) -> Index:
        """Build an index in a folder and open it.

        `sources` are a file or folder, several of them, or records. An index that is in the folder already is served
        until the new one is complete; a build that was stopped resumes. With `shards` it is spread over several.
        """
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
        encoder: Encoder | None = None,
    ) -> Index:
        """Build an index of records for this process: {"title": …, "text": …}, a Document or a Passage each.

        It is in a temporary folder, which is removed when the index is closed or garbage-collected.

        >>> index = Index.of([{"title": "Jaguar", "text": "A large cat."}, {"title": "Puma", "text": "It screams."}])
        >>> index.search("Which cat is large?")[0].passage.title
        'Jaguar'
        """
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
        """The generation that is served now. A writer may publish the next one in this very moment: then try again."""
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
        """This index, or its newer generation if one was published since. Another encoder is loaded by its name."""
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
        """What decides the hits: when the index was built, and how many passages it has."""
        return {"index": self.manifest.created, "passages": len(self)}

    def search(
        self, question: str, k: int = 100, method: Method | None = None
    ) -> list[Hit]:
        """The best k passages for a question."""
        return self.search_many([question], k, method)[0]

    def search_many(
        self, questions: Sequence[str], k: int = 100, method: Method | None = None
    ) -> list[list[Hit]]:
        """The best k passages for each question; questions are encoded together."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least one passage.")
        k = min(k, max(len(self), 1))
        for question in questions:
            check_question(question)
        method = self.method(method)
        if method == "bm25":
            return [self._gatherer.by_words(question, k) for question in questions]
        # questions × dimensions
        encoded = self._load_encoder().encode_questions(list(questions))
        if method == "dense":
            return [self._gatherer.by_meaning(vector, k) for vector in encoded]
        weight = _COSINE_WEIGHTS.get(self.manifest.encoder or "", _OTHER_COSINE_WEIGHT)
        depth = max(k, _FUSION_DEPTH)
        results: list[list[Hit]] = []
        for question, vector in zip(questions, encoded, strict=True):
            hits = self._gatherer.by_both(question, vector, k, depth, weight)
            results.append(hits)
        return results

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id."""
        for passage in self._everywhere("named", [passage_id]):
            if passage.id == passage_id:
                return passage
        raise BadInput(f"No passage has the id '{passage_id}' in '{self.folder}'.")

    def document(self, passage_id: str) -> list[Passage]:
        """All passages of the document that a passage is from, in the document's order."""
        passage = self.passage(passage_id)
        document_id, cut, _ = passage.id.rpartition("#")
        if not cut:
            return [passage]
        passages = self._everywhere("named", [document_id])
        return sorted(passages, key=lambda one: one.start)

    def of_source(self, source: str) -> list[Passage]:
        """All passages of a source, in the index's order."""
        return self._everywhere("named", [], [source])

    def passages(self) -> list[Passage]:
        """Every passage, in the index's order. Large indexes have too many for this."""
        return self._everywhere("every")

    def _everywhere(self, verb: str, *arguments: Any) -> list[Passage]:
        """What all shards answer, in the index's order."""
        everywhere = dict.fromkeys(range(len(self.manifest.shard_rows)), arguments)
        answers: list[tuple[int, Passage]] = []
        for answer in ask_all(self._shards, verb, everywhere).values():
            answers += answer
        return [passage for _, passage in sorted(answers, key=lambda pair: pair[0])]

    def at(self, rows: Sequence[int]) -> list[Passage]:
        """Passages by row, from 0 to `manifest.next_row`, shard after shard; deleted ones are still there."""
        ends = list(itertools.accumulate(self.manifest.shard_rows))
        passages = []
        for row in rows:
            shard = bisect.bisect_right(ends, row)
            own = row - (ends[shard - 1] if shard else 0)
            (stored,), _ = ask_all(self._shards, "read", {shard: ([own],)})[shard]
            passages.append(unpack(stored))
        return passages

    def senses(self, name: str) -> list[Sense]:
        """What a name may mean, from the corpus's disambiguation pages."""
        return self._names.senses(name)

    def redirect(self, name: str) -> str | None:
        """Where a name is redirected to, if it is."""
        return self._names.redirect(name)

    def method(self, method: Method | None = None) -> Method:
        """The method that a search will use: the given one, or the best that this index has."""
        if method is None:
            return "hybrid" if self.manifest.encoder else "bm25"
        if method not in get_args(Method):
            raise BadInput(
                f"There is no method '{method}'. {did_you_mean(method, get_args(Method))}"
            )
        if method != "bm25" and not self.manifest.encoder:
            raise BadInput(
                f"'{self.folder}' has no vectors, so it cannot be searched by '{method}'. "
                "Build it with --dense, or use --method bm25."
            )
        return method

    def _load_encoder(self) -> Encoder:
        self._encoder = encoder_of(self.manifest.encoder, self._encoder)
        if self._encoder is None:
            raise DamagedIndex(
                f"'{self.folder}' has vectors, but its manifest names no encoder. Build the index again."
            )
        return self._encoder


def _remove_temporary(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy of the owner must not take its index away
        shutil.rmtree(folder, ignore_errors=True)


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
