"""Load a dataset by name: nothing is read until it is iterated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload

from whichsense.datasets.catalog import Entry, entry
from whichsense.datasets.folder import advise_replacing, locate
from whichsense.datasets.near_duplicates import find_near_duplicates
from whichsense.datasets.readers import ambiguous, grounded, long_form, plain
from whichsense.datasets.readers.parts import Reader
from whichsense.datasets.records import Question, Record
from whichsense.errors import BadInput

_RecordT_co = TypeVar("_RecordT_co", bound=Record, covariant=True)

_NOT_AMBIGNQ = "Is it AmbigNQ's file, light or full?"

# The names that the catalog's `reader` may have.
READERS: dict[str, Reader] = {
    "ambignq": ambiguous.read_ambignq,
    "ambignq_full": ambiguous.read_ambignq_full,
    "asqa": long_form.read_asqa,
    "asqa_part": long_form.read_asqa_part,
    "cambignq": ambiguous.read_cambignq,
    "cambignq_part": ambiguous.read_cambignq_part,
    "clapnq": long_form.read_clapnq,
    "condambigqa": ambiguous.read_condambigqa,
    "efficientqa_test": plain.read_efficientqa_test,
    "gold_passages": grounded.read_gold_passages,
    "hotpotqa": grounded.read_hotpotqa,
    "musique": grounded.read_musique,
    "nq_open": plain.read_nq_open,
    "popqa": plain.read_popqa,
    "qa_feedback": long_form.read_qa_feedback,
    "ramdocs": ambiguous.read_ramdocs,
    "situatedqa": ambiguous.read_situatedqa,
    "squad": grounded.read_squad,
    "triviaqa": plain.read_triviaqa,
    "unanswerable": plain.read_unanswerable,
    "webquestions": plain.read_webquestions,
    "wice": grounded.read_wice,
}


class Dataset(Generic[_RecordT_co]):
    """The records of a dataset. Iterating streams them from the file; `len` reads and keeps them."""

    def __init__(
        self,
        about: Entry,
        kind: type[_RecordT_co],
        folder: Path | None,
        without: Sequence[str],
    ) -> None:
        self.about = about
        self._kind = kind
        self._folder = folder
        self._without = tuple(without)
        self._records: tuple[_RecordT_co, ...] | None = None  # filled by `len`

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def path(self) -> Path:
        """Its file; raises an error that says how to get it where it is missing."""
        return locate(self.about, self._folder)

    def __iter__(self) -> Iterator[_RecordT_co]:
        if self._records is not None:
            return iter(self._records)
        return self._read_filtered()

    def __len__(self) -> int:
        if self._records is None:
            # `list` asks for the length first: keeping the records saves it a second read
            self._records = tuple(self._read_filtered())
        return len(self._records)

    def __bool__(self) -> bool:
        return True  # without it, `if dataset` would read the file for its length

    def __repr__(self) -> str:
        without = f", without={self._without}" if self._without else ""
        return f"load({self.name!r}{without})"

    def _read_filtered(self) -> Iterator[_RecordT_co]:
        if not self._without:
            yield from self._read()
            return
        others: list[Question] = []
        for name in self._without:
            others.extend(load(name, data_dir=self._folder))
        yield from _drop_near_duplicates(list(self._read()), others)

    def _read(self) -> Iterator[_RecordT_co]:
        fix = f"Get the file again ({advise_replacing(self.about)})."
        for record in read_file(self.about, self.path, fix):
            if not isinstance(record, self._kind):
                actual = type(record).__name__
                raise BadInput(
                    f"'{self.name}' holds {actual} records, not {self._kind.__name__}. Ask for kind={actual}."
                )
            yield record


def read_file(about: Entry, path: Path, fix: str) -> Iterator[Record]:
    """The records of one file, by the reader that the catalog names."""
    return READERS[about.reader](path, about.inside, fix)


@overload
def load(
    name: str, *, data_dir: str | Path | None = None, without: Sequence[str] = ()
) -> Dataset[Question]: ...
@overload
def load(
    name: str,
    kind: type[_RecordT_co],
    *,
    data_dir: str | Path | None = None,
    without: Sequence[str] = (),
) -> Dataset[_RecordT_co]: ...
def load(
    name: str,
    kind: type[Record] = Question,
    *,
    data_dir: str | Path | None = None,
    without: Sequence[str] = (),
) -> Dataset[Record]:
    """A dataset by name.

    `kind` is the record type that the caller needs, for the type checker and as a check. `without` names datasets
    whose questions must not occur: questions that equal or nearly equal one of theirs are dropped, for training.

    >>> load("asqa/dev")
    load('asqa/dev')
    """
    for other in without:
        entry(other)  # raises where there is no such dataset
    folder = Path(data_dir) if data_dir else None
    return Dataset(entry(name), kind, folder, without)


def load_questions(
    name: str, data_dir: str | Path | None = None, without: Sequence[str] = ()
) -> tuple[list[Question], Path]:
    """The questions of a dataset, or of a file in AmbigNQ's form, and the path of the file.

    `without` names datasets or files whose questions must not occur.
    """
    path = Path(name)
    if not path.is_file():
        dataset = load(name, data_dir=data_dir, without=without)
        return list(dataset), dataset.path
    questions = list(ambiguous.read_ambignq(path, "", _NOT_AMBIGNQ))
    others: list[Question] = []
    for other in without:
        others.extend(load_questions(other, data_dir)[0])
    return _drop_near_duplicates(questions, others), path


def locate_questions(name: str, data_dir: str | Path | None = None) -> Path:
    """The path of the file that `load_questions` reads."""
    path = Path(name)
    return path if path.is_file() else load(name, data_dir=data_dir).path


def _drop_near_duplicates(
    records: list[_RecordT_co], others: Sequence[Question]
) -> list[_RecordT_co]:
    """The records whose text does not nearly equal that of one of the others."""
    texts = [record.text for record in records]
    other_texts = [other.text for other in others]
    duplicates = find_near_duplicates(texts, other_texts)
    kept = []
    for number, record in enumerate(records):
        if number not in duplicates:
            kept.append(record)
    return kept
