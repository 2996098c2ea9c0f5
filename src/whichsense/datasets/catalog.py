"""The catalog of datasets, from the text files in `catalog/`: source, licence, citation, releases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig, NoDataset, did_you_mean

_FOLDER = Path(__file__).parent / "catalog"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Download:
    """The address of an official release."""

    url: str
    sha256: str = ""
    member: str = ""
    """The file's name inside a .zip or .tar.gz."""


@dataclass(frozen=True, slots=True)
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
    """The catalog entry of a dataset.

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
    entries: dict[str, Entry] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for one in _read_family(path):
            entries[one.name] = one
    return entries


def _read_family(path: Path) -> list[Entry]:
    import tomllib  # here, because scoring uses the readers but not the catalog

    from whichsense.config import from_table

    table = tomllib.loads(path.read_text(encoding="utf-8"))
    splits: dict[str, dict[str, Any]] = table.pop("splits", {})
    reader = table.pop("reader", "")
    if not splits:
        raise BadConfig(f"{path}: no [splits.…] table.")
    family = from_table(Family, {"name": path.stem, **table}, str(path))
    entries = []
    for split, fields in splits.items():
        with_reader = {"reader": reader, **fields}
        entries.append(_parse_entry(family, split, with_reader, str(path)))
    return entries


def _parse_entry(
    family: Family, split: str, fields: dict[str, Any], where: str
) -> Entry:
    from whichsense.config import from_table

    where = f"{where}, splits.{split}"
    releases = []
    for release in fields.pop("releases", []):
        releases.append(from_table(Release, release, where))
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
