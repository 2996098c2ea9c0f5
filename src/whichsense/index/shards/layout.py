"""How an index is spread over shards, and the label by which each shard's folder is known."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.errors import BadInput, DamagedIndex
from whichsense.files import lock, write_atomically
from whichsense.index.folder import Sharding, shard_root
from whichsense.index.store import name_key
from whichsense.jobs.workers import Executor, run_forked

BY = ("hash", "source")
_LABEL = "shard.json"
_MOST = 10_000
_ALL_CORES = run_forked(os.cpu_count() or 1)


@dataclass(frozen=True)
class Spread:
    """How many shards there are, which passage goes where, and who does the work."""

    count: int
    by: str = "hash"
    """hash: all shards alike. source: all passages of one source in the same shard."""
    executor: Executor = _ALL_CORES
    remote: bool = False
    """Whether the executor's workers are on other machines, so that they encode passages, too."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise BadInput(f"{self.count} shards: choose a number from 1 to {_MOST:,}.")
        if self.by not in BY:
            raise BadInput(f"No way to shard by '{self.by}'. Choose hash or source.")

    @classmethod
    def of(cls, sharding: Sharding, executor: Executor | None = None) -> Spread:
        """As an index is spread already; the work is done here, or by an executor elsewhere."""
        count, by = len(sharding.rows), sharding.by
        if executor is None:
            return cls(count, by)
        return cls(count, by, executor, remote=True)

    def shard_of(self, fingerprint: int, source: str) -> int:
        """The number of a passage's shard."""
        if self.by == "hash":
            return fingerprint % self.count
        return name_key(source) % self.count


def new_build() -> str:
    """The id of a generation, which all its shards have."""
    return secrets.token_hex(8)


def without(sharding: Sharding, deleted: Sequence[int]) -> Sharding:
    """The next generation of the shards, with as many passages deleted from each."""
    passages = []
    for before, gone in zip(sharding.passages, deleted, strict=True):
        passages.append(before - gone)
    return dataclasses.replace(sharding, build=new_build(), passages=tuple(passages))


def write_labels(content: Path, sharding: Sharding) -> None:
    """Write into each shard which one it is, and of which build."""
    of = len(sharding.rows)
    for number in range(of):
        label = json.dumps(_label(sharding.build, number, of))
        write_atomically(shard_root(content, number) / _LABEL, label)


@contextlib.contextmanager
def alone_with(root: Path) -> Iterator[None]:
    """No other worker writes this shard meanwhile: one that was thought to be lost may still be at it."""
    with open(root.parent.parent / f"{root.name}.lock", "ab") as file:
        lock(file, wait=True)
        yield


def check_labels(roots: Sequence[Path], sharding: Sharding) -> None:
    """Raise DamagedIndex where a shard is missing, or is not the one that the manifest means."""
    for number, root in enumerate(roots):
        check_label(root, sharding.build, number, len(sharding.rows))


def check_label(root: Path, build: str, number: int, of: int) -> None:
    """The same for one shard."""
    advice = "Restore that folder from a copy of this index, or build the index again."
    name = f"Shard {number + 1} of {of}"
    try:
        written = json.loads((root / _LABEL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DamagedIndex(
            f"{name} is missing: there is no '{root / _LABEL}'. {advice}"
        ) from None
    except ValueError:
        raise DamagedIndex(f"{name}: '{root / _LABEL}' is damaged. {advice}") from None
    if written != _label(build, number, of):
        raise DamagedIndex(
            f"{name}: '{root}' is from another build of the index. {advice}"
        )


def _label(build: str, number: int, of: int) -> dict[str, Any]:
    return {"build": build, "shard": number, "of": of}
