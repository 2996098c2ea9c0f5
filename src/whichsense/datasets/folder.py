"""The data folder: where datasets lie, under their original names or ours, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from whichsense.datasets.catalog import Entry, Release
from whichsense.datasets.faults import MissingData
from whichsense.files import COMPRESSED, cache_folder

_PACKAGE = Path(__file__).parents[1]
_VARIABLE = "WHICHSENSE_DATA"


def data_folder(given: str | Path | None = None) -> Path:
    """The folder that was given, or the one named by WHICHSENSE_DATA, or the user's cache."""
    chosen = given or os.environ.get(_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_folder() / "data"


def find(entry: Entry, folder: str | Path | None = None) -> Path | None:
    """The file of a dataset, or None. Releases are looked for in the catalog's order."""
    return next(
        (path for path in _candidates(entry, data_folder(folder)) if path.is_file()),
        None,
    )


def located(entry: Entry, folder: str | Path | None = None) -> Path:
    """The file of a dataset, or an error that says how to get it."""
    path = find(entry, folder)
    if path is None:
        raise MissingData(
            f"'{entry.name}' is not in the data folder '{data_folder(folder)}'. {how_to_get(entry, folder)}"
        )
    return path


def how_to_get(entry: Entry, folder: str | Path | None = None) -> str:
    """What a person does to have the file there."""
    place = home(entry, folder) / plain_name(entry)
    if entry.family.packaged:
        return "It is part of the package: install whichsense again."
    if entry.download is None:
        get = f"It cannot be downloaded automatically: get it from {entry.family.homepage} and put it at '{place}'"
    else:
        what = (
            f" (the file '{entry.download.member}' in it)"
            if entry.download.member
            else ""
        )
        get = (
            f"Run: whichsense data fetch {entry.name}, or download {entry.download.url}{what} "
            f"where there is a network and put it at '{place}'"
        )
    return f"{get}; or set {_VARIABLE} to the folder that has it."


def how_again(entry: Entry) -> str:
    """What a person does when the file that is there is no good."""
    return (
        f"run: whichsense data fetch --force {entry.name}"
        if entry.download
        else f"from {entry.family.homepage}"
    )


def home(entry: Entry, folder: str | Path | None = None) -> Path:
    """The folder that a fetched file is written to."""
    return data_folder(folder) / entry.family.folders[0]


def plain_name(entry: Entry) -> str:
    """The file name of the release that is fetched: the official one where it is known."""
    official = [release for release in entry.releases if release.name == "official"]
    name = (official or list(entry.releases))[0].files[0]
    return _unpacked(name)


def claimed(entry: Entry, path: Path) -> list[Release]:
    """The releases that a file claims to be, by its name; a name that tells its compression is the stronger claim."""
    exact = [release for release in entry.releases if path.name in release.files]
    plain = [
        release for release in entry.releases if _unpacked(path.name) in release.files
    ]
    return exact if exact and path.suffix in COMPRESSED else plain or exact


def _candidates(entry: Entry, root: Path) -> Iterator[Path]:
    base = _PACKAGE if entry.family.packaged else root
    for release in entry.releases:
        places = [base / folder for folder in entry.family.folders] + (
            [base] if release.anywhere else []
        )
        for place in places:
            for name in release.files:
                yield from (place / variant for variant in _variants(name))


def _variants(name: str) -> Iterator[str]:
    yield name
    if not name.endswith(COMPRESSED):
        yield from (name + suffix for suffix in COMPRESSED)


def _unpacked(name: str) -> str:
    return next(
        (name.removesuffix(suffix) for suffix in COMPRESSED if name.endswith(suffix)),
        name,
    )
