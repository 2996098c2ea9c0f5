"""An opened index: one immutable generation, searched by words, by meaning, or by both."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from whichsense.corpus.memory import GivenRecord, Sources
from whichsense.errors import BadInput, DamagedIndex, NoIndex, did_you_mean
from whichsense.index import folder as folders
from whichsense.index.dense.encode import encoder_of
from whichsense.index.folder import Manifest
from whichsense.index.lexical.generation import Texts
from whichsense.index.names import Names
from whichsense.index.store import unpack
from whichsense.index.write import Cutting, build_index
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.protocols import Encoder
from whichsense.types import Hit, Method, Passage, Sense

if TYPE_CHECKING:
    from whichsense.index.dense.vectors import Vectors

LONGEST_QUESTION = 10_000
# How deep each half is searched before both are joined.
_FUSION_DEPTH = 100
# What a cosine counts beside the score by words: tuned on AmbigNQ train. Each encoder has its own spread of cosines.
_COSINE_COUNTS, _COSINE_COUNTS_ELSE = {"static-1": 60.0}, 90.0


class Index:
    """Open with `Index.open(folder)`. Many may be open at once, in one process or in many."""

    def __init__(
        self, folder: Path, manifest: Manifest, encoder: Encoder | None = None
    ) -> None:
        root = folder / manifest.folder
        self.folder, self.manifest = folder, manifest
        self._texts = Texts(root)
        self._names = Names(root / "names.sqlite")
        self._vectors = _vectors(root / "vectors") if manifest.encoder else None
        self._encoder = encoder
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
    ) -> Index:
        """Build an index in a folder and open it.

        `sources` are a file or folder, several of them, or records. An index that is in the folder already is served
        until the new one is complete; a build that was stopped resumes.
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
        folder, seen = Path(folder), None
        while True:
            manifest = folders.read_manifest(folder)
            try:
                folders.verify_sizes(folder, manifest)
                return cls(folder, manifest, encoder)
            except (DamagedIndex, NoIndex, OSError):
                if manifest.generation == seen:
                    raise
                seen = manifest.generation

    def refreshed(self) -> Index:
        """This index, or its newer generation if one was published since."""
        newest = folders.read_manifest(self.folder)
        if newest.generation == self.manifest.generation:
            return self
        return Index.open(self.folder, self._encoder)

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
        asked = [usable(question) for question in questions]
        method = self.method(method)
        if method == "bm25":
            return [
                [hit for _, hit in self._texts.search(question, k)]
                for question in asked
            ]
        assert self._vectors is not None
        encoded = self._loaded_encoder().encode_questions(asked)
        if method == "dense":
            return [self._by_meaning(vector, k) for vector in encoded]
        return [
            self._by_both(question, vector, k)
            for question, vector in zip(asked, encoded, strict=True)
        ]

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id."""
        for passage in self._texts.named([passage_id]).values():
            if passage.id == passage_id:
                return passage
        raise BadInput(f"No passage has the id '{passage_id}' in '{self.folder}'.")

    def at(self, rows: Sequence[int]) -> list[Passage]:
        """Passages by row, from 0 to `manifest.next_row`; deleted ones are still there."""
        return self._texts.fetch(rows)

    def senses(self, name: str) -> list[Sense]:
        """What a name may mean, from the corpus's disambiguation pages."""
        return self._names.senses(name)

    def redirect(self, name: str) -> str | None:
        """Where a name is redirected to, if it is."""
        return self._names.redirect(name)

    def method(self, method: Method | None = None) -> Method:
        """The method that a search will use: the given one, or the best that this index has."""
        if method is None:
            return "hybrid" if self._vectors else "bm25"
        if method not in get_args(Method):
            raise BadInput(
                f"There is no method '{method}'. {did_you_mean(method, get_args(Method))}"
            )
        if method != "bm25" and self._vectors is None:
            raise BadInput(
                f"'{self.folder}' has no vectors, so it cannot be searched by '{method}'. "
                "Build it with --dense, or use --method bm25."
            )
        return method

    def _loaded_encoder(self) -> Encoder:
        self._encoder = encoder_of(self.manifest.encoder, self._encoder)
        assert self._encoder is not None
        return self._encoder

    def _nearest(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        assert self._vectors is not None
        rows, cosines = self._vectors.search(vector, k)
        return list(zip(rows[0].tolist(), cosines[0].tolist(), strict=True))

    def _by_meaning(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        ranked = self._nearest(vector, k)
        passages = self._texts.fetch([row for row, _ in ranked])
        return [
            Hit(passage, score)
            for passage, (_, score) in zip(passages, ranked, strict=True)
        ]

    def _by_both(self, question: str, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """What either search finds, scored by its words and by its meaning together."""
        assert self._vectors is not None and self.manifest.encoder is not None
        depth = max(k, _FUSION_DEPTH)
        near = [row for row, _ in self._nearest(vector, depth)]
        rows, by_words, stored = self._texts.search_beside(question, near, depth)
        weight = _COSINE_COUNTS.get(self.manifest.encoder, _COSINE_COUNTS_ELSE)
        scores = by_words + weight * self._vectors.similarities(vector, rows)
        best = np.argsort(-scores, kind="stable")[:k]
        return [
            Hit(unpack(stored[place]), float(scores[place])) for place in best.tolist()
        ]


def _remove_temporary(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy of the owner must not take its index away
        shutil.rmtree(folder, ignore_errors=True)


def _vectors(folder: Path) -> Vectors:
    from whichsense.index.dense.vectors import Vectors  # loaded only where it is used

    return Vectors.open(folder)


def usable(question: str) -> str:
    """A question as it is; one that cannot be searched for is told."""
    if not question.strip():
        raise BadInput("The question is empty. Ask something.")
    if len(question) > LONGEST_QUESTION:
        raise BadInput(
            f"The question has {len(question):,} characters; at most {LONGEST_QUESTION:,} are read."
        )
    if any("\ud800" <= character <= "\udfff" for character in question):
        raise BadInput(
            "The question is not valid UTF-8. Check the terminal's or the file's encoding."
        )
    return question
