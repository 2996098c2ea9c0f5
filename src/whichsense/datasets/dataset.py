"""Load a dataset by name: nothing is read until it is iterated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload

from whichsense.datasets import readers, readers_ambiguous, readers_grounded
from whichsense.datasets.catalog import Entry, entry
from whichsense.datasets.folder import how_again, located
from whichsense.datasets.near import near_duplicates
from whichsense.datasets.readers import Reader
from whichsense.datasets.records import Question
from whichsense.errors import BadInput

Record_co = TypeVar("Record_co", bound=Question, covariant=True)

READERS: dict[str, Reader] = {
    "ambignq": readers.ambignq,
    "ambignq_full": readers_ambiguous.ambignq_full,
    "asqa": readers_ambiguous.asqa,
    "cambignq": readers_ambiguous.cambignq,
    "condambigqa": readers_ambiguous.condambigqa,
    "efficientqa_test": readers.efficientqa_test,
    "gold_passages": readers_grounded.gold_passages,
    "hotpotqa": readers_grounded.hotpotqa,
    "musique": readers_grounded.musique,
    "nq_open": readers.nq_open,
    "popqa": readers.popqa,
    "situatedqa": readers_ambiguous.situatedqa,
    "squad": readers_grounded.squad,
    "triviaqa": readers.triviaqa,
    "unanswerable": readers.unanswerable,
    "webquestions": readers.webquestions,
}


class Dataset(Generic[Record_co]):
    """The records of a dataset, as often as they are wanted. Iterating streams them; `len` reads and keeps them."""

    def __init__(
        self,
        about: Entry,
        kind: type[Record_co],
        folder: Path | None,
        without: Sequence[str],
    ) -> None:
        self.about, self._kind, self._folder, self._without = (
            about,
            kind,
            folder,
            tuple(without),
        )
        self._kept: tuple[Record_co, ...] | None = None

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def path(self) -> Path:
        """Its file; an error says how to get it where it is missing."""
        return located(self.about, self._folder)

    def __iter__(self) -> Iterator[Record_co]:
        return iter(self._kept) if self._kept is not None else self._filtered()

    def __len__(self) -> int:
        if (
            self._kept is None
        ):  # `list` asks for the length first: keeping the records spares it a second reading
            self._kept = tuple(self._filtered())
        return len(self._kept)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        left_out = f", without={self._without}" if self._without else ""
        return f"load({self.name!r}{left_out})"

    def _filtered(self) -> Iterator[Record_co]:
        if not self._without:
            yield from self._read()
            return
        others = [
            question
            for name in self._without
            for question in load(name, data_dir=self._folder)
        ]
        everything = list(self._read())
        repeated = near_duplicates(
            [q.text for q in everything], [q.text for q in others]
        )
        yield from (
            question
            for number, question in enumerate(everything)
            if number not in repeated
        )

    def _read(self) -> Iterator[Record_co]:
        for record in read_file(
            self.about, self.path, f"Get the file again ({how_again(self.about)})."
        ):
            if not isinstance(record, self._kind):
                found = type(record).__name__
                raise BadInput(
                    f"'{self.name}' holds {found} records, not {self._kind.__name__}. Ask for kind={found}."
                )
            yield record


def read_file(about: Entry, path: Path, fix: str) -> Iterator[Question]:
    """The records of one file, by the reader that the catalog names."""
    return READERS[about.reader](path, about.inside, fix)


@overload
def load(
    name: str, *, data_dir: str | Path | None = None, without: Sequence[str] = ()
) -> Dataset[Question]: ...
@overload
def load(
    name: str,
    kind: type[Record_co],
    *,
    data_dir: str | Path | None = None,
    without: Sequence[str] = (),
) -> Dataset[Record_co]: ...
def load(
    name: str,
    kind: type[Question] = Question,
    *,
    data_dir: str | Path | None = None,
    without: Sequence[str] = (),
) -> Dataset[Question]:
    """A dataset by name.

    `kind` says which record the caller needs, for the type checker and as a check. `without` names datasets whose
    questions must not occur: those that equal or nearly equal one of theirs are left out, as training needs it.

    >>> load("asqa/dev")
    load('asqa/dev')
    """
    for other in without:
        entry(other)
    return Dataset(entry(name), kind, Path(data_dir) if data_dir else None, without)
