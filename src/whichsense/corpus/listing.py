"""List the files of a source: one file, or all readable files below a folder and nothing outside it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from whichsense import files
from whichsense.corpus.formats import detection as formats
from whichsense.corpus.formats.jsonlines import as_lines
from whichsense.errors import BadInput
from whichsense.text.words import whole_characters


@dataclass
class SourceEntry:
    """A file that will be read, or one that will be named as broken because it must not be (`wrong`)."""

    path: Path
    root: Path | None
    """The folder in which it was found; None where the file itself was given."""
    format: str = ""
    wrong: str = ""
    size: int = 0
    mtime: int = 0
    name: str = field(default="", init=False)

    @property
    def relative(self) -> str:
        return whole_characters(
            self.path.relative_to(self.root).as_posix() if self.root else self.path.name
        )

    @property
    def label(self) -> str:
        return self.relative if self.root else whole_characters(str(self.path))

    @property
    def document(self) -> bool:
        return self.format in formats.DOCUMENTS


@dataclass
class Listing:
    """The files of all sources, in the order in which they are read."""

    entries: list[SourceEntry]
    passed_over: int


def list_files(sources: Iterable[Path], format: str | None) -> Listing:
    """Look into each source. A source that holds nothing to read is an error."""
    listing = Listing([], 0)
    for source in sources:
        if os.path.isdir(source):  # unlike Path.is_dir, False for what cannot be a path
            _list_folder(source, format, listing)
        else:
            listing.entries.append(_file_entry(source, format))
    _name(listing.entries)
    return listing


def _list_folder(source: Path, format: str | None, listing: Listing) -> None:
    """Add the files below a folder to the listing."""
    entries = list(_walk(source, format))
    if len(entries) == 1 and entries[0].path == source:
        raise BadInput(
            f"The folder '{source}' is an index. Give the text that it was made from."
        )
    readable = False
    for entry in entries:
        if entry.format or entry.wrong:
            listing.entries.append(entry)
        else:
            listing.passed_over += 1
        readable = readable or bool(entry.format)
    if not readable:
        kinds = ".jsonl .csv .tsv .parquet .xml .txt .md .html .pdf .docx"
        raise BadInput(
            f"The folder '{source}' holds no file that can be read. Kinds that can: {kinds}."
        )


def _file_entry(path: Path, format: str | None) -> SourceEntry:
    """A file that was given as a source. Whatever is wrong with it is an error."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise BadInput(
            f"There is no file or folder '{path}'. Check the path."
        ) from None
    except OSError as error:
        raise BadInput(
            f"'{path}' cannot be read: {error.strerror}. Check the path and its rights."
        ) from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(f"{str(path)!r} is not a path: {error}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(
            f"'{path}' is neither a file nor a folder. Write its content to a file first."
        )
    if not status.st_size:
        raise BadInput(
            f"'{path}' is empty. Check that it was written or fetched to the end."
        )
    if not format and files.plain_suffix(path) in formats.ARCHIVES:
        raise BadInput(f"'{path}' is an archive. Unpack it and give the folder.")
    kind = format or formats.by_name(path) or formats.by_content(path)
    if kind is None:
        raise BadInput(
            f"'{path}' is binary, in no known format. Known: {', '.join(formats.FORMATS)}."
        )
    if kind == "json":
        kind = "jsonl"  # whose reader says what to run
    if format is None:
        kind = formats.refined(path, kind)
    return SourceEntry(path, None, kind, size=status.st_size, mtime=status.st_mtime_ns)


def _walk(root: Path, format: str | None) -> Iterator[SourceEntry]:
    """Every file below a folder, sorted; hidden ones are left alone, links that lead outside are named.

    A folder that is an index comes as one entry without a format: `index build . --out idx` must not read idx.
    """
    real = Path(os.path.realpath(root))
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        here = Path(folder)
        visible, linked = _visible_folders(here, folders)
        folders[:] = visible  # os.walk goes into these alone
        if _is_index(folders, names):
            # What was made from text is not text: it is passed over as one entry.
            folders.clear()
            yield SourceEntry(here, root)
            continue
        for name in sorted(names + linked):
            path = here / name
            if name.startswith("."):
                continue
            if not path.is_symlink():
                yield _folder_entry(path, root, format)
            elif not Path(os.path.realpath(path)).is_relative_to(real):
                yield SourceEntry(
                    path,
                    root,
                    wrong="path outside the folder: the link is not followed. Copy the file in.",
                )
            elif not path.exists():
                yield SourceEntry(path, root, wrong="the link leads nowhere.")
            # A link to a place inside is ignored: its target is read at its own place.


def _visible_folders(parent: Path, names: list[str]) -> tuple[list[str], list[str]]:
    """The folders to go into, sorted, and those that are links."""
    visible, linked = [], []
    for name in names:
        if (parent / name).is_symlink():
            linked.append(name)
        elif not name.startswith("."):
            visible.append(name)
    return sorted(visible), linked


def _is_index(folders: list[str], names: list[str]) -> bool:
    """Whether a folder with these in it is an index of ours, or one that is being built."""
    if "staging" in folders and "writer.lock" in names:
        return True
    has_generation = any(name.startswith("generation-") for name in folders)
    return has_generation and "manifest.json" in names


def _unreadable(error: OSError) -> None:
    raise BadInput(
        f"The folder '{error.filename}' cannot be read: {error.strerror}. Check its rights."
    )


def _folder_entry(path: Path, root: Path, format: str | None) -> SourceEntry:
    """A file below a folder. It has no format where it is of a kind that is not read."""
    status = path.stat()
    entry = SourceEntry(path, root, size=status.st_size, mtime=status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return entry
    kind = formats.by_name(path)
    try:
        if format:
            kind = format
        elif kind:
            kind = formats.refined(path, kind)
        elif files.plain_suffix(path) in ("", ".json") or _wikiextractor(path):
            guess = formats.by_content(path)
            if guess == "json" and (program := formats.jq_program(path)):
                entry.wrong = as_lines(path, "JSON, but not JSON lines", program)
            kind = guess if guess in ("jsonl", "wikipedia", "dpr", "parquet") else None
    except BadInput as error:
        entry.wrong = whole_characters(str(error))
    entry.format = kind or ""
    return entry


def _wikiextractor(path: Path) -> bool:
    return path.name.startswith("wiki_")


def _name(entries: list[SourceEntry]) -> None:
    """Give each file the shortest name that no other has: its stem, else its path, else with its folder."""
    forms = [_names(entry) for entry in entries]
    # How often each name stands among the first, second … forms of all files.
    counts = [Counter(names) for names in zip(*forms, strict=True)]
    taken: set[str] = set()
    for entry, names in zip(entries, forms, strict=True):
        name = names[-1]
        for form, count in zip(names, counts, strict=True):
            if count[form] == 1:
                name = form
                break
        while name in taken:  # the same file given twice
            name += "+"
        taken.add(name)
        entry.name = name


def _names(entry: SourceEntry) -> tuple[str, ...]:
    """The names that a file may have, shortest first."""
    relative = entry.relative
    path = entry.path.resolve()
    whole = whole_characters(str(path))
    parent = entry.root.resolve() if entry.root else path.parent
    folder = whole_characters(parent.name)
    if entry.document:
        return relative, relative, f"{folder}/{relative}", whole
    own = whole_characters(entry.path.name)
    stem = own.split(".")[0] or own
    with_folders = relative[: len(relative) - len(own)] + stem
    return stem, with_folders, f"{folder}/{relative}", whole
