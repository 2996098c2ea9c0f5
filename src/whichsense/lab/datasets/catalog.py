"""The catalog of datasets, and the folder that holds their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig, MissingData, NoDataset, did_you_mean
from whichsense.files import COMPRESSED, cache_folder
from whichsense.types import frozen

# The catalog of datasets, from the text files in `catalog/`: source, licence, citation, releases.

_FOLDER = Path(__file__).parent / "catalog"


@frozen
class Release:
    """A file as it was published.

    A file can be any release that lists its name, whatever its compression, unless the name here has one.
    """

    files: tuple[str, ...]
    name: str = "official"
    count: int | None = None
    sha256: str = ""
    """Checksum of the unpacked file; empty where it is not on record."""
    note: str = ""
    anywhere: bool = False
    """True where the file is also searched for at the top of the data folder: its name identifies it."""


@frozen
class Download:
    """The address of an official release."""

    url: str
    sha256: str = ""
    member: str = ""
    """The file's name inside a .zip or .tar.gz."""


@frozen
class Family:
    """The fields that the splits of a dataset share."""

    name: str
    title: str
    about: str
    homepage: str
    licence: str
    citation: str
    folders: tuple[str, ...]
    packaged: bool = False
    """True where the files are part of this package."""


@frozen
class Entry:
    """One dataset that can be loaded: `ambignq/dev`."""

    name: str
    family: Family
    reader: str
    releases: tuple[Release, ...]
    about: str = ""
    inside: str = ""
    """The split's key in a file that holds several."""
    download: Download | None = None


def names() -> list[str]:
    """Return the names of all datasets, in the catalog's order."""
    return list(_entries())


def entry(name: str) -> Entry:
    """Return the catalog entry of a dataset.

    >>> entry("asqa/dve")
    Traceback (most recent call last):
    ...
    whichsense.errors.NoDataset: No dataset named 'asqa/dve'. Did you mean 'asqa/dev'?
    """
    known = _entries()
    if name in known:
        return known[name]
    splits = ", ".join(other for other in known if other.startswith(f"{name}/"))
    if splits:
        raise NoDataset(f"'{name}' has several splits: name one of {splits}.")
    raise NoDataset(f"No dataset named '{name}'. {did_you_mean(name, known)}")


@cache
def _entries() -> dict[str, Entry]:
    return {one.name: one for path in sorted(_FOLDER.glob("*.toml")) for one in _read_family(path)}


def _read_family(path: Path) -> list[Entry]:
    import tomllib  # here, because scoring uses the readers but not the catalog

    from whichsense.config import from_table

    table = tomllib.loads(path.read_text(encoding="utf-8"))
    splits: dict[str, dict[str, Any]] = table.pop("splits", {})
    reader = table.pop("reader", "")
    if not splits:
        raise BadConfig(f"{path}: no [splits.…] table.")
    family = from_table(Family, {"name": path.stem, **table}, str(path))
    return [
        _parse_entry(family, split, {"reader": reader, **fields}, str(path))
        for split, fields in splits.items()
    ]


def _parse_entry(family: Family, split: str, fields: dict[str, Any], where: str) -> Entry:
    from whichsense.config import from_table

    where = f"{where}, splits.{split}"
    releases = [from_table(Release, release, where) for release in fields.pop("releases", [])]
    if not releases:
        raise BadConfig(f"{where}: no releases.")
    download = fields.pop("download", None)
    return Entry(
        name=f"{family.name}/{split}",
        family=family,
        reader=fields.pop("reader"),
        releases=tuple(releases),
        about=fields.pop("about", ""),
        inside=fields.pop("inside", ""),
        download=from_table(Download, download, where) if download else None,
    )


# The data folder: datasets under their original names or ours, compressed or not.

_PACKAGE = Path(__file__).parents[2]  # the folder of the sample's files
_VARIABLE = "WHICHSENSE_DATA"


def data_folder(given: str | Path | None = None) -> Path:
    """Return the given folder, or the one named by WHICHSENSE_DATA, or the user's cache."""
    chosen = given or os.environ.get(_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_folder() / "data"


def find(entry: Entry, folder: str | Path | None = None) -> Path | None:
    """Return the file of a dataset, or None. Releases are searched in the catalog's order."""
    for path in _possible_paths(entry, data_folder(folder)):
        if path.is_file():
            return path
    return None


def locate(entry: Entry, folder: str | Path | None = None) -> Path:
    """Return the file of a dataset; raises an error that says how to get it where it is missing."""
    path = find(entry, folder)
    if path is None:
        raise MissingData(
            f"'{entry.name}' is not in the data folder '{data_folder(folder)}'. {advise_getting(entry, folder)}"
        )
    return path


def advise_getting(entry: Entry, folder: str | Path | None = None) -> str:
    """Say how to get a file that is missing."""
    place = fetch_folder(entry, folder) / fetched_name(entry)
    if entry.family.packaged:
        return "It is part of the package: install whichsense again."
    if entry.download is None:
        advice = f"It cannot be downloaded automatically: get it from {entry.family.homepage} and put it at '{place}'"
    else:
        member = ""
        if entry.download.member:
            member = f" (the file '{entry.download.member}' in it)"
        advice = (
            f"Run: whichsense data fetch {entry.name}, or download {entry.download.url}{member} "
            f"where there is a network and put it at '{place}'"
        )
    return f"{advice}; or set {_VARIABLE} to the folder that has it."


def advise_replacing(entry: Entry) -> str:
    """Say how to replace a file that is damaged."""
    if entry.download:
        return f"run: whichsense data fetch --force {entry.name}"
    return f"from {entry.family.homepage}"


def fetch_folder(entry: Entry, folder: str | Path | None = None) -> Path:
    """Return the folder that a fetched file is written to."""
    return data_folder(folder) / entry.family.folders[0]


def fetched_name(entry: Entry) -> str:
    """Return the file name of the release that is fetched: the official one where it is known."""
    chosen = entry.releases[0]
    for release in reversed(entry.releases):
        if release.name == "official":
            chosen = release
    return _without_compression(chosen.files[0])


def matching_releases(entry: Entry, path: Path) -> list[Release]:
    """Return the releases that a file can be, by its name.

    A release that lists the name with its compression wins over those that list the plain name.
    """
    plain_name = _without_compression(path.name)
    exact = [release for release in entry.releases if path.name in release.files]
    plain = [release for release in entry.releases if plain_name in release.files]
    if exact and path.suffix in COMPRESSED:
        return exact
    return plain or exact


def _possible_paths(entry: Entry, root: Path) -> Iterator[Path]:
    base = _PACKAGE if entry.family.packaged else root
    for release in entry.releases:
        places = [base / folder for folder in entry.family.folders]
        if release.anywhere:
            places.append(base)
        for place in places:
            for name in release.files:
                yield place / name
                if not name.endswith(COMPRESSED):
                    yield from (place / (name + suffix) for suffix in COMPRESSED)


def _without_compression(name: str) -> str:
    for suffix in COMPRESSED:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name
