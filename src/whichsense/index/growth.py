"""What a build or an add has to do: a corpus that is put on top of an index, or of nothing."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from whichsense.corpus import Corpus, RecordCorpus, pieces, title_line
from whichsense.index import publish
from whichsense.index.folder import FORMAT, Manifest, Sharding
from whichsense.jobs.progress import Progress
from whichsense.protocols import Encoder
from whichsense.text.words import whole_characters
from whichsense.types import Document


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents become passages: `words` white-space words each, or whole sentences up to that many."""

    words: int = 100
    sentences: bool = False


@dataclass(frozen=True)
class Growth:
    """The work that build and add have in common, with shards or without."""

    folder: Path
    corpus: Corpus | RecordCorpus
    cutting: Cutting
    encoder: Encoder | None
    base: Manifest | None
    progress: Progress
    say: Callable[[str], None]

    @property
    def job(self) -> dict[str, Any]:
        """Says whether a stopped run was the same work."""
        return {
            "corpus": self.corpus.fingerprint,
            "cutting": dataclasses.asdict(self.cutting),
            "format": FORMAT,
            "base": self.base.generation if self.base else None,
            "encoder": self.encoder.name if self.encoder else None,
        }

    def draft(
        self,
        passages: int,
        next_row: int,
        report: Mapping[str, Any],
        sharding: Sharding | None = None,
    ) -> Manifest:
        """The next generation's manifest, but for its files."""
        paths = []
        for path in self.corpus.find_files():
            paths.append(whole_characters(str(path)))
        source = {"paths": paths, "fingerprint": self.corpus.fingerprint}
        before = self.base.sources if self.base else ()
        return Manifest(
            generation=publish.next_generation(self.folder),
            passages=passages,
            next_row=next_row,
            created=now(),
            settings=dataclasses.asdict(self.cutting),
            sources=(*before, source),
            encoder=self.encoder.name if self.encoder else None,
            report=report,
            sharding=sharding,
        )

    @property
    def id_prefix(self) -> str:
        """Keep ids unique: where a file of the same name was read before, the generation goes before them."""
        if self.base is None:
            return ""
        read_before = set()
        for source in self.base.sources:
            for path in source["paths"]:
                read_before.add(Path(path).name)
        names = {path.name for path in self.corpus.find_files()}
        return f"{self.base.generation + 1}/" if read_before & names else ""


class CutPassage(NamedTuple):
    """A passage before it is stored."""

    title: str
    text: str
    document: str
    names: tuple[str, str, str, str]
    """Id, title, source and section."""
    start: int


def cut_record(
    record: Document, id_prefix: str, cutting: Cutting
) -> Iterator[CutPassage]:
    """The passages of a document, whose id gets a prefix."""
    if id_prefix:
        record = dataclasses.replace(record, id=f"{id_prefix}{record.id}")
    title, whole, source = title_line(record), record.text, record.source
    document = record.id
    for name, section, start, end in pieces(record, cutting.words, cutting.sentences):
        names = (name, title, source, section)
        yield CutPassage(title, whole[start:end], document, names, start)


def now() -> str:
    """The time, as a manifest has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
