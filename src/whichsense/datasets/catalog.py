"""Every dataset by name, from the text files in `catalog/`: where it comes from, its licence, citation, releases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from whichsense.datasets.faults import NoDataset
from whichsense.errors import BadConfig, did_you_mean

_FOLDER = Path(__file__).parent / "catalog"


@dataclass(frozen=True, slots=True)
class Release:
    """A file as someone published it. A file name claims the releases that list it; compression does not matter,
    unless the name here has one."""

    files: tuple[str, ...]
    name: str = "official"
    count: int | None = None
    sha256: str = ""
    """Of the unpacked file; empty where it is not on record."""
    note: str = ""
    anywhere: bool = False
    """The name says what it is, so that the file is also found at the top of the data folder."""


@dataclass(frozen=True, slots=True)
class Download:
    """Where an official release is fetched from."""

    url: str
    sha256: str = ""
    member: str = ""
    """The file's name inside a .zip or .tar.gz."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the splits of a dataset share."""

    name: str
    title: str
    about: str
    homepage: str
    licence: str
    citation: str
    folders: tuple[str, ...]
    packaged: bool = False
    """True where the files are part of this package."""


@dataclass(frozen=True, slots=True)
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
    """The names of all datasets, in the catalog's order."""
    return list(_entries())


def entry(name: str) -> Entry:
    """What is known about a dataset.

    >>> entry("asqa/dve")
    Traceback (most recent call last):
    ...
    whichsense.datasets.faults.NoDataset: No dataset named 'asqa/dve'. Did you mean 'asqa/dev'?
    """
    known = _entries()
    if name in known:
        return known[name]
    splits = [other for other in known if other.startswith(f"{name}/")]
    if splits:
        raise NoDataset(
            f"'{name}' has several splits: name one of {', '.join(splits)}."
        )
    raise NoDataset(f"No dataset named '{name}'. {did_you_mean(name, known)}")


@cache
def _entries() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        found.update(_read(path))
    return found


def _read(path: Path) -> dict[str, Entry]:
    import tomllib  # here, as scoring uses the readers but not the catalog

    from whichsense.config import from_table

    table = tomllib.loads(path.read_text(encoding="utf-8"))
    splits: dict[str, dict[str, Any]] = table.pop("splits", {})
    reader = table.pop("reader", "")
    if not splits:
        raise BadConfig(f"{path}: no [splits.…] table.")
    family = from_table(Family, {"name": path.stem, **table}, str(path))
    return {
        f"{family.name}/{split}": _entry(
            family, split, {"reader": reader, **fields}, str(path)
        )
        for split, fields in splits.items()
    }


def _entry(family: Family, split: str, fields: dict[str, Any], where: str) -> Entry:
    from whichsense.config import from_table

    where = f"{where}, splits.{split}"
    releases = tuple(
        from_table(Release, release, where) for release in fields.pop("releases", [])
    )
    download = fields.pop("download", None)
    if not releases:
        raise BadConfig(f"{where}: no releases.")
    return Entry(
        name=f"{family.name}/{split}",
        family=family,
        reader=fields.pop("reader"),
        releases=releases,
        about=fields.pop("about", ""),
        inside=fields.pop("inside", ""),
        download=from_table(Download, download, where) if download else None,
    )
