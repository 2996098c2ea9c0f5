"""Check a file against the catalog: checksum, count, and the schema of every record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whichsense.datasets.catalog import Entry, Release, entry
from whichsense.datasets.dataset import read_file
from whichsense.datasets.folder import (
    advise_getting,
    advise_replacing,
    find,
    matching_releases,
)
from whichsense.errors import DamagedData, WhichsenseError
from whichsense.files import sha256_unpacked


@dataclass(frozen=True, slots=True)
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
    about = entry(name)
    path = find(about, data_dir)
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
    return f"Get the file again ({advise_replacing(about)})."


def _identify_by_checksum(about: Entry, path: Path) -> tuple[Release | None, str]:
    """The release with the file's checksum; None where only the count can tell."""
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
    """The release without a checksum that has this count.

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


def _wrong_checksum(
    about: Entry, path: Path, digest: str, possible: list[Release]
) -> DamagedData:
    known = []
    for release in possible:
        expected = release.sha256 or f"{release.count:,} records"
        known.append(f"{release.name}: {expected}")
    return DamagedData(
        f"'{path}' has the wrong checksum {digest} (known: {'; '.join(known)}). {_fix(about)}"
    )
