"""Is a file what it claims to be? Checksum, count, and the schema of every record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whichsense.datasets.catalog import Entry, Release, entry
from whichsense.datasets.dataset import read_file
from whichsense.datasets.faults import DamagedData
from whichsense.datasets.folder import claimed, find, how_again, how_to_get
from whichsense.errors import WhichsenseError
from whichsense.files import sha256_unpacked


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found: `problem` is empty where all is well."""

    name: str
    path: Path | None
    count: int = 0
    release: str = ""
    checksum: str = ""
    """"matches", or "not on record" for releases whose checksum nobody wrote down."""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem


def check(name: str, data_dir: str | Path | None = None) -> Report:
    """Read a dataset to its end and compare it with the catalog. Nothing is raised for bad data: it is reported."""
    about = entry(name)
    path = find(about, data_dir)
    if path is None:
        return Report(name, None, problem=f"not there. {how_to_get(about, data_dir)}")
    count = 0
    try:
        release, checksum = _identified(about, path)
        seen: set[str] = set()
        for record in read_file(about, path, _fix(about)):
            count += 1
            if record.id in seen:
                raise DamagedData(
                    f"'{path}', record {count}: the id '{record.id}' occurs twice. {_fix(about)}"
                )
            seen.add(record.id)
        release = release or _by_count(about, path, count)
    except WhichsenseError as error:
        return Report(name, path, count, problem=str(error))
    problem = ""
    if release.count is not None and release.count != count:
        problem = f"'{path}' has {count:,} records; the {release.name} release has {release.count:,}. {_fix(about)}"
    return Report(name, path, count, release.name, checksum, problem)


def _fix(about: Entry) -> str:
    return f"Get the file again ({how_again(about)})."


def _identified(about: Entry, path: Path) -> tuple[Release | None, str]:
    """The release that the checksum tells; None where only the count can tell."""
    if not any(release.sha256 for release in about.releases):
        return None, "not on record"
    digest = sha256_unpacked(path)
    for release in about.releases:
        if release.sha256 == digest:
            return release, "matches"
    claims = claimed(about, path)
    if claims and all(release.sha256 for release in claims):
        raise _wrong_checksum(about, path, digest, claims)
    return None, "not on record"


def _by_count(about: Entry, path: Path, count: int) -> Release:
    """Which of the releases without a checksum it is. A file that only looks like one with a checksum is damaged."""
    claims = claimed(about, path)
    unknown = [release for release in claims if not release.sha256]
    for release in unknown:
        if release.count in (None, count):
            return release
    if len(unknown) < len(claims):
        raise _wrong_checksum(about, path, sha256_unpacked(path), claims)
    return unknown[0]


def _wrong_checksum(
    about: Entry, path: Path, digest: str, claims: list[Release]
) -> DamagedData:
    known = "; ".join(
        f"{release.name}: {release.sha256 or f'{release.count:,} records'}"
        for release in claims
    )
    return DamagedData(
        f"'{path}' has the wrong checksum {digest} (known: {known}). {_fix(about)}"
    )
