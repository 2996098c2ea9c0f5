"""A dataset by name: its records, read on iteration; checks of its files; questions that nearly repeat."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar, overload

from whichsense.errors import BadInput, DamagedData, WhichsenseError
from whichsense.files import sha256_unpacked
from whichsense.lab.datasets import readers
from whichsense.lab.datasets.catalog import (
    Entry,
    Family,
    Release,
    advise_getting,
    advise_replacing,
    entry,
    find,
    locate,
    matching_releases,
)
from whichsense.lab.datasets.records import Question, Record
from whichsense.lab.datasets.rows import Reader, Rows
from whichsense.text.words import words
from whichsense.types import frozen

# Find questions that repeat others: equal, or with nearly the same words.

_THRESHOLD = 0.75  # Jaccard overlap of words

_Words = frozenset[str]


def find_near_duplicates(
    questions: Sequence[str], against: Sequence[str], threshold: float = _THRESHOLD
) -> dict[int, int]:
    """Return the questions that repeat one of `against`: position → position of the first that they repeat there.

    Two questions repeat each other when the Jaccard overlap of their word sets is `threshold` or more. Exact, and
    fast by prefix filtering: two sets with such an overlap share one of their few rarest words.

    >>> find_near_duplicates(["who sang Hurt?", "who wrote it"], ["Who sang hurt", "when was it"])
    {0: 0}
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be over 0 and at most 1, not {threshold}")
    known = [frozenset(words(text)) for text in against]
    asked = [frozenset(words(text)) for text in questions]
    frequency = Counter(chain.from_iterable((*known, *asked)))
    # word → positions in `against` of the questions that have it among their rarest words
    index: defaultdict[str, list[int]] = defaultdict(list)
    for number, tokens in enumerate(known):
        for word in _rarest_words(tokens, frequency, threshold):
            index[word].append(number)
    duplicates: dict[int, int] = {}
    for number, tokens in enumerate(asked):
        rarest = _rarest_words(tokens, frequency, threshold)
        candidates = set(chain.from_iterable(index[word] for word in rarest))
        for candidate in sorted(candidates):
            if _overlap_enough(tokens, known[candidate], threshold):
                duplicates[number] = candidate
                break
    return duplicates


def _overlap_enough(one: _Words, other: _Words, threshold: float) -> bool:
    if not one:  # punctuation alone, which repeats every other such text
        return not other
    small, large = sorted((len(one), len(other)))
    if small / large < threshold:  # even if the smaller set is a subset of the larger
        return False
    shared = len(one & other)
    return shared / (small + large - shared) >= threshold


def _rarest_words(tokens: _Words, frequency: Counter[str], threshold: float) -> list[str]:
    """Return the prefix: of n words, as many as leave a rest that cannot reach the threshold alone."""
    if not tokens:
        return [""]
    # Rounding errors must not demand a word too many.
    needed = math.ceil(threshold * len(tokens) - 1e-9)
    ranked = sorted(tokens, key=lambda word: (frequency[word], word))
    return ranked[: len(tokens) - needed + 1]


# Load a dataset by name: nothing is read until it is iterated.

_RecordT_co = TypeVar("_RecordT_co", bound=Record, covariant=True)

# The names that the catalog's `reader` may have.
READERS: dict[str, Reader] = {
    name.removeprefix("read_"): reader
    for name, reader in vars(readers).items()
    if getattr(reader, "__module__", "") == readers.__name__ and name.startswith("read_")
}


