"""The data folder: datasets under their original names or ours, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from whichsense.datasets.catalog import Entry, Release
from whichsense.errors import MissingData
from whichsense.files import COMPRESSED, cache_folder

_PACKAGE = Path(__file__).parents[1]  # the folder of the sample's files
_VARIABLE = "WHICHSENSE_DATA"


def data_folder(given: str | Path | None = None) -> Path:
    """The given folder, or the one named by WHICHSENSE_DATA, or the user's cache."""
    chosen = given or os.environ.get(_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_folder() / "data"


def find(entry: Entry, folder: str | Path | None = None) -> Path | None:
    """The file of a dataset, or None. Releases are searched in the catalog's order."""
    for path in _possible_paths(entry, data_folder(folder)):
        if path.is_file():
            return path
    return None


def locate(entry: Entry, folder: str | Path | None = None) -> Path:
    """The file of a dataset; raises an error that says how to get it where it is missing."""
    path = find(entry, folder)
    if path is None:
        raise MissingData(
            f"'{entry.name}' is not in the data folder '{data_folder(folder)}'. {advise_getting(entry, folder)}"
        )
    return path


def advise_getting(entry: Entry, folder: str | Path | None = None) -> str:
    """The advice for a file that is missing."""
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
    """The advice for a file that is damaged."""
    if entry.download:
        return f"run: whichsense data fetch --force {entry.name}"
    return f"from {entry.family.homepage}"


def fetch_folder(entry: Entry, folder: str | Path | None = None) -> Path:
    """The folder that a fetched file is written to."""
    return data_folder(folder) / entry.family.folders[0]


def fetched_name(entry: Entry) -> str:
    """The file name of the release that is fetched: the official one where it is known."""
    chosen = entry.releases[0]
    for release in reversed(entry.releases):
        if release.name == "official":
            chosen = release
    return _without_compression(chosen.files[0])


def matching_releases(entry: Entry, path: Path) -> list[Release]:
    """The releases that a file can be, by its name.

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