class Dataset(Generic[_RecordT_co]):
    """The records of a dataset. Iterating streams them from the file; `len` reads and keeps them."""

    def __init__(
        self, about: Entry, kind: type[_RecordT_co], folder: Path | None, without: Sequence[str]
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
        return _place(self.about, self._folder) or locate(self.about, self._folder)

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
        for record in read_file(self.about, self.path, _fix(self.about)):
            if not isinstance(record, self._kind):
                actual = type(record).__name__
                raise BadInput(
                    f"'{self.name}' holds {actual} records, not {self._kind.__name__}. Ask for kind={actual}."
                )
            yield record


def read_file(about: Entry, path: Path, fix: str) -> Iterator[Record]:
    """Yield the records of one file, by the reader that the catalog names."""
    return READERS[about.reader](Rows(path, fix, about.inside))


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
    """Load a dataset by name, or a file in the form of AmbigNQ, CAmbigNQ or ASQA by its path.

    `kind` is the record type that the caller needs, for the type checker and as a check. `without` names datasets
    whose questions must not occur: questions that equal or nearly equal one of theirs are dropped, for training.

    >>> load("asqa/dev")
    load('asqa/dev')
    """
    for other in without:
        _about(other)  # raises where there is no such dataset
    folder = Path(data_dir) if data_dir else None
    return Dataset(_about(name), kind, folder, without)


# A field that only one release has → the reader.
_READER_BY_FIELD = {
    "clarification_question": "cambignq",
    "ambiguous_question": "asqa",
    "used_queries": "ambignq_full",
}
_OWN_FILE = Family("file", "A file", "", "", "", "", ())
_NOT_KNOWN = "Is it in the form of AmbigNQ, CAmbigNQ or ASQA?"


def _about(name: str) -> Entry:
    """Return the catalog's entry, or of a file what its first record tells: which reader it needs."""
    path = Path(name)
    if not path.is_file():
        return entry(name)
    first = next(iter(Rows(path, _NOT_KNOWN)), None)
    fields = first.value if first is not None else {}
    found = [reader for field, reader in _READER_BY_FIELD.items() if field in fields]
    release = Release((path.name,), "own")
    return Entry(str(path), _OWN_FILE, found[0] if found else "ambignq", (release,))


def _place(about: Entry, folder: str | Path | None) -> Path | None:
    return Path(about.name) if about.family is _OWN_FILE else find(about, folder)


def load_questions(
    name: str, data_dir: str | Path | None = None, without: Sequence[str] = ()
) -> tuple[list[Question], Path]:
    """The questions of a dataset, or of a file in the form of AmbigNQ, CAmbigNQ or ASQA, and the path of the file.

    `without` names datasets or files whose questions must not occur.
    """
    dataset = load(name, data_dir=data_dir, without=without)
    return list(dataset), dataset.path


def locate_questions(name: str, data_dir: str | Path | None = None) -> Path:
    """Return the path of the file that `load_questions` reads."""
    return load(name, data_dir=data_dir).path


def _drop_near_duplicates(
    records: list[_RecordT_co], others: Sequence[Question]
) -> list[_RecordT_co]:
    """Return the records whose text does not nearly equal that of one of the others."""
    texts = [record.text for record in records]
    duplicates = find_near_duplicates(texts, [other.text for other in others])
    return [record for number, record in enumerate(records) if number not in duplicates]


# Check a file against the catalog: checksum, count, and the schema of every record.


@frozen
class CheckReport:
    """The result of a check: `problem` is empty where there is none."""

    name: str
    path: Path | None
    count: int = 0
    release: str = ""
    checksum: str = ""
    """"matches", or "not on record" for releases whose checksum is unknown."""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem


def check(name: str, data_dir: str | Path | None = None) -> CheckReport:
    """Read a dataset to its end and compare it with the catalog. Bad data is reported, not raised."""
    about = _about(name)
    path = _place(about, data_dir)
    if path is None:
        advice = advise_getting(about, data_dir)
        return CheckReport(name, None, problem=f"not there. {advice}")
    count = 0
    try:
        # The checksum first: a file known to be wrong need not be read.
        release, checksum = _identify_by_checksum(about, path)
        seen: set[str] = set()
        for record in read_file(about, path, _fix(about)):
            count += 1
            if record.id in seen:
                raise DamagedData(
                    f"'{path}', record {count}: the id '{record.id}' occurs twice. {_fix(about)}"
                )
            seen.add(record.id)
        release = release or _identify_by_count(about, path, count)
    except WhichsenseError as error:
        return CheckReport(name, path, count, problem=str(error))
    problem = ""
    if release.count is not None and release.count != count:
        problem = f"'{path}' has {count:,} records; the {release.name} release has {release.count:,}. {_fix(about)}"
    return CheckReport(name, path, count, release.name, checksum, problem)


def _fix(about: Entry) -> str:
    if about.family is _OWN_FILE:
        return _NOT_KNOWN
    return f"Get the file again ({advise_replacing(about)})."


def _identify_by_checksum(about: Entry, path: Path) -> tuple[Release | None, str]:
    """Return the release with the file's checksum; None where only the count can tell."""
    if not any(release.sha256 for release in about.releases):
        return None, "not on record"
    digest = sha256_unpacked(path)
    for release in about.releases:
        if release.sha256 == digest:
            return release, "matches"
    possible = matching_releases(about, path)
    if possible and all(release.sha256 for release in possible):
        raise _wrong_checksum(about, path, digest, possible)
    return None, "not on record"


def _identify_by_count(about: Entry, path: Path, count: int) -> Release:
    """Return the release without a checksum that has this count.

    A file that has the name of a release with a checksum, but neither its checksum nor a known count, is damaged.
    """
    possible = matching_releases(about, path)
    unknown = [release for release in possible if not release.sha256]
    for release in unknown:
        if release.count in (None, count):
            return release
    if len(unknown) < len(possible):
        raise _wrong_checksum(about, path, sha256_unpacked(path), possible)
    return unknown[0]


def _wrong_checksum(about: Entry, path: Path, digest: str, possible: list[Release]) -> DamagedData:
    known = []
    for release in possible:
        expected = release.sha256 or f"{release.count:,} records"
        known.append(f"{release.name}: {expected}")
    return DamagedData(
        f"'{path}' has the wrong checksum {digest} (known: {'; '.join(known)}). {_fix(about)}"
    )
